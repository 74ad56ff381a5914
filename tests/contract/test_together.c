/* SPDX-License-Identifier: MIT */
/*
 * Several limits in one request, random ones with random traffic: all of them take it or none does,
 * in whatever order they are named, and a peek says beforehand what a request will be told.
 */
#include "cases.h"
#include "random.h"

#include <math.h>
#include <stdio.h>

#define LIMITS 5

/* Two sets of buckets, under the same limits and keys that say which. */
struct together {
    struct redbucket_limiter *limiter;
    struct redbucket_limit limits[LIMITS];
    char names[LIMITS][16];
};

static void begin_round(struct test_case *test, struct random *random, struct together *together)
{
    assert_int_equal(redbucket_limiter_create(test->store, &together->limiter, NULL), REDBUCKET_OK);
    for (int i = 0; i < LIMITS; i++) {
        (void)snprintf(together->names[i], sizeof together->names[i], "l%d", i);
        together->limits[i] = random_limit(random);
        /* Of like rates, so that now one is the strictest and now another. */
        together->limits[i].rate = random_even(random, 1, 10);
        assert_int_equal(redbucket_limiter_add(together->limiter, together->names[i],
                                               &together->limits[i], NULL),
                         REDBUCKET_OK);
    }
}

static struct redbucket_request decide(const struct together *together,
                                       struct redbucket_request request, double now)
{
    assert_int_equal(redbucket_decide_at(together->limiter, &request, 1, now), REDBUCKET_OK);
    return request;
}

static void end_round(struct together *together)
{
    static const char *const keys[] = {"0", "1", "x0", "x1"};

    for (int i = 0; i < LIMITS; i++) {
        for (size_t j = 0; j < sizeof keys / sizeof keys[0]; j++) {
            struct redbucket_key key = {.limit = together->names[i], .key = keys[j]};

            (void)decide(together,
                         (struct redbucket_request){
                             .operation = REDBUCKET_RESET, .keys = &key, .keys_len = 1},
                         0);
        }
    }
    redbucket_limiter_destroy(together->limiter);
}

/* Names some of the limits, in any order, each with one of two keys; returns how many. */
static size_t name_some(struct random *random, const struct together *together,
                        struct redbucket_key keys[LIMITS])
{
    static const char *const texts[] = {"0", "1"};
    size_t len = 1 + random_below(random, LIMITS);

    for (size_t i = 0; i < LIMITS; i++)
        keys[i] = (struct redbucket_key){.limit = together->names[i],
                                         .key = texts[random_one_in(random, 3)]};
    for (size_t i = LIMITS; i-- > 1;) {
        size_t other = random_below(random, (unsigned)i + 1);
        struct redbucket_key kept = keys[i];

        keys[i] = keys[other];
        keys[other] = kept;
    }
    return len;
}

static double cost_for(struct random *random, const struct together *together,
                       const struct redbucket_key *keys, size_t len)
{
    const char *limit = keys[random_below(random, (unsigned)len)].limit;

    return random_cost(random, &together->limits[limit[1] - '0']);
}

static struct redbucket_state state_now(const struct together *together,
                                        const struct redbucket_key *key)
{
    struct redbucket_state state;

    assert_int_equal(redbucket_read(together->limiter, key, &state), REDBUCKET_OK);
    return state;
}

static bool same_state(struct redbucket_state a, struct redbucket_state b)
{
    return a.exists == b.exists &&
           (!a.exists || (test_bits(a.timestamp) == test_bits(b.timestamp) &&
                          test_bits(a.value) == test_bits(b.value)));
}

static bool same_response(const struct redbucket_response *a, const struct redbucket_response *b)
{
    return a->accepted == b->accepted && test_bits(a->delay) == test_bits(b->delay) &&
           test_bits(a->retry_after) == test_bits(b->retry_after) &&
           test_bits(a->reset_after) == test_bits(b->reset_after) && a->remaining == b->remaining &&
           a->delay_us == b->delay_us && a->retry_after_us == b->retry_after_us &&
           a->reset_after_us == b->reset_after_us && test_bits(a->time) == test_bits(b->time);
}

static bool same_verdict(const struct redbucket_verdict *a, const struct redbucket_verdict *b)
{
    return a->accepted == b->accepted && test_bits(a->delay) == test_bits(b->delay) &&
           test_bits(a->retry_after) == test_bits(b->retry_after) &&
           test_bits(a->reset_after) == test_bits(b->reset_after) && a->remaining == b->remaining;
}

static double next_time(struct random *random, const struct together *together, double now)
{
    double gap = random_gap(random, &together->limits[random_below(random, LIMITS)]);

    return random_one_in(random, 8) ? now - gap : now + gap;
}

static void a_peek_predicts_the_request(void **state)
{
    struct random random;

    random_begin(&random, 150);
    while (random_next_round(&random)) {
        struct together together;
        double now = random_time(&random);

        begin_round(*state, &random, &together);
        for (int i = 0; i < 40; i++) {
            struct redbucket_verdict foretold[LIMITS], told[LIMITS];
            struct redbucket_key keys[LIMITS];
            size_t len = name_some(&random, &together, keys);
            struct redbucket_request request = {
                .keys = keys,
                .keys_len = len,
                .cost = cost_for(&random, &together, keys, len),
                .verdicts = foretold,
                .operation = REDBUCKET_PEEK,
            };
            struct redbucket_state before[LIMITS];

            for (size_t j = 0; j < len; j++)
                before[j] = state_now(&together, &keys[j]);

            struct redbucket_request peek = decide(&together, request, now);

            for (size_t j = 0; j < len; j++)
                HOLDS(&random, same_state(state_now(&together, &keys[j]), before[j]));
            request.operation = REDBUCKET_REQUEST;
            request.verdicts = told;
            request = decide(&together, request, now);
            HOLDS(&random, same_response(&peek.response, &request.response));
            HOLDS(&random, peek.response.decided == request.response.decided);
            for (size_t j = 0; j < len; j++)
                HOLDS(&random, same_verdict(&foretold[j], &told[j]));
            now = next_time(&random, &together, now);
        }
        end_round(&together);
    }
}

/* What every answer of several limits is made of: the verdicts of each. */
static bool adds_up(const struct redbucket_request *request)
{
    const struct redbucket_response *response = &request->response;
    double delay = 0, retry_after = 0, reset_after = 0;
    int64_t remaining = INT64_MAX;
    bool accepted = true;

    for (size_t i = 0; i < request->keys_len; i++) {
        const struct redbucket_verdict *verdict = &request->verdicts[i];

        accepted = accepted && verdict->accepted;
        delay = fmax(delay, verdict->delay);
        retry_after = fmax(retry_after, verdict->retry_after);
        reset_after = fmax(reset_after, verdict->reset_after);
        remaining = verdict->remaining < remaining ? verdict->remaining : remaining;
    }
    return response->accepted == accepted && response->remaining == remaining &&
           test_bits(response->delay) == test_bits(accepted ? delay : 0.0) &&
           test_bits(response->retry_after) == test_bits(retry_after) &&
           test_bits(response->reset_after) == test_bits(reset_after);
}

/* The first of those with the longest wait. */
static size_t who_decides(const struct redbucket_request *request)
{
    size_t decides = REDBUCKET_NONE;
    double longest = 0;

    for (size_t i = 0; i < request->keys_len; i++) {
        const struct redbucket_verdict *verdict = &request->verdicts[i];
        double wait = request->response.accepted ? verdict->delay : verdict->retry_after;

        if (wait > longest) {
            longest = wait;
            decides = i;
        }
    }
    return decides;
}

/* An accepted request leaves each bucket as full as its limit alone would, a rejected one leaves
 * all as they were. */
static bool all_or_nothing(const struct together *together, const struct redbucket_request *request,
                           const struct redbucket_state *before, double now)
{
    for (size_t i = 0; i < request->keys_len; i++) {
        const struct redbucket_key *key = &request->keys[i];
        const struct redbucket_limit *limit = &together->limits[key->limit[1] - '0'];
        struct redbucket_state after = state_now(together, key);
        double elapsed = before[i].exists ? fmax(now - before[i].timestamp, 0) : 0;
        double level = before[i].exists ? fmax(before[i].value - elapsed * limit->rate, 0) : 0;

        if (!request->response.accepted && !same_state(after, before[i]))
            return false;
        if (request->response.accepted &&
            test_bits(after.value) != test_bits(level + request->cost))
            return false;
    }
    return true;
}

static void all_of_them_take_it_or_none_does(void **state)
{
    struct random random;
    unsigned accepted = 0, rejected = 0;

    random_begin(&random, 400);
    while (random_next_round(&random)) {
        struct together together;
        double now = random_time(&random);

        begin_round(*state, &random, &together);
        for (int i = 0; i < 40; i++) {
            struct redbucket_state before[LIMITS];
            struct redbucket_verdict verdicts[LIMITS];
            struct redbucket_key keys[LIMITS];
            size_t len = name_some(&random, &together, keys);
            struct redbucket_request request = {
                .keys = keys, .keys_len = len, .verdicts = verdicts};

            request.cost = cost_for(&random, &together, keys, len);
            for (size_t j = 0; j < len; j++)
                before[j] = state_now(&together, &keys[j]);
            request = decide(&together, request, now);
            HOLDS(&random, adds_up(&request));
            HOLDS(&random, request.response.decided == who_decides(&request));
            HOLDS(&random, all_or_nothing(&together, &request, before, now));
            accepted += request.response.accepted;
            rejected += !request.response.accepted;
            now = next_time(&random, &together, now);
        }
        end_round(&together);
    }
    assert_true(accepted > 1000 && rejected > 1000);
}

/* The same traffic on keys x0 and x1, with the names turned round. */
static void the_order_of_names_is_nothing(void **state)
{
    struct random random;

    random_begin(&random, 300);
    while (random_next_round(&random)) {
        struct together together;
        double now = random_time(&random);

        begin_round(*state, &random, &together);
        for (int i = 0; i < 40; i++) {
            struct redbucket_key keys[LIMITS], turned[LIMITS];
            size_t len = name_some(&random, &together, keys);
            struct redbucket_request request = {.keys = keys, .keys_len = len}, other;

            request.cost = cost_for(&random, &together, keys, len);
            for (size_t j = 0; j < len; j++) {
                turned[len - 1 - j] = keys[j];
                turned[len - 1 - j].key = keys[j].key[0] == '0' ? "x0" : "x1";
            }
            other = request;
            other.keys = turned;
            request = decide(&together, request, now);
            other = decide(&together, other, now);
            HOLDS(&random, same_response(&request.response, &other.response));
            for (size_t j = 0; j < len; j++)
                HOLDS(&random, same_state(state_now(&together, &keys[j]),
                                          state_now(&together, &turned[len - 1 - j])));
            now = next_time(&random, &together, now);
        }
        end_round(&together);
    }
}

int main(void)
{
    static const struct case_entry properties[] = {
        CASE(a_peek_predicts_the_request),
        CASE(all_of_them_take_it_or_none_does),
        CASE(the_order_of_names_is_nothing),
    };

    return cases_run("together", "64k", properties, sizeof properties / sizeof properties[0]);
}
