/* SPDX-License-Identifier: MIT */
/*
 * The asynchronous form on an event loop, by its adapter, with a real server and with one that
 * hangs.
 */
#include "fault_peer.h"
#include "host.h"
#include "loop.h"
#include "processes.h"
#include "server.h"
#include "test.h"

#include <stdio.h>

#define BURST 100

static struct test_server *server;
static struct test_host host;
static struct redbucket_async *async;
static int accepted, rejected, failed, timed_out, cancelled;

static void count(void *data, const struct redbucket_request *decided)
{
    (void)data;
    if (decided->status == REDBUCKET_CANCELLED)
        cancelled++;
    else if (decided->status != REDBUCKET_OK)
        failed++;
    else if (decided->response.accepted)
        accepted++;
    else
        rejected++;
    timed_out += decided->status == REDBUCKET_ERROR_TIMEOUT;
}

static void ask_with(redbucket_answered *callback, const char *key_text)
{
    struct redbucket_key key = {.limit = "a", .key = key_text};
    struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1.0};

    assert_int_equal(redbucket_async_request(async, &request, callback, NULL, NULL), REDBUCKET_OK);
}

static void ask(int times)
{
    for (int i = 0; i < times; i++)
        ask_with(count, "k");
}

static void open_on(const char *url)
{
    accepted = rejected = failed = timed_out = cancelled = 0;
    test_host_open(&host, url);
    test_host_limit(&host, "a", 0.001, BURST - 1);
    loop.open();
    assert_int_equal(redbucket_async_create(host.limiter, &async, NULL), REDBUCKET_OK);
    assert_int_equal(loop.attach(async), REDBUCKET_OK);
}

static void open_on_server(void)
{
    char url[256];

    assert_true(test_server_do(server, "FLUSHALL", NULL));
    test_server_url(server, TEST_BY_SOCKET, "timeout=10s&denial_time=0", url, sizeof url);
    open_on(url);
}

static void end_all(void)
{
    redbucket_async_destroy(async);
    async = NULL;
    assert_true(loop.close());
    test_host_close(&host);
}

static void run(void)
{
    while (redbucket_async_outstanding(async) > 0)
        loop.turn();
}

static void test_requests_are_answered(void **state)
{
    (void)state;
    open_on_server();
    ask(1);
    run();
    assert_int_equal(accepted, 1);
    for (int i = 0; i < 5; i++) {
        ask(60);
        loop.turn();
        loop.turn();
    }
    run();
    assert_int_equal(accepted, BURST);
    assert_int_equal(rejected, 301 - BURST);
    assert_int_equal(failed + cancelled, 0);
    end_all();
}

static int left;

static void ask_on(void *data, const struct redbucket_request *decided)
{
    count(data, decided);
    if (left-- > 0)
        ask_with(ask_on, "k");
}

static void test_callbacks_go_on(void **state)
{
    (void)state;
    open_on_server();
    left = 500;
    for (int i = 0; i < 10; i++)
        ask_with(ask_on, "k");
    run();
    assert_int_equal(accepted + rejected, 510);
    assert_int_equal(accepted, BURST);
    end_all();
}

static void destroy(void *data, const struct redbucket_request *decided)
{
    count(data, decided);
    redbucket_async_destroy(async);
    async = NULL;
}

static void test_a_callback_destroys_it(void **state)
{
    (void)state;
    open_on_server();
    ask(3);
    ask_with(destroy, "k");
    ask(3);
    while (async != NULL)
        loop.turn();
    assert_int_equal(accepted + cancelled, 7);
    assert_in_range(accepted, 4, 7);
    end_all();
}

static void test_what_is_under_way_is_given_up(void **state)
{
    (void)state;
    open_on_server();
    assert_true(test_server_do(server, "CLIENT", "PAUSE", "500", NULL));
    ask(3);
    loop.turn();
    ask(2);
    end_all();
    assert_int_equal(cancelled, 5);
}

static void test_it_is_on_one_loop(void **state)
{
    (void)state;
    open_on_server();
    assert_int_equal(loop.attach(async), REDBUCKET_ERROR_ARGUMENT);
    ask(1);
    run();
    assert_int_equal(accepted, 1);
    end_all();
}

/* ---- The loop goes on -------------------------------------------------------------------------
 */

static double last_tick, longest;
static int ticks;

static void note_tick(void)
{
    double now = test_now();

    if (ticks++ > 0 && now - last_tick > longest)
        longest = now - last_tick;
    last_tick = now;
}

/* With a server that never says a word, until each request's own time is over. */
static void test_a_server_that_hangs_stops_no_timer(void **state)
{
    const struct test_rule rules[] = {{.manner = TEST_SILENT}};
    struct test_peer *peer = test_peer_start(true, rules, 1);
    char url[256];

    (void)state;
    assert_non_null(peer);
    test_peer_url(peer, "timeout=300ms", url, sizeof url);
    open_on(url);
    ticks = 0;
    longest = 0.0;
    test_control_reset();
    loop.tick(note_tick);
    double begin = test_now();

    ask(20);
    loop.turn();
    loop.turn();
    ask(20);
    run();
    double took = test_now() - begin;

    assert_int_equal(failed, 40);
    /* Once the first have found out, the others needn't. */
    assert_in_range(timed_out, 20, 40);
    assert_true(took >= 0.29);
    test_control_check(took, 0.35);
    test_control_check(longest, 0.02);
    assert_in_range(ticks, 10, 10000);
    end_all();
    test_peer_stop(peer);
}

static int begin_all(void **state)
{
    (void)state;
    server = test_server_start(&(struct test_server_options){.kind = TEST_REDIS});
    test_control_start();
    return server == NULL;
}

static int finish_all(void **state)
{
    (void)state;
    test_control_stop();
    test_server_stop(server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_answered),
        cmocka_unit_test(test_callbacks_go_on),
        cmocka_unit_test(test_a_callback_destroys_it),
        cmocka_unit_test(test_what_is_under_way_is_given_up),
        cmocka_unit_test(test_it_is_on_one_loop),
        cmocka_unit_test(test_a_server_that_hangs_stops_no_timer),
    };

    return cmocka_run_group_tests_name(loop.name, tests, begin_all, finish_all);
}
