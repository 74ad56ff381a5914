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

#include "histogram.h"
#include "span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As much of a key is kept. Longer keys are told apart by their hash and their length. */
#define RBK_HITS_KEY ((size_t)192)

/* How many bins a key's own timeline has, where it has one. */
#define RBK_HITS_BINS ((size_t)48)

struct rbk_hits;

/*
 * A key that was hit.
 *
 *   key       its first bytes; lives until the next hit
 *   key_len   its whole length
 *   hash      of its bytes
 *   at_once   and
 *   delayed   and
 *   rejected  what was counted for it
 *   missed    how many more it may have had before counting began; 0 while counts are exact
 *   timeline  when its hits were, or NULL; lives as long as `key`
 */
struct rbk_hit {
    struct rbk_span key;
    size_t key_len;
    uint64_t hash;
    uint64_t at_once;
    uint64_t delayed;
    uint64_t rejected;
    uint64_t missed;
    const struct rbk_histogram *timeline;
};

/* With at most this many counters, each with a timeline or none. NULL when memory is out. */
struct rbk_hits *rbk_hits_create(size_t counters, bool with_timelines);

void rbk_hits_destroy(struct rbk_hits *hits);

/* Counts one hit of this kind at this time. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_hits_add(struct rbk_hits *hits, struct rbk_span key,
                                                        enum rbk_histogram_kind kind,
                                                        double time_s);

/* The `most` keys hit hardest: most rejected first, then most delayed, then by their bytes. Returns
 * how many were written. */
size_t rbk_hits_top(struct rbk_hits *hits, size_t most, struct rbk_hit *top);

/* The same key as `other` has, of another sketch. One without a counter of its own comes back with
 * zeros, and as missed what it may have had: less than the smallest counter when all are taken. */
void rbk_hits_find(struct rbk_hits *hits, const struct rbk_hit *other, struct rbk_hit *hit);

/* Whether `one` was hit harder than `other`. */
bool rbk_hit_harder(const struct rbk_hit *one, const struct rbk_hit *other);

/* How many keys were hit; when *exact comes back false, at least so many. */
size_t rbk_hits_keys(const struct rbk_hits *hits, bool *exact);

#endif
