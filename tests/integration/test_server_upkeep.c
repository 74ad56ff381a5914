/* SPDX-License-Identifier: MIT */
/*
 * What a store on a server costs its host over time: no descriptor and no memory for connections
 * that came and went, and nothing that signals disturb.
 */
#include "fault_peer.h"
#include "host.h"
#include "processes.h"
#include "server.h"
#include "test.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static struct test_server *server;

static void open_at(struct test_host *host, enum test_server_way way, const char *query)
{
    char url[512];

    test_server_url(server, way, query, url, sizeof url);
    test_host_open(host, url);
    test_host_limit(host, "a", 1000.0, 1e6);
}

static void kill_connections(void)
{
    assert_true(test_server_do(server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL));
}

/* Bytes in use; a sanitizer's own allocator doesn't say. */
static size_t memory_in_use(void)
{
    return TEST_SANITIZED ? 0 : mallinfo2().uordblks;
}

/* Far less than what is lost when each connection leaves something. What OpenSSL caches grows with
 * the number of connections, for some hundred of them. */
#define SLACK     ((size_t)8 << 10)
#define SLACK_TLS ((size_t)256 << 10)

static void reconnect(enum test_server_way way, const char *query, int times)
{
    size_t slack = way == TEST_BY_TLS ? SLACK_TLS : SLACK;
    struct test_host host;
    size_t memory = 0;
    int descriptors = 0;

    open_at(&host, way, query);
    for (int i = 0; i < times; i++) {
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
        if (i == times / 4) {
            descriptors = test_open_descriptors();
            memory = memory_in_use();
        }
        kill_connections();
    }
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_int_equal(test_open_descriptors(), descriptors);
    if (memory_in_use() > memory + slack)
        fail_msg("%zu bytes became %zu", memory, memory_in_use());
    test_host_close(&host);
}

static void test_connections_that_are_replaced_leave_nothing(void **state)
{
    int before;

    (void)state;
    kill_connections(); /* by the test's own, which stays open */
    before = test_open_descriptors();
    reconnect(TEST_BY_SOCKET, "method=script", 200);
    reconnect(TEST_BY_PORT, "method=transaction", 200);
    if (server->tls_port != 0)
        reconnect(TEST_BY_TLS, "method=script", 60);
    assert_int_equal(test_open_descriptors(), before);
}

/* Connections that fail in every stage: on connecting, in the first round trip, in a call. */
static void test_failures_leave_nothing(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "", .answer = "-ERR max number of clients reached\r\n", .manner = TEST_CLOSE},
        {.command = "", .answer = "$1073741824\r\n", .manner = TEST_CLOSE},
    };

    (void)state;
    for (size_t rule = 0; rule < 2; rule++) {
        struct test_peer *peer = test_peer_start(false, &rules[rule], 1);
        struct test_host host;
        size_t memory = 0;
        char url[256];

        assert_non_null(peer);
        test_peer_url(peer, "timeout=100ms", url, sizeof url);
        /* Each begins with a circuit that is closed. */
        for (int i = 0; i < 100; i++) {
            test_host_open(&host, url);
            test_host_limit(&host, "a", 1.0, 1.0);
            assert_int_not_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
            test_host_close(&host);
            if (i == 20)
                memory = memory_in_use();
        }
        for (double until = test_now() + 10.0; test_peer_open(peer) > 0; test_pause(0.001))
            assert_true(test_now() < until);
        assert_true(memory_in_use() <= memory + SLACK);
        test_peer_stop(peer);
    }
}

/* Half a megabyte of keys in one call takes memory, and gives it back. */
static void test_long_keys_leave_nothing(void **state)
{
    enum { KEYS = 8, LEN = 65536 };
    struct redbucket_key keys[KEYS];
    struct redbucket_request requests[KEYS];
    struct test_host host;
    char *bytes = malloc(KEYS * LEN);
    size_t memory = 0;

    (void)state;
    memset(bytes, 'x', KEYS * LEN);
    open_at(&host, TEST_BY_SOCKET, "method=script");
    for (int i = 0; i < KEYS; i++) {
        bytes[i * LEN] = (char)i;
        keys[i] = (struct redbucket_key){"a", bytes + i * LEN, LEN, 0};
        requests[i] = (struct redbucket_request){.keys = &keys[i], .keys_len = 1, .cost = 1};
    }
    for (int i = 0; i < 40; i++) {
        assert_int_equal(redbucket_decide(host.limiter, requests, KEYS), REDBUCKET_OK);
        if (i == 10)
            memory = memory_in_use();
    }
    assert_true(memory_in_use() <= memory + SLACK);
    test_host_close(&host);
    free(bytes);
}

/* ---- Signals -------------------------------------------------------------------------------- */

static atomic_int signals;

static void count_signal(int number)
{
    (void)number;
    (void)atomic_fetch_add(&signals, 1);
}

static void storm(long us)
{
    /* No SA_RESTART: every system call that may be interrupted is. */
    const struct sigaction action = {.sa_handler = count_signal};
    const struct itimerval timer = {{0, us}, {0, us}};

    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

static void calm(void)
{
    const struct itimerval timer = {{0, 0}, {0, 0}};

    assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
    (void)signal(SIGALRM, SIG_DFL);
}

static void test_signals_disturb_no_call(void **state)
{
    static const enum test_server_way ways[] = {TEST_BY_SOCKET, TEST_BY_PORT, TEST_BY_TLS};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct test_host host;

        if (ways[i] == TEST_BY_TLS && server->tls_port == 0)
            continue;
        open_at(&host, ways[i], i == 1 ? "timeout=20s&method=transaction" : "timeout=20s");
        storm(1000);
        for (int j = 0; j < 300; j++) {
            assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
            if (j % 10 == 0) {
                calm(); /* the test's own connection minds them */
                kill_connections();
                storm(1000);
            }
        }
        calm();
        assert_int_equal(host.down, 0);
        test_host_close(&host);
    }
    assert_true(signals > 0);
}

/* Nor do they put a deadline off. */
static void test_signals_keep_the_deadline(void **state)
{
    static const struct test_rule rules[] = {{.manner = TEST_SILENT}};
    struct test_peer *peer = test_peer_start(false, rules, 1);
    struct test_host host;
    char url[256];
    double took;

    (void)state;
    assert_non_null(peer);
    test_peer_url(peer, "timeout=200ms", url, sizeof url);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1.0, 1.0);
    storm(1000);
    test_control_reset();
    assert_int_equal(test_host_time(&host, "k", &took), REDBUCKET_ERROR_TIMEOUT);
    calm();
    assert_true(took >= 0.2);
    test_control_check(took, 0.2);
    test_host_close(&host);
    test_peer_stop(peer);
}

static int start(void **state)
{
    (void)state;
    server = test_server_start(
        &(struct test_server_options){.kind = TEST_REDIS, .tls = test_server_have_tls(TEST_REDIS)});
    if (server == NULL)
        return -1;
    test_control_start();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    test_control_stop();
    test_server_stop(server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connections_that_are_replaced_leave_nothing),
        cmocka_unit_test(test_failures_leave_nothing),
        cmocka_unit_test(test_long_keys_leave_nothing),
        cmocka_unit_test(test_signals_disturb_no_call),
        cmocka_unit_test(test_signals_keep_the_deadline),
    };

    return cmocka_run_group_tests_name("server_upkeep", tests, start, stop);
}
