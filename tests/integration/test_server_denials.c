/* SPDX-License-Identifier: MIT */
/*
 * The denial cache with a real server and real time: what a server isn't asked, and when it is
 * again.
 */
#include "host.h"
#include "server.h"
#include "test.h"

#include <stdio.h>
#include <unistd.h>

#define RATE 2.0 /* a permit each half of a second */

static struct test_server *server;

static void open_at(struct test_host *host, const char *query)
{
    char url[512];

    assert_true(test_server_do(server, "FLUSHALL", NULL));
    test_server_url(server, TEST_BY_SOCKET, query, url, sizeof url);
    test_host_open(host, url);
    test_host_limit(host, "a", RATE, 0.0);
}

static bool ask(struct test_host *host)
{
    struct redbucket_response response = {.accepted = false};

    assert_int_equal(test_host_ask(host, "k", &response), REDBUCKET_OK);
    return response.accepted;
}

/* Commands that the server has been asked by others than this function. */
static long long commands(void)
{
    static long long own;

    return test_server_info(server, "total_commands_processed") - own++;
}

/* So many rejections cost the server less than half as many commands: the test may be held up for
 * longer than a permit takes, and the server then be asked again. */
static void test_a_denied_request_asks_nobody(void **state)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct redbucket_zone_statistics zones[REDBUCKET_ZONES_MAX];
    struct test_host host;
    size_t zones_len;
    long long before;

    (void)state;
    open_at(&host, "timeout=5s");
    assert_true(ask(&host));
    before = commands();
    for (int i = 0; i < 2000; i++)
        (void)ask(&host);
    assert_true(commands() - before < 1000);
    assert_int_equal(redbucket_store_statistics(host.store, &statistics), REDBUCKET_OK);
    assert_true(statistics.denied > 1000);
    assert_true(statistics.rejected >= statistics.denied);
    assert_int_equal(statistics.accepted + statistics.rejected, 2001);
    /* Who is denied without asking counts by zone as well. */
    assert_int_equal(redbucket_store_zones(host.store, zones, REDBUCKET_ZONES_MAX, &zones_len),
                     REDBUCKET_OK);
    assert_int_equal(zones_len, 2);
    assert_int_equal(zones[0].accepted, statistics.accepted);
    assert_int_equal(zones[0].rejected, statistics.rejected);
    test_host_close(&host);
}

static void test_without_the_cache_each_is_asked(void **state)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct test_host host;
    long long before;

    (void)state;
    open_at(&host, "timeout=5s&denial_time=0");
    before = commands();
    for (int i = 0; i < 100; i++)
        (void)ask(&host);
    assert_true(commands() - before >= 100);
    assert_int_equal(redbucket_store_statistics(host.store, &statistics), REDBUCKET_OK);
    assert_int_equal(statistics.denied, 0);
    test_host_close(&host);
}

/* Whoever waits for as long as it is told gets what it waited for. */
static void test_it_ends_when_a_permit_is_there(void **state)
{
    struct test_host host;

    (void)state;
    open_at(&host, "timeout=5s&denial_time=1h");
    assert_true(ask(&host));
    for (int i = 0; i < 2; i++) {
        struct redbucket_response response = {.accepted = true};

        assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
        assert_false(response.accepted);
        assert_true(response.retry_after > 0.0 && response.retry_after <= 0.5);
        (void)usleep((useconds_t)response.retry_after_us);
        assert_true(ask(&host));
    }
    test_host_close(&host);
}

static void test_a_reset_here_is_seen_at_once(void **state)
{
    struct redbucket_key key = {"a", "k"};
    struct redbucket_request reset = {
        .operation = REDBUCKET_RESET, .keys = &key, .keys_len = 1, .cost = 1.0};
    struct test_host host;

    (void)state;
    open_at(&host, "timeout=5s&denial_time=1h");
    for (int i = 0; i < 10; i++) {
        assert_true(ask(&host));
        (void)ask(&host);
        assert_int_equal(redbucket_decide(host.limiter, &reset, 1), REDBUCKET_OK);
    }
    test_host_close(&host);
}

static void test_a_reset_elsewhere_is_seen_in_time(void **state)
{
    struct test_host host;

    (void)state;
    open_at(&host, "timeout=5s&denial_time=100ms");
    assert_true(ask(&host));
    (void)ask(&host);
    assert_true(test_server_do(server, "FLUSHALL", NULL));
    (void)usleep(110000);
    assert_true(ask(&host));
    test_host_close(&host);
}

static int start(void **state)
{
    (void)state;
    server = test_server_start(&(struct test_server_options){.kind = TEST_REDIS});
    return server == NULL ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    test_server_stop(server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_denied_request_asks_nobody),
        cmocka_unit_test(test_without_the_cache_each_is_asked),
        cmocka_unit_test(test_it_ends_when_a_permit_is_there),
        cmocka_unit_test(test_a_reset_here_is_seen_at_once),
        cmocka_unit_test(test_a_reset_elsewhere_is_seen_in_time),
    };

    return cmocka_run_group_tests_name("server_denials", tests, start, stop);
}
