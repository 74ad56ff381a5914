/* SPDX-License-Identifier: MIT */
/*
 * What these limits would have done, added up step by step in bounded memory: totals, the keys hit
 * hardest under each limit, and when.
 */
#ifndef RBK_REPLAY_SUMMARY_H
#define RBK_REPLAY_SUMMARY_H

#include "redbucket/redbucket.h"

#include "faults.h"
#include "histogram.h"
#include "hits.h"
#include "step.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How many of the keys hit hardest are shown to people, and to programs. */
#define RBK_SUMMARY_KEYS      10
#define RBK_SUMMARY_KEYS_JSON 100

/*
 *   requests  that named this limit
 *   delayed   accepted ones that this limit alone would have delayed
 *   rejected  ones in which this limit had no room
 */
struct rbk_summary_limit {
    const struct redbucket_named_limit *limit;
    uint64_t requests;
    uint64_t delayed;
    uint64_t rejected;
    struct rbk_hits *hits;
};

/*
 *   lines     read, those that can't be read among them
 *   accepted  requests, delayed ones among them
 *   others    steps that ask for no permit: peek, refund, charge, reset
 *   late      lines behind the reorder window
 *   first_s   the earliest and the latest time; meaningless while `timed` is false
 */
struct rbk_summary {
    uint64_t lines;
    uint64_t accepted;
    uint64_t delayed;
    uint64_t rejected;
    uint64_t others;
    uint64_t late;
    bool timed;
    double first_s;
    double last_s;
    struct rbk_histogram histogram;
    size_t limits_len;
    struct rbk_summary_limit limits[];
};

/* The limits are borrowed. NULL when memory is out. */
struct rbk_summary *rbk_summary_create(struct redbucket_named_limit *const *limits,
                                       size_t limits_len);

void rbk_summary_destroy(struct rbk_summary *summary);

/* Adds a decided step; its keys' limits are named by the summary's own names, and `verdicts` has
 * one for each key. */
REDBUCKET_MUST_CHECK enum redbucket_status
rbk_summary_add(struct rbk_summary *summary, const struct rbk_step *step,
                const struct redbucket_verdict *verdicts);

/* Both show it once and settle its histogram. */
void rbk_summary_print_text(struct rbk_summary *summary, const struct rbk_faults *faults,
                            FILE *out);
void rbk_summary_print_json(struct rbk_summary *summary, const struct rbk_faults *faults,
                            FILE *out);

#endif
