/* SPDX-License-Identifier: MIT */
/*
 * Counts of what this process asked of a server, from any thread. Relaxed, since they order
 * nothing.
 */
#ifndef RBK_REDIS_TALLY_H
#define RBK_REDIS_TALLY_H

#include "store.h"

#include <stdatomic.h>

/* Zeros at first. */
struct rbk_tally {
    atomic_ullong accepted;
    atomic_ullong delayed;
    atomic_ullong rejected;
    atomic_ullong failed;
};

/* Counts what became of the requests. */
void rbk_tally_add(struct rbk_tally *tally, const struct rbk_request *requests, size_t len);

void rbk_tally_read(const struct rbk_tally *tally, struct redbucket_statistics *out);

#endif
