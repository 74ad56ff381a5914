/* SPDX-License-Identifier: MIT */
/*
 * Threads whose arrays go to the same nodes of a cluster, by slots that come in the opposite order:
 * none holds what another waits for.
 */
#include "fault_peer.h"
#include "host.h"
#include "processes.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>

#define ROUNDS    40
#define TIMEOUT_S 5.0

/* Ports are written into it: the first serves 0 to 4095 and 8192 to 12287, the second the rest. */
#define NODE  "*2\r\n$9\r\n127.0.0.1\r\n:%1$d\r\n"
#define OTHER "*2\r\n$9\r\n127.0.0.1\r\n:%2$d\r\n"
#define SLOTS                                                           \
    "*4\r\n*3\r\n:0\r\n:4095\r\n" NODE "*3\r\n:4096\r\n:8191\r\n" OTHER \
    "*3\r\n:8192\r\n:12287\r\n" NODE "*3\r\n:12288\r\n:16383\r\n" OTHER

/* The time 1e9, done, no state before. */
static const char accepted[] =
    "$25\r\n\0\0\0\0\x65\xcd\xcd\x41\1"
    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\r\n";

static char slots[512];

static const struct test_rule rules[] = {
    {.command = "INFO",
     .answer = "$62\r\n# Server\r\nredis_version:7.0.15\r\n# Cluster\r\ncluster_enabled:1\r\n\r\n"},
    {.command = "ROLE", .answer = "*1\r\n$6\r\nmaster\r\n"},
    {.command = "CLUSTER", .answer = slots},
    {.command = "EVALSHA", .answer = accepted, .answer_len = sizeof accepted - 1, .pause_us = 2000},
};

struct walker {
    struct test_host *host;
    const char *keys[2];
    pthread_t thread;
    enum redbucket_status status; /* the first that isn't OK */
};

static void *walk(void *data)
{
    struct walker *walker = data;

    for (int i = 0; i < ROUNDS && walker->status == REDBUCKET_OK; i++) {
        struct redbucket_key keys[] = {{"a", walker->keys[0]}, {"a", walker->keys[1]}};
        struct redbucket_request requests[] = {{.keys = &keys[0], .keys_len = 1, .cost = 1},
                                               {.keys = &keys[1], .keys_len = 1, .cost = 1}};

        walker->status = redbucket_decide(walker->host->limiter, requests, 2);
    }
    return NULL;
}

/* "redbucket:a:KEY" is in slot 2562 for k, 7513 for k4 and 11710 for k3. */
static void arrays_that_cross_do_not_wait_for_each_other(void **state)
{
    struct test_peer *node = test_peer_start(true, rules, sizeof rules / sizeof rules[0]);
    struct test_peer *other = test_peer_start(true, rules, sizeof rules / sizeof rules[0]);
    struct test_host host;
    struct walker walkers[] = {{.host = &host, .keys = {"k", "k4"}},
                               {.host = &host, .keys = {"k4", "k3"}}};
    char url[128];

    (void)state;
    assert_true(node != NULL && other != NULL);
    (void)snprintf(slots, sizeof slots, SLOTS, test_peer_port(node), test_peer_port(other));
    (void)snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d?connections=1&timeout=%g",
                   test_peer_port(node), TIMEOUT_S * TEST_PATIENCE);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1.0, 9.0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&walkers[i].thread, NULL, walk, &walkers[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(walkers[i].thread, NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(walkers[i].status, REDBUCKET_OK);
    assert_int_equal(test_peer_commands(node, "EVALSHA") + test_peer_commands(other, "EVALSHA"),
                     4 * ROUNDS);
    test_host_close(&host);
    test_peer_stop(node);
    test_peer_stop(other);
}

/* Whoever holds the only connection to a node, and asks around about another that is down, may come
 * upon the one that he keeps from himself. Whom he comes upon depends on how often was asked
 * before. */
static void lose_a_node(size_t before)
{
    struct test_peer *node = test_peer_start(true, rules, sizeof rules / sizeof rules[0]);
    struct test_peer *other = test_peer_start(true, rules, sizeof rules / sizeof rules[0]);
    struct redbucket_key keys[] = {{"a", "k"}, {"a", "k4"}};
    struct redbucket_request requests[] = {{.keys = &keys[0], .keys_len = 1, .cost = 1},
                                           {.keys = &keys[1], .keys_len = 1, .cost = 1}};
    struct test_host host;
    char url[128];

    assert_true(node != NULL && other != NULL);
    (void)snprintf(slots, sizeof slots, SLOTS, test_peer_port(node), test_peer_port(other));
    (void)snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d?connections=1&timeout=%g",
                   test_peer_port(node), TEST_PATIENCE);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1.0, 9.0);
    assert_int_equal(redbucket_decide(host.limiter, requests, before), REDBUCKET_OK);
    test_pause(0.2); /* until it may ask around again */
    assert_int_equal(redbucket_decide(host.limiter, requests, 2), REDBUCKET_OK);
    test_peer_stop(other);
    assert_int_equal(redbucket_decide(host.limiter, requests, 2), REDBUCKET_ERROR_UNAVAILABLE);
    assert_int_equal(requests[0].status, REDBUCKET_OK);
    assert_int_equal(requests[1].status, REDBUCKET_ERROR_UNAVAILABLE);
    test_host_close(&host);
    test_peer_stop(node);
}

static void nobody_waits_for_what_he_holds(void **state)
{
    (void)state;
    lose_a_node(1);
    lose_a_node(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits_for_what_he_holds),
        cmocka_unit_test(arrays_that_cross_do_not_wait_for_each_other),
    };

    return cmocka_run_group_tests_name("cluster_crossing", tests, NULL, NULL);
}
