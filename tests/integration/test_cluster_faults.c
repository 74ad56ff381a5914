/* SPDX-License-Identifier: MIT */
/*
 * What can be wrong with a cluster, or with the way to it: a slot in the middle of a move, nodes
 * that are down or stand still or don't tell their names, the wrong password, a server that is in
 * no cluster.
 */
#include "clustered.h"
#include "host.h"
#include "processes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Next to nothing drains while a test runs. */
#define SLOW 1e-6

static void limit(struct clustered *clustered, const char *name, double burst)
{
    clustered_limit(clustered, name, (struct redbucket_limit){.rate = SLOW, .burst = burst});
}

static struct redbucket_response ask(struct clustered *clustered, const char *limits,
                                     const char *key)
{
    struct redbucket_response response;

    assert_int_equal(clustered_request(clustered, limits, key, &response), REDBUCKET_OK);
    return response;
}

/* What the store says of its last failure has these words in it, and no secret. */
static void assert_reason(struct redbucket_store *store, enum redbucket_status status,
                          const char *words)
{
    struct redbucket_error error;

    redbucket_store_failure(store, &error);
    assert_int_equal(error.status, status);
    if (strstr(error.message, words) == NULL)
        fail_msg("no \"%s\" in \"%s\"", words, error.message);
    assert_null(strstr(error.message, TEST_SECRET));
}

/* ---- Slots on their way --------------------------------------------------------------------- */

/* The node that a slot is leaving sends who asks for a key that it hasn't to the other, this once;
 * what it still has, it decides. */
static void a_slot_on_its_way_is_asked_for_at_both(void **state)
{
    struct clustered *clustered = *state;
    char here[48], there[64];
    unsigned slot, other;

    limit(clustered, "a", 2);
    clustered_key_at(clustered, "a", 0, "way", here);
    (void)clustered_node(clustered, "a", here, &slot);
    for (int i = 0;; i++) {
        (void)snprintf(there, sizeof there, "there-%d", i);
        (void)clustered_node(clustered, "a", there, &other);
        if (other == slot)
            break;
    }
    assert_int_equal(ask(clustered, "a", here).remaining, 2);
    assert_true(test_server_do(clustered->cluster->nodes[1], "SCRIPT", "FLUSH", NULL));
    assert_true(test_cluster_slot_open(clustered->cluster, slot, 0, 1));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask(clustered, "a", there).remaining, 2 - i);
        assert_int_equal(ask(clustered, "a", here).remaining, 1 - i);
    }
    assert_int_equal(test_cluster_slot_move(clustered->cluster, slot, 0, 1, -1), 1);
    assert_false(ask(clustered, "a", here).accepted);
    assert_int_equal(ask(clustered, "a", there).remaining, 0);
    assert_true(clustered_value(clustered, "a", here) > 2.99);
    assert_true(test_cluster_slot_close(clustered->cluster, slot, 0, 1));
    assert_false(ask(clustered, "a", here).accepted);
    assert_false(ask(clustered, "a", there).accepted);
    assert_true(test_cluster_migrate(clustered->cluster, slot, slot, 0));
    assert_false(ask(clustered, "a", here).accepted);
    assert_true(test_cluster_settle(clustered->cluster));
}

/* Of two buckets of one slot, one has been moved: no node can decide for both at once, until it is
 * over. Either that is said, or they are decided one by one; nothing is taken of one alone. */
static void a_slot_that_is_torn_is_decided_right_or_not_at_all(void **state)
{
    struct clustered *clustered = *state;
    struct redbucket_response response;
    unsigned slot, accepted = 1;

    clustered_again(clustered, "timeout=500ms");
    limit(clustered, "a", 4);
    limit(clustered, "b", 2);
    size_t from = clustered_node(clustered, "a", "k", &slot);
    size_t to = (from + 1) % TEST_CLUSTER_MASTERS;

    assert_true(ask(clustered, "a b", "k").accepted);
    assert_true(test_cluster_slot_open(clustered->cluster, slot, from, to));
    assert_int_equal(test_cluster_slot_move(clustered->cluster, slot, from, to, 1), 1);
    for (int i = 0; i < 5; i++) {
        double began = test_now();
        enum redbucket_status status = clustered_request(clustered, "a b", "k", &response);

        test_control_check(test_now() - began, 0.5);
        if (status != REDBUCKET_OK)
            assert_int_equal(status, REDBUCKET_ERROR_UNAVAILABLE);
        else
            accepted += response.accepted;
    }
    assert_true(accepted <= 3);
    assert_int_equal(test_cluster_slot_move(clustered->cluster, slot, from, to, -1), 1);
    assert_true(test_cluster_slot_close(clustered->cluster, slot, from, to));
    assert_true(fabs(clustered_value(clustered, "a", "k") - accepted) < 0.01);
    assert_true(fabs(clustered_value(clustered, "b", "k") - accepted) < 0.01);
    assert_int_equal(ask(clustered, "a b", "k").accepted, accepted < 3);
    assert_true(test_cluster_migrate(clustered->cluster, slot, slot, from));
    assert_true(test_cluster_settle(clustered->cluster));
}

static void a_slot_that_nobody_serves_is_an_error_of_its_own_keys(void **state)
{
    struct clustered *clustered = *state;
    char gone[48], there[48], text[16];
    unsigned slot;

    limit(clustered, "a", 2);
    clustered_key_at(clustered, "a", 2, "gone", gone);
    clustered_key_at(clustered, "a", 1, "there", there);
    (void)clustered_node(clustered, "a", gone, &slot);
    assert_true(ask(clustered, "a", gone).accepted);
    (void)snprintf(text, sizeof text, "%u", slot);
    for (size_t i = 0; i < clustered->cluster->nodes_len; i++)
        (void)test_server_do(clustered->cluster->nodes[i], "CLUSTER", "DELSLOTS", text, NULL);
    assert_int_equal(clustered_request(clustered, "a", gone, NULL), REDBUCKET_ERROR_UNAVAILABLE);
    assert_true(ask(clustered, "a", there).accepted);
    assert_true(test_server_do(clustered->cluster->nodes[2], "CLUSTER", "ADDSLOTS", text, NULL));
    assert_true(test_cluster_settle(clustered->cluster));

    double until = test_now() + 2 * TEST_PATIENCE;

    while (clustered_request(clustered, "a", gone, NULL) != REDBUCKET_OK)
        assert_true(test_now() < until);
}

static void set_everywhere(const struct clustered *clustered, const char *name, const char *value)
{
    for (size_t i = 0; i < clustered->cluster->nodes_len; i++)
        assert_true(
            test_server_do(clustered->cluster->nodes[i], "CONFIG", "SET", name, value, NULL));
}

/* By a map and by redirections of that kind. */
static void check_endpoints(struct clustered *clustered)
{
    char url[128], key[48];
    struct test_host host;
    unsigned slot;

    clustered_flush(clustered);
    (void)snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d?timeout=20s",
                   clustered->cluster->nodes[4]->port);
    test_host_open(&host, url);
    test_host_limit(&host, "a", SLOW, 9);
    for (size_t node = 0; node < TEST_CLUSTER_MASTERS; node++) {
        clustered_key_at(clustered, "a", node, "endpoint", key);
        assert_int_equal(test_host_ask(&host, key, NULL), REDBUCKET_OK);
    }
    (void)clustered_node(clustered, "a", key, &slot);
    assert_true(test_cluster_slot_open(clustered->cluster, slot, 2, 0));
    assert_int_equal(test_cluster_slot_move(clustered->cluster, slot, 2, 0, -1), 1);
    assert_int_equal(test_host_ask(&host, key, NULL), REDBUCKET_OK);
    assert_true(test_cluster_slot_close(clustered->cluster, slot, 2, 0));
    assert_int_equal(test_host_ask(&host, key, NULL), REDBUCKET_OK);
    assert_true(test_host_value(&host, key) > 2.99);
    test_host_close(&host);
    assert_true(test_cluster_migrate(clustered->cluster, slot, slot, 2));
    assert_true(test_cluster_settle(clustered->cluster));
}

static void nodes_may_be_known_by_name_or_not_at_all(void **state)
{
    struct clustered *clustered = *state;

    if (clustered->cluster->nodes[0]->version < 70000)
        skip();
    set_everywhere(clustered, "cluster-announce-hostname", "localhost");
    set_everywhere(clustered, "cluster-preferred-endpoint-type", "unknown-endpoint");
    check_endpoints(clustered);
    set_everywhere(clustered, "cluster-preferred-endpoint-type", "hostname");
    check_endpoints(clustered);
    set_everywhere(clustered, "cluster-preferred-endpoint-type", "ip");
    set_everywhere(clustered, "cluster-announce-hostname", "");
}

/* ---- Nodes that are away -------------------------------------------------------------------- */

/* Whoever is asked first may be down, or only replicas may be named. */
static void any_node_that_answers_will_do(void **state)
{
    struct clustered *clustered = *state;
    struct test_server *const *nodes = clustered->cluster->nodes;
    char url[512];

    for (int i = 0; i < 2; i++) {
        struct test_host host;

        if (i == 0)
            (void)snprintf(url, sizeof url,
                           "redis+cluster://127.0.0.1:1,127.0.0.1:9,127.0.0.1:%d?timeout=20s",
                           nodes[1]->port);
        else
            (void)snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d,127.0.0.1:%d?timeout=20s",
                           nodes[3]->port, nodes[4]->port);
        clustered_flush(clustered);
        test_host_open(&host, url);
        test_host_limit(&host, "a", SLOW, 9);
        for (size_t node = 0; node < TEST_CLUSTER_MASTERS; node++) {
            struct redbucket_response response;
            char key[48];

            clustered_key_at(clustered, "a", node, "seed", key);
            assert_int_equal(test_host_ask(&host, key, &response), REDBUCKET_OK);
            assert_true(response.accepted);
        }
        test_host_close(&host);
    }
}

static void nobody_there_is_unavailable(void **state)
{
    struct test_host host;
    double took;

    (void)state;
    test_host_open(&host, "redis+cluster://127.0.0.1:1,127.0.0.1:9?timeout=500ms");
    test_host_limit(&host, "a", 1, 9);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(test_host_time(&host, "k", &took), REDBUCKET_ERROR_UNAVAILABLE);
        test_control_check(took, 0.5);
    }
    test_host_close(&host);
}

/* The one that stands still costs its own keys their time once, and then next to nothing; the
 * others notice nothing, in the same array. */
static void a_node_that_stands_still_holds_nobody_else_up(void **state)
{
    struct clustered *clustered = *state;
    struct redbucket_key keys[TEST_CLUSTER_MASTERS];
    struct redbucket_request array[TEST_CLUSTER_MASTERS];
    char texts[TEST_CLUSTER_MASTERS][48];

    clustered_again(clustered, "timeout=200ms");
    limit(clustered, "a", 1000);
    for (size_t i = 0; i < TEST_CLUSTER_MASTERS; i++) {
        clustered_key_at(clustered, "a", i, "still", texts[i]);
        keys[i] = (struct redbucket_key){.limit = "a", .key = texts[i]};
        (void)ask(clustered, "a", texts[i]);
    }
    /* Not for so long that the cluster would have it replaced. */
    assert_true(test_cluster_freeze(clustered->cluster, 0));
    for (int round = 0; round < 3; round++) {
        double began = test_now();

        for (size_t i = 0; i < TEST_CLUSTER_MASTERS; i++)
            array[i] = (struct redbucket_request){.keys = &keys[i], .keys_len = 1, .cost = 1};
        assert_int_not_equal(redbucket_decide(clustered->limiter, array, TEST_CLUSTER_MASTERS),
                             REDBUCKET_OK);
        test_control_check(test_now() - began, 0.2);
        assert_int_equal(array[1].status, REDBUCKET_OK);
        assert_int_equal(array[2].status, REDBUCKET_OK);
        if (array[0].status != REDBUCKET_ERROR_TIMEOUT)
            assert_int_equal(array[0].status, REDBUCKET_ERROR_UNAVAILABLE);
    }
    assert_true(test_cluster_thaw(clustered->cluster, 0));
    double until = test_now() + 2 * TEST_PATIENCE;

    while (clustered_request(clustered, "a", texts[0], NULL) != REDBUCKET_OK)
        assert_true(test_now() < until);
    assert_true(test_cluster_settle(clustered->cluster));
}

/* ---- Ways that lead nowhere ----------------------------------------------------------------- */

static void who_is_in_no_cluster_is_told_so(void **state)
{
    struct test_server *server =
        test_server_start(&(struct test_server_options){.kind = TEST_REDIS});
    struct test_host host;
    char url[128];

    (void)state;
    assert_non_null(server);
    (void)snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d?timeout=20s", server->port);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1, 9);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_UNSUPPORTED);
        assert_reason(host.store, REDBUCKET_ERROR_UNSUPPORTED, "in no cluster");
    }
    assert_int_equal(test_server_info(server, "db0"), -1);
    test_host_close(&host);
    test_server_stop(server);
}

/* And the right one, by TLS. */
static void passwords_and_certificates_are_asked_for(void **state)
{
    struct test_cluster *cluster = test_cluster_start(
        &(struct test_server_options){.kind = TEST_REDIS, .password = "open-sesame", .tls = true});
    struct test_host host;
    char url[512];

    (void)state;
    assert_non_null(cluster);
    (void)snprintf(url, sizeof url, "redis+cluster://:" TEST_SECRET "@127.0.0.1:%d?timeout=20s",
                   cluster->nodes[0]->port);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 1, 9);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_AUTH);
        assert_reason(host.store, REDBUCKET_ERROR_AUTH, "WRONGPASS");
    }
    test_host_close(&host);

    for (int way = TEST_BY_PORT; way <= TEST_BY_TLS; way++) {
        test_cluster_url(cluster, (enum test_server_way)way, "timeout=20s", url, sizeof url);
        test_host_open(&host, url);
        test_host_limit(&host, "a", SLOW, 9);
        for (int i = 0; i < 30; i++) {
            struct redbucket_response response;
            char key[16];

            (void)snprintf(key, sizeof key, "%d", i);
            assert_int_equal(test_host_ask(&host, key, &response), REDBUCKET_OK);
            assert_int_equal(response.remaining, way == TEST_BY_PORT ? 9 : 8);
        }
        test_host_close(&host);
    }
    test_cluster_url(cluster, TEST_BY_TLS, "timeout=20s", url, sizeof url);
    memcpy(strstr(url, "/ca.pem"), "/no.pem", 7);
    assert_int_not_equal(redbucket_store_open(url, &host.store, NULL), REDBUCKET_OK);
    test_cluster_stop(cluster);
}

static void check_says_what_it_is(void **state)
{
    struct clustered *clustered = *state;
    struct redbucket_health health = {.size = sizeof health};

    assert_int_equal(redbucket_store_check(clustered->store, &health), REDBUCKET_OK);
    print_message("# %s, %s, %zu warnings\n", health.server, health.method, health.warnings_len);
    assert_string_equal(health.method, "script");
    assert_non_null(strstr(health.server, clustered->kind == TEST_VALKEY ? "Valkey" : "Redis"));
    assert_true(health.round_trip > 0.0);
}

int main(void)
{
    enum { HERE = CLUSTERED_UNTAGGED | CLUSTERED_STRUCT };
    static const struct clustered_case cases[] = {
        CLUSTERED(HERE, a_slot_on_its_way_is_asked_for_at_both),
        CLUSTERED(CLUSTERED_TAGGED | CLUSTERED_STRUCT,
                  a_slot_that_is_torn_is_decided_right_or_not_at_all),
        CLUSTERED(HERE, a_slot_that_nobody_serves_is_an_error_of_its_own_keys),
        CLUSTERED(HERE, nodes_may_be_known_by_name_or_not_at_all),
        CLUSTERED(HERE | CLUSTERED_REDIS, any_node_that_answers_will_do),
        CLUSTERED(HERE | CLUSTERED_REDIS, nobody_there_is_unavailable),
        CLUSTERED(HERE, a_node_that_stands_still_holds_nobody_else_up),
        CLUSTERED(HERE | CLUSTERED_REDIS, who_is_in_no_cluster_is_told_so),
        CLUSTERED(HERE | CLUSTERED_REDIS, passwords_and_certificates_are_asked_for),
        CLUSTERED(HERE, check_says_what_it_is),
    };
    int failed;

    test_control_start();
    failed = clustered_run("cluster_faults", cases, sizeof cases / sizeof cases[0]);
    test_control_stop();
    return failed;
}
