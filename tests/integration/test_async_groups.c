/* SPDX-License-Identifier: MIT */
/*
 * The asynchronous form with several servers: a master that sentinels name, and that changes; the
 * nodes of a cluster, one of which stands still.
 */
#include "cluster.h"
#include "processes.h"
#include "sentinels.h"
#include "test.h"
#include "turner.h"

#include <stdio.h>

#define BURST 99

static void test_a_master_is_followed(void **state)
{
    const struct test_sentinels_options options = {.kind = TEST_REDIS};
    struct test_sentinels all;
    struct turner turner;
    char url[512];

    (void)state;
    assert_true(test_sentinels_start(&all, &options));
    test_sentinels_url(&all, "timeout=500ms", url, sizeof url);
    turner_open(&turner, url, BURST);
    test_control_reset();
    turner_ask_times(&turner, "k", 10);
    turner_run(&turner);
    assert_int_equal(turner.accepted, 10);
    test_server_kill(all.data[0]);
    turner_recover(&turner, "new");
    assert_int_equal(test_sentinels_role(&all, 1), 1);
    turner_ask_times(&turner, "new", 300);
    turner_run(&turner);
    assert_true(test_host_value(&turner.host, "new") > BURST);
    test_control_check(turner.longest, 0.02);
    test_control_check(turner.latest, 0.5);
    turner_close(&turner);
    test_sentinels_stop(&all);
}

static struct test_cluster *cluster;

/* A key whose bucket is served by a node. */
static void key_at(size_t node, int number, char key[32])
{
    char name[64];

    for (int i = number * 1000;; i++) {
        (void)snprintf(key, 32, "key-%d", i);
        int len = snprintf(name, sizeof name, "redbucket:a:%s", key);

        if (test_cluster_owner(cluster, (unsigned)test_cluster_slot(cluster, name, (size_t)len)) ==
            node)
            return;
    }
}

static void open_cluster(struct turner *turner, const char *query)
{
    char url[512];

    test_cluster_url(cluster, TEST_BY_PORT, query, url, sizeof url);
    turner_open(turner, url, BURST);
    test_control_reset();
}

static void test_all_nodes_decide(void **state)
{
    struct turner turner;
    char keys[3][32];

    (void)state;
    for (size_t node = 0; node < 3; node++)
        key_at(node, 1, keys[node]);
    open_cluster(&turner, "timeout=10s");
    for (int i = 0; i < 360; i++) {
        turner_ask(&turner, keys[i % 3]);
        if (i % 90 == 0)
            turner_turn(&turner, 0);
    }
    turner_run(&turner);
    assert_int_equal(turner_failures(&turner), 0);
    assert_int_equal(turner.accepted, 3 * (BURST + 1));
    assert_int_equal(turner.rejected, 60);
    for (size_t node = 0; node < 3; node++)
        assert_true(test_host_value(&turner.host, keys[node]) > BURST);
    turner_close(&turner);
}

static int across_accepted, across_rejected;

static void count_across(void *data, const struct redbucket_request *decided)
{
    (void)data;
    assert_int_equal(decided->status, REDBUCKET_OK);
    across_accepted += decided->response.accepted;
    across_rejected += !decided->response.accepted;
}

/* Of buckets in different slots, in steps that are given back on a rejection. */
static void test_requests_across_slots_are_decided(void **state)
{
    struct redbucket_limit limit = {.rate = 1e-6, .burst = BURST / 2};
    struct turner turner;
    char keys[2][32];

    (void)state;
    key_at(0, 2, keys[0]);
    key_at(1, 2, keys[1]);
    open_cluster(&turner, "timeout=10s");
    assert_int_equal(redbucket_limiter_add(turner.host.limiter, "b", &limit, NULL), REDBUCKET_OK);
    struct redbucket_key both[] = {{.limit = "a", .key = keys[0]}, {.limit = "b", .key = keys[1]}};
    struct redbucket_request request = {.keys = both, .keys_len = 2, .cost = 1.0};

    for (int i = 0; i < 80; i++)
        assert_int_equal(redbucket_async_request(turner.async, &request, count_across, NULL, NULL),
                         REDBUCKET_OK);
    turner_run(&turner);
    assert_int_equal(across_accepted, BURST / 2 + 1);
    assert_int_equal(across_accepted + across_rejected, 80);
    double value = test_host_value(&turner.host, keys[0]);

    assert_true(value > BURST / 2 && value < BURST / 2 + 2);
    turner_close(&turner);
}

/* One stands still: who asks the others has his answer at once. */
static void test_a_node_that_hangs_keeps_nobody_else(void **state)
{
    struct turner turner;
    char keys[3][32];

    (void)state;
    for (size_t node = 0; node < 3; node++)
        key_at(node, 3, keys[node]);
    open_cluster(&turner, "timeout=1s");
    for (size_t node = 0; node < 3; node++)
        turner_recover(&turner, keys[node]);
    turner.latest = 0.0;
    test_control_reset();
    assert_true(test_cluster_freeze(cluster, 0));
    for (int i = 0; i < 2; i++) {
        turner_ask_times(&turner, keys[0], 10);
        turner_turn(&turner, 0);
    }
    size_t hanging = redbucket_async_outstanding(turner.async);

    for (int i = 0; i < 20; i++) {
        turner_ask(&turner, keys[1]);
        turner_ask(&turner, keys[2]);
        while (redbucket_async_outstanding(turner.async) > hanging)
            turner_turn(&turner, 1000);
    }
    assert_int_equal(hanging, 20);
    test_control_check(turner.latest, 0.1);
    turner_run(&turner);
    test_control_check(turner.latest, 1.0);
    test_control_check(turner.longest, 0.02);
    assert_true(test_cluster_thaw(cluster, 0));
    turner_close(&turner);
}

static int begin_all(void **state)
{
    (void)state;
    test_control_start();
    return 0;
}

static int end_all(void **state)
{
    (void)state;
    test_control_stop();
    return 0;
}

static int begin_cluster(void **state)
{
    (void)state;
    if (cluster == NULL)
        cluster = test_cluster_start(&(struct test_server_options){.kind = TEST_REDIS});
    return cluster == NULL;
}

static int end_cluster(void **state)
{
    (void)state;
    test_cluster_stop(cluster);
    cluster = NULL;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_master_is_followed),
        cmocka_unit_test_setup(test_all_nodes_decide, begin_cluster),
        cmocka_unit_test_setup(test_requests_across_slots_are_decided, begin_cluster),
        cmocka_unit_test_setup_teardown(test_a_node_that_hangs_keeps_nobody_else, begin_cluster,
                                        end_cluster),
    };

    return cmocka_run_group_tests_name("async_groups", tests, begin_all, end_all);
}
