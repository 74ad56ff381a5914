/* SPDX-License-Identifier: MIT */
/*
 * Who waits for a connection, has no time for one, or is told of what became of them.
 */
#include "fake_connection.h"
#include "pooled.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>

#define WAITERS 4

struct waiter {
    pthread_t thread;
    enum redbucket_status status;
    struct rbk_peer *peer;
};

static void *wait_for_one(void *data)
{
    struct waiter *waiter = data;

    waiter->status = rbk_pool_take(&pooled.pool, &pooled.soon, &waiter->peer);
    return NULL;
}

/* Starts threads that wait for a connection, and returns when they do. */
static void start_waiters(struct waiter *waiters, int len)
{
    for (int i = 0; i < len; i++) {
        waiters[i] = (struct waiter){.status = REDBUCKET_ERROR_ARGUMENT};
        assert_int_equal(pthread_create(&waiters[i].thread, NULL, wait_for_one, &waiters[i]), 0);
    }
    while (atomic_load(&fake_server.waiting) < len)
        sched_yield();
}

static void test_whoever_waits_gets_what_is_given_back(void **state)
{
    struct waiter waiters[WAITERS];
    struct rbk_peer *peers[WAITERS];

    (void)state;
    pooled_begin("redis://h?connections=4");
    for (int i = 0; i < WAITERS; i++)
        peers[i] = pooled_take();
    start_waiters(waiters, WAITERS);
    for (int i = 0; i < WAITERS; i++)
        pooled_give(peers[i]);
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].status, REDBUCKET_OK);
        pooled_give(waiters[i].peer);
    }
    assert_int_equal(fake_server.opened, WAITERS);
    pooled_end();
}

/* Somebody is told of a connection at the last moment, and has gone when he hears it. */
static void test_what_was_told_too_late_is_told_another(void **state)
{
    struct waiter waiters[2];
    int timeouts = 0;

    (void)state;
    pooled_begin("redis://h?connections=1");
    struct rbk_peer *peer = pooled_take();

    start_waiters(waiters, 2);
    atomic_store(&fake_server.late, 1);
    pooled_give(peer);
    for (int i = 0; i < 2; i++) {
        pthread_join(waiters[i].thread, NULL);
        if (waiters[i].status == REDBUCKET_OK)
            pooled_give(waiters[i].peer);
        else
            timeouts++;
    }
    assert_true(timeouts <= 1);
    assert_true(rbk_deadline_left(&pooled.soon) > 30.0);
    pooled_end();
}

/* Nothing is sent that can't be answered, and the connection comes to no harm. */
static void test_who_has_no_time_gets_none(void **state)
{
    const struct rbk_deadline over = {.set = true};
    struct redbucket_error last;
    struct rbk_peer *none = NULL;

    (void)state;
    pooled_begin("redis://h");
    pooled_give(pooled_take());
    assert_int_equal(rbk_pool_take(&pooled.pool, &over, &none), REDBUCKET_ERROR_TIMEOUT);
    assert_null(none);
    rbk_pool_last(&pooled.pool, &last);
    assert_int_equal(last.status, REDBUCKET_ERROR_TIMEOUT);
    assert_string_equal(last.message, "no time was left to ask the server");
    assert_int_equal(fake_server.closed, 0);
    /* Nor does whoever might try whether the server is back take the try from the next. */
    rbk_pool_give(&pooled.pool, pooled_take(), REDBUCKET_ERROR_UNAVAILABLE, true);
    fake_server.moved += 0.1;
    assert_int_equal(rbk_pool_take(&pooled.pool, &over, &none), REDBUCKET_ERROR_TIMEOUT);
    assert_string_equal(pooled.events, "down ");
    pooled_give(pooled_take());
    assert_string_equal(pooled.events, "down back ");
    assert_int_equal(fake_server.opened, 1);
    pooled_end();
}

/* A connection that took all of the time is there for the next, but the server is slow. */
static void test_a_connection_made_too_late_is_kept(void **state)
{
    struct redbucket_error last;
    struct rbk_peer *none = NULL;

    (void)state;
    pooled_begin("redis://h?timeout=1m");
    fake_server.open_takes = 61.0;
    assert_int_equal(rbk_pool_take(&pooled.pool, &pooled.soon, &none), REDBUCKET_ERROR_TIMEOUT);
    assert_null(none);
    assert_string_equal(pooled.events, "down ");
    rbk_pool_last(&pooled.pool, &last);
    assert_int_equal(last.status, REDBUCKET_ERROR_TIMEOUT);
    assert_int_equal(fake_server.closed, 0);
    fake_server.moved += 0.1;
    rbk_deadline_start(&pooled.soon, 60.0);
    pooled_give(pooled_take());
    assert_string_equal(pooled.events, "down back ");
    assert_int_equal(fake_server.opened, 1);
    pooled_end();
}

/* The last that a host hears is how it is, however long it takes over each. */
static void test_events_come_one_after_the_other(void **state)
{
    struct rbk_peer *peer;

    (void)state;
    pooled_begin("redis://h?connections=2");
    peer = pooled_take();
    pooled.meanwhile = pooled_take();
    rbk_pool_give(&pooled.pool, peer, REDBUCKET_ERROR_UNAVAILABLE, true);
    assert_string_equal(pooled.events, "down back ");
    assert_string_equal(pooled.reason, "the server answers again");
    pooled_end();
}

/* None of them sleeps its whole deadline once it is known that the server is down. */
static void test_all_who_wait_hear_that_the_server_is_down(void **state)
{
    struct waiter waiters[WAITERS];
    struct rbk_peer *peer;

    (void)state;
    pooled_begin("redis://h?connections=1");
    peer = pooled_take();
    start_waiters(waiters, WAITERS);
    rbk_pool_give(&pooled.pool, peer, REDBUCKET_ERROR_TIMEOUT, false);
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].status, REDBUCKET_ERROR_UNAVAILABLE);
    }
    assert_true(rbk_deadline_left(&pooled.soon) > 30.0);
    pooled_end();
}

/* Lends to a thread that had to wait, whose call then times out. */
static void time_out_after_waiting(const char *url)
{
    struct waiter waiter;
    struct rbk_peer *peer;

    pooled_begin(url);
    peer = pooled_take();
    start_waiters(&waiter, 1);
    pooled_give(peer);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.status, REDBUCKET_OK);
    rbk_pool_give(&pooled.pool, waiter.peer, REDBUCKET_ERROR_TIMEOUT, false);
    pooled_end();
}

/* Whoever waited until little time was left, and then ran out of it, says nothing of the server. */
static void test_a_call_in_a_hurry_opens_no_circuit(void **state)
{
    (void)state;
    time_out_after_waiting("redis://h?connections=1&timeout=10m"); /* of which a minute was left */
    assert_string_equal(pooled.events, "");
    time_out_after_waiting("redis://h?connections=1&timeout=1m");
    assert_string_equal(pooled.events, "down ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whoever_waits_gets_what_is_given_back),
        cmocka_unit_test(test_what_was_told_too_late_is_told_another),
        cmocka_unit_test(test_who_has_no_time_gets_none),
        cmocka_unit_test(test_a_connection_made_too_late_is_kept),
        cmocka_unit_test(test_events_come_one_after_the_other),
        cmocka_unit_test(test_all_who_wait_hear_that_the_server_is_down),
        cmocka_unit_test(test_a_call_in_a_hurry_opens_no_circuit),
    };

    return cmocka_run_group_tests_name("pool waits", tests, NULL, NULL);
}
