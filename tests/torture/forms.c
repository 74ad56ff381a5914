/* SPDX-License-Identifier: MIT */
#include "forms.h"

#include "redbucket/async.h"
#include "sleepers.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>

#define PACE_US     25000 /* between two calls of a thread, at most */
#define IMPATIENT   5     /* one in so many asks the same again and again */
#define TIMES       8
#define QUIET_S     4.0 /* what was in doubt so long ago has come through by now, or never will */
#define PATIENCE_S  0.3 /* longer waits are not worth it */
#define LEN_MAX     16
#define LONG_MAX    200
#define LONG_CHANCE 300
#define FLYING_MAX  24
#define TURN_MS     3
#define CANCELLING  200 /* chance, a turn */

static void pause_us(unsigned us)
{
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000},
              NULL);
}

static void pause_some(struct worker *worker)
{
    pause_us(test_chance_below(&worker->chance, PACE_US));
}

/* ---- One after the other -------------------------------------------------------------------- */

static const struct redbucket_request *decide(struct call *call)
{
    struct moment moment = moment_now();

    call_begin(call, &moment);
    call->request.status = redbucket_decide(call->worker->client->limiter, &call->request, 1);
    moment = moment_now();
    call_end(call, &call->request, &moment);
    return &call->request;
}

/* Whoever is rejected and waits as long as he is told to is accepted, if nobody else asks. */
static void ask_twice(struct worker *worker)
{
    const struct redbucket_request *decided;
    struct call call;
    double doubted;
    double wait;

    call_own(&call, worker);
    decided = decide(&call);
    if (decided->status != REDBUCKET_OK || decided->response.accepted ||
        decided->response.degraded || decided->response.retry_after > PATIENCE_S)
        return;
    wait = decided->response.retry_after;
    pause_us((unsigned)decided->response.retry_after_us);
    doubted = account_doubted(call.accounts[0]);
    call_own(&call, worker);
    decided = decide(&call);
    if (decided->status == REDBUCKET_OK && !decided->response.accepted &&
        !decided->response.degraded && now_s() - doubted > QUIET_S)
        fault("own:%s: rejected again after the %.6f s that it was told to wait", call.texts[0],
              wait);
}

void ask_blocking(struct worker *worker)
{
    struct call call;

    while (now_s() < worker->until_s) {
        if (test_chance_below(&worker->chance, 8) == 0) {
            ask_twice(worker);
        } else {
            unsigned times = test_chance_below(&worker->chance, IMPATIENT) == 0 ? TIMES : 1;

            call_draw(&call, worker);
            while (times-- > 0)
                (void)decide(&call);
        }
        pause_some(worker);
    }
    kept_end();
}

/* ---- Arrays --------------------------------------------------------------------------------- */

void ask_arrays(struct worker *worker)
{
    struct call *calls = calloc(LONG_MAX, sizeof *calls);
    struct redbucket_request *requests = calloc(LONG_MAX, sizeof *requests);

    if (calls == NULL || requests == NULL)
        abort();
    while (now_s() < worker->until_s) {
        bool is_long = test_chance_of(&worker->chance, LONG_CHANCE);
        size_t len = 1 + test_chance_below(&worker->chance, is_long ? LONG_MAX : LEN_MAX);

        struct moment moment;

        for (size_t i = 0; i < len; i++) {
            call_draw(&calls[i], worker);
            requests[i] = calls[i].request;
        }
        moment = moment_now();
        for (size_t i = 0; i < len; i++)
            call_begin(&calls[i], &moment);
        (void)!redbucket_decide(worker->client->limiter, requests, len);
        moment = moment_now();
        for (size_t i = 0; i < len; i++)
            call_end(&calls[i], &requests[i], &moment);
        for (int i = 0; i < 4; i++)
            pause_some(worker);
    }
    kept_end();
    free(requests);
    free(calls);
}

/* ---- On an event loop ----------------------------------------------------------------------- */

struct flying {
    struct call call;
    uint64_t id;
    bool up;
};

static void land(void *data, const struct redbucket_request *decided)
{
    struct flying *flying = data;
    struct moment moment = moment_now();

    call_end(&flying->call, decided, &moment);
    flying->up = false;
}

static void launch(struct worker *worker, struct redbucket_async *async, struct flying *flying)
{
    enum redbucket_status status;
    struct moment moment;

    call_draw(&flying->call, worker);
    moment = moment_now();
    call_begin(&flying->call, &moment);
    flying->up = true;
    status = redbucket_async_request(async, &flying->call.request, land, flying, &flying->id);
    if (status == REDBUCKET_OK)
        return;
    fault("asynchronous: %s at once", redbucket_status_name(status));
    flying->up = false;
}

static void turn(struct redbucket_async *async)
{
    struct pollfd polled = {.fd = redbucket_async_descriptor(async), .events = POLLIN};

    if (poll(&polled, 1, TURN_MS) > 0)
        redbucket_async_dispatch(async);
}

void ask_async(struct worker *worker)
{
    struct flying *flying = calloc(FLYING_MAX, sizeof *flying);
    struct redbucket_async *async = NULL;

    if (flying == NULL || redbucket_async_create(worker->client->limiter, &async, NULL) != 0)
        abort();
    while (now_s() < worker->until_s) {
        for (int i = 0; i < FLYING_MAX; i++) {
            if (!flying[i].up && test_chance_below(&worker->chance, 40) == 0)
                launch(worker, async, &flying[i]);
            else if (flying[i].up && test_chance_of(&worker->chance, CANCELLING / FLYING_MAX))
                (void)redbucket_async_cancel(async, flying[i].id);
        }
        turn(async);
    }
    while (redbucket_async_outstanding(async) > 0)
        turn(async);
    redbucket_async_destroy(async);
    kept_end();
    free(flying);
}
