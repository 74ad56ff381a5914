/* SPDX-License-Identifier: MIT */
/*
 * A cluster to which things happen while four processes decide on many keys: slots move, replicas
 * take over because they are told to or because their master is dead or stands still, a node is
 * added. Decisions go on within two seconds of the moment from which the cluster itself serves, no
 * more is accepted than may be, and what is not concerned notices nothing.
 */
#include "cluster_load.h"
#include "cluster_probe.h"
#include "host.h"
#include "processes.h"
#include "test.h"
#include "wire/slot.h"

#include <stdio.h>

#define STEP_S 0.004

static struct test_cluster *clusters[TEST_SERVER_KINDS];

/* The middle of a third of the slots. */
#define MIDDLE(third) ((2 * (unsigned)(third) + 1) * RBK_SLOTS / 6)

static const unsigned nothing_lost[LOAD_THIRDS];

static struct test_cluster *cluster_of(void **state)
{
    enum test_server_kind kind = *(enum test_server_kind *)*state;

    if (!test_server_have(kind))
        skip();
    if (clusters[kind] == NULL)
        clusters[kind] = test_cluster_start(&(struct test_server_options){.kind = kind});
    assert_non_null(clusters[kind]);
    test_control_reset();
    return clusters[kind];
}

/* Slowly, so that keys are asked for in every state that a slot can be in. */
static void move_slots(struct test_cluster *cluster, size_t from, size_t to)
{
    for (unsigned slot = 0; slot < LOAD_MOVING_SLOTS; slot++) {
        int moved;

        assert_true(test_cluster_slot_open(cluster, slot, from, to));
        test_pause(STEP_S);
        moved = test_cluster_slot_move(cluster, slot, from, to, 1);
        assert_true(moved >= 0);
        if (moved > 0)
            test_pause(STEP_S);
        assert_true(test_cluster_slot_move(cluster, slot, from, to, -1) >= 0);
        if (moved > 0)
            test_pause(STEP_S);
        assert_true(test_cluster_slot_close(cluster, slot, from, to));
    }
}

/* The cluster serves all the time, and so do we. */
static void slots_are_moved_there_and_back(void **state)
{
    struct test_cluster *cluster = cluster_of(state);
    size_t from = test_cluster_owner(cluster, 0);
    size_t to = test_cluster_owner(cluster, MIDDLE(1));
    struct load *load = load_begin(cluster);
    double since = test_now();

    move_slots(cluster, from, to);
    move_slots(cluster, to, from);
    load_check_calm(load, "slots moved", since, test_cluster_await(cluster));
    for (size_t i = 0; i < LOAD_THIRDS; i++)
        load_check_unharmed(load, i);
    (void)load_end(load, nothing_lost);
    assert_true(test_cluster_settle(cluster));
}

/* And loses nothing by it. */
static void a_replica_takes_over_when_told_to(void **state)
{
    struct test_cluster *cluster = cluster_of(state);
    size_t master = test_cluster_owner(cluster, MIDDLE(1));
    size_t replica = test_cluster_replica(cluster, master);
    struct load *load = load_begin(cluster);
    double since = test_now();

    assert_true(test_cluster_promote(cluster, replica));
    load_check_calm(load, "told to take over", since, test_cluster_await(cluster));
    load_check_unharmed(load, 0);
    load_check_unharmed(load, 2);
    (void)load_end(load, nothing_lost);
    assert_true(test_cluster_settle(cluster));
}

static void a_node_is_added(void **state)
{
    struct test_cluster *cluster = cluster_of(state);
    size_t from = test_cluster_owner(cluster, 0);
    struct load *load = load_begin(cluster);
    double since = test_now();

    assert_true(test_cluster_add(cluster));
    move_slots(cluster, from, cluster->nodes_len - 1);
    load_check_calm(load, "a node added", since, test_cluster_await(cluster));
    for (size_t i = 0; i < LOAD_THIRDS; i++)
        load_check_unharmed(load, i);
    (void)load_end(load, nothing_lost);
    assert_true(test_cluster_settle(cluster));
}

static void a_master_is_killed(void **state)
{
    static const unsigned lost[LOAD_THIRDS] = {0, 0, 1};
    struct test_cluster *cluster = cluster_of(state);
    size_t master = test_cluster_owner(cluster, MIDDLE(2));
    struct load *load = load_begin(cluster);
    double since = test_now();

    test_server_kill(cluster->nodes[master]);
    load_check_calm(load, "a master killed", since, test_cluster_await(cluster));
    load_check_unharmed(load, 0);
    load_check_unharmed(load, 1);
    assert_true(load_failures(load, 2) > 0);

    since = test_now();
    assert_true(test_server_again(cluster->nodes[master]));
    load_check_calm(load, "started again", since, test_cluster_await(cluster));
    (void)load_end(load, lost);
    assert_true(test_cluster_settle(cluster));
}

/* The worst that a failover can do: the replica knows nothing of what its master had decided. Each
 * bucket begins once more, and no more often. */
static void a_replica_takes_over_that_knows_nothing(void **state)
{
    static const unsigned lost[LOAD_THIRDS] = {0, 0, 1};
    struct test_cluster *cluster = cluster_of(state);
    size_t master = test_cluster_owner(cluster, MIDDLE(2));
    size_t replica = test_cluster_replica(cluster, master);
    struct load *load;
    double since, over;

    test_server_kill(cluster->nodes[replica]);
    load = load_begin(cluster);
    test_pause(0.5);
    since = test_now();
    test_server_kill(cluster->nodes[master]);
    assert_true(test_server_again(cluster->nodes[replica]));
    /* It would not dare to, since it doesn't know how much it has missed. */
    assert_true(test_server_do(cluster->nodes[replica], "CONFIG", "SET",
                               "cluster-slave-validity-factor", "0", NULL));
    load_check_calm(load, "a replica without data", since, test_cluster_await(cluster));
    over = load_end(load, lost);
    assert_true(over > 1.0);
    assert_true(test_server_again(cluster->nodes[master]));
    assert_true(test_cluster_settle(cluster));
}

/* Nobody knows whether it will go on; when it does, it has been replaced. */
static void a_master_stands_still(void **state)
{
    static const unsigned lost[LOAD_THIRDS] = {0, 1, 0};
    struct test_cluster *cluster = cluster_of(state);
    size_t master = test_cluster_owner(cluster, MIDDLE(1));
    struct load *load = load_begin(cluster);
    double since = test_now();

    assert_true(test_cluster_freeze(cluster, master));
    load_check_calm(load, "a master stopped", since, test_cluster_await(cluster));
    load_check_unharmed(load, 0);
    load_check_unharmed(load, 2);
    assert_true(load_failures(load, 1) > 0);

    since = test_now();
    assert_true(test_cluster_thaw(cluster, master));
    load_check_calm(load, "and goes on", since, test_cluster_await(cluster));
    (void)load_end(load, lost);
    assert_true(test_cluster_settle(cluster));
}

static enum test_server_kind kinds[] = {TEST_REDIS, TEST_VALKEY};

#define AT(kind, name, test)                            \
    {                                                   \
        name ": " #test, test, NULL, NULL, &kinds[kind] \
    }
#define ONE(test)  AT(TEST_REDIS, "redis", test)
#define EACH(test) ONE(test), AT(TEST_VALKEY, "valkey", test)

static int start(void **state)
{
    (void)state;
    test_control_start();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    test_control_stop();
    for (size_t i = 0; i < TEST_SERVER_KINDS; i++)
        test_cluster_stop(clusters[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(slots_are_moved_there_and_back),
        EACH(a_replica_takes_over_when_told_to),
        ONE(a_node_is_added),
        EACH(a_master_is_killed),
        ONE(a_replica_takes_over_that_knows_nothing),
        ONE(a_master_stands_still),
    };

    return cmocka_run_group_tests_name("cluster_load", tests, start, stop);
}
