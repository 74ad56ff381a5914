/* SPDX-License-Identifier: MIT */
/*
 * A process that asks the masters of a cluster themselves, each for a key of its own, and nothing
 * else: what happens to it happens to everybody. On a machine that is busy servers are slow, and
 * call each other dead who only had to wait; nobody else can be blamed for that.
 */
#ifndef TEST_CLUSTER_WITNESS_H
#define TEST_CLUSTER_WITNESS_H

#include "cluster.h"

struct witness;

/* Looks at whoever serves the middle of each third of the slots. */
struct witness *witness_start(struct test_cluster *cluster);

void witness_stop(struct witness *witness);

/* The longest that an answer took, from the master of a third. */
double witness_longest(const struct witness *witness, size_t third);

/* Whether that master was ever away, or no longer the master. */
bool witness_disturbed(const struct witness *witness, size_t third);

#endif
