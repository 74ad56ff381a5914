/* SPDX-License-Identifier: MIT */
/*
 * When a cluster serves, by a plain client that knows nothing of topologies: it writes keys of
 * slots all over, each wherever a node takes it. What the library needs longer than that is its
 * own.
 */
#ifndef TEST_CLUSTER_PROBE_H
#define TEST_CLUSTER_PROBE_H

#include "cluster.h"

/* Writes each key once; returns how many no node took. */
unsigned test_cluster_probe(const struct test_cluster *cluster);

/* Writes on until all keys were taken in a row; returns when that was, by test_now. -1 when it
 * takes longer than half a minute. */
double test_cluster_await(const struct test_cluster *cluster);

#endif
