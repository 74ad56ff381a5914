/* SPDX-License-Identifier: MIT */
/*
 * Lending connections: to one at a time, no more than allowed, nobody left waiting, none for the
 * parent's in a child; and what the circuit makes of failures.
 */
#include "fake_connection.h"
#include "processes.h"
#include "redis/handshake.h"
#include "redis/pool.h"
#include "test.h"
#include "url.h"

#include <pthread.h>
#include <stdio.h>

static struct rbk_redis_options options;
static struct redbucket_store host;
static struct rbk_pool pool;
static struct rbk_deadline soon; /* in a minute */
static char events[256];
static char reason[256]; /* of the last event */

static void hear(void *data, enum redbucket_event event, const char *message)
{
    (void)data;
    snprintf(reason, sizeof reason, "%s", message);
    strcat(events, event == REDBUCKET_EVENT_DOWN ? "down " : "back ");
}

static enum redbucket_status init_pool(struct redbucket_store *store)
{
    const struct rbk_pool_config config = {
        .options = &options, .endpoint = &options.hosts[0], .store = store};
    struct redbucket_error error;

    return rbk_pool_init(&pool, &config, &error);
}

static void begin(const char *text)
{
    struct redbucket_error error;
    struct rbk_url url;

    fake_server_reset();
    events[0] = '\0';
    host = (struct redbucket_store){.listener = hear};
    pool = (struct rbk_pool){.options = NULL};
    assert_int_equal(rbk_url_parse(text, &url, &error), REDBUCKET_OK);
    assert_int_equal(rbk_redis_options_parse(&url, &options, &error), REDBUCKET_OK);
    assert_int_equal(init_pool(&host), REDBUCKET_OK);
    rbk_deadline_start(&soon, 60.0);
}

/* Closes the pool, and expects that nothing opened was left open. */
static void end(void)
{
    rbk_pool_fini(&pool);
    assert_int_equal(fake_server.closed, fake_server.opened);
}

static struct rbk_peer *take(void)
{
    struct rbk_peer *peer = NULL;

    assert_int_equal(rbk_pool_take(&pool, &soon, &peer), REDBUCKET_OK);
    assert_non_null(peer);
    assert_non_null(peer->connection);
    return peer;
}

static void give(struct rbk_peer *peer)
{
    rbk_pool_give(&pool, peer, REDBUCKET_OK, true);
}

static void assert_taking(enum redbucket_status status)
{
    struct rbk_peer *peer = NULL;

    assert_int_equal(rbk_pool_take(&pool, &soon, &peer), status);
    assert_null(peer);
}

static void test_an_idle_connection_is_used_again(void **state)
{
    struct rbk_peer *peer;

    (void)state;
    begin("redis://h");
    assert_int_equal(fake_server.opened, 0);
    peer = take();
    give(peer);
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(take(), peer);
        give(peer);
    }
    assert_int_equal(fake_server.opened, 1);
    end();
}

static void test_no_connection_is_lent_twice(void **state)
{
    struct rbk_peer *peers[3];

    (void)state;
    begin("redis://h?connections=3");
    for (int i = 0; i < 3; i++) {
        peers[i] = take();
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(peers[i], peers[j]);
    }
    assert_int_equal(fake_server.opened, 3);
    for (int i = 0; i < 3; i++)
        give(peers[i]);
    end();
}

static void test_waiting_for_one_ends_at_the_deadline(void **state)
{
    struct redbucket_error last;
    struct rbk_peer *none = NULL;
    struct rbk_deadline now;
    struct rbk_peer *peer;

    (void)state;
    begin("redis://h?connections=1");
    peer = take();
    rbk_deadline_start(&now, 0.0);
    assert_int_equal(rbk_pool_take(&pool, &now, &none), REDBUCKET_ERROR_TIMEOUT);
    assert_int_equal(fake_server.opened, 1);
    rbk_pool_last(&pool, &last);
    assert_int_equal(last.status, REDBUCKET_ERROR_TIMEOUT);
    give(peer);
    assert_ptr_equal(take(), peer); /* which says nothing of the server */
    give(peer);
    assert_string_equal(events, "");
    end();
}

static void test_a_connection_closed_meanwhile_is_replaced(void **state)
{
    struct rbk_peer *peer;

    (void)state;
    begin("redis://:secret@h/3");
    give(take());
    fake_server.bad = true;
    fake_server.log[0] = '\0';
    peer = take();
    assert_int_equal(fake_server.opened, 2);
    assert_int_equal(fake_server.closed, 1);
    assert_string_equal(fake_server.log, "AUTH secret SELECT 3 INFO ROLE ");
    give(peer);
    assert_string_equal(events, "");
    end();
}

static void test_a_failed_connection_is_not_used_again(void **state)
{
    (void)state;
    begin("redis://h");
    rbk_pool_give(&pool, take(), REDBUCKET_ERROR_IO, false);
    assert_int_equal(fake_server.closed, 1);
    give(take());
    assert_int_equal(fake_server.opened, 2);
    assert_string_equal(events, "");
    end();
}

static void test_a_server_that_is_down_is_asked_once_a_pause(void **state)
{
    struct redbucket_error last;

    (void)state;
    begin("redis://h");
    fake_server.open_status = REDBUCKET_ERROR_UNAVAILABLE;
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    for (int i = 0; i < 100; i++)
        assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    assert_int_equal(fake_server.opened, 1);
    rbk_pool_last(&pool, &last);
    assert_int_equal(last.status, REDBUCKET_ERROR_UNAVAILABLE);
    assert_string_equal(last.message, "not opened");
    assert_string_equal(reason, "not opened");
    fake_server.moved += 0.1;
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    assert_int_equal(fake_server.opened, 2);
    fake_server.open_status = REDBUCKET_OK;
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    fake_server.moved += 1.0;
    give(take());
    give(take());
    assert_string_equal(events, "down back ");
    assert_string_equal(reason, "the server answers again");
    rbk_pool_fini(&pool);
}

/* What the end of a call says of the server, with its connection still there or not. */
static void test_which_failures_open_the_circuit(void **state)
{
    static const struct {
        enum redbucket_status status;
        bool usable;
        bool opens;
    } ends[] = {
        {REDBUCKET_OK, true, false},
        {REDBUCKET_ERROR_TIMEOUT, false, true},
        {REDBUCKET_ERROR_UNAVAILABLE, true, true},
        {REDBUCKET_ERROR_UNAVAILABLE, false, true},
        {REDBUCKET_ERROR_READONLY, false, true},
        {REDBUCKET_ERROR_IO, false, false},
        {REDBUCKET_ERROR_PROTOCOL, false, false},
        {REDBUCKET_ERROR_CONFLICT, true, false},
        {REDBUCKET_ERROR_CONFLICT, false, false},
        {REDBUCKET_ERROR_STATE, true, false},
        {REDBUCKET_ERROR_AUTH, true, false},
        {REDBUCKET_ERROR_AUTH, false, false},
        {REDBUCKET_ERROR_SERVER, true, false},
        {REDBUCKET_ERROR_UNSUPPORTED, true, false},
        {REDBUCKET_ERROR_MEMORY, true, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        begin("redis://h");
        rbk_pool_give(&pool, take(), ends[i].status, ends[i].usable);
        assert_string_equal(events, ends[i].opens ? "down " : "");
        end();
    }
}

static void test_which_failures_to_connect_open_the_circuit(void **state)
{
    static const enum redbucket_status opening[] = {
        REDBUCKET_ERROR_TIMEOUT,
        REDBUCKET_ERROR_UNAVAILABLE,
        REDBUCKET_ERROR_TLS,
        REDBUCKET_ERROR_SYSTEM,
    };

    (void)state;
    for (size_t i = 0; i < sizeof opening / sizeof opening[0]; i++) {
        begin("redis://h");
        fake_server.open_status = opening[i];
        assert_taking(opening[i]);
        assert_string_equal(events, "down ");
        assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
        rbk_pool_fini(&pool);
    }
    begin("redis://h");
    fake_server.open_status = REDBUCKET_ERROR_MEMORY;
    assert_taking(REDBUCKET_ERROR_MEMORY);
    assert_string_equal(events, "");
    rbk_pool_fini(&pool);
}

/* Calls that were sent before the circuit opened fail one after the other: the probe stays alone,
 * and the pause what it was. */
static void test_late_failures_leave_the_probe_alone(void **state)
{
    struct rbk_peer *late[3];
    struct rbk_peer *probe;

    (void)state;
    begin("redis://h");
    for (int i = 0; i < 3; i++)
        late[i] = take();
    rbk_pool_give(&pool, late[0], REDBUCKET_ERROR_TIMEOUT, false);
    fake_server.moved += 0.1;
    probe = take();
    rbk_pool_give(&pool, late[1], REDBUCKET_ERROR_TIMEOUT, false);
    fake_server.moved += 5.0;
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    rbk_pool_give(&pool, late[2], REDBUCKET_ERROR_IO, false);
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    rbk_pool_give(&pool, probe, REDBUCKET_ERROR_TIMEOUT, false);
    fake_server.moved += RBK_CIRCUIT_FIRST * 2;
    give(take());
    assert_string_equal(events, "down back ");
    end();
}

/* The probe's own want of memory says nothing: the next one may try at once. */
static void test_a_probe_that_learns_nothing_lets_another_try(void **state)
{
    (void)state;
    begin("redis://h");
    fake_server.open_status = REDBUCKET_ERROR_UNAVAILABLE;
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    fake_server.moved += 0.1;
    fake_server.open_status = REDBUCKET_ERROR_MEMORY;
    assert_taking(REDBUCKET_ERROR_MEMORY);
    fake_server.open_status = REDBUCKET_OK;
    give(take());
    assert_string_equal(events, "down back ");
    rbk_pool_fini(&pool);
}

/* ---- Waiting -------------------------------------------------------------------------------- */

#define WAITERS 4

struct waiter {
    pthread_t thread;
    enum redbucket_status status;
    struct rbk_peer *peer;
};

static void *wait_for_one(void *data)
{
    struct waiter *waiter = data;

    waiter->status = rbk_pool_take(&pool, &soon, &waiter->peer);
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
    begin("redis://h?connections=4");
    for (int i = 0; i < WAITERS; i++)
        peers[i] = take();
    start_waiters(waiters, WAITERS);
    for (int i = 0; i < WAITERS; i++)
        give(peers[i]);
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].status, REDBUCKET_OK);
        give(waiters[i].peer);
    }
    assert_int_equal(fake_server.opened, WAITERS);
    end();
}

/* None of them sleeps its whole deadline once it is known that the server is down. */
static void test_all_who_wait_hear_that_the_server_is_down(void **state)
{
    struct waiter waiters[WAITERS];
    struct rbk_peer *peer;

    (void)state;
    begin("redis://h?connections=1");
    peer = take();
    start_waiters(waiters, WAITERS);
    rbk_pool_give(&pool, peer, REDBUCKET_ERROR_TIMEOUT, false);
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].status, REDBUCKET_ERROR_UNAVAILABLE);
    }
    assert_true(rbk_deadline_left(&soon) > 30.0);
    end();
}

/* Lends to a thread that had to wait, whose call then times out. */
static void time_out_after_waiting(const char *url)
{
    struct waiter waiter;
    struct rbk_peer *peer;

    begin(url);
    peer = take();
    start_waiters(&waiter, 1);
    give(peer);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.status, REDBUCKET_OK);
    rbk_pool_give(&pool, waiter.peer, REDBUCKET_ERROR_TIMEOUT, false);
    end();
}

/* Whoever waited until little time was left, and then ran out of it, says nothing of the server. */
static void test_a_call_in_a_hurry_opens_no_circuit(void **state)
{
    (void)state;
    time_out_after_waiting("redis://h?connections=1&timeout=10m"); /* of which a minute was left */
    assert_string_equal(events, "");
    time_out_after_waiting("redis://h?connections=1&timeout=1m");
    assert_string_equal(events, "down ");
}

/* ---- After fork ----------------------------------------------------------------------------- */

struct family {
    struct rbk_peer *lent;
    uint32_t random;
};

static void be_a_child(void *data)
{
    struct family *family = data;
    struct rbk_peer *peer = NULL;
    uint32_t random = rbk_pool_random(&pool);

    /* One was idle, one lent, and the circuit open. */
    child_check(fake_server.closed == 1);
    child_check(fake_server.abandoned == 1);
    child_check(rbk_pool_take(&pool, &soon, &peer) == REDBUCKET_OK);
    child_check(fake_server.opened == 3);
    child_check(random != family->random);
    rbk_pool_give(&pool, peer, REDBUCKET_OK, true);
    for (int i = 0; i < 2; i++)
        child_check(rbk_pool_take(&pool, &soon, &peer) == REDBUCKET_OK);
    child_check(rbk_pool_take(&pool, &(struct rbk_deadline){.set = true}, &peer) ==
                REDBUCKET_ERROR_TIMEOUT);
}

static void test_a_child_begins_with_no_connection(void **state)
{
    struct family family;
    struct rbk_peer *idle;
    uint64_t random;

    (void)state;
    begin("redis://h?connections=2");
    family.lent = take();
    idle = take();
    give(idle);
    random = pool.random;
    family.random = rbk_pool_random(&pool);
    pool.random = random;
    pool.circuit = (struct rbk_circuit){.open = true, .until = 1e18};
    test_join(test_fork(be_a_child, &family));
    pool.circuit = (struct rbk_circuit){.open = false};
    assert_int_equal(fake_server.closed, 0);
    assert_ptr_equal(take(), idle);
    give(idle);
    give(family.lent);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_idle_connection_is_used_again),
        cmocka_unit_test(test_no_connection_is_lent_twice),
        cmocka_unit_test(test_waiting_for_one_ends_at_the_deadline),
        cmocka_unit_test(test_a_connection_closed_meanwhile_is_replaced),
        cmocka_unit_test(test_a_failed_connection_is_not_used_again),
        cmocka_unit_test(test_a_server_that_is_down_is_asked_once_a_pause),
        cmocka_unit_test(test_which_failures_open_the_circuit),
        cmocka_unit_test(test_which_failures_to_connect_open_the_circuit),
        cmocka_unit_test(test_late_failures_leave_the_probe_alone),
        cmocka_unit_test(test_a_probe_that_learns_nothing_lets_another_try),
        cmocka_unit_test(test_whoever_waits_gets_what_is_given_back),
        cmocka_unit_test(test_all_who_wait_hear_that_the_server_is_down),
        cmocka_unit_test(test_a_call_in_a_hurry_opens_no_circuit),
        cmocka_unit_test(test_a_child_begins_with_no_connection),
    };

    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
