/* SPDX-License-Identifier: MIT */
/*
 * Real servers that are away, and come back: what that costs a caller meanwhile, how often they are
 * tried, and that all is as it was within a second.
 */
#include "host.h"
#include "processes.h"
#include "proxy.h"
#include "server.h"
#include "test.h"

#include <pthread.h>

static struct test_server *server;

static void assert_done(bool done)
{
    assert_true(done);
}

static void test_a_server_that_is_away_costs_microseconds(void **state)
{
    struct test_host host;
    double begin;

    (void)state;
    for (int way = 0; way < 2; way++) {
        char url[512];

        test_server_url(server, way == 0 ? TEST_BY_SOCKET : TEST_BY_PORT, "timeout=5s", url,
                        sizeof url);
        test_host_open(&host, url);
        test_host_limit(&host, "a", 0.001, 9.0);
        test_server_kill(server);
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_UNAVAILABLE);
        test_control_reset();
        begin = test_now();
        for (int i = 0; i < 1000; i++)
            assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_UNAVAILABLE);
        test_control_check(test_now() - begin, 0.05);
        assert_done(test_server_again(server));
        begin = test_now();
        (void)test_host_recover(&host, "k");
        test_control_check(test_now() - begin, 1.0);
        assert_int_equal(host.down, 1);
        assert_int_equal(host.back, 1);
        test_host_close(&host);
    }
}

static void test_the_first_pause_is_short(void **state)
{
    struct test_proxy *proxy = test_proxy_start(server, TEST_BY_SOCKET);
    struct test_host host;
    char url[512];
    double begin;

    (void)state;
    assert_non_null(proxy);
    test_proxy_url(proxy, "timeout=5s", url, sizeof url);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 0.001, 9.0);
    for (int i = 0; i < 5; i++) {
        test_proxy_refuse(proxy, true);
        test_proxy_cut(proxy);
        test_control_reset();
        assert_int_not_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
        begin = test_now();
        test_proxy_refuse(proxy, false);
        (void)test_host_recover(&host, "k");
        test_control_check(test_now() - begin, 0.1);
        assert_int_equal(host.down, i + 1);
        assert_int_equal(host.back, i + 1);
    }
    test_host_close(&host);
    test_proxy_stop(proxy);
}

struct asking {
    struct test_host *host;
    double seconds;
};

static void *ask_until(void *data)
{
    struct asking *asking = data;

    for (double until = test_now() + asking->seconds; test_now() < until; test_pause(0.001))
        (void)test_host_ask(asking->host, "k", NULL);
    return NULL;
}

static void test_a_server_that_hangs_is_tried_by_one_at_a_time(void **state)
{
    enum { THREADS = 8 };
    struct test_proxy *proxy = test_proxy_start(server, TEST_BY_SOCKET);
    struct test_traffic traffic;
    struct asking asking;
    struct test_host host;
    pthread_t threads[THREADS];
    char url[512];

    (void)state;
    assert_non_null(proxy);
    test_proxy_url(proxy, "timeout=100ms", url, sizeof url);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 0.001, 9.0);
    test_proxy_hold(proxy, true);
    asking = (struct asking){.host = &host, .seconds = 2.0};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_until, &asking), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    /* Each had begun with one; then there is one more each pause of 50, 100, 200, 400, 800 ms. */
    test_proxy_traffic(proxy, &traffic);
    assert_in_range(traffic.connections, 3, THREADS + 7);
    assert_int_equal(host.down, 1);
    test_proxy_hold(proxy, false);
    (void)test_host_recover(&host, "k");
    assert_int_equal(host.back, 1);
    test_host_close(&host);
    test_proxy_stop(proxy);
}

/* It has forgotten the script, and the buckets with it; nobody sees an error for that. */
static void test_a_restarted_server_is_taught_the_script_again(void **state)
{
    struct test_host host;
    char url[512];

    (void)state;
    test_server_url(server, TEST_BY_SOCKET, "connections=1", url, sizeof url);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 0.001, 9.0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
        test_server_kill(server);
        assert_done(test_server_again(server));
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
        assert_done(test_server_do(server, "SCRIPT", "FLUSH", NULL));
    }
    assert_int_equal(host.down, 0);
    test_host_close(&host);
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

static int empty(void **state)
{
    (void)state;
    return test_server_do(server, "FLUSHALL", NULL) ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    test_control_stop();
    test_server_stop(server);
    return 0;
}

#define CASE(name) cmocka_unit_test_setup(name, empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_a_server_that_is_away_costs_microseconds),
        CASE(test_the_first_pause_is_short),
        CASE(test_a_server_that_hangs_is_tried_by_one_at_a_time),
        CASE(test_a_restarted_server_is_taught_the_script_again),
    };

    return cmocka_run_group_tests_name("server_outages", tests, start, stop);
}
