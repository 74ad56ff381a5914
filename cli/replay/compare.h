/* SPDX-License-Identifier: MIT */
/*
 * Whom each set of limits would have hurt: the keys hit hardest under one limit by any of the sets,
 * each with what every set would have done to it.
 */
#ifndef RBK_REPLAY_COMPARE_H
#define RBK_REPLAY_COMPARE_H

#include "redbucket/redbucket.h"

#include "findings.h"

#include <stddef.h>

/* A key: its hits under each set; zeros under one that hasn't the limit. */
struct rbk_compared_key {
    struct rbk_hit hits[RBK_LIMIT_SETS_MAX];
};

/* The limit of this name in each set, NULL where a set hasn't it. */
struct rbk_compared_limit {
    const char *name;
    struct rbk_summary_limit *limits[RBK_LIMIT_SETS_MAX];
    struct rbk_compared_key *keys;
    size_t keys_len;
};

/* The `most` keys hit hardest, by the set that hit each hardest. ERROR_MEMORY; free with
 * rbk_compare_fini. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_compare_limit(const struct rbk_findings *findings,
                                                             const char *name, size_t most,
                                                             struct rbk_compared_limit *compared);

void rbk_compare_fini(struct rbk_compared_limit *compared);

#endif
