/* SPDX-License-Identifier: MIT */
/*
 * What one set of limits would have done, added up request by request in bounded memory: totals,
 * the keys hit hardest under each limit, when, and how long delays were.
 */
#ifndef RBK_REPLAY_SUMMARY_H
#define RBK_REPLAY_SUMMARY_H

#include "redbucket/redbucket.h"

#include "delays.h"
#include "histogram.h"
#include "hits.h"
#include "limit_sets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many of the keys hit hardest are shown to people, and to programs. */
#define RBK_SUMMARY_KEYS      10
#define RBK_SUMMARY_KEYS_JSON 100

/* Bins over time while counting; however wide they become, a hundred are in use at least. */
#define RBK_SUMMARY_BINS ((size_t)1024)

/* How many rows over time are shown. */
#define RBK_SUMMARY_ROWS ((size_t)24)

/*
 *   name      by which requests name it; its address tells it from others
 *   requests  that named this limit
 *   delayed   accepted ones that this limit alone would have delayed
 *   rejected  ones in which this limit had no room
 */
struct rbk_summary_limit {
    const struct redbucket_named_limit *limit;
    const char *name;
    uint64_t requests;
    uint64_t delayed;
    uint64_t rejected;
    struct rbk_hits *hits;
};

/*
 *   name       of the set, or NULL
 *   accepted   requests, delayed ones among them
 *   delays     how long those delayed have to wait
 */
struct rbk_summary {
    const char *name;
    uint64_t accepted;
    uint64_t delayed;
    uint64_t rejected;
    struct rbk_delays delays;
    struct rbk_histogram histogram;
    struct rbk_histogram_bin bins[RBK_SUMMARY_BINS];
    size_t limits_len;
    struct rbk_summary_limit limits[];
};

/* The set is borrowed, and so are the `names` by which requests will name its limits. With
 * timelines of keys or without. NULL when memory is out. */
struct rbk_summary *rbk_summary_create(const struct rbk_limit_set *set, bool with_timelines);

void rbk_summary_destroy(struct rbk_summary *summary);

/* The limit that requests call by this very name, or NULL. */
struct rbk_summary_limit *rbk_summary_limit(struct rbk_summary *summary, const char *name);

/* Adds a decided request, which has verdicts and names limits of this set alone. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_summary_add(struct rbk_summary *summary,
                                                           const struct redbucket_request *request,
                                                           double time_s);

#endif
