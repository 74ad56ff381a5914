/* SPDX-License-Identifier: MIT */
/*
 * All that a replay has found out, for whoever shows it: the traffic, its faults, and what each set
 * of limits would have done.
 */
#ifndef RBK_REPLAY_FINDINGS_H
#define RBK_REPLAY_FINDINGS_H

#include "faults.h"
#include "summary.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * What is the same for all sets of limits.
 *
 *   lines    read, those that can't be read among them
 *   others   steps that ask for no permit: peek, refund, charge, reset
 *   late     lines behind the reorder window
 *   first_s  the earliest and the latest time; meaningless while `timed` is false
 */
struct rbk_traffic {
    uint64_t lines;
    uint64_t others;
    uint64_t late;
    bool timed;
    double first_s;
    double last_s;
};

/*
 *   files_len  of the faults' files
 *   summaries  one for each set of limits
 *   names      of all their limits, each once
 *   keys       for each name the text of its --key, or NULL
 *   asked      for each name the keys that asked most, all their requests counted as at once; or
 * NULL when that wasn't asked for compared   they were asked for with --try, and have names
 */
struct rbk_findings {
    const struct rbk_traffic *traffic;
    const struct rbk_faults *faults;
    size_t files_len;
    struct rbk_summary *const *summaries;
    size_t len;
    const char *const *names;
    size_t names_len;
    const char *const *keys;
    struct rbk_hits *const *asked;
    bool compared;
};

/* Any of them shows the findings once: bins over time are merged for it. ERROR_MEMORY, and only a
 * part was written; other errors stay in the stream. */
REDBUCKET_MUST_CHECK enum redbucket_status
rbk_findings_print_text(const struct rbk_findings *findings, FILE *out);
REDBUCKET_MUST_CHECK enum redbucket_status
rbk_findings_print_json(const struct rbk_findings *findings, FILE *out);

/* Parts of the text: how many lines from when to when, and those that count for less. */
void rbk_findings_print_span(const struct rbk_findings *findings, FILE *out);
void rbk_findings_print_damage(const struct rbk_findings *findings, FILE *out);

/* The page of --output html. */
REDBUCKET_MUST_CHECK enum redbucket_status
rbk_findings_print_page(const struct rbk_findings *findings, FILE *out);

/* The part of the text that compares sets of limits. */
REDBUCKET_MUST_CHECK enum redbucket_status
rbk_compare_print_text(const struct rbk_findings *findings, FILE *out);

#endif
