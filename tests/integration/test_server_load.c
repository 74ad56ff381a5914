/* SPDX-License-Identifier: MIT */
/*
 * Threads of one process that share a store while its server is killed, forgets its script or is
 * slow: nobody is told to be accepted who wasn't counted, and no more are than the limit allows.
 */
#include "host.h"
#include "processes.h"
#include "proxy.h"
#include "server.h"
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#define LOADERS 4

/* A bucket that is never full, and one that soon is. */
#define ROOM  1e9
#define BURST 99.0

/* What the threads were told, of each bucket. */
struct told {
    atomic_int accepted;
    atomic_int rejected;
    atomic_int unknown; /* perhaps counted */
};

static struct load {
    struct test_server *server;
    struct test_host host;
    pthread_t threads[LOADERS];
    atomic_bool ending;
    atomic_int errors[REDBUCKET_ERROR_SERVER + 1];
    struct told counting;
    struct told limited;
} load;

static void note(struct told *told, enum redbucket_status status, bool accepted)
{
    switch (status) {
    case REDBUCKET_OK:
        (void)atomic_fetch_add(accepted ? &told->accepted : &told->rejected, 1);
        break;
    case REDBUCKET_ERROR_IO:
    case REDBUCKET_ERROR_TIMEOUT:
        (void)atomic_fetch_add(&told->unknown, 1);
        break;
    default: /* nothing was taken */
        break;
    }
    (void)atomic_fetch_add(&load.errors[status], 1);
}

static void *ask_on(void *data)
{
    static const struct redbucket_key counting = {"a", "count"};
    static const struct redbucket_key limited = {"b", "limit"};

    (void)data;
    while (!atomic_load(&load.ending)) {
        struct redbucket_response response = {.accepted = false};
        enum redbucket_status status =
            redbucket_request(load.host.limiter, &counting, 1, &response);

        note(&load.counting, status, response.accepted);
        if (status != REDBUCKET_OK)
            test_pause(0.001);
        response.accepted = false;
        status = redbucket_request(load.host.limiter, &limited, 1, &response);
        note(&load.limited, status, response.accepted);
    }
    return NULL;
}

static void begin(const struct test_server_options *options, const char *query)
{
    char url[512];

    memset(&load, 0, sizeof load);
    load.server = test_server_start(options);
    assert_non_null(load.server);
    test_server_url(load.server, TEST_BY_SOCKET, query, url, sizeof url);
    test_host_open(&load.host, url);
    test_host_limit(&load.host, "a", 0.001, ROOM);
    test_host_limit(&load.host, "b", 0.001, BURST);
    for (int i = 0; i < LOADERS; i++)
        assert_int_equal(pthread_create(&load.threads[i], NULL, ask_on, NULL), 0);
}

static void stop_loading(void)
{
    atomic_store(&load.ending, true);
    for (int i = 0; i < LOADERS; i++)
        pthread_join(load.threads[i], NULL);
}

static void end(void)
{
    test_host_close(&load.host);
    test_server_stop(load.server);
}

/* No failure but those that a server's sudden end has. */
static void assert_ends_only(void)
{
    for (int i = 1; i <= (int)REDBUCKET_ERROR_SERVER; i++) {
        if (i != (int)REDBUCKET_ERROR_IO && i != (int)REDBUCKET_ERROR_UNAVAILABLE &&
            load.errors[i] != 0)
            fail_msg("%d of %s", load.errors[i], redbucket_status_name((enum redbucket_status)i));
    }
    assert_true(load.errors[REDBUCKET_ERROR_UNAVAILABLE] > 0);
}

static double kill_and_start(int times)
{
    double begin = test_now();

    for (int i = 0; i < times; i++) {
        int accepted = load.counting.accepted;

        while (load.counting.accepted < accepted + 50)
            test_pause(0.005);
        test_server_kill(load.server);
        test_pause(0.02);
        assert_true(test_server_again(load.server));
    }
    (void)test_host_recover(&load.host, "other");
    stop_loading();
    return test_now() - begin;
}

/* ---- Killed --------------------------------------------------------------------------------- */

/* What was told to be accepted was on the disk by then: nothing is gained. */
static void test_killed_and_started_with_its_data(void **state)
{
    static const char *const queries[] = {"timeout=10s&method=script",
                                          "timeout=10s&method=transaction"};
    static const struct test_server_options options = {.config =
                                                           "appendonly yes\nappendfsync always"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        double seconds, counted;

        begin(&options, queries[i]);
        seconds = kill_and_start(3);
        assert_ends_only();
        counted = test_host_value(&load.host, "count") + 0.001 * seconds;
        assert_true(load.counting.accepted <= counted + 1e-3);
        assert_true(counted <= load.counting.accepted + load.counting.unknown + 0.1);
        assert_true(load.limited.accepted <= BURST + 1 + 0.001 * seconds);
        assert_true(load.limited.accepted + load.limited.unknown >= BURST + 1);
        assert_int_equal(load.counting.rejected, 0);
        end();
    }
}

/* Each time it forgets, one more burst + 1 and no more. */
static void test_killed_and_started_without_its_data(void **state)
{
    static const struct test_server_options options = {.config = NULL};

    (void)state;
    begin(&options, "timeout=10s");
    (void)kill_and_start(3);
    assert_ends_only();
    assert_true(load.limited.accepted <= 4 * (BURST + 1));
    assert_true(load.limited.accepted > BURST + 1);
    end();
}

static void test_a_script_forgotten_under_load(void **state)
{
    static const struct test_server_options options = {.config = NULL};

    (void)state;
    begin(&options, "timeout=10s");
    for (int i = 0; i < 50; i++) {
        test_pause(0.005);
        assert_true(test_server_do(load.server, "SCRIPT", "FLUSH", NULL));
    }
    stop_loading();
    for (int i = 1; i <= (int)REDBUCKET_ERROR_SERVER; i++)
        assert_int_equal(load.errors[i], 0);
    assert_int_equal((int)ceil(test_host_value(&load.host, "count")), load.counting.accepted);
    assert_int_equal(load.limited.accepted, (int)BURST + 1);
    assert_int_equal(load.host.down, 0);
    end();
}

/* ---- Many threads, few connections ---------------------------------------------------------- */

struct crowd {
    struct test_host *host;
    const char *limit;
    int each;
    double longest;
    pthread_mutex_t mutex;
    atomic_int accepted;
    atomic_int rejected;
    atomic_int statuses[REDBUCKET_ERROR_SERVER + 1];
};

static void *ask_each(void *data)
{
    struct crowd *crowd = data;
    const struct redbucket_key key = {crowd->limit, "k"};

    for (int i = 0; i < crowd->each; i++) {
        struct redbucket_response response = {.accepted = false};
        double began = test_now();
        enum redbucket_status status = redbucket_request(crowd->host->limiter, &key, 1, &response);
        double took = test_now() - began;

        (void)atomic_fetch_add(&crowd->statuses[status], 1);
        if (status == REDBUCKET_OK)
            (void)atomic_fetch_add(response.accepted ? &crowd->accepted : &crowd->rejected, 1);
        pthread_mutex_lock(&crowd->mutex);
        crowd->longest = took > crowd->longest ? took : crowd->longest;
        pthread_mutex_unlock(&crowd->mutex);
    }
    return NULL;
}

static void gather(struct crowd *crowd, int threads_len)
{
    pthread_t threads[64];

    pthread_mutex_init(&crowd->mutex, NULL);
    for (int i = 0; i < threads_len; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_each, crowd), 0);
    for (int i = 0; i < threads_len; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&crowd->mutex);
}

static struct test_server *server;

static void open_at(struct test_host *host, const char *query)
{
    char url[512];

    assert_true(test_server_do(server, "FLUSHALL", NULL));
    test_server_url(server, TEST_BY_SOCKET, query, url, sizeof url);
    test_host_open(host, url);
    test_host_limit(host, "a", 0.001, 99.0);
}

static void test_many_threads_on_few_connections(void **state)
{
    static const char *const queries[] = {"connections=4&timeout=30s&method=script",
                                          "connections=4&timeout=30s&method=transaction"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        long long before = test_server_info(server, "total_connections_received");
        struct test_host host;
        struct crowd crowd = {.host = &host, .limit = "a", .each = 50};

        open_at(&host, queries[i]);
        gather(&crowd, 32);
        assert_int_equal(crowd.accepted, 100);
        assert_int_equal(crowd.rejected, 1500);
        assert_true(test_server_info(server, "total_connections_received") - before <= 4);
        test_host_close(&host);
    }
}

/* Everybody gets through, and before the deadline. */
static void test_a_crowd_at_one_bucket_by_transaction(void **state)
{
    struct test_host host;
    struct crowd crowd = {.host = &host, .limit = "hot", .each = TEST_SANITIZED ? 5 : 50};

    (void)state;
    open_at(&host, "method=transaction&connections=64&timeout=20s");
    test_host_limit(&host, "hot", 1000.0, 1e5);
    gather(&crowd, 64);
    assert_int_equal(crowd.accepted, 64 * crowd.each);
    assert_true(crowd.longest < 20.0);
    test_host_close(&host);
}

/* Whoever waits for the call before his own has no longer than others; that time runs out for him
 * says nothing of the server, which answers all the time. */
static void test_waiting_for_a_turn_has_a_deadline(void **state)
{
    struct test_proxy *proxy = test_proxy_start(server, TEST_BY_SOCKET);
    struct test_host host;
    struct crowd crowd = {.host = &host, .limit = "a", .each = 1};
    char url[512];

    (void)state;
    assert_non_null(proxy);
    assert_true(test_server_do(server, "FLUSHALL", NULL));
    test_proxy_url(proxy, "connections=1&timeout=200ms", url, sizeof url);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 0.001, 99.0);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    test_proxy_delay(proxy, 150000);
    test_control_reset();
    gather(&crowd, 8);
    test_control_check(crowd.longest, 0.2);
    assert_true(crowd.statuses[REDBUCKET_OK] >= 1);
    assert_true(crowd.statuses[REDBUCKET_ERROR_TIMEOUT] >= 1);
    assert_int_equal(crowd.statuses[REDBUCKET_OK] + crowd.statuses[REDBUCKET_ERROR_TIMEOUT], 8);
    test_proxy_delay(proxy, 0);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_int_equal(host.down, 0);
    test_host_close(&host);
    test_proxy_stop(proxy);
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
        cmocka_unit_test(test_killed_and_started_with_its_data),
        cmocka_unit_test(test_killed_and_started_without_its_data),
        cmocka_unit_test(test_a_script_forgotten_under_load),
        cmocka_unit_test(test_many_threads_on_few_connections),
        cmocka_unit_test(test_a_crowd_at_one_bucket_by_transaction),
        cmocka_unit_test(test_waiting_for_a_turn_has_a_deadline),
    };

    return cmocka_run_group_tests_name("server_load", tests, start, stop);
}
