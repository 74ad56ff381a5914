/* SPDX-License-Identifier: MIT */
/*
 * Real servers that hang up, pause or hang for a while: what the caller sees, when, and what was
 * counted.
 */
#include "host.h"
#include "processes.h"
#include "proxy.h"
#include "server.h"
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMEOUT   "timeout=200ms"
#define TIMEOUT_S 0.2

static struct test_server *server;

static void open_at(struct test_host *host, const char *query)
{
    char url[512];

    test_server_url(server, TEST_BY_SOCKET, query, url, sizeof url);
    test_host_open(host, url);
    test_host_limit(host, "a", 0.001, 9.0);
}

static void assert_done(bool done)
{
    assert_true(done);
}

static void kill_connections(void)
{
    assert_done(test_server_do(server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL));
}

/* ---- Connections that end ------------------------------------------------------------------- */

static void test_an_idle_connection_that_was_closed_is_replaced(void **state)
{
    struct test_host host;

    (void)state;
    open_at(&host, "connections=1");
    for (int i = 0; i < 10; i++) {
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
        kill_connections();
    }
    assert_int_equal(host.down, 0);
    assert_true(test_host_value(&host, "k") > 9.9);
    test_host_close(&host);
}

/* User and database are those of the URL on every connection. */
static void test_a_replaced_connection_knows_user_and_database(void **state)
{
    static const struct test_server_options options = {.password = TEST_SECRET};
    struct test_server *shared = server;
    struct redbucket_response response;
    struct test_host host;
    redisReply *size;

    (void)state;
    server = test_server_start(&options);
    assert_non_null(server);
    open_at(&host, "db=1");
    for (int i = 0; i < 10; i++) {
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
        kill_connections();
    }
    assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
    assert_false(response.accepted);
    size = test_server_ask(server, "DBSIZE", NULL);
    assert_int_equal(size->integer, 0);
    freeReplyObject(size);
    test_host_close(&host);
    test_server_stop(server);
    server = shared;
}

struct asking {
    struct test_host *host;
    enum redbucket_status status;
    double took;
};

static void *ask_once(void *data)
{
    struct asking *asking = data;

    asking->status = test_host_time(asking->host, "k", &asking->took);
    return NULL;
}

/* Waits until the server has so many clients that it doesn't serve for now. */
static void await_blocked(int wanted)
{
    int blocked = 0;

    for (double until = test_now() + 30.0; blocked < wanted;) {
        redisReply *list = test_server_ask(server, "CLIENT", "LIST", NULL);

        blocked = 0;
        for (const char *at = list->str; (at = strstr(at, "flags=b")) != NULL; at++)
            blocked++;
        freeReplyObject(list);
        assert_true(test_now() < until);
    }
}

/* What became of the request is unknown then, and it is not sent again. */
static void test_a_busy_connection_that_is_closed_is_an_error(void **state)
{
    struct asking asking;
    struct test_host host;
    pthread_t thread;

    (void)state;
    open_at(&host, "timeout=20s&connections=1");
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_done(test_server_do(server, "CLIENT", "PAUSE", "60000", "WRITE", NULL));
    asking = (struct asking){.host = &host};
    assert_int_equal(pthread_create(&thread, NULL, ask_once, &asking), 0);
    await_blocked(1);
    kill_connections();
    pthread_join(thread, NULL);
    assert_int_equal(asking.status, REDBUCKET_ERROR_IO);
    assert_true(asking.took < 15.0);
    assert_done(test_server_do(server, "CLIENT", "UNPAUSE", NULL));
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_int_equal(host.down, 0);
    assert_true(test_host_value(&host, "k") < 2.1);
    test_host_close(&host);
}

/* The server has decided, and its answer is lost: counted once. */
static void test_a_lost_answer_is_not_asked_for_again(void **state)
{
    struct test_proxy *proxy = test_proxy_start(server, TEST_BY_SOCKET);
    struct test_host host;
    char url[512];

    (void)state;
    assert_non_null(proxy);
    test_proxy_url(proxy, "timeout=5s", url, sizeof url);
    for (uint64_t bytes = 1; bytes < 20; bytes += 6) {
        assert_done(test_server_do(server, "FLUSHALL", NULL));
        test_host_open(&host, url);
        test_host_limit(&host, "a", 0.001, 9.0);
        assert_int_equal(test_host_ask(&host, "other", NULL), REDBUCKET_OK);
        test_proxy_cut_after(proxy, bytes);
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_IO);
        assert_same(test_host_value(&host, "k"), 1.0);
        test_host_close(&host);
    }
    test_proxy_stop(proxy);
}

/* As after a firewall has forgotten the connection. */
static void test_a_connection_on_which_nothing_comes_back(void **state)
{
    struct test_proxy *proxy = test_proxy_start(server, TEST_BY_PORT);
    struct test_host host;
    char url[512];
    double took;

    (void)state;
    assert_non_null(proxy);
    test_proxy_url(proxy, TIMEOUT, url, sizeof url);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 0.001, 9.0);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    test_proxy_hold(proxy, true);
    test_control_reset();
    assert_int_equal(test_host_time(&host, "k", &took), REDBUCKET_ERROR_TIMEOUT);
    test_control_check(took, TIMEOUT_S);
    test_proxy_hold(proxy, false);
    (void)test_host_recover(&host, "k");
    assert_true(test_host_value(&host, "k") < 3.1);
    test_host_close(&host);
    test_proxy_stop(proxy);
}

/* ---- Servers that don't answer for a while -------------------------------------------------- */

static void test_a_paused_server(void **state)
{
    struct test_host host;
    double value;
    double took;

    (void)state;
    open_at(&host, TIMEOUT);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_done(test_server_do(server, "CLIENT", "PAUSE", "700", "ALL", NULL));
    test_control_reset();
    assert_int_equal(test_host_time(&host, "k", &took), REDBUCKET_ERROR_TIMEOUT);
    test_control_check(took, TIMEOUT_S);
    assert_int_equal(test_host_time(&host, "k", &took), REDBUCKET_ERROR_UNAVAILABLE);
    test_control_check(took, 0.0);
    assert_int_equal(test_host_recover(&host, "k"), REDBUCKET_ERROR_UNAVAILABLE);
    /* Two were told to be accepted, and the one of which it is unknown may have been counted. */
    value = test_host_value(&host, "k");
    assert_true(value > 1.9 && value < 3.1);
    assert_int_equal(host.down, 1);
    assert_int_equal(host.back, 1);
    test_host_close(&host);
}

/* The late reply comes to a connection that isn't there any more: each gets its own answer. */
static void test_a_reply_past_the_deadline_answers_nobody(void **state)
{
    const char *sleep[] = {"DEBUG", "SLEEP", "0.5"};
    struct test_client *client = test_client_open(server->socket);
    struct redbucket_response response;
    struct test_host host;
    double took;

    (void)state;
    assert_non_null(client);
    open_at(&host, TIMEOUT "&connections=1");
    for (int i = 0; i < 6; i++)
        assert_int_equal(test_host_ask(&host, "full", NULL), REDBUCKET_OK);
    assert_done(test_client_send(client, 3, sleep, NULL));
    test_pause(0.02);
    test_control_reset();
    assert_int_equal(test_host_time(&host, "full", &took), REDBUCKET_ERROR_TIMEOUT);
    test_control_check(took, TIMEOUT_S);
    freeReplyObject(test_client_receive(client));
    (void)test_host_recover(&host, "other");
    for (int i = 0; i < 5; i++) {
        char key[8];

        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(test_host_ask(&host, key, &response), REDBUCKET_OK);
        assert_int_equal(response.remaining, 9);
    }
    /* It was counted, as a request may be of which a time-out leaves that unknown. */
    assert_true(test_host_value(&host, "full") > 6.9);
    test_client_close(client);
    test_host_close(&host);
}

/* A stopped process accepts connections, by its kernel, and never answers. */
static void test_a_stopped_server(void **state)
{
    struct test_host host;
    double took;

    (void)state;
    open_at(&host, TIMEOUT);
    kill(server->pid, SIGSTOP);
    for (int i = 0; i < 2; i++) {
        test_control_reset();
        assert_int_equal(test_host_time(&host, "k", &took), REDBUCKET_ERROR_TIMEOUT);
        test_control_check(took, TIMEOUT_S);
        test_pause(0.1);
    }
    kill(server->pid, SIGCONT);
    (void)test_host_recover(&host, "k");
    test_host_close(&host);
}

/* All calls of a long array have one deadline, and those that are out of time say so. */
static void test_an_array_has_one_deadline(void **state)
{
    enum { LEN = 2048 };
    static struct redbucket_request requests[LEN];
    struct test_proxy *proxy = test_proxy_start(server, TEST_BY_SOCKET);
    struct redbucket_key key = {"a", "k"};
    struct test_host host;
    char url[512];
    int answered = 0;
    double begin;

    (void)state;
    assert_non_null(proxy);
    test_proxy_url(proxy, TIMEOUT, url, sizeof url);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 0.001, 999.0);
    assert_int_equal(test_host_ask(&host, "other", NULL), REDBUCKET_OK);
    for (int i = 0; i < LEN; i++)
        requests[i] = (struct redbucket_request){.keys = &key, .keys_len = 1, .cost = 1};
    test_proxy_delay(proxy, 60000);
    test_control_reset();
    begin = test_now();
    assert_int_equal(redbucket_decide(host.limiter, requests, LEN), REDBUCKET_ERROR_TIMEOUT);
    test_control_check(test_now() - begin, TIMEOUT_S);
    for (int i = 0; i < LEN; i++) {
        assert_true(requests[i].status == REDBUCKET_OK ||
                    requests[i].status == REDBUCKET_ERROR_TIMEOUT);
        answered += requests[i].status == REDBUCKET_OK;
    }
    assert_true(answered < LEN);
    test_proxy_delay(proxy, 0);
    /* The server was as fast as ever. */
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_int_equal(host.down, 0);
    test_host_close(&host);
    test_proxy_stop(proxy);
}

/* ---- The server's clock --------------------------------------------------------------------- */

/* A state of the future, as after the clock was set back: nothing drains until then, nothing is
 * gained, and waiting as long as it says is enough. */
static void test_a_clock_that_was_set_back(void **state)
{
    static const char *const methods[] = {"method=script", "method=transaction"};
    struct redbucket_response response;
    struct redbucket_state stored;
    struct redbucket_key key = {"a", "k"};
    struct test_host host;
    redisReply *reply;

    (void)state;
    for (int i = 0; i < 2; i++) {
        unsigned char bytes[16];
        double future;
        double taken = 8.0;
        const char *argv[] = {"SET", "redbucket:a:k", (const char *)bytes};
        const size_t lengths[] = {3, 13, sizeof bytes};

        reply = test_server_ask(server, "TIME", NULL);
        future = atof(reply->element[0]->str) + 1000.0;
        freeReplyObject(reply);
        memcpy(bytes, &future, 8);
        memcpy(bytes + 8, &taken, 8);
        freeReplyObject(test_server_call(server, 3, argv, lengths));
        open_at(&host, methods[i]);
        for (int j = 0; j < 2; j++) {
            assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
            assert_true(response.accepted);
        }
        assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
        assert_false(response.accepted);
        /* until the moment of the state, and then until one has drained, at 0.001/s */
        assert_true(response.retry_after > 1990.0 && response.retry_after < 2000.1);
        assert_int_equal(redbucket_read(host.limiter, &key, &stored), REDBUCKET_OK);
        assert_same(stored.timestamp, future);
        assert_same(stored.value, 10.0);
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
        CASE(test_an_idle_connection_that_was_closed_is_replaced),
        CASE(test_a_replaced_connection_knows_user_and_database),
        CASE(test_a_busy_connection_that_is_closed_is_an_error),
        CASE(test_a_lost_answer_is_not_asked_for_again),
        CASE(test_a_connection_on_which_nothing_comes_back),
        CASE(test_a_paused_server),
        CASE(test_a_reply_past_the_deadline_answers_nobody),
        CASE(test_a_stopped_server),
        CASE(test_an_array_has_one_deadline),
        CASE(test_a_clock_that_was_set_back),
    };

    return cmocka_run_group_tests_name("server_faults", tests, start, stop);
}
