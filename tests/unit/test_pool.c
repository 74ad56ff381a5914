/* SPDX-License-Identifier: MIT */
/*
 * Lending connections: to one at a time, no more than allowed, nobody left waiting, none for the
 * parent's in a child; and what the circuit makes of failures.
 */
#include "fake_connection.h"
#include "pooled.h"
#include "processes.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>

static void assert_taking(enum redbucket_status status)
{
    struct rbk_peer *peer = NULL;

    assert_int_equal(rbk_pool_take(&pooled.pool, &pooled.soon, &peer), status);
    assert_null(peer);
}

static void test_an_idle_connection_is_used_again(void **state)
{
    struct rbk_peer *peer;

    (void)state;
    pooled_begin("redis://h");
    assert_int_equal(fake_server.opened, 0);
    peer = pooled_take();
    pooled_give(peer);
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(pooled_take(), peer);
        pooled_give(peer);
    }
    assert_int_equal(fake_server.opened, 1);
    pooled_end();
}

/* What it was told is worth nothing any more, and its memory is. */
static void test_an_idle_connection_keeps_no_replies(void **state)
{
    unsigned before;

    (void)state;
    pooled_begin("redis://h");
    before = fake_server.rested;
    pooled_give(pooled_take());
    assert_int_equal(fake_server.rested, before + 1);
    rbk_pool_give(&pooled.pool, pooled_take(), REDBUCKET_ERROR_IO, false); /* none is left */
    assert_int_equal(fake_server.rested, before + 1);
    pooled_end();
}

static void test_no_connection_is_lent_twice(void **state)
{
    struct rbk_peer *peers[3];

    (void)state;
    pooled_begin("redis://h?connections=3");
    for (int i = 0; i < 3; i++) {
        peers[i] = pooled_take();
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(peers[i], peers[j]);
    }
    assert_int_equal(fake_server.opened, 3);
    for (int i = 0; i < 3; i++)
        pooled_give(peers[i]);
    pooled_end();
}

static void test_waiting_for_one_ends_at_the_deadline(void **state)
{
    struct redbucket_error last;
    struct rbk_peer *none = NULL;
    struct rbk_deadline now;
    struct rbk_peer *peer;

    (void)state;
    pooled_begin("redis://h?connections=1");
    peer = pooled_take();
    rbk_deadline_start(&now, 0.0);
    assert_int_equal(rbk_pool_take(&pooled.pool, &now, &none), REDBUCKET_ERROR_TIMEOUT);
    assert_int_equal(fake_server.opened, 1);
    rbk_pool_last(&pooled.pool, &last);
    assert_int_equal(last.status, REDBUCKET_ERROR_TIMEOUT);
    pooled_give(peer);
    assert_ptr_equal(pooled_take(), peer); /* which says nothing of the server */
    pooled_give(peer);
    assert_string_equal(pooled.events, "");
    pooled_end();
}

static void test_a_connection_closed_meanwhile_is_replaced(void **state)
{
    struct rbk_peer *peer;

    (void)state;
    pooled_begin("redis://:secret@h/3");
    pooled_give(pooled_take());
    fake_server.bad = true;
    fake_server.log[0] = '\0';
    peer = pooled_take();
    assert_int_equal(fake_server.opened, 2);
    assert_int_equal(fake_server.closed, 1);
    assert_string_equal(fake_server.log, "AUTH secret SELECT 3 INFO ROLE ");
    pooled_give(peer);
    assert_string_equal(pooled.events, "");
    pooled_end();
}

static void test_a_failed_connection_is_not_used_again(void **state)
{
    (void)state;
    pooled_begin("redis://h");
    rbk_pool_give(&pooled.pool, pooled_take(), REDBUCKET_ERROR_IO, false);
    assert_int_equal(fake_server.closed, 1);
    pooled_give(pooled_take());
    assert_int_equal(fake_server.opened, 2);
    assert_string_equal(pooled.events, "");
    pooled_end();
}

static void test_a_server_that_is_down_is_asked_once_a_pause(void **state)
{
    struct redbucket_error last;

    (void)state;
    pooled_begin("redis://h");
    fake_server.open_status = REDBUCKET_ERROR_UNAVAILABLE;
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    for (int i = 0; i < 100; i++)
        assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    assert_int_equal(fake_server.opened, 1);
    rbk_pool_last(&pooled.pool, &last);
    assert_int_equal(last.status, REDBUCKET_ERROR_UNAVAILABLE);
    assert_string_equal(last.message, "not opened");
    assert_string_equal(pooled.reason, "not opened");
    fake_server.moved += 0.1;
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    assert_int_equal(fake_server.opened, 2);
    fake_server.open_status = REDBUCKET_OK;
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    fake_server.moved += 1.0;
    pooled_give(pooled_take());
    pooled_give(pooled_take());
    assert_string_equal(pooled.events, "down back ");
    assert_string_equal(pooled.reason, "the server answers again");
    rbk_pool_fini(&pooled.pool);
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
        pooled_begin("redis://h");
        rbk_pool_give(&pooled.pool, pooled_take(), ends[i].status, ends[i].usable);
        assert_string_equal(pooled.events, ends[i].opens ? "down " : "");
        pooled_end();
    }
}

/* Of some connections to one place, the first that goes silent, or is a replica's, tells of all.
 * What breaks one, or turns a new one away, says nothing against the others. */
static void test_idle_connections_are_closed_with_one_that_is_silent(void **state)
{
    static const struct {
        enum redbucket_status status;
        bool usable;
        unsigned closed;
    } ends[] = {
        {REDBUCKET_ERROR_TIMEOUT, false, 4},     {REDBUCKET_ERROR_READONLY, false, 4},
        {REDBUCKET_ERROR_UNAVAILABLE, false, 1}, {REDBUCKET_ERROR_UNAVAILABLE, true, 0},
        {REDBUCKET_ERROR_IO, false, 1},          {REDBUCKET_ERROR_PROTOCOL, false, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct rbk_peer *peers[4];

        pooled_begin("redis://h?connections=5");
        for (size_t j = 0; j < 4; j++)
            peers[j] = pooled_take();
        for (size_t j = 0; j < 4; j++)
            pooled_give(peers[j]);
        rbk_pool_give(&pooled.pool, pooled_take(), ends[i].status, ends[i].usable);
        assert_int_equal(fake_server.closed, ends[i].closed);
        fake_server.moved += 1.0;
        pooled_give(pooled_take());
        assert_int_equal(fake_server.opened, ends[i].closed == 4 ? 5 : 4);
        pooled_end();
    }
}

/* Those that are lent at the time are their borrowers', who find out by themselves. */
static void test_lent_connections_are_left_to_their_borrowers(void **state)
{
    struct rbk_peer *silent, *busy;

    (void)state;
    pooled_begin("redis://h?connections=3");
    silent = pooled_take();
    busy = pooled_take();
    rbk_pool_give(&pooled.pool, silent, REDBUCKET_ERROR_TIMEOUT, false);
    assert_int_equal(fake_server.closed, 1);
    assert_non_null(busy->connection);
    pooled_give(busy);
    assert_int_equal(fake_server.closed, 1);
    assert_ptr_equal(pooled_take(), busy);
    pooled_give(busy);
    pooled_end();
}

static void test_which_failures_to_connect_open_the_circuit(void **state)
{
    static const enum redbucket_status opening[] = {
        REDBUCKET_ERROR_TIMEOUT,
        REDBUCKET_ERROR_UNAVAILABLE,
        REDBUCKET_ERROR_TLS,
    };
    static const enum redbucket_status our_own[] = {
        REDBUCKET_ERROR_MEMORY,
        REDBUCKET_ERROR_SYSTEM,
    };

    (void)state;
    for (size_t i = 0; i < sizeof opening / sizeof opening[0]; i++) {
        pooled_begin("redis://h");
        fake_server.open_status = opening[i];
        assert_taking(opening[i]);
        assert_string_equal(pooled.events, "down ");
        assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
        rbk_pool_fini(&pooled.pool);
    }
    for (size_t i = 0; i < sizeof our_own / sizeof our_own[0]; i++) {
        pooled_begin("redis://h");
        fake_server.open_status = our_own[i];
        assert_taking(our_own[i]);
        assert_string_equal(pooled.events, "");
        fake_server.open_status = REDBUCKET_OK;
        rbk_pool_give(&pooled.pool, pooled_take(), REDBUCKET_OK, true);
        rbk_pool_fini(&pooled.pool);
    }
}

/* Calls that were sent before the circuit opened fail one after the other: the probe stays alone,
 * and the pause what it was. */
static void test_late_failures_leave_the_probe_alone(void **state)
{
    struct rbk_peer *late[3];
    struct rbk_peer *probe;

    (void)state;
    pooled_begin("redis://h");
    for (int i = 0; i < 3; i++)
        late[i] = pooled_take();
    rbk_pool_give(&pooled.pool, late[0], REDBUCKET_ERROR_TIMEOUT, false);
    fake_server.moved += 0.1;
    probe = pooled_take();
    rbk_pool_give(&pooled.pool, late[1], REDBUCKET_ERROR_TIMEOUT, false);
    fake_server.moved += 5.0;
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    rbk_pool_give(&pooled.pool, late[2], REDBUCKET_ERROR_IO, false);
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    rbk_pool_give(&pooled.pool, probe, REDBUCKET_ERROR_TIMEOUT, false);
    fake_server.moved += RBK_CIRCUIT_FIRST * 2;
    pooled_give(pooled_take());
    assert_string_equal(pooled.events, "down back ");
    pooled_end();
}

/* The probe's own want of memory says nothing: the next one may try at once. */
static void test_a_probe_that_learns_nothing_lets_another_try(void **state)
{
    (void)state;
    pooled_begin("redis://h");
    fake_server.open_status = REDBUCKET_ERROR_UNAVAILABLE;
    assert_taking(REDBUCKET_ERROR_UNAVAILABLE);
    fake_server.moved += 0.1;
    fake_server.open_status = REDBUCKET_ERROR_MEMORY;
    assert_taking(REDBUCKET_ERROR_MEMORY);
    fake_server.open_status = REDBUCKET_OK;
    pooled_give(pooled_take());
    assert_string_equal(pooled.events, "down back ");
    rbk_pool_fini(&pooled.pool);
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
    uint32_t random = rbk_pool_random(&pooled.pool);

    /* One was idle, one lent, and the circuit open. */
    child_check(fake_server.closed == 1);
    child_check(fake_server.abandoned == 1);
    child_check(rbk_pool_take(&pooled.pool, &pooled.soon, &peer) == REDBUCKET_OK);
    child_check(fake_server.opened == 3);
    child_check(random != family->random);
    rbk_pool_give(&pooled.pool, peer, REDBUCKET_OK, true);
    for (int i = 0; i < 2; i++)
        child_check(rbk_pool_take(&pooled.pool, &pooled.soon, &peer) == REDBUCKET_OK);
    child_check(rbk_pool_take(&pooled.pool, &(struct rbk_deadline){.set = true}, &peer) ==
                REDBUCKET_ERROR_TIMEOUT);
}

static void test_a_child_begins_with_no_connection(void **state)
{
    struct family family;
    struct rbk_peer *idle;
    uint64_t random;

    (void)state;
    pooled_begin("redis://h?connections=2");
    family.lent = pooled_take();
    idle = pooled_take();
    pooled_give(idle);
    random = pooled.pool.random;
    family.random = rbk_pool_random(&pooled.pool);
    pooled.pool.random = random;
    pooled.pool.circuit = (struct rbk_circuit){.open = true, .until = 1e18};
    test_join(test_fork(be_a_child, &family));
    pooled.pool.circuit = (struct rbk_circuit){.open = false};
    assert_int_equal(fake_server.closed, 0);
    assert_ptr_equal(pooled_take(), idle);
    pooled_give(idle);
    pooled_give(family.lent);
    pooled_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_idle_connection_is_used_again),
        cmocka_unit_test(test_an_idle_connection_keeps_no_replies),
        cmocka_unit_test(test_no_connection_is_lent_twice),
        cmocka_unit_test(test_waiting_for_one_ends_at_the_deadline),
        cmocka_unit_test(test_a_connection_closed_meanwhile_is_replaced),
        cmocka_unit_test(test_a_failed_connection_is_not_used_again),
        cmocka_unit_test(test_a_server_that_is_down_is_asked_once_a_pause),
        cmocka_unit_test(test_which_failures_open_the_circuit),
        cmocka_unit_test(test_idle_connections_are_closed_with_one_that_is_silent),
        cmocka_unit_test(test_lent_connections_are_left_to_their_borrowers),
        cmocka_unit_test(test_which_failures_to_connect_open_the_circuit),
        cmocka_unit_test(test_late_failures_leave_the_probe_alone),
        cmocka_unit_test(test_a_probe_that_learns_nothing_lets_another_try),
        cmocka_unit_test(test_a_child_begins_with_no_connection),
    };

    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
