/* SPDX-License-Identifier: MIT */
/*
 * Clusters that a test starts for itself, on tests/server.h: three masters, each with a replica, on
 * ports of the loopback address, made a cluster by commands. They are gone with the test, however
 * that ends.
 *
 * A node that is called dead within a second and a half, replicas that stay with their master, and
 * slots that are served though others aren't: what a test does to one part shows in that part.
 *
 * All of it is for the thread that started the servers. A call that fails tells why on standard
 * error, in comments of TAP.
 */
#ifndef TEST_CLUSTER_H
#define TEST_CLUSTER_H

#include "server.h"

#include <stdint.h>

#define TEST_CLUSTER_MASTERS 3
#define TEST_CLUSTER_NODES   8
#define TEST_CLUSTER_SLOTS   16384
#define TEST_CLUSTER_ID_SIZE 41

/* A node's view of who serves what: indices into the cluster's nodes. */
struct test_cluster_view {
    uint8_t owner[TEST_CLUSTER_SLOTS];     /* TEST_CLUSTER_NODES: nobody */
    uint8_t master_of[TEST_CLUSTER_NODES]; /* of each node; a master's is its own */
    unsigned known;                        /* how many nodes it knows */
    bool troubled;                         /* somebody is called dead, or not known well yet */
};

/* The first three nodes are masters at first, the next three their replicas in the same order. */
struct test_cluster {
    struct test_server_options options;
    const int *announced; /* see test_cluster_start_behind */
    struct test_server *nodes[TEST_CLUSTER_NODES];
    char ids[TEST_CLUSTER_NODES][TEST_CLUSTER_ID_SIZE];
    bool frozen[TEST_CLUSTER_NODES];
    size_t nodes_len;
};

/* Returns when all nodes agree; NULL when they don't. `options` as for one server; its
 * texts are borrowed for as long as the cluster lives. */
struct test_cluster *test_cluster_start(const struct test_server_options *options);

/* Three masters without replicas, each of which calls itself a server on `ports[i]`, where clients
 * then find it. Borrowed while the cluster lives; without TLS. Redis 7 and newer. */
struct test_cluster *test_cluster_start_behind(const struct test_server_options *options,
                                               const int ports[TEST_CLUSTER_MASTERS]);

/* NULL does nothing. */
void test_cluster_stop(struct test_cluster *cluster);

/* Waits until all nodes that run, and aren't frozen, know each other, agree on who serves what, and
 * have their replicas connected. False when they don't for half a minute. */
bool test_cluster_settle(struct test_cluster *cluster);

/* Writes the URL of a store on it, which names the first three nodes; the rest as for one server.
 */
void test_cluster_url(const struct test_cluster *cluster, enum test_server_way way,
                      const char *query, char *url, size_t size);

/* Asks a node for its view. */
bool test_cluster_look(struct test_cluster *cluster, size_t index, struct test_cluster_view *view);

/* The index of the node that serves a slot, by the view of those that run; TEST_CLUSTER_NODES when
 * nobody does. */
size_t test_cluster_owner(struct test_cluster *cluster, unsigned slot);

/* The index of a running replica of a master, or TEST_CLUSTER_NODES. */
size_t test_cluster_replica(struct test_cluster *cluster, size_t master);

/* The slot of a name, as the servers themselves compute it. */
int test_cluster_slot(struct test_cluster *cluster, const void *name, size_t len);

/* ---- What can happen to one (cluster_moves.c) ----------------------------------------------- */

/* Stops a node's process without its end, and lets it go on. */
bool test_cluster_freeze(struct test_cluster *cluster, size_t index);
bool test_cluster_thaw(struct test_cluster *cluster, size_t index);

/* Has a replica take over from its master, by CLUSTER FAILOVER; returns when it has. */
bool test_cluster_promote(struct test_cluster *cluster, size_t replica);

/* Adds a node without slots, the last of the nodes then. Returns when all know it. */
bool test_cluster_add(struct test_cluster *cluster);

/*
 * Moves a range of slots to a master, each slot's keys one by one. The steps by themselves: a slot
 * is opened, which has keys that aren't there asked for at the other node; some keys are moved, or
 * all for -1, and how many is told, -1 for a failure; it is closed, and served by the other.
 */
bool test_cluster_migrate(struct test_cluster *cluster, unsigned first, unsigned last, size_t to);
bool test_cluster_slot_open(struct test_cluster *cluster, unsigned slot, size_t from, size_t to);
int test_cluster_slot_move(struct test_cluster *cluster, unsigned slot, size_t from, size_t to,
                           int keys);
bool test_cluster_slot_close(struct test_cluster *cluster, unsigned slot, size_t from, size_t to);

#endif
