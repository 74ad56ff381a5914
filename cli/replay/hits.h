/* SPDX-License-Identifier: MIT */
/*
 * Which keys a limit hit hardest, in bounded memory however many keys there are.
 *
 * The space-saving sketch of Metwally, Agrawal and El Abbadi (2005): a fixed number of counters,
 * and a key that has none takes over the one with the smallest total, and its total as the number
 * of hits that it may have had before. Exact as long as there are counters for all keys; afterwards
 * every key with more than (all hits / counters) of them is still found.
 */
#ifndef RBK_REPLAY_HITS_H
#define RBK_REPLAY_HITS_H

#include "redbucket/redbucket.h"

#include "span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As much of a key is kept. Longer keys are told apart by their hash and their length. */
#define RBK_HITS_KEY ((size_t)192)

struct rbk_hits;

/*
 * A key that was hit.
 *
 *   key       its first bytes; lives until the next hit
 *   key_len   its whole length
 *   rejected  and
 *   delayed   hits counted for it
 *   missed    how many more it may have had before counting began; 0 while counts are exact
 */
struct rbk_hit {
    struct rbk_span key;
    size_t key_len;
    uint64_t rejected;
    uint64_t delayed;
    uint64_t missed;
};

/* With at most this many counters. NULL when memory is out. */
struct rbk_hits *rbk_hits_create(size_t counters);

void rbk_hits_destroy(struct rbk_hits *hits);

/* Counts one hit, a rejection or else a delay. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_hits_add(struct rbk_hits *hits, struct rbk_span key,
                                                        bool rejected);

/* The `most` keys hit hardest: most rejected first, then most delayed, then by their bytes. Returns
 * how many were written. */
size_t rbk_hits_top(const struct rbk_hits *hits, size_t most, struct rbk_hit *top);

/* How many keys were hit; when *exact comes back false, at least so many. */
size_t rbk_hits_keys(const struct rbk_hits *hits, bool *exact);

#endif
