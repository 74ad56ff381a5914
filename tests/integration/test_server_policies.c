/* SPDX-License-Identifier: MIT */
/*
 * Who answers while a real server is away, refuses or hangs, and that the server answers again by
 * itself once it is back.
 */
#include "host.h"
#include "processes.h"
#include "server.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>

static struct test_server *server;

static void open_at(struct test_host *host, const char *query)
{
    char url[512];

    test_server_url(server, TEST_BY_SOCKET, query, url, sizeof url);
    test_host_open(host, url);
    test_host_limit(host, "a", 1.0, 4.0);
}

static void go_down(void)
{
    test_server_kill(server);
}

static void come_up(void)
{
    assert_true(test_server_again(server));
}

/* Asks until the server answers, at most for its longest pause and what the machine adds; returns
 * the server's answer. */
static struct redbucket_response get_back(struct test_host *host)
{
    struct redbucket_response response = {.degraded = true};
    double begin = test_now();

    test_control_reset();
    while (response.degraded) {
        assert_int_equal(test_host_ask(host, "back", &response), REDBUCKET_OK);
        test_pause(0.005);
    }
    test_control_check(test_now() - begin, 1.0);
    return response;
}

static void test_fail(void **state)
{
    struct test_host host;

    (void)state;
    open_at(&host, "on_error=fail");
    go_down();
    for (int i = 0; i < 10; i++)
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_UNAVAILABLE);
    assert_int_equal(host.degraded, 0);
    assert_int_equal(test_host_counted_degraded(&host), 0);
    come_up();
    (void)test_host_recover(&host, "k");
    test_host_close(&host);
}

static void test_open(void **state)
{
    struct redbucket_response response;
    struct test_host host;

    (void)state;
    open_at(&host, "on_error=open");
    assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
    assert_false(response.degraded);
    for (int outage = 1; outage <= 2; outage++) {
        uint64_t before = test_host_counted_degraded(&host);

        go_down();
        for (int i = 0; i < 10; i++) {
            assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
            assert_true(response.accepted);
            assert_true(response.degraded);
        }
        assert_int_equal(test_host_counted_degraded(&host), before + 10);
        assert_int_equal(host.degraded, outage);
        come_up();
        response = get_back(&host);
        assert_true(response.accepted);
        assert_int_equal(response.remaining, 4);
        assert_int_equal(host.degraded, outage);
        assert_int_equal(host.down, outage);
        assert_int_equal(host.back, outage);
    }
    test_host_close(&host);
}

static void test_closed(void **state)
{
    struct redbucket_response response;
    struct test_host host;

    (void)state;
    open_at(&host, "on_error=closed");
    go_down();
    for (int i = 0; i < 10; i++) {
        assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
        assert_false(response.accepted);
        assert_true(response.degraded);
        assert_int_equal(response.retry_after_us, 1000000);
    }
    assert_int_equal(host.degraded, 1);
    assert_int_equal(test_host_counted_degraded(&host), 10);
    come_up();
    assert_true(get_back(&host).accepted);
    test_host_close(&host);
}

/* For hangs as well, at the price of one time-out a pause. */
static void test_a_server_that_hangs(void **state)
{
    static const char *const queries[] = {"on_error=open&timeout=100ms",
                                          "on_error=closed&timeout=100ms",
                                          "on_error=local&timeout=100ms"};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct redbucket_response response;
        struct test_host host;
        double begin;

        open_at(&host, queries[i]);
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
        kill(server->pid, SIGSTOP);
        test_control_reset();
        begin = test_now();
        for (int j = 0; j < 10; j++) {
            assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
            assert_true(response.degraded);
            assert_int_equal(response.accepted, i == 0 || (i == 2 && j < 5));
        }
        test_control_check(test_now() - begin, 0.25);
        kill(server->pid, SIGCONT);
        (void)get_back(&host);
        test_host_close(&host);
    }
}

static void test_local(void **state)
{
    struct redbucket_response response;
    struct test_host host;
    int accepted = 0;

    (void)state;
    open_at(&host, "on_error=local");
    go_down();
    for (int i = 0; i < 10; i++) {
        assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
        assert_true(response.degraded);
        accepted += response.accepted;
    }
    assert_int_equal(accepted, 5);
    assert_true(response.retry_after > 0.0 && response.retry_after <= 1.0);
    assert_int_equal(host.degraded, 1);
    assert_int_equal(test_host_counted_degraded(&host), 10);
    come_up();
    response = get_back(&host);
    /* The server's buckets are those that count again. */
    assert_int_equal(response.remaining, 4);
    assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
    assert_true(response.accepted);
    assert_false(response.degraded);
    assert_true(test_host_value(&host, "k") > 0.9);
    test_host_close(&host);
}

static void test_local_share(void **state)
{
    struct redbucket_response response;
    struct test_host host;
    int accepted = 0;

    (void)state;
    open_at(&host, "on_error=local&local_share=0.25");
    go_down();
    for (int i = 0; i < 10; i++) {
        assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
        accepted += response.accepted;
    }
    assert_int_equal(accepted, 2); /* burst 4 becomes 1 */
    assert_true(response.retry_after > 3.0);
    come_up();
    (void)get_back(&host);
    test_host_close(&host);
}

/* Each for itself: a refusal of the server's opens no hole for a request's own fault. */
static void test_a_fault_of_the_request_is_not_answered(void **state)
{
    static const char *const queries[] = {"on_error=open", "on_error=closed", "on_error=local"};
    char long_key[64];

    (void)state;
    memset(long_key, 'x', sizeof long_key);
    assert_true(test_server_do(server, "SET", "redbucket:a:bad", "no state", NULL));
    assert_true(test_server_do(server, "LPUSH", "redbucket:a:list", "x", NULL));
    for (int i = 0; i < 3; i++) {
        const struct redbucket_key unknown = {"nowhere", "k"};
        const struct redbucket_key endless = {"a", long_key, (size_t)1 << 30, 0};
        struct redbucket_response response;
        struct test_host host;

        open_at(&host, queries[i]);
        assert_int_equal(test_host_ask(&host, "bad", NULL), REDBUCKET_ERROR_STATE);
        assert_int_equal(test_host_ask(&host, "list", NULL), REDBUCKET_ERROR_STATE);
        assert_int_equal(redbucket_request(host.limiter, &unknown, 1, &response),
                         REDBUCKET_ERROR_UNKNOWN_LIMIT);
        assert_int_equal(redbucket_request(host.limiter, &endless, 1, &response),
                         REDBUCKET_ERROR_KEY);
        assert_int_equal(host.degraded, 0);
        assert_int_equal(test_host_counted_degraded(&host), 0);
        test_host_close(&host);
    }
}

static void test_changes_need_the_server(void **state)
{
    static const char *const queries[] = {"on_error=open", "on_error=closed"};
    static const enum redbucket_operation changes[] = {REDBUCKET_REFUND, REDBUCKET_CHARGE,
                                                       REDBUCKET_RESET, REDBUCKET_GIVE_BACK};
    struct redbucket_key key = {"a", "k"};
    struct redbucket_state stored;

    (void)state;
    go_down();
    for (int i = 0; i < 2; i++) {
        struct test_host host;

        open_at(&host, queries[i]);
        for (int j = 0; j < 4; j++) {
            struct redbucket_request request = {
                .operation = changes[j], .keys = &key, .keys_len = 1, .cost = 1};

            assert_int_equal(redbucket_decide(host.limiter, &request, 1),
                             REDBUCKET_ERROR_UNAVAILABLE);
        }
        assert_int_equal(redbucket_read(host.limiter, &key, &stored), REDBUCKET_ERROR_UNAVAILABLE);
        assert_int_equal(host.degraded, 0);
        test_host_close(&host);
    }
    come_up();
}

/* A table that is full is a store that failed, too. */
static void test_a_full_table(void **state)
{
    (void)state;
    for (int open = 0; open < 2; open++) {
        struct redbucket_response response = {.degraded = false};
        struct test_host host;
        char key[16];
        int asked = 0;

        test_host_open(&host, open ? "memory:?size=32k&on_error=open"
                                   : "memory:?size=32k&on_error=closed");
        test_host_limit(&host, "a", 0.001, 0.0);
        while (!response.degraded && asked < 100000) {
            snprintf(key, sizeof key, "k%d", asked++);
            assert_int_equal(test_host_ask(&host, key, &response), REDBUCKET_OK);
            assert_int_equal(response.accepted, !response.degraded || open);
        }
        assert_true(response.degraded);
        assert_int_equal(host.degraded, 1);
        /* Those that are kept out stay so. */
        assert_int_equal(test_host_ask(&host, "k0", &response), REDBUCKET_OK);
        assert_false(response.accepted);
        assert_false(response.degraded);
        test_host_close(&host);
    }
}

static int start(void **state)
{
    (void)state;
    server = test_server_start(&(struct test_server_options){.kind = TEST_REDIS});
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
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_a_server_that_hangs),
        cmocka_unit_test(test_local),
        cmocka_unit_test(test_local_share),
        cmocka_unit_test(test_a_fault_of_the_request_is_not_answered),
        cmocka_unit_test(test_changes_need_the_server),
        cmocka_unit_test(test_a_full_table),
    };

    return cmocka_run_group_tests_name("server_policies", tests, start, stop);
}
