/* SPDX-License-Identifier: MIT */
/*
 * Walks through embedded stores: each bucket is seen once, with its zone and key as they were
 * given, and nobody is kept out meanwhile.
 */
#include "inside.h"
#include "redbucket/walk.h"
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct fixture {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
};

static int open_as(struct fixture *fixture, const char *url)
{
    const struct redbucket_limit limit = {.rate = 2, .burst = 10, .delay = 3};

    assert_int_equal(redbucket_store_open(url, &fixture->store, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_create(fixture->store, &fixture->limiter, NULL),
                     REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_add(fixture->limiter, "a", &limit, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_add(fixture->limiter, "b", &limit, NULL), REDBUCKET_OK);
    return 0;
}

static int make(void **state)
{
    static struct fixture fixture;

    *state = &fixture;
    return open_as(&fixture, "memory:?size=2m");
}

static int make_growing(void **state)
{
    static struct fixture fixture;

    *state = &fixture;
    return open_as(&fixture, "memory:?grow=yes");
}

static int unmake(void **state)
{
    struct fixture *fixture = *state;

    redbucket_limiter_destroy(fixture->limiter);
    redbucket_store_close(fixture->store);
    return 0;
}

static void ask(struct fixture *fixture, const char *limit, const void *key, size_t len)
{
    const struct redbucket_key keys[] = {{limit, key, len, 0}};
    struct redbucket_response response;

    assert_int_equal(redbucket_request(fixture->limiter, keys, 1, &response), REDBUCKET_OK);
}

#define NUMBERED 10000

/* How often each numbered key was seen, and other keys. */
struct seen {
    struct fixture *fixture;
    unsigned char times[NUMBERED];
    size_t others;
    size_t in_step;
    struct redbucket_bucket last;
    char last_key[300];
};

static void see(void *data, const struct redbucket_bucket *bucket)
{
    struct seen *seen = data;
    char text[16] = "";

    seen->in_step++;
    assert_null(bucket->name);
    assert_false(bucket->guessed);
    if (bucket->key_len == 6 && bucket->key[0] == 'k') {
        memcpy(text, bucket->key, 6);
        seen->times[strtoul(text + 1, NULL, 10) % NUMBERED]++;
        return;
    }
    seen->others++;
    seen->last = *bucket;
    assert_true(bucket->key_len <= sizeof seen->last_key);
    memcpy(seen->last_key, bucket->key, bucket->key_len);
}

/* Walks to the end; returns how many steps it took. */
static size_t walk(struct fixture *fixture, const struct redbucket_walk_options *options,
                   struct seen *seen)
{
    struct redbucket_walk *from;
    bool done = false;
    size_t steps = 0;

    assert_int_equal(redbucket_walk_create(fixture->store, options, &from), REDBUCKET_OK);
    for (; !done; steps++) {
        seen->in_step = 0;
        assert_int_equal(redbucket_walk_step(from, see, seen, &done), REDBUCKET_OK);
        assert_true(seen->in_step <= 1104);
    }
    redbucket_walk_destroy(from);
    return steps;
}

static void fill(struct fixture *fixture, size_t len)
{
    char key[24];

    for (size_t i = 0; i < len; i++) {
        (void)snprintf(key, sizeof key, "k%05zu", i);
        ask(fixture, "a", key, 6);
    }
}

static void test_each_bucket_is_seen_once(void **state)
{
    struct seen seen = {.fixture = *state};

    fill(*state, NUMBERED);
    assert_true(walk(*state, NULL, &seen) >= 10);
    for (size_t i = 0; i < NUMBERED; i++)
        assert_int_equal(seen.times[i], 1);
    assert_int_equal(seen.others, 0);
}

static void test_an_empty_store_has_none(void **state)
{
    struct seen seen = {.fixture = *state};

    (void)walk(*state, NULL, &seen);
    assert_int_equal(seen.others, 0);
}

static void test_a_bucket_is_told_in_full(void **state)
{
    struct fixture *fixture = *state;
    struct seen seen = {.fixture = fixture};
    char key[300];

    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (char)(i * 7);
    ask(fixture, "b", key, sizeof key);
    test_put_state(fixture->limiter, "b", "short", 12.5, 3.25);
    ask(fixture, "b", key, sizeof key);
    (void)walk(fixture, NULL, &seen);
    assert_int_equal(seen.others, 2);
    assert_true(seen.last.now > 0);
    assert_true(seen.last.state.exists);
    assert_true(seen.last.rate == 2.0 && seen.last.depth == 13.0);
    assert_int_equal(seen.last.zone_len, 1);

    struct seen again = {.fixture = fixture};
    const struct redbucket_key reset[] = {{"b", "short", 0, 0}};
    struct redbucket_request request = {.operation = REDBUCKET_RESET, .keys = reset, .keys_len = 1};

    assert_int_equal(redbucket_decide(fixture->limiter, &request, 1), REDBUCKET_OK);
    (void)walk(fixture, NULL, &again);
    assert_int_equal(again.others, 1);
    assert_int_equal(again.last.key_len, sizeof key);
    assert_memory_equal(again.last_key, key, sizeof key);
    assert_true(again.last.state.value > 1.9 && again.last.state.value <= 2.0);
    assert_true(again.last.now - again.last.state.timestamp < 60);
}

static void test_one_zone_may_be_wanted(void **state)
{
    struct fixture *fixture = *state;
    struct seen seen = {.fixture = fixture};
    const struct redbucket_walk_options options = {.zone = "b"};

    fill(fixture, 100);
    ask(fixture, "b", "other", 5);
    (void)walk(fixture, &options, &seen);
    assert_int_equal(seen.others, 1);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(seen.times[i], 0);
}

static void test_a_state_that_can_not_be_read_is_told_as_such(void **state)
{
    struct fixture *fixture = *state;
    struct seen seen = {.fixture = fixture};

    test_put_state(fixture->limiter, "a", "broken key", NAN, 1.0);
    (void)walk(fixture, NULL, &seen);
    assert_int_equal(seen.others, 1);
    assert_int_equal(seen.last.status, REDBUCKET_ERROR_STATE);
    assert_memory_equal(seen.last_key, "broken key", 10);
}

static void ask_inside(void *data, const struct redbucket_bucket *bucket)
{
    struct seen *seen = data;

    seen->others++;
    ask(seen->fixture, "a", bucket->key, bucket->key_len);
}

/* No lock is held: otherwise this would never end. */
static void test_whoever_is_told_may_use_the_store(void **state)
{
    struct seen seen = {.fixture = *state};
    struct redbucket_walk *from;
    bool done = false;

    fill(*state, 50);
    assert_int_equal(redbucket_walk_create(seen.fixture->store, NULL, &from), REDBUCKET_OK);
    while (!done)
        assert_int_equal(redbucket_walk_step(from, ask_inside, &seen, &done), REDBUCKET_OK);
    redbucket_walk_destroy(from);
    assert_int_equal(seen.others, 50);
}

/* What was there at the beginning is seen, though it moves to another table on the way. */
static void test_a_store_that_grows_hides_nothing(void **state)
{
    struct seen seen = {.fixture = *state};
    struct redbucket_walk *from;
    bool done = false;

    fill(*state, 2000);
    assert_int_equal(redbucket_walk_create(seen.fixture->store, NULL, &from), REDBUCKET_OK);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(redbucket_walk_step(from, see, &seen, &done), REDBUCKET_OK);
    for (size_t i = 0; i < 60000; i++) {
        char key[16];

        (void)snprintf(key, sizeof key, "more%zu", i);
        ask(*state, "b", key, strlen(key));
    }
    memset(seen.times, 0, sizeof seen.times);
    for (done = false; !done;)
        assert_int_equal(redbucket_walk_step(from, see, &seen, &done), REDBUCKET_OK);
    redbucket_walk_destroy(from);
    for (size_t i = 0; i < 2000; i++)
        assert_true(seen.times[i] >= 1);
}

/* Threads ask while others walk: what was there before is seen each time, and nothing is torn. */
static void *ask_for_long(void *data)
{
    struct fixture *fixture = data;
    char key[16];

    for (unsigned i = 0; i < 30000; i++) {
        (void)snprintf(key, sizeof key, "more%u", i % 5000);
        ask(fixture, "b", key, strlen(key));
    }
    return NULL;
}

static void test_walking_beside_those_who_ask(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[2];

    fill(fixture, 1000);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_for_long, fixture), 0);
    for (unsigned round = 0; round < 10; round++) {
        struct seen seen = {.fixture = fixture};

        (void)walk(fixture, NULL, &seen);
        for (size_t i = 0; i < 1000; i++)
            assert_int_equal(seen.times[i], 1);
    }
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* A change that was torn is put right by whoever comes by, a walk too. */
static void test_a_torn_change_is_undone(void **state)
{
    struct fixture *fixture = *state;
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct seen seen = {.fixture = fixture};

    fill(fixture, 10);
    test_tear(fixture->store);
    (void)walk(fixture, NULL, &seen);
    assert_int_equal(redbucket_store_statistics(fixture->store, &statistics), REDBUCKET_OK);
    assert_true(statistics.recovered > 0);
}

static void test_wishes_that_are_none_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct redbucket_walk *from = NULL;
    char zone[REDBUCKET_ZONE_MAX + 2];

    memset(zone, 'z', sizeof zone);
    zone[sizeof zone - 1] = '\0';
    assert_int_equal(
        redbucket_walk_create(fixture->store, &(struct redbucket_walk_options){.zone = ""}, &from),
        REDBUCKET_ERROR_ARGUMENT);
    assert_int_equal(redbucket_walk_create(fixture->store,
                                           &(struct redbucket_walk_options){.zone = zone}, &from),
                     REDBUCKET_ERROR_ARGUMENT);
    assert_int_equal(
        redbucket_walk_create(fixture->store, &(struct redbucket_walk_options){.size = 3}, &from),
        REDBUCKET_ERROR_ARGUMENT);
    assert_null(from);
    redbucket_walk_destroy(NULL);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, make, unmake)
    const struct CMUnitTest tests[] = {
        CASE(test_each_bucket_is_seen_once),
        CASE(test_an_empty_store_has_none),
        CASE(test_a_bucket_is_told_in_full),
        CASE(test_one_zone_may_be_wanted),
        CASE(test_a_state_that_can_not_be_read_is_told_as_such),
        CASE(test_whoever_is_told_may_use_the_store),
        cmocka_unit_test_setup_teardown(test_each_bucket_is_seen_once, make_growing, unmake),
        cmocka_unit_test_setup_teardown(test_a_store_that_grows_hides_nothing, make_growing,
                                        unmake),
        CASE(test_walking_beside_those_who_ask),
        CASE(test_a_torn_change_is_undone),
        CASE(test_wishes_that_are_none_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
