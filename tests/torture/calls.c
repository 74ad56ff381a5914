/* SPDX-License-Identifier: MIT */
/*
 * An error is no answer: it takes nothing, or leaves it unknown whether it did, as docs/failure.md
 * says of its status. An answer is right when some order of what was asked for so far explains it.
 */
#include "calls.h"

#include "sleepers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLACK_S      0.1 /* beside what sleepers are late by */
#define WAKINGS      2.0 /* so often somebody has to wake for a call, one after the other */
#define CENT         0.01
#define SUSPECTS_MAX 4096

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct tally tally;
static struct suspect {
    double begin_s;
    double end_s;
    double kept_s;
    double used_s;
    bool degraded;
    enum redbucket_status status;
} suspects[SUSPECTS_MAX];
static size_t suspects_len;

double call_base(unsigned worker)
{
    return 1e6 * (worker + 1);
}

/* ---- Asking --------------------------------------------------------------------------------- */

/* Three limits are one step in any store but a cluster, and there where their buckets are in one
 * slot that isn't just on its way: q stays, p moves. */
void call_name(struct call *call, const char *limit, const char *key)
{
    size_t i = call->request.keys_len++;

    (void)snprintf(call->texts[i], sizeof call->texts[i], "%s", key);
    call->accounts[i] = account_of(limit, key, 0.0);
    call->keys[i] =
        (struct redbucket_key){.limit = account_limit(call->accounts[i]), .key = call->texts[i]};
    if (i > 0)
        call->whole = strcmp(key, "{q}") == 0 || !call->worker->client->splits;
    if (i > 0 && call->whole)
        account_pair(account_of("left", key, 0.0), account_of("right", key, 0.0));
}

static void name_numbered(struct call *call, const char *limit, const char *key, unsigned number)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%s%u", key, number);
    call_name(call, limit, text);
}

/* In any order. */
static void name_three(struct call *call, struct test_chance *chance, const char *key)
{
    static const char *const names[] = {"left", "right", "gate"};
    unsigned first = test_chance_below(chance, CALL_KEYS);
    unsigned step = 1 + test_chance_below(chance, 2);

    for (unsigned i = 0; i < CALL_KEYS; i++)
        call_name(call, names[(first + i * step) % CALL_KEYS], key);
}

void call_start(struct call *call, const struct worker *worker)
{
    memset(call, 0, sizeof *call);
    call->worker = worker;
    call->request.keys = call->keys;
    call->request.cost = 1.0;
    call->whole = true;
}

void call_own(struct call *call, const struct worker *worker)
{
    call_start(call, worker);
    name_numbered(call, "own", "w", worker->number);
}

void call_draw(struct call *call, struct worker *worker)
{
    struct test_chance *chance = &worker->chance;
    unsigned shape = test_chance_below(chance, 12);

    call_start(call, worker);
    if (shape < 2) {
        name_numbered(call, "tight", "t", test_chance_below(chance, 2));
    } else if (shape < 4) {
        call_name(call, "hot", "h");
    } else if (shape < 5) {
        call_name(call, "hoard", "d");
    } else if (shape < 7) {
        name_three(call, chance, test_chance_below(chance, 2) == 0 ? "{p}" : "{q}");
    } else if (shape < 9) {
        name_three(call, chance, test_chance_below(chance, 2) == 0 ? "c" : "d");
    } else {
        name_numbered(call, "book", "w", worker->number);
        call->request.cost = 1.0 + test_chance_below(chance, 3);
        if (test_chance_below(chance, 5) == 0)
            call->request.operation = REDBUCKET_PEEK;
    }
}

struct moment moment_now(void)
{
    double kept = kept_s();

    return (struct moment){now_s(), kept, used_s()};
}

void call_begin(struct call *call, const struct moment *moment)
{
    call->told = account_told(call->accounts[0]);
    for (size_t i = 0; i < call->request.keys_len && call->request.operation == REDBUCKET_REQUEST;
         i++)
        account_ask(call->accounts[i], call->request.cost);
    call->begin_s = moment->now_s;
    call->kept_s = moment->kept_s;
    call->used_s = moment->used_s;
}

/* ---- Answers -------------------------------------------------------------------------------- */

static bool is_book(const struct call *call)
{
    return call->request.keys_len == 1 && strcmp(call->keys[0].limit, "book") == 0;
}

/* Its bucket has what was told to be taken before this was asked for, and at most all that was ever
 * asked for: what is known of it by `remaining`, a whole number. A peek answers as if it had taken.
 */
static void check_book(const struct call *call, const struct redbucket_response *response)
{
    bool peeks = call->request.operation == REDBUCKET_PEEK;
    double has = BOOK_BURST + 1.0 - (double)response->remaining;
    double base = account_base(call->accounts[0]);
    double least = base + call->told + call->request.cost;
    double most = base + account_asked(call->accounts[0]) + (peeks ? call->request.cost : 0.0);

    if (!response->accepted)
        fault("book:%s: rejected, with all its room", call->texts[0]);
    else if (has < least || has > most)
        fault("book:%s: has %.0f, where %.0f were told and %.0f asked for", call->texts[0], has,
              least, most);
}

static void grant(const struct call *call, double end_s)
{
    for (size_t i = 0; i < call->request.keys_len; i++)
        account_grant(call->accounts[i], call->request.cost, call->begin_s, end_s);
}

static void doubt(const struct call *call)
{
    for (size_t i = 0; i < call->request.keys_len; i++)
        account_doubt(call->accounts[i], call->request.cost);
}

static bool can_be(const struct client *client, enum redbucket_status status)
{
    switch (status) {
    case REDBUCKET_ERROR_TIMEOUT:
    case REDBUCKET_ERROR_UNAVAILABLE:
    case REDBUCKET_ERROR_IO:
    case REDBUCKET_ERROR_PROTOCOL:
    case REDBUCKET_ERROR_SERVER: /* a server's words with a mistake in them */
    case REDBUCKET_CANCELLED:
        return true;
    case REDBUCKET_ERROR_TLS:
        return client->sealed;
    case REDBUCKET_ERROR_UNSUPPORTED: /* a redirection with a mistake in it */
        return client->splits;
    case REDBUCKET_ERROR_STATE: /* a type with a mistake in it */
    case REDBUCKET_ERROR_CONFLICT:
        return client->wavers;
    default:
        return false;
    }
}

static bool leaves_doubt(const struct client *client, enum redbucket_status status)
{
    return status == REDBUCKET_ERROR_TIMEOUT || status == REDBUCKET_ERROR_IO ||
           status == REDBUCKET_ERROR_PROTOCOL || status == REDBUCKET_CANCELLED ||
           status == REDBUCKET_ERROR_TLS || (status == REDBUCKET_ERROR_SERVER && client->wavers);
}

/* What a policy answers says nothing of what the store did. */
static void take_answer(const struct call *call, const struct redbucket_response *response,
                        double end_s)
{
    bool takes = call->request.operation == REDBUCKET_REQUEST;

    if (response->degraded && !call->worker->client->degrades)
        fault("%s: degraded, without a policy", call->texts[0]);
    if (response->degraded && takes)
        doubt(call);
    if (response->degraded)
        return;
    if (is_book(call))
        check_book(call, response);
    if (takes && response->accepted)
        grant(call, end_s);
    else if (takes && !call->whole)
        doubt(call); /* what could not be given back */
}

static void count_locked(const struct redbucket_request *decided)
{
    tally.calls++;
    if (decided->status != REDBUCKET_OK)
        tally.failed[decided->status]++;
    else if (decided->response.degraded)
        tally.degraded++;
    else if (decided->response.accepted)
        tally.granted++;
    else
        tally.rejected++;
}

static void count(const struct call *call, const struct redbucket_request *decided,
                  const struct moment *moment)
{
    double kept = moment->kept_s - call->kept_s;
    double late_s = moment->now_s - call->begin_s - TIMEOUT_S;

    pthread_mutex_lock(&mutex);
    count_locked(decided);
    if (late_s - kept > tally.latest_s)
        tally.latest_s = late_s - kept;
    if (late_s > SLACK_S && suspects_len < SUSPECTS_MAX)
        suspects[suspects_len++] =
            (struct suspect){call->begin_s,
                             moment->now_s,
                             kept,
                             moment->used_s - call->used_s,
                             decided->status == REDBUCKET_OK && decided->response.degraded,
                             decided->status};
    pthread_mutex_unlock(&mutex);
}

void call_end(struct call *call, const struct redbucket_request *decided,
              const struct moment *moment)
{
    const struct client *client = call->worker->client;

    count(call, decided, moment);
    if (decided->status == REDBUCKET_OK) {
        take_answer(call, &decided->response, moment->now_s);
        return;
    }
    if (!can_be(client, decided->status))
        fault("%s:%s: %s", call->keys[0].limit, call->texts[0],
              redbucket_status_name(decided->status));
    if (call->request.operation == REDBUCKET_REQUEST &&
        (!call->whole || leaves_doubt(client, decided->status)))
        doubt(call);
}

void calls_tally(struct tally *copy)
{
    pthread_mutex_lock(&mutex);
    *copy = tally;
    pthread_mutex_unlock(&mutex);
}

void calls_judge_lateness(void)
{
    for (size_t i = 0; i < suspects_len; i++) {
        const struct suspect *one = &suspects[i];
        double late_s = one->end_s - one->begin_s - TIMEOUT_S;
        double others_s = sleepers_late(one->begin_s, one->end_s);

        if (late_s > SLACK_S + one->kept_s + WAKINGS * others_s)
            fault(
                "%s%s %.0f ms past the deadline, where sleepers were %.0f ms late at most, and it "
                "was kept %.0f ms and had %.0f ms",
                redbucket_status_name(one->status), one->degraded ? " by policy" : "", 1e3 * late_s,
                1e3 * others_s, 1e3 * one->kept_s, 1e3 * one->used_s);
    }
}
