/* SPDX-License-Identifier: MIT */
/*
 * Looking into an embedded store, and putting into it what no call would: states that can't be read
 * or are beyond every bound. Nobody else may use the store meanwhile.
 */
#ifndef TEST_INSIDE_H
#define TEST_INSIDE_H

#include "redbucket/redbucket.h"

/* Gives the bucket of `key`, whose limit's zone has the limit's name, just this state; the bucket
 * is made if there is none. */
void test_put_state(struct redbucket_limiter *limiter, const char *limit, const char *key,
                    double timestamp, double value);

/* A copy of all the store's buckets, names and states and what else there is, for
 * test_same_buckets; freed by the caller. */
void *test_copy_buckets(struct redbucket_store *store);

/* True when not one byte has changed since the copy was made. */
bool test_same_buckets(struct redbucket_store *store, const void *copy);

/* Leaves the store as a process does that died in the middle of a change. */
void test_tear(struct redbucket_store *store);

#endif
