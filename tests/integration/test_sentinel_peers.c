/* SPDX-License-Identifier: MIT */
/*
 * Sentinels that don't do as they should, beside real servers: what each of them makes of a
 * decision, when another sentinel is there and when none is, and in what time.
 */
#include "fault_peer.h"
#include "host.h"
#include "processes.h"
#include "server.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>

#define ANSWER_SIZE 128

/* Two servers, at first the master and its replica, and what a sentinel answers that names them. */
static struct test_server *servers[2];
static char names[2][ANSWER_SIZE];

static void name_place(int port, char answer[ANSWER_SIZE])
{
    char digits[16];

    (void)snprintf(digits, sizeof digits, "%d", port);
    (void)snprintf(answer, ANSWER_SIZE, "*2\r\n$9\r\n127.0.0.1\r\n$%zu\r\n%s\r\n", strlen(digits),
                   digits);
}

static bool follow(struct test_server *server, struct test_server *master)
{
    char port[16];

    if (master == NULL)
        return test_server_do(server, "SLAVEOF", "NO", "ONE", NULL);
    (void)snprintf(port, sizeof port, "%d", master->port);
    return test_server_do(server, "SLAVEOF", "127.0.0.1", port, NULL);
}

static void fail_over(void)
{
    assert_true(follow(servers[1], NULL));
    assert_true(follow(servers[0], servers[1]));
}

/* ---- One sentinel, or two ------------------------------------------------------------------- */

static struct test_peer *start(const struct test_rule *rules, size_t len)
{
    struct test_peer *peer = test_peer_start(true, rules, len);

    assert_non_null(peer);
    return peer;
}

/* Opens a store that asks one peer, or first one and then the other. */
static void open_at(struct test_host *host, const struct test_peer *first,
                    const struct test_peer *second, const char *query)
{
    char url[256], more[32] = "";

    if (second != NULL)
        (void)snprintf(more, sizeof more, ",127.0.0.1:%d", test_peer_port(second));
    (void)snprintf(url, sizeof url,
                   "redis+sentinel://127.0.0.1:%d%s/service?sentinel_password=" TEST_SECRET "%s%s",
                   test_peer_port(first), more, query[0] != '\0' ? "&" : "", query);
    test_host_open(host, url);
    test_host_limit(host, "a", 0.001, 1000.0);
}

#define AUTH                                   \
    {                                          \
        .command = "AUTH", .answer = "+OK\r\n" \
    }
#define NAMES(text)                           \
    {                                         \
        .command = "SENTINEL", .answer = text \
    }

/* Alone it comes to `status`, and `words` in the message. With a good sentinel behind it, nobody
 * hears of it. Either in time. */
static void assert_comes_to(const struct test_rule *rule, enum redbucket_status status,
                            const char *words)
{
    const struct test_rule bad_rules[] = {*rule, AUTH};
    const struct test_rule good_rules[] = {AUTH, NAMES(names[0])};
    struct test_peer *bad = start(bad_rules, 2);
    struct test_peer *good = start(good_rules, 2);
    struct redbucket_error error;
    struct test_host host;
    double took;

    test_control_reset();
    open_at(&host, bad, NULL, "timeout=400ms");
    assert_int_equal(test_host_time(&host, "k", &took), status);
    test_control_check(took, 0.4);
    test_host_failure(&host, &error);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" in \"%s\"", words, error.message);
    test_host_close(&host);
    open_at(&host, bad, good, "timeout=2s");
    test_control_reset();
    assert_int_equal(test_host_time(&host, "k", &took), REDBUCKET_OK);
    test_control_check(took, 1.1);
    assert_int_equal(host.down, 0);
    /* The one that answered is asked first from now on. */
    assert_int_equal(test_peer_commands(good, "SENTINEL"), 1);
    test_host_close(&host);
    test_peer_stop(bad);
    test_peer_stop(good);
}

static void test_sentinels_that_make_no_sense(void **state)
{
    static const struct test_rule rules[] = {
        NAMES("*2\r\n$9\r\n127.0.0.1\r\n$1\r\n0\r\n"),
        NAMES("*2\r\n$9\r\n127.0.0.1\r\n$7\r\n6379\r\nx\r\n"),
        NAMES("*1\r\n$9\r\n127.0.0.1\r\n"),
        NAMES("*3\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\n1\r\n"),
        NAMES("*2\r\n:1\r\n:2\r\n"),
        NAMES("$4\r\n6379\r\n"),
        NAMES("+OK\r\n"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        assert_comes_to(&rules[i], REDBUCKET_ERROR_PROTOCOL, "is not where a master can be");
    assert_comes_to(&(struct test_rule)NAMES("bananas\r\n"), REDBUCKET_ERROR_PROTOCOL, "sentinel ");
    assert_comes_to(&(struct test_rule){.command = "SENTINEL",
                                        .answer = "$1073741824\r\n",
                                        .manner = TEST_FLOOD},
                    REDBUCKET_ERROR_PROTOCOL, "sentinel ");
}

static void test_sentinels_that_do_not_answer(void **state)
{
    (void)state;
    assert_comes_to(&(struct test_rule){.command = "SENTINEL", .manner = TEST_SILENT},
                    REDBUCKET_ERROR_TIMEOUT, "no sentinel answers");
    assert_comes_to(&(struct test_rule){.command = NULL, .manner = TEST_SILENT},
                    REDBUCKET_ERROR_TIMEOUT, "no sentinel answers");
    assert_comes_to(&(struct test_rule){.command = "SENTINEL", .manner = TEST_CLOSE},
                    REDBUCKET_ERROR_UNAVAILABLE, "no sentinel answers");
    assert_comes_to(&(struct test_rule){.command = "SENTINEL", .manner = TEST_RESET},
                    REDBUCKET_ERROR_UNAVAILABLE, "no sentinel answers");
    assert_comes_to(
        &(struct test_rule){
            .command = "SENTINEL", .answer = names[0], .manner = TEST_BYTEWISE, .pause_us = 100000},
        REDBUCKET_ERROR_TIMEOUT, "no sentinel answers");
}

static void test_sentinels_that_do_not_know(void **state)
{
    (void)state;
    assert_comes_to(&(struct test_rule)NAMES("*-1\r\n"), REDBUCKET_ERROR_UNAVAILABLE,
                    "no sentinel knows a service \"service\"");
    assert_comes_to(&(struct test_rule)NAMES("$-1\r\n"), REDBUCKET_ERROR_UNAVAILABLE,
                    "no sentinel knows a service \"service\"");
    assert_comes_to(&(struct test_rule)NAMES("-ERR unknown command 'SENTINEL'\r\n"),
                    REDBUCKET_ERROR_UNSUPPORTED, "SENTINEL: ERR unknown command");
    assert_comes_to(&(struct test_rule)NAMES("-ERR " TEST_SECRET "\r\n"), REDBUCKET_ERROR_SERVER,
                    "refused, in words that hold the password");
    assert_comes_to(&(struct test_rule){.command = "AUTH", .answer = "-WRONGPASS no\r\n"},
                    REDBUCKET_ERROR_AUTH, "AUTH: WRONGPASS no");
}

static void test_sentinels_that_are_behind(void **state)
{
    const struct test_rule mute_rules[] = {{.command = NULL, .manner = TEST_SILENT}};
    struct test_peer *mute = start(mute_rules, 1);
    struct test_peer *gone = start(mute_rules, 1);
    char answer[ANSWER_SIZE];
    int port = test_peer_port(gone);

    (void)state;
    test_peer_stop(gone);
    name_place(port, answer); /* where nobody is */
    assert_comes_to(&(struct test_rule)NAMES(answer), REDBUCKET_ERROR_UNAVAILABLE, "master ");
    assert_comes_to(&(struct test_rule)NAMES(names[1]), REDBUCKET_ERROR_READONLY,
                    "as the master, which is a replica");
    name_place(test_peer_port(mute), answer); /* where somebody is, and never says a word */
    assert_comes_to(&(struct test_rule)NAMES(answer), REDBUCKET_ERROR_TIMEOUT, "master ");
    test_peer_stop(mute);
}

/* ---- A master that moves -------------------------------------------------------------------- */

/* An idle connection has ended, so that it is asked where the master is before anything is sent. */
static void test_a_master_that_moved_unnoticed_costs_nothing(void **state)
{
    const struct test_rule rules[] = {
        AUTH, {.command = "SENTINEL", .answer = names[0], .times = 1}, NAMES(names[1])};
    struct test_peer *peer = start(rules, 3);
    struct test_host host;
    long long came;

    (void)state;
    open_at(&host, peer, NULL, "timeout=5s");
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    fail_over();
    assert_true(test_server_do(servers[0], "CLIENT", "KILL", "TYPE", "normal", NULL));
    came = test_server_info(servers[0], "total_connections_received");
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_int_equal(test_server_info(servers[0], "total_connections_received"), came);
    assert_int_equal(host.down, 0);
    assert_int_equal(test_peer_commands(peer, "SENTINEL"), 2);
    assert_true(test_host_value(&host, "k") > 0.5);
    test_host_close(&host);
    test_peer_stop(peer);
}

enum { CROWD = 8 };

static pthread_barrier_t all_there;
static atomic_int spoilt;

static void *ask_together(void *data)
{
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < 20; i++) {
        if (test_host_ask(data, "k", NULL) != REDBUCKET_OK)
            (void)atomic_fetch_add(&spoilt, 1);
    }
    return NULL;
}

static void crowd(struct test_host *host)
{
    pthread_t threads[CROWD];

    atomic_store(&spoilt, 0);
    pthread_barrier_init(&all_there, NULL, CROWD);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_together, host), 0);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&all_there);
}

/* All connections end at once: one thread asks the sentinel, for all. */
static void test_a_crowd_asks_once(void **state)
{
    const struct test_rule rules[] = {
        AUTH, {.command = "SENTINEL", .answer = names[0], .times = 1}, NAMES(names[1])};
    struct test_peer *peer = start(rules, 3);
    struct test_host host;

    (void)state;
    open_at(&host, peer, NULL, "timeout=10s&connections=8");
    crowd(&host);
    assert_int_equal(spoilt, 0);
    assert_int_equal(test_peer_commands(peer, "SENTINEL"), 1);
    fail_over();
    assert_true(test_server_do(servers[0], "CLIENT", "KILL", "TYPE", "normal", NULL));
    crowd(&host);
    assert_int_equal(spoilt, 0);
    assert_int_equal(test_peer_commands(peer, "SENTINEL"), 2);
    test_host_close(&host);
    test_peer_stop(peer);
}

/* A server that is made a replica keeps its clients: the first refusal is for all connections. */
static void test_one_refusal_is_enough(void **state)
{
    const struct test_rule rules[] = {
        AUTH, {.command = "SENTINEL", .answer = names[0], .times = 1}, NAMES(names[1])};
    struct test_peer *peer = start(rules, 3);
    struct test_host host;
    int refused = 0;

    (void)state;
    open_at(&host, peer, NULL, "timeout=5s&connections=8");
    crowd(&host);
    fail_over();
    for (int i = 0; i < 20; i++) {
        enum redbucket_status status = test_host_ask(&host, "k", NULL);

        refused += status == REDBUCKET_ERROR_READONLY;
        if (status != REDBUCKET_OK)
            test_host_rest();
    }
    assert_int_equal(refused, 1);
    assert_int_equal(test_peer_commands(peer, "SENTINEL"), 2);
    crowd(&host);
    assert_int_equal(spoilt, 0);
    test_host_close(&host);
    test_peer_stop(peer);
}

/* Nobody is asked more often than the circuit allows, however many decisions there are. */
static void test_sentinels_are_left_in_peace(void **state)
{
    const struct test_rule mute_rules[] = {{.command = "", .manner = TEST_RESET}};
    struct test_peer *broken = start(mute_rules, 1);
    char answer[ANSWER_SIZE];
    const struct test_rule rules[] = {AUTH, NAMES(answer)};
    struct test_peer *peer = start(rules, 2);
    struct test_host host;
    long decisions = 0;

    (void)state;
    name_place(test_peer_port(broken), answer);
    open_at(&host, peer, NULL, "");
    for (double until = test_now() + 1.5; test_now() < until; decisions++)
        assert_int_not_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_true(decisions > 1000);
    /* Pauses of 50, 100, 200, 400, 800 ms, each at least three quarters of that. */
    assert_in_range(test_peer_commands(peer, "SENTINEL"), 3, 7);
    test_host_close(&host);
    test_peer_stop(peer);
    test_peer_stop(broken);
}

/* ---- Set-up --------------------------------------------------------------------------------- */

static int start_servers(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        servers[i] = test_server_start(&(struct test_server_options){.kind = TEST_REDIS});
        if (servers[i] == NULL)
            return -1;
        name_place(servers[i]->port, names[i]);
    }
    test_control_start();
    return 0;
}

static int pair(void **state)
{
    (void)state;
    return follow(servers[0], NULL) && follow(servers[1], servers[0]) &&
                   test_server_do(servers[0], "FLUSHALL", NULL)
               ? 0
               : -1;
}

static int stop_servers(void **state)
{
    (void)state;
    test_control_stop();
    test_server_stop(servers[1]);
    test_server_stop(servers[0]);
    return 0;
}

#define CASE(name) cmocka_unit_test_setup(name, pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_sentinels_that_make_no_sense),
        CASE(test_sentinels_that_do_not_answer),
        CASE(test_sentinels_that_do_not_know),
        CASE(test_sentinels_that_are_behind),
        CASE(test_a_master_that_moved_unnoticed_costs_nothing),
        CASE(test_a_crowd_asks_once),
        CASE(test_one_refusal_is_enough),
        CASE(test_sentinels_are_left_in_peace),
    };

    return cmocka_run_group_tests_name("sentinel peers", tests, start_servers, stop_servers);
}
