/* SPDX-License-Identifier: MIT */
/*
 * A permit with patience.
 *
 * The wait is counted from before the first question by the monotonic clock, and a delay is
 * compared with what was left of it when the question was asked: a wait of exactly the delay is
 * enough, however long the asking took. A permit that can't be used in time goes back at once, by
 * the model's rule, so that it is neither wasted nor given out twice.
 */
#include "ask.h"

#include <errno.h>
#include <math.h>
#include <time.h>

/* 31 years: longer sleeps are made of these, so nothing overflows a time_t. */
#define SLEEP_MAX 1e9

static double monotonic_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void sleep_until(double end)
{
    const double whole = floor(end);
    const struct timespec time = {
        .tv_sec = (time_t)whole,
        .tv_nsec = (long)((end - whole) * 1e9),
    };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
        continue;
}

void rbk_sleep(double seconds)
{
    const double start = monotonic_seconds();

    for (;;) {
        const double slept = monotonic_seconds() - start;
        const double left = seconds - slept;

        if (!(left > 0.0))
            return;
        sleep_until(start + slept + (left < SLEEP_MAX ? left : SLEEP_MAX));
    }
}

/* How long until the same question with the same wait would have its delay fit. */
static void reject_delay(struct redbucket_verdict *verdict, double left, double wait)
{
    if (!verdict->accepted || verdict->delay <= left)
        return;
    verdict->accepted = false;
    verdict->retry_after = fmax(verdict->delay - wait, 0.0);
    verdict->delay = 0.0;
}

/* Gives the permit of *answer back and turns it into a rejection by what delayed it too long. */
static int give_back(const struct cli_context *context, struct cli_ask *ask, double left,
                     struct cli_answer *answer)
{
    const struct redbucket_request question = {
        .operation = REDBUCKET_GIVE_BACK,
        .taken_at = answer->response.time,
    };
    struct cli_answer after = {.waited = 0.0};
    const int result = rbk_ask_once(context, ask, &question, &after);

    if (result != CLI_DONE)
        return result;
    for (size_t i = 0; i < ask->keys.len; i++) {
        reject_delay(&answer->verdicts[i], left, ask->wait);
        answer->verdicts[i].reset_after = after.verdicts[i].reset_after;
        answer->verdicts[i].remaining = after.verdicts[i].remaining;
    }
    answer->response.accepted = false;
    answer->response.retry_after = fmax(answer->response.delay - ask->wait, 0.0);
    answer->response.delay = 0.0;
    answer->response.reset_after = after.response.reset_after;
    answer->response.remaining = after.response.remaining;
    return CLI_DONE;
}

/* What an answer means for who has `left` seconds: sleep out a delay, give up, or, with *again, ask
 * once more. */
static int take(const struct cli_context *context, struct cli_ask *ask, double left,
                struct cli_answer *answer, bool *again)
{
    const struct redbucket_response *response = &answer->response;

    *again = false;
    if (response->accepted) {
        if (response->delay > left)
            return give_back(context, ask, left, answer);
        rbk_sleep(response->delay);
        return CLI_DONE;
    }
    if (isinf(response->retry_after) || left <= 0.0)
        return CLI_DONE;
    rbk_sleep(fmin(response->retry_after, left));
    *again = true;
    return CLI_DONE;
}

int rbk_ask_permit(const struct cli_context *context, struct cli_ask *ask,
                   struct cli_answer *answer)
{
    const struct redbucket_request question = {.operation = REDBUCKET_REQUEST};
    const double start = monotonic_seconds();
    double asked = start;
    bool again = true;
    int result = CLI_DONE;

    answer->waited = 0.0;
    while (result == CLI_DONE && again) {
        const double left = fmax(ask->wait - (asked - start), 0.0);

        result = rbk_ask_once(context, ask, &question, answer);
        if (!ask->waits || result != CLI_DONE)
            return result;
        result = take(context, ask, left, answer, &again);
        asked = monotonic_seconds();
        if (again || answer->response.delay > 0.0) /* it slept */
            answer->waited = asked - start;
    }
    return result;
}
