/* SPDX-License-Identifier: MIT */
/*
 * The asynchronous form with real servers: every way to reach one and to decide there, threads and
 * other loops beside, and what it leaves.
 */
#include "processes.h"
#include "server.h"
#include "test.h"
#include "turner.h"

#include <pthread.h>
#include <stdio.h>

#define BURST 99

static struct test_server *server;

static void url_of(struct test_server *of, enum test_server_way way, const char *query,
                   char url[512])
{
    assert_true(test_server_do(of, "FLUSHALL", NULL));
    test_server_url(of, way, query, url, 512);
}

/* What is asked in turns of 50, all of one key: the server has counted each accepted one. */
static void check_counts(const char *url)
{
    struct turner turner;

    turner_open(&turner, url, BURST);
    for (int i = 0; i < 6; i++) {
        turner_ask_times(&turner, "k", 50);
        turner_turn(&turner, 0);
    }
    turner_run(&turner);
    assert_int_equal(turner_failures(&turner), 0);
    assert_int_equal(turner.accepted, BURST + 1);
    assert_int_equal(turner.rejected, 300 - (BURST + 1));
    assert_true(test_host_value(&turner.host, "k") > BURST);
    turner_close(&turner);
}

static void test_every_way_leads_there(void **state)
{
    static const enum test_server_way ways[] = {TEST_BY_SOCKET, TEST_BY_PORT, TEST_BY_TLS};
    char url[512];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        if (ways[i] == TEST_BY_TLS && !test_server_have_tls(TEST_REDIS))
            continue;
        url_of(server, ways[i], "timeout=10s", url);
        check_counts(url);
    }
}

static void test_both_methods_decide(void **state)
{
    static const char *const queries[] = {
        "timeout=10s&denial_time=0", "timeout=10s&denial_time=0&method=transaction",
        "timeout=10s&connections=1", "timeout=10s&codec=json&method=transaction&connections=1"};
    char url[512];

    (void)state;
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        url_of(server, TEST_BY_SOCKET, queries[i], url);
        check_counts(url);
    }
}

static void test_an_old_server_decides(void **state)
{
    struct test_server *old;
    char url[512];

    (void)state;
    if (!test_server_have(TEST_OLD_REDIS))
        skip();
    old = test_server_start(&(struct test_server_options){.kind = TEST_OLD_REDIS});
    assert_non_null(old);
    url_of(old, TEST_BY_SOCKET, "timeout=10s", url);
    check_counts(url);
    test_server_stop(old);
}

static void test_an_embedded_store_decides(void **state)
{
    (void)state;
    check_counts("memory:");
}

/* ---- Others beside ----------------------------------------------------------------------------
 */

struct asking {
    pthread_t thread;
    struct test_host *host;
    atomic_bool *stop;
    int accepted;
    int failed;
};

static void *ask_on(void *data)
{
    struct asking *asking = data;
    struct redbucket_response response;

    while (!atomic_load(asking->stop)) {
        if (test_host_ask(asking->host, "shared", &response) != REDBUCKET_OK)
            asking->failed++;
        else
            asking->accepted += response.accepted;
    }
    return NULL;
}

/* One connection, for which four threads stand in line all the time. */
static void test_threads_ask_the_same_store(void **state)
{
    struct asking asking[4];
    struct turner turner;
    atomic_bool stop = false;
    int accepted = 0;
    char url[512];

    (void)state;
    url_of(server, TEST_BY_SOCKET, "timeout=10s&connections=1&denial_time=0", url);
    turner_open(&turner, url, 1999);
    for (int i = 0; i < 4; i++) {
        asking[i] = (struct asking){.host = &turner.host, .stop = &stop};
        assert_int_equal(pthread_create(&asking[i].thread, NULL, ask_on, &asking[i]), 0);
    }
    for (int i = 0; i < 50; i++) {
        turner_ask_times(&turner, "shared", 10);
        turner_run(&turner);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(asking[i].thread, NULL), 0);
        assert_int_equal(asking[i].failed, 0);
        accepted += asking[i].accepted;
    }
    assert_int_equal(turner_failures(&turner), 0);
    assert_int_equal(turner.accepted + turner.rejected, 500);
    assert_in_range(turner.accepted + accepted, 0, 2000);
    turner_close(&turner);
}

struct looping {
    pthread_t thread;
    struct turner turner;
    struct turner *shares; /* its store and limiter */
    int times;
};

static void *loop(void *data)
{
    struct looping *looping = data;
    struct turner *turner = &looping->turner;

    for (int i = 0; i < looping->times; i++) {
        turner_ask_times(turner, "shared", 20);
        turner_turn(turner, 10);
    }
    turner_run(turner);
    return NULL;
}

static void test_loops_of_several_threads_share_a_limiter(void **state)
{
    struct looping looping[3];
    struct turner turner;
    int accepted = 0;
    char url[512];

    (void)state;
    url_of(server, TEST_BY_SOCKET, "timeout=10s", url);
    turner_open(&turner, url, 499);
    for (int i = 0; i < 3; i++) {
        looping[i] = (struct looping){.turner.host = turner.host, .times = 20};
        assert_int_equal(
            redbucket_async_create(turner.host.limiter, &looping[i].turner.async, NULL),
            REDBUCKET_OK);
        assert_int_equal(pthread_create(&looping[i].thread, NULL, loop, &looping[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(looping[i].thread, NULL), 0);
        assert_int_equal(turner_failures(&looping[i].turner), 0);
        accepted += looping[i].turner.accepted;
        redbucket_async_destroy(looping[i].turner.async);
    }
    assert_int_equal(accepted, 500);
    turner_close(&turner);
}

/* ---- The end ----------------------------------------------------------------------------------
 */

static void test_the_store_is_as_good_as_before(void **state)
{
    struct turner turner;
    char url[512];

    (void)state;
    url_of(server, TEST_BY_SOCKET, "timeout=10s", url);
    turner_open(&turner, url, 99);
    turner_ask_times(&turner, "k", 5);
    turner_run(&turner);
    int before = test_open_descriptors();

    /* Given up while it is under way: only its connection is lost. */
    assert_true(test_server_do(server, "CLIENT", "PAUSE", "300", "ALL", NULL));
    turner_ask_times(&turner, "k", 5);
    turner_turn(&turner, 0);
    redbucket_async_destroy(turner.async);
    assert_int_equal(turner.cancelled, 5);
    turner.async = NULL;
    assert_in_range(test_open_descriptors(), before - 4, before - 3);
    assert_int_equal(test_host_ask(&turner.host, "k", NULL), REDBUCKET_OK);
    assert_int_equal(turner.host.down, 0);
    assert_int_equal(turner.host.degraded, 0);
    turner_close(&turner);
}

static int begin_all(void **state)
{
    const struct test_server_options options = {.kind = TEST_REDIS,
                                                .tls = test_server_have_tls(TEST_REDIS)};

    (void)state;
    server = test_server_start(&options);
    return server == NULL;
}

static int end_all(void **state)
{
    (void)state;
    test_server_stop(server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_way_leads_there),
        cmocka_unit_test(test_both_methods_decide),
        cmocka_unit_test(test_an_old_server_decides),
        cmocka_unit_test(test_an_embedded_store_decides),
        cmocka_unit_test(test_threads_ask_the_same_store),
        cmocka_unit_test(test_loops_of_several_threads_share_a_limiter),
        cmocka_unit_test(test_the_store_is_as_good_as_before),
    };

    return cmocka_run_group_tests_name("async_server", tests, begin_all, end_all);
}
