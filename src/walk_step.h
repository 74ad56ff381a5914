/* SPDX-License-Identifier: MIT */
/*
 * A walk as a store sees it: what is wanted, and where it is.
 */
#ifndef RBK_WALK_STEP_H
#define RBK_WALK_STEP_H

#include "model/key.h"
#include "redbucket/walk.h"

#include <string.h>

/*
 * The wishes are immutable. Where it is, is the store's: zeros at first; `memory` is freed by
 * free() when the walk ends.
 *
 *   zones   known ones; only the zones of these keys matter
 *   only    of all zones this one, or NULL
 */
struct rbk_walk {
    const struct rbk_key *zones;
    size_t zones_len;
    const struct rbk_key *only;

    uint64_t cursor;
    uint64_t generation;
    size_t node;
    size_t nodes_len;
    unsigned batch;
    void *memory;
};

/* Whom a step tells. */
struct rbk_visit {
    redbucket_visitor *visit;
    void *data;
};

/* True when the zone, which may be unknown, is wanted. */
static inline bool rbk_walk_wants(const struct rbk_walk *walk, const struct rbk_key *key)
{
    return walk->only == NULL || (key->zone != NULL && key->zone_len == walk->only->zone_len &&
                                  memcmp(key->zone, walk->only->zone, key->zone_len) == 0);
}

#endif
