/* SPDX-License-Identifier: MIT */
/*
 * Counting by zone what this process asks of a store that counts none, one on a server: the states
 * there say nothing of who was rejected.
 *
 * It stands before all fronts that answer without asking the server, so that their answers are
 * counted as well, and behind a failure policy, whose answers are not.
 */
#ifndef RBK_CENSUS_H
#define RBK_CENSUS_H

#include "store.h"

/* Puts the census in front of `inner`, which belongs to the new store on success and stays the
 * caller's on failure. */
enum redbucket_status rbk_census_create(struct redbucket_store *inner,
                                        struct redbucket_store **store);

#endif
