/* SPDX-License-Identifier: MIT */
/*
 * A hash of keys for tables of this command alone: FNV-1a, its bits mixed once more. Whoever
 * chooses the keys of a log can make some that collide, and spoil the counts of these keys.
 */
#ifndef RBK_REPLAY_HASH_H
#define RBK_REPLAY_HASH_H

#include "span.h"

#include <stdint.h>

static inline uint64_t rbk_replay_hash(struct rbk_span key)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < key.len; i++)
        hash = (hash ^ (unsigned char)key.bytes[i]) * UINT64_C(1099511628211);
    return hash ^ hash >> 29;
}

#endif
