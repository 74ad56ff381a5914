/* SPDX-License-Identifier: MIT */
/*
 * What two walks through a store tell together: who took how much in between, and who is kept out.
 *
 * A bucket with the state (t1, v1) that is found with (t2, v2) has taken at least
 * v2 - max(v1 - (t2 - t1) * rate, 0) meanwhile: that much exactly, unless it ran empty on the way.
 * So every rate here is a lower bound, and close to the truth for whoever asks often.
 *
 * Memory is bounded: the states of a pass are kept for so many keys, and beside them the hottest
 * keys and the zones, in full. Who isn't kept is counted.
 */
#ifndef RBK_CLI_TOP_PASS_H
#define RBK_CLI_TOP_PASS_H

#include "seen.h"

#define CLI_TOP_KEYS  256
#define CLI_TOP_ZONES 64
#define CLI_TOP_TEXT  512

/* A key among the hottest. Of a long one the beginning; `whole_len` is its length. */
struct cli_top_key {
    char zone[REDBUCKET_ZONE_MAX];
    size_t zone_len;
    char key[CLI_TOP_TEXT];
    size_t key_len;
    size_t whole_len;
    bool guessed;
    bool rated; /* it was seen before, or is new since then: */
    double taken_per_second;
    bool kept_out;
    struct cli_seen seen;
};

/* A zone; the last one may be all others, and has no name then. */
struct cli_top_zone {
    char zone[REDBUCKET_ZONE_MAX];
    size_t zone_len;
    uint64_t buckets;
    uint64_t kept_out;
    double taken_per_second;
    bool bounded; /* the most that its buckets hold is known, and so is who is kept out */
};

/* A pass that has ended. */
struct cli_top_view {
    uint64_t buckets; /* that aren't empty */
    uint64_t drained;
    uint64_t unreadable;
    uint64_t kept_out;
    uint64_t untracked; /* had no room for a comparison */
    bool rated;         /* there was a pass before */
    double taken_per_second;
    struct cli_top_zone zones[CLI_TOP_ZONES];
    size_t zones_len;
    struct cli_top_key keys[CLI_TOP_KEYS];
    size_t keys_len;
};

struct cli_top;

/* Keeps at most `keys_max` of the hottest keys. NULL without memory. */
struct cli_top *rbk_top_create(const struct cli_context *context, size_t keys_max);
void rbk_top_destroy(struct cli_top *top);

/* Whether the fullest keys are the hottest, and not those that take most. From the next pass on. */
void rbk_top_order(struct cli_top *top, bool by_level);

/* A pass: begin, each bucket (rbk_top_visit, whose data is the struct cli_top), end. */
void rbk_top_begin(struct cli_top *top);
redbucket_visitor rbk_top_visit;
void rbk_top_end(struct cli_top *top);

/* Some buckets were not met in this pass: who is new in the next one can't be told. */
void rbk_top_gap(struct cli_top *top);

/* The last pass that ended; zeros before the first. */
const struct cli_top_view *rbk_top_view(const struct cli_top *top);

/* Buckets that the pass under way has met. */
uint64_t rbk_top_met(const struct cli_top *top);

#endif
