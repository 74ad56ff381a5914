/* SPDX-License-Identifier: MIT */
/*
 * Four processes that ask a cluster for permits of many keys, all the time, while a test does
 * something to it. What they are told is counted here, outside of the library: how much of each key
 * was accepted, what failed and when, and how long a call took at most.
 *
 * Keys are told apart by which third of the slots they are in, so that what happens to one master
 * can be told from what happens to the others.
 */
#ifndef TEST_CLUSTER_LOAD_H
#define TEST_CLUSTER_LOAD_H

#include "cluster.h"

#define LOAD_PROCESSES 4
#define LOAD_KEYS      240
#define LOAD_THIRDS    TEST_CLUSTER_MASTERS
#define LOAD_RATE      2.0
#define LOAD_BURST     9.0
#define LOAD_DELAY     3.0

/* The first so many of the keys are in the first so many slots. */
#define LOAD_MOVING_KEYS  60
#define LOAD_MOVING_SLOTS 120

/* A call ends after so many seconds. */
#define LOAD_TIMEOUT 0.5

struct load;

/* Empties the cluster and starts the processes; returns when each has been answered. */
struct load *load_begin(struct test_cluster *cluster);

/* Ends them, and checks what they were told: no more of any key than its limit allows, and a bucket
 * more for each time that the cluster may have `lost` those of its third; not much less in all than
 * half of what is allowed; no failure but of nodes that are away; no call that took longer than it
 * may. Returns by how much a key at most went past what one bucket allows, 0 for never. */
double load_end(struct load *load, const unsigned lost[LOAD_THIRDS]);

/* How many requests for keys of a third have failed so far. */
unsigned long load_failures(const struct load *load, size_t third);

/* Fails the test when more than a few have, but for what its master has made everybody wait. */
void load_check_unharmed(const struct load *load, size_t third);

/*
 * Something has happened at `since`, by test_now, and the cluster serves again from `served` on:
 * within two seconds decisions go on, of each process for keys of each third, and from then on none
 * fails. Says how long it took.
 */
void load_check_calm(struct load *load, const char *what, double since, double served);

#endif
