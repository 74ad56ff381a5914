/* SPDX-License-Identifier: MIT */
/*
 * The model's scenarios on real servers, whose clock is a test's. Then random walks, by all
 * operations, over the whole range of limits, with a clock that also steps back, against an
 * embedded store that decides one request at a time: answers and states to the last bit.
 */
#include "by_loop.h"
#include "random.h"
#include "scenario.h"
#include "served.h"
#include "wire/call.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct redbucket_store *begin(void *data)
{
    struct served *served = data;

    assert_true(test_server_do(served->server, "FLUSHALL", NULL));
    return served->store;
}

static enum redbucket_status decide(struct redbucket_limiter *limiter,
                                    struct redbucket_request *request, double t)
{
    rbk_test_now = t;
    enum redbucket_status status = redbucket_decide(limiter, request, 1);

    if (request->keys_len > 0)
        assert_same(request->response.time, t);
    return status;
}

static void end(void *data, struct redbucket_store *store)
{
    (void)data;
    (void)store;
}

static void scenarios_are_decided_as_by_the_model(void **state)
{
    const struct scenario_runner runner = {begin, decide, end, *state};

    assert_int_equal(scenarios_run(&runner), SCENARIOS);
}

static enum redbucket_status decide_on_loop(struct redbucket_limiter *limiter,
                                            struct redbucket_request *request, double t)
{
    rbk_test_now = t;
    return by_loop(limiter, request);
}

static void scenarios_are_decided_on_a_loop(void **state)
{
    const struct scenario_runner runner = {begin, decide_on_loop, end, *state};

    assert_int_equal(scenarios_run(&runner), SCENARIOS);
}

#define LIMITS   3
#define REQUESTS 100

/* The same limits on the server and in memory. */
struct walk {
    struct random random;
    struct served *served;
    struct redbucket_store *memory;
    struct redbucket_limiter *limiter;
    struct redbucket_limiter *model;
    struct redbucket_limit limits[LIMITS];
    double now;
};

/* A batch, as asked of the server and of the model. */
struct batch {
    struct redbucket_key keys[REQUESTS][LIMITS];
    struct redbucket_verdict verdicts[2][REQUESTS][LIMITS];
    struct redbucket_request asked[REQUESTS];
    struct redbucket_request modelled[REQUESTS];
    size_t len;
};

static const char *const names[LIMITS] = {"a", "b", "c"};

static void begin_walk(struct walk *walk)
{
    assert_int_equal(redbucket_limiter_create(walk->served->store, &walk->limiter, NULL),
                     REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_create(walk->memory, &walk->model, NULL), REDBUCKET_OK);
    for (int i = 0; i < LIMITS; i++) {
        walk->limits[i] = random_limit(&walk->random);
        /* A server's own clock goes on, and must not forget what the test still asks for. */
        walk->limits[i].expiry = 600;
        assert_int_equal(redbucket_limiter_add(walk->limiter, names[i], &walk->limits[i], NULL),
                         REDBUCKET_OK);
        assert_int_equal(redbucket_limiter_add(walk->model, names[i], &walk->limits[i], NULL),
                         REDBUCKET_OK);
    }
    walk->now = random_time(&walk->random);
}

static void make_request(struct walk *walk, struct batch *batch, size_t index)
{
    static const char *const texts[] = {"x", "y"};
    struct random *random = &walk->random;
    struct redbucket_request *request = &batch->asked[index];
    unsigned first = random_below(random, LIMITS);

    *request = (struct redbucket_request){
        .operation =
            (enum redbucket_operation)(random_one_in(random, 2) ? 0 : random_below(random, 6)),
        .keys = batch->keys[index],
        .keys_len = random_below(random, LIMITS + 1),
        .cost = random_cost(random, &walk->limits[first]),
        .taken_at = walk->now - random_gap(random, &walk->limits[first]),
        .verdicts = batch->verdicts[0][index],
    };
    for (unsigned i = 0; i < LIMITS; i++)
        batch->keys[index][i] = (struct redbucket_key){.limit = names[(first + i) % LIMITS],
                                                       .key = texts[random_below(random, 2)]};
    batch->modelled[index] = *request;
    batch->modelled[index].verdicts = batch->verdicts[1][index];
}

static bool same(double a, double b)
{
    return test_bits(a) == test_bits(b);
}

static void check_answer(struct walk *walk, const struct redbucket_request *a,
                         const struct redbucket_request *b)
{
    HOLDS(&walk->random, a->status == REDBUCKET_OK && b->status == REDBUCKET_OK);
    HOLDS(&walk->random, a->response.accepted == b->response.accepted);
    HOLDS(&walk->random, same(a->response.delay, b->response.delay));
    HOLDS(&walk->random, same(a->response.retry_after, b->response.retry_after));
    HOLDS(&walk->random, same(a->response.reset_after, b->response.reset_after));
    HOLDS(&walk->random, a->response.remaining == b->response.remaining);
    HOLDS(&walk->random, a->response.decided == b->response.decided);
    HOLDS(&walk->random, a->response.retry_after_us == b->response.retry_after_us);
    HOLDS(&walk->random, a->keys_len == 0 || same(a->response.time, b->response.time));
    for (size_t i = 0; i < a->keys_len; i++) {
        HOLDS(&walk->random, a->verdicts[i].accepted == b->verdicts[i].accepted);
        HOLDS(&walk->random, same(a->verdicts[i].delay, b->verdicts[i].delay));
        HOLDS(&walk->random, same(a->verdicts[i].retry_after, b->verdicts[i].retry_after));
        HOLDS(&walk->random, a->verdicts[i].remaining == b->verdicts[i].remaining);
    }
}

static void check_states(struct walk *walk)
{
    for (int i = 0; i < LIMITS * 2; i++) {
        const struct redbucket_key key = {.limit = names[i / 2], .key = i % 2 == 0 ? "x" : "y"};
        struct redbucket_state is, expected;

        HOLDS(&walk->random, redbucket_read(walk->limiter, &key, &is) == REDBUCKET_OK);
        HOLDS(&walk->random, redbucket_read(walk->model, &key, &expected) == REDBUCKET_OK);
        HOLDS(&walk->random, is.exists == expected.exists);
        HOLDS(&walk->random, !is.exists || (same(is.timestamp, expected.timestamp) &&
                                            same(is.value, expected.value)));
    }
}

static void step(struct walk *walk, struct batch *batch)
{
    struct random *random = &walk->random;

    batch->len = random_one_in(random, 3) ? 1 : 1 + random_below(random, REQUESTS);
    for (size_t i = 0; i < batch->len; i++)
        make_request(walk, batch, i);
    rbk_test_now = walk->now;
    HOLDS(random, redbucket_decide(walk->limiter, batch->asked, batch->len) == REDBUCKET_OK);
    for (size_t i = 0; i < batch->len; i++) {
        HOLDS(random,
              redbucket_decide_at(walk->model, &batch->modelled[i], 1, walk->now) == REDBUCKET_OK);
        check_answer(walk, &batch->asked[i], &batch->modelled[i]);
    }
    check_states(walk);

    double gap = random_gap(random, &walk->limits[random_below(random, LIMITS)]);

    walk->now += random_one_in(random, 5) ? -gap : gap;
    /* No server's clock is further from 1970 than a thousand million million seconds. */
    if (fabs(walk->now) > 1e14)
        walk->now = random_time(random);
}

static void end_walk(struct walk *walk)
{
    redbucket_limiter_destroy(walk->limiter);
    redbucket_limiter_destroy(walk->model);
    assert_true(test_server_do(walk->served->server, "FLUSHALL", NULL));
}

static void batches_are_decided_as_one_request_at_a_time(void **state)
{
    struct walk walk = {.served = *state};
    struct batch *batch = malloc(sizeof *batch);

    assert_non_null(batch);
    random_begin(&walk.random, 40);
    while (random_next_round(&walk.random)) {
        assert_int_equal(redbucket_store_open("memory:", &walk.memory, NULL), REDBUCKET_OK);
        begin_walk(&walk);
        for (int i = 0; i < 20; i++)
            step(&walk, batch);
        end_walk(&walk);
        redbucket_store_close(walk.memory);
    }
    free(batch);
}

int main(void)
{
    static const struct served_case cases[] = {
        SERVED(scenarios_are_decided_as_by_the_model),
        SERVED(scenarios_are_decided_on_a_loop),
        SERVED(batches_are_decided_as_one_request_at_a_time),
    };

    return served_run("server_scenarios", cases, sizeof cases / sizeof cases[0]);
}
