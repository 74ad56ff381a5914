/* SPDX-License-Identifier: MIT */
/*
 * The asynchronous form while a server is away, hangs, shakes hands slowly, or can't be found:
 * every answer comes in time, and nothing ever keeps the loop.
 */
#include "fault_peer.h"
#include "processes.h"
#include "server.h"
#include "test.h"
#include "turner.h"

#include <signal.h>
#include <stdio.h>

#define TIMEOUT   0.3
#define TIMEOUT_Q "timeout=300ms&denial_time=0"

/* What a dispatch may take at most, beside what the machine adds. */
#define MOMENT 0.02

static struct test_server *server;

static void open_with(struct turner *turner, const char *query)
{
    char url[512];

    assert_true(test_server_do(server, "FLUSHALL", NULL));
    test_server_url(server, TEST_BY_SOCKET, query, url, sizeof url);
    turner_open(turner, url, 1e6);
    test_control_reset();
}

static void check_times(const struct turner *turner)
{
    test_control_check(turner->longest, MOMENT);
    test_control_check(turner->latest, TIMEOUT);
}

static void test_a_server_goes_and_comes_back(void **state)
{
    struct turner turner;

    (void)state;
    open_with(&turner, TIMEOUT_Q);
    for (int outage = 1; outage <= 2; outage++) {
        turner_recover(&turner, "k");
        test_server_kill(server);
        int before = turner_failures(&turner);

        for (int i = 0; i < 10; i++) {
            turner_ask_times(&turner, "k", 30);
            turner_run(&turner);
        }
        assert_int_equal(turner_failures(&turner), before + 300);
        assert_true(test_server_again(server));
        turner_recover(&turner, "k");
        assert_int_equal(turner.host.down, outage);
        assert_int_equal(turner.host.back, outage);
    }
    assert_int_equal(turner.failed[REDBUCKET_ERROR_UNAVAILABLE], turner_failures(&turner));
    check_times(&turner);
    turner_close(&turner);
}

static void test_a_policy_answers_meanwhile(void **state)
{
    struct turner turner;

    (void)state;
    open_with(&turner, TIMEOUT_Q "&on_error=open");
    turner_recover(&turner, "k");
    assert_int_equal(kill(server->pid, SIGSTOP), 0);
    for (int i = 0; i < 20; i++) {
        turner_ask_times(&turner, "k", 10);
        turner_turn(&turner, 40);
    }
    turner_run(&turner);
    assert_int_equal(kill(server->pid, SIGCONT), 0);
    assert_int_equal(turner_failures(&turner), 0);
    assert_in_range(turner.degraded, 190, 200);
    assert_int_equal(turner.host.degraded, 1);
    assert_int_equal(test_host_counted_degraded(&turner.host), turner.degraded);
    check_times(&turner);
    turner_recover(&turner, "k");
    turner_close(&turner);
}

/* Those that wait behind calls that hang have no more time than those. */
static void test_a_server_that_hangs_keeps_nobody_for_longer(void **state)
{
    struct turner turner;

    (void)state;
    open_with(&turner, TIMEOUT_Q);
    turner_recover(&turner, "k");
    assert_int_equal(kill(server->pid, SIGSTOP), 0);
    for (int i = 0; i < 50; i++) {
        turner_ask_times(&turner, "k", 100);
        turner_turn(&turner, 10);
    }
    turner_run(&turner);
    assert_int_equal(kill(server->pid, SIGCONT), 0);
    assert_int_equal(turner_failures(&turner), 5000);
    assert_true(turner.failed[REDBUCKET_ERROR_TIMEOUT] > 0);
    check_times(&turner);
    turner_recover(&turner, "k");
    turner_close(&turner);
}

/* In one call with somebody who has more time. */
static void test_whoever_came_first_is_answered_first(void **state)
{
    struct turner turner;

    (void)state;
    open_with(&turner, TIMEOUT_Q);
    turner_recover(&turner, "k");
    /* Until the timer of before has rung. */
    test_pause(TIMEOUT);
    turner_turn(&turner, 10);
    assert_int_equal(kill(server->pid, SIGSTOP), 0);
    turner_ask(&turner, "k");
    test_pause(0.25);
    turner_ask(&turner, "k");
    turner_run(&turner);
    assert_int_equal(kill(server->pid, SIGCONT), 0);
    assert_int_equal(turner.failed[REDBUCKET_ERROR_TIMEOUT], 2);
    test_control_check(turner.latest, TIMEOUT);
    turner_recover(&turner, "k");
    turner_close(&turner);
}

/* ---- On the way to a server -------------------------------------------------------------------
 */

static void test_a_slow_name_server_keeps_nobody(void **state)
{
    struct turner turner;
    char url[512];

    (void)state;
    (void)snprintf(url, sizeof url, "redis://slow.example:%d?%s", server->port, TIMEOUT_Q);
    turner_open(&turner, url, 1e6);
    test_control_reset();
    turner_names_hang(true);
    turner_ask_times(&turner, "k", 3);
    turner_turn(&turner, 20);
    turner_ask_times(&turner, "k", 3);
    turner_run(&turner);
    assert_int_equal(turner_failures(&turner), 6);
    check_times(&turner);
    turner_names_hang(false);
    turner_recover(&turner, "k");
    turner_close(&turner);
}

/* Given up in the middle of a look-up. */
static void test_a_look_up_can_be_given_up(void **state)
{
    struct turner turner;
    char url[512];

    (void)state;
    (void)snprintf(url, sizeof url, "redis://slow.example:%d?%s", server->port, TIMEOUT_Q);
    turner_open(&turner, url, 1e6);
    turner_names_hang(true);
    turner_ask_times(&turner, "k", 3);
    turner_turn(&turner, 20);
    double begin = test_now();

    turner_close(&turner);
    test_control_check(test_now() - begin, MOMENT);
    assert_int_equal(turner.cancelled, 3);
    turner_names_hang(false);
}

/* Accepted, and then not a word of the handshake. */
static void hang_in_handshake(const char *scheme)
{
    const struct test_rule rules[] = {{.manner = TEST_SILENT}};
    struct test_peer *peer = test_peer_start(true, rules, 1);
    struct turner turner;
    char url[512];

    assert_non_null(peer);
    (void)snprintf(url, sizeof url, "%s://127.0.0.1:%d?%s", scheme, test_peer_port(peer),
                   TIMEOUT_Q);
    turner_open(&turner, url, 1e6);
    test_control_reset();
    turner_ask_times(&turner, "k", 40);
    turner_run(&turner);
    assert_int_equal(turner_failures(&turner), 40);
    assert_true(turner.failed[REDBUCKET_ERROR_TIMEOUT] > 0);
    check_times(&turner);
    turner_close(&turner);
    test_peer_stop(peer);
}

static void test_a_slow_handshake_keeps_nobody(void **state)
{
    (void)state;
    hang_in_handshake("redis");
}

static void test_a_slow_handshake_by_tls_keeps_nobody(void **state)
{
    (void)state;
    hang_in_handshake("rediss");
}

/* Bytes that come one by one, never enough. */
static void test_a_server_that_dribbles_keeps_nobody(void **state)
{
    const struct test_rule rules[] = {
        {.answer = "$400\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrole:master\r\n",
         .manner = TEST_BYTEWISE,
         .pause_us = 20000}};
    struct test_peer *peer = test_peer_start(false, rules, 1);
    struct turner turner;
    char url[512];

    (void)state;
    assert_non_null(peer);
    test_peer_url(peer, TIMEOUT_Q, url, sizeof url);
    turner_open(&turner, url, 1e6);
    test_control_reset();
    turner_ask_times(&turner, "k", 10);
    turner_run(&turner);
    assert_int_equal(turner.failed[REDBUCKET_ERROR_TIMEOUT], 10);
    check_times(&turner);
    turner_close(&turner);
    test_peer_stop(peer);
}

static int begin_all(void **state)
{
    (void)state;
    server = test_server_start(&(struct test_server_options){.kind = TEST_REDIS});
    test_control_start();
    return server == NULL;
}

static int end_all(void **state)
{
    (void)state;
    test_control_stop();
    test_server_stop(server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_server_goes_and_comes_back),
        cmocka_unit_test(test_a_policy_answers_meanwhile),
        cmocka_unit_test(test_a_server_that_hangs_keeps_nobody_for_longer),
        cmocka_unit_test(test_whoever_came_first_is_answered_first),
        cmocka_unit_test(test_a_slow_name_server_keeps_nobody),
        cmocka_unit_test(test_a_look_up_can_be_given_up),
        cmocka_unit_test(test_a_slow_handshake_keeps_nobody),
        cmocka_unit_test(test_a_slow_handshake_by_tls_keeps_nobody),
        cmocka_unit_test(test_a_server_that_dribbles_keeps_nobody),
    };

    return cmocka_run_group_tests_name("async_faults", tests, begin_all, end_all);
}
