/* SPDX-License-Identifier: MIT */
/*
 * Requests on an event loop of buckets that another process holds a lock of: the loop goes on, and
 * no lock of others is held meanwhile. Only the deadline is a real one.
 */
#include "asker.h"
#include "embedded.h"
#include "limiter.h"
#include "stores.h"
#include "test.h"

#include <poll.h>
#include <stdio.h>

static char url[256];
static struct redbucket_store *store;
static struct redbucket_limiter *limiter;

static void open_with(const char *query)
{
    test_store_url(&test_stores[1], query, url, sizeof url);
    store = test_store_open(url);
    limiter = test_limiter(store, &(struct redbucket_limit){.rate = 1.0, .burst = 10});
    assert_int_equal(
        redbucket_limiter_add(limiter, "b", &(struct redbucket_limit){.rate = 1.0}, NULL),
        REDBUCKET_OK);
    asker_called = 0;
    assert_int_equal(redbucket_async_create(limiter, &asker, NULL), REDBUCKET_OK);
}

static void close_all(void)
{
    redbucket_async_destroy(asker);
    redbucket_limiter_destroy(limiter);
    test_store_drop(url, store);
}

static unsigned shard_of(const char *limit, const char *key)
{
    const struct rbk_named *named = rbk_limiter_find(limiter, limit, strlen(limit));
    struct rbk_key name = {named->zone, named->zone_len, (const unsigned char *)key, strlen(key)};
    struct rbk_place place;

    rbk_table_place(((struct rbk_embedded *)store)->table, &name, &place);
    return place.shard;
}

/* As another process: true when it could be had at once. */
static bool lock(unsigned shard)
{
    struct rbk_embedded *embedded = (struct rbk_embedded *)store;
    double waited = 1e9;

    return embedded->lock(embedded, shard, &waited) == REDBUCKET_OK;
}

static void unlock(unsigned shard)
{
    struct rbk_embedded *embedded = (struct rbk_embedded *)store;

    embedded->unlock(embedded, shard);
}

/* Waits for the descriptor alone. */
static void turn(void)
{
    struct pollfd polled = {.fd = redbucket_async_descriptor(asker), .events = POLLIN};

    assert_int_equal(poll(&polled, 1, 10000), 1);
    redbucket_async_dispatch(asker);
}

static void test_a_lock_that_is_held_keeps_no_loop(void **state)
{
    struct asked asked[2] = {{.called = 0}};

    (void)state;
    open_with("?size=64k&timeout=60s");
    assert_true(lock(shard_of("a", "k")));
    asker_ask(&asked[0], "k", 1.0);
    for (int i = 0; i < 5; i++)
        turn();
    asker_ask(&asked[1], "k", 2.0);
    turn();
    assert_int_equal(asker_called, 0);
    unlock(shard_of("a", "k"));
    while (redbucket_async_outstanding(asker) > 0)
        turn();
    assert_int_equal(asker_count(asked, 2, REDBUCKET_OK), 2);
    close_all();
}

static void test_a_lock_that_is_held_for_too_long_is_an_error(void **state)
{
    struct asked asked = {.called = 0};

    (void)state;
    open_with("?size=64k&timeout=30ms");
    assert_true(lock(shard_of("a", "k")));
    asker_ask(&asked, "k", 1.0);
    while (redbucket_async_outstanding(asker) > 0)
        turn();
    assert_int_equal(asked.status, REDBUCKET_ERROR_TIMEOUT);
    unlock(shard_of("a", "k"));
    close_all();
}

/* At once, however long it might have waited. */
static void test_who_waits_for_a_lock_can_be_given_up(void **state)
{
    struct asked asked = {.called = 0};

    (void)state;
    open_with("?size=64k&timeout=1h");
    assert_true(lock(shard_of("a", "k")));
    asker_ask(&asked, "k", 1.0);
    turn();
    redbucket_async_destroy(asker);
    asker = NULL;
    assert_int_equal(asked.called, 1);
    assert_int_equal(asked.status, REDBUCKET_CANCELLED);
    unlock(shard_of("a", "k"));
    close_all();
}

static enum redbucket_status two_status;

static void note_two(void *data, const struct redbucket_request *decided)
{
    (void)data;
    two_status = decided->status;
}

/* Of two buckets, in different shards, so that the lower one is locked first. */
static void test_no_other_lock_is_held_meanwhile(void **state)
{
    struct redbucket_key keys[] = {{.limit = "a", .key = "k"}, {.limit = "b", .key = NULL}};
    struct redbucket_request request = {.keys = keys, .keys_len = 2, .cost = 1.0};
    char other[16];
    unsigned low, high;

    (void)state;
    open_with("?size=4m&timeout=60s");
    low = shard_of("a", "k");
    for (int i = 0; i < 10000; i++) {
        (void)snprintf(other, sizeof other, "k%d", i);
        if (shard_of("b", other) != low)
            break;
    }
    high = shard_of("b", other);
    assert_int_not_equal(low, high);
    keys[1].key = other;
    unsigned held = low > high ? low : high, free = low > high ? high : low;

    assert_true(lock(held));
    assert_int_equal(redbucket_async_request(asker, &request, note_two, NULL, NULL), REDBUCKET_OK);
    for (int i = 0; i < 5; i++) {
        turn();
        assert_true(lock(free));
        unlock(free);
    }
    unlock(held);
    while (redbucket_async_outstanding(asker) > 0)
        turn();
    assert_int_equal(two_status, REDBUCKET_OK);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lock_that_is_held_keeps_no_loop),
        cmocka_unit_test(test_a_lock_that_is_held_for_too_long_is_an_error),
        cmocka_unit_test(test_who_waits_for_a_lock_can_be_given_up),
        cmocka_unit_test(test_no_other_lock_is_held_meanwhile),
    };

    return cmocka_run_group_tests_name("async_shm", tests, NULL, NULL);
}
