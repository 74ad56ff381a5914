/* SPDX-License-Identifier: MIT */
/*
 * The smallest limits that leave a share of the traffic untouched: neither delayed nor rejected.
 *
 * Smallest means: of all rates that people would write, each with the smallest burst that touches
 * no more than it may, the one that lets one key do the least within any minute (burst + 1 + a
 * minute of the rate). Of several limits each may touch an equal part, so that all of them together
 * keep the share.
 */
#ifndef RBK_REPLAY_SUGGEST_H
#define RBK_REPLAY_SUGGEST_H

#include "redbucket/redbucket.h"

#include "findings.h"
#include "progress.h"
#include "spool.h"

#include <stddef.h>
#include <stdint.h>

/* The window in which the least is looked for. */
#define RBK_SUGGEST_WINDOW_S 60.0

/* The rate that is suggested and at most three on either side of it. */
#define RBK_SUGGEST_RATES 7

/*
 *   text      of the rate, "10/m"
 *   burst     the smallest that keeps the share
 *   touched   how many requests it touches, and how many with one less, which are too many
 *   a_window  how many requests of one key get in within any minute at most
 */
struct rbk_suggested_rate {
    const char *text;
    double rate;
    uint64_t burst;
    uint64_t touched;
    uint64_t touched_one_less;
    double a_window;
};

/*
 *   requests  that name this limit; when there are none, nothing is suggested
 *   limit     what is suggested, rates[chosen]
 */
struct rbk_suggestion {
    const char *name;
    uint64_t requests;
    struct redbucket_named_limit limit;
    struct rbk_suggested_rate rates[RBK_SUGGEST_RATES];
    size_t rates_len;
    size_t chosen;
};

/*
 *   allowed       how many requests may be touched in all, and by each limit
 *   touched       how many the suggested limits touch together, as the library decides them
 *   suggestions   one for each limit
 */
struct rbk_suggestions {
    double share;
    uint64_t requests;
    uint64_t allowed;
    uint64_t allowed_each;
    uint64_t touched;
    struct rbk_suggestion *suggestions;
    size_t len;
};

/* Looks for them. `summary` is that of the replay that filled the spool. ERROR_MEMORY,
 * ERROR_SYSTEM, or what the library says; free with rbk_suggestions_fini in any case. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_suggest(struct rbk_spool *spool,
                                                       const struct rbk_summary *summary,
                                                       double share, struct rbk_progress *progress,
                                                       struct rbk_suggestions *suggestions);

void rbk_suggestions_fini(struct rbk_suggestions *suggestions);

/* `given`: how many of the limits were given, rather than made up for the keys alone. */
void rbk_suggestions_print_text(const struct rbk_suggestions *suggestions,
                                const struct rbk_findings *findings, size_t given, FILE *out);
void rbk_suggestions_print_json(const struct rbk_suggestions *suggestions,
                                const struct rbk_findings *findings, size_t given, FILE *out);

#endif
