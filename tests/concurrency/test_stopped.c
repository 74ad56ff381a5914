/* SPDX-License-Identifier: MIT */
/*
 * A process that is stopped while it holds a lock of a shm: store: who needs that lock has an error
 * when the time is over, nobody else notices, and when it goes on, or dies, everything works again.
 */
#include "audit.h"
#include "embedded.h"
#include "processes.h"
#include "redbucket/walk.h"
#include "stores.h"
#include "test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>

#define TIMEOUT 0.2
#define MANY    40000

/* Three keys: a-key and b-key of the shard that is held, and a b-key of another. */
struct stage {
    char url[128];
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    char held_a[16];
    char held_b[16];
    char free_b[16];
    unsigned shard;
    pid_t holder;
};

static unsigned shard_of(struct stage *stage, const char *limit, const char *key)
{
    struct rbk_place place;

    rbk_table_place(test_table_of(stage->store),
                    &(struct rbk_key){(const unsigned char *)limit, strlen(limit),
                                      (const unsigned char *)key, strlen(key)},
                    &place);
    return place.shard;
}

/* A b-key of the shard that is held, or of another. */
static void find_b(struct stage *stage, bool held, char key[16])
{
    for (unsigned i = 0; i == 0 || (shard_of(stage, "b", key) == stage->shard) != held; i++)
        (void)snprintf(key, 16, "key %u", i);
}

/* Takes the lock, stops, and, once it may go on, lets go. */
static void hold(void *data)
{
    struct stage *stage = data;
    struct rbk_embedded *embedded = (struct rbk_embedded *)stage->store;
    double waited = 0.0;

    child_check(embedded->lock(embedded, stage->shard, &waited) == REDBUCKET_OK);
    (void)raise(SIGSTOP);
    embedded->unlock(embedded, stage->shard);
}

static int open_stage(void **state)
{
    static struct stage stage;

    test_store_url(&test_stores[1], "?timeout=200ms&size=4m", stage.url, sizeof stage.url);
    stage.store = test_store_open(stage.url);
    stage.limiter = test_limiter(stage.store, &(struct redbucket_limit){.rate = 1e-6, .burst = 9});
    assert_int_equal(redbucket_limiter_add(stage.limiter, "b",
                                           &(struct redbucket_limit){.rate = 1e-6, .burst = 99999},
                                           NULL),
                     REDBUCKET_OK);
    (void)snprintf(stage.held_a, sizeof stage.held_a, "held");
    stage.shard = shard_of(&stage, "a", stage.held_a);
    find_b(&stage, true, stage.held_b);
    find_b(&stage, false, stage.free_b);
    stage.holder = test_fork(hold, &stage);
    test_join_stop(stage.holder);
    *state = &stage;
    return 0;
}

static int close_stage(void **state)
{
    struct stage *stage = *state;

    redbucket_limiter_destroy(stage->limiter);
    test_store_drop(stage->url, stage->store);
    return 0;
}

static enum redbucket_status ask(struct stage *stage, const char *limit, const char *key)
{
    struct redbucket_response response;

    return redbucket_request(stage->limiter, &(struct redbucket_key){.limit = limit, .key = key}, 1,
                             &response);
}

static long permits_of(struct stage *stage, const char *limit, const char *key)
{
    struct redbucket_state found = {.exists = false};

    assert_int_equal(
        redbucket_read(stage->limiter, &(struct redbucket_key){.limit = limit, .key = key}, &found),
        REDBUCKET_OK);
    return found.exists ? lround(found.value) : 0;
}

/* At about the deadline: not before, and not much later, but for what a busy machine takes. */
static void check_waited(double begun)
{
    double waited = test_now() - begun;

    assert_true(waited >= TIMEOUT);
    if (waited > TIMEOUT + 10.0 * TEST_PATIENCE)
        fail_msg("waited for %f s", waited);
}

static void go_on(struct stage *stage)
{
    assert_int_equal(kill(stage->holder, SIGCONT), 0);
    test_join(stage->holder);
    assert_int_equal(ask(stage, "a", stage->held_a), REDBUCKET_OK);
    assert_int_equal(ask(stage, "b", stage->free_b), REDBUCKET_OK);
}

static void test_its_shard_times_out(void **state)
{
    struct stage *stage = *state;
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct redbucket_state found;
    double begun = test_now();

    assert_int_equal(ask(stage, "a", stage->held_a), REDBUCKET_ERROR_TIMEOUT);
    check_waited(begun);
    begun = test_now();
    assert_int_equal(redbucket_read(stage->limiter,
                                    &(struct redbucket_key){.limit = "a", .key = stage->held_a},
                                    &found),
                     REDBUCKET_ERROR_TIMEOUT);
    check_waited(begun);
    begun = test_now();
    assert_int_equal(redbucket_store_statistics(stage->store, &statistics),
                     REDBUCKET_ERROR_TIMEOUT);
    check_waited(begun);
    go_on(stage);
    /* What ended with an error took nothing. */
    assert_int_equal(permits_of(stage, "a", stage->held_a), 1);
    assert_int_equal(redbucket_store_statistics(stage->store, &statistics), REDBUCKET_OK);
    assert_int_equal(statistics.recovered, 0);
}

static void count_bucket(void *data, const struct redbucket_bucket *bucket)
{
    (void)bucket;
    (*(int *)data)++;
}

/* A walk leaves out what is held, and sees the rest. */
static void test_a_walk_leaves_it_out(void **state)
{
    struct stage *stage = *state;
    struct redbucket_walk *walk;
    int seen = 0, failed = 0;
    bool done = false;
    double begun;

    assert_int_equal(ask(stage, "b", stage->free_b), REDBUCKET_OK);
    assert_int_equal(redbucket_walk_create(stage->store, NULL, &walk), REDBUCKET_OK);
    begun = test_now();
    while (!done) {
        enum redbucket_status status = redbucket_walk_step(walk, count_bucket, &seen, &done);

        assert_true(status == REDBUCKET_OK || status == REDBUCKET_ERROR_TIMEOUT);
        failed += status != REDBUCKET_OK;
    }
    redbucket_walk_destroy(walk);
    check_waited(begun);
    assert_int_equal(failed, 1);
    assert_int_equal(seen, 1);
    go_on(stage);
}

static void test_other_shards_go_on(void **state)
{
    struct stage *stage = *state;
    double begun = test_now();

    for (int i = 0; i < MANY; i++)
        assert_int_equal(ask(stage, "b", stage->free_b), REDBUCKET_OK);
    assert_true(test_now() - begun < 10.0 * TEST_PATIENCE);
    go_on(stage);
}

/* Of two locks, the one that was had is given back when the other one isn't to be had. */
static void test_two_limits_take_neither(void **state)
{
    struct stage *stage = *state;
    struct redbucket_key keys[] = {{.limit = "b", .key = stage->free_b},
                                   {.limit = "a", .key = stage->held_a}};
    struct redbucket_response response;
    double begun = test_now();

    assert_int_equal(redbucket_request(stage->limiter, keys, 2, &response),
                     REDBUCKET_ERROR_TIMEOUT);
    check_waited(begun);
    assert_int_equal(permits_of(stage, "b", stage->free_b), 0);
    go_on(stage);
    assert_int_equal(redbucket_request(stage->limiter, keys, 2, &response), REDBUCKET_OK);
    assert_int_equal(permits_of(stage, "b", stage->free_b), 2);
    assert_int_equal(permits_of(stage, "a", stage->held_a), 2);
}

/* An array of requests has one deadline: those that need the lock fail, the others are answered. */
static void test_array_has_one_deadline(void **state)
{
    struct stage *stage = *state;
    static struct redbucket_request requests[MANY];
    struct redbucket_key held = {.limit = "b", .key = stage->held_b};
    struct redbucket_key other = {.limit = "b", .key = stage->free_b};
    double begun = test_now();

    for (int i = 0; i < MANY; i++)
        requests[i] =
            (struct redbucket_request){.keys = i % 2 ? &other : &held, .keys_len = 1, .cost = 1.0};
    assert_int_equal(redbucket_decide(stage->limiter, requests, MANY), REDBUCKET_ERROR_TIMEOUT);
    check_waited(begun);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(requests[i].status, i % 2 ? REDBUCKET_OK : REDBUCKET_ERROR_TIMEOUT);
    assert_int_equal(permits_of(stage, "b", stage->free_b), MANY / 2);
    go_on(stage);
}

/* Let go within the time, a lock is had. */
static void let_go(void *data)
{
    struct stage *stage = data;

    test_pause(TIMEOUT / 4);
    child_check(kill(stage->holder, SIGCONT) == 0);
}

static void test_waits_for_a_lock(void **state)
{
    struct stage *stage = *state;
    pid_t helper = test_fork(let_go, stage);

    /* Slow as the machine may be: what counts is that it wakes up, however long it takes. */
    while (ask(stage, "a", stage->held_a) == REDBUCKET_ERROR_TIMEOUT)
        ;
    test_join(helper);
    test_join(stage->holder);
    assert_int_equal(permits_of(stage, "a", stage->held_a), 1);
}

static void test_dies_while_stopped(void **state)
{
    struct stage *stage = *state;
    struct redbucket_statistics statistics = {.size = sizeof statistics};

    assert_int_equal(ask(stage, "a", stage->held_a), REDBUCKET_ERROR_TIMEOUT);
    test_kill(stage->holder);
    for (int i = 0; i < 5; i++)
        assert_int_equal(ask(stage, "a", stage->held_a), REDBUCKET_OK);
    assert_int_equal(permits_of(stage, "a", stage->held_a), 5);
    /* It had changed nothing, so that there was nothing to undo. */
    assert_int_equal(redbucket_store_statistics(stage->store, &statistics), REDBUCKET_OK);
    assert_int_equal(statistics.recovered, 0);
}

#define STOPPED(test) cmocka_unit_test_setup_teardown(test, open_stage, close_stage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STOPPED(test_its_shard_times_out),    STOPPED(test_a_walk_leaves_it_out),
        STOPPED(test_other_shards_go_on),     STOPPED(test_two_limits_take_neither),
        STOPPED(test_array_has_one_deadline), STOPPED(test_waits_for_a_lock),
        STOPPED(test_dies_while_stopped),
    };

    return cmocka_run_group_tests_name("stopped", tests, NULL, test_clean_up);
}
