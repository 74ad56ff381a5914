/* SPDX-License-Identifier: MIT */
/*
 * Buckets as lines, for people and for programs. Keys are strangers' bytes: none of them reaches a
 * terminal as it is.
 */
#ifndef RBK_CLI_KEYS_PRINT_H
#define RBK_CLI_KEYS_PRINT_H

#include "seen.h"

/* Counts of what was printed, and of what was not. */
struct cli_listing {
    const struct cli_context *context;
    uint64_t shown;
    uint64_t unreadable; /* of those */
    uint64_t drained;    /* passed over */
    bool begun;
};

/* One bucket, with the heading before the first. */
void rbk_keys_print(struct cli_listing *listing, const struct redbucket_bucket *bucket);

/* What there was in all; nothing as JSON. */
void rbk_keys_print_end(const struct cli_listing *listing);

#endif
