/* SPDX-License-Identifier: MIT */
/*
 * A key that one set hits hard may be among the many of another one, or not hit at all; so each is
 * looked up in every set's counters, and none is left out for being far down in one of them.
 */
#include "compare.h"

#include <stdlib.h>
#include <string.h>

static bool same_key(const struct rbk_hit *one, const struct rbk_hit *other)
{
    return one->hash == other->hash && one->key_len == other->key_len &&
           (one->key.len == 0 || memcmp(one->key.bytes, other->key.bytes, one->key.len) == 0);
}

/* The hit of the set that hit this key hardest. */
static const struct rbk_hit *hardest(const struct rbk_compared_key *key, size_t sets)
{
    const struct rbk_hit *most = &key->hits[0];

    for (size_t i = 1; i < sets; i++)
        if (rbk_hit_harder(&key->hits[i], most))
            most = &key->hits[i];
    return most;
}

static bool is_there(const struct rbk_compared_limit *compared, const struct rbk_hit *hit)
{
    for (size_t i = 0; i < compared->keys_len; i++)
        if (same_key(&compared->keys[i].hits[0], hit))
            return true;
    return false;
}

/* Puts the key in its place among the others. */
static void put(struct rbk_compared_limit *compared, const struct rbk_hit *hit, size_t sets)
{
    struct rbk_compared_key key;
    size_t at = compared->keys_len++;

    for (size_t i = 0; i < sets; i++) {
        key.hits[i] = *hit;
        key.hits[i].delayed = key.hits[i].rejected = key.hits[i].missed = 0;
        key.hits[i].timeline = NULL;
        if (compared->limits[i])
            rbk_hits_find(compared->limits[i]->hits, hit, &key.hits[i]);
    }
    for (; at > 0 && rbk_hit_harder(hardest(&key, sets), hardest(&compared->keys[at - 1], sets));
         at--)
        compared->keys[at] = compared->keys[at - 1];
    compared->keys[at] = key;
}

enum redbucket_status rbk_compare_limit(const struct rbk_findings *findings, const char *name,
                                        size_t most, struct rbk_compared_limit *compared)
{
    struct rbk_hit *top = calloc(most, sizeof(*top));

    *compared = (struct rbk_compared_limit){.name = name};
    compared->keys = calloc(most * findings->len, sizeof(*compared->keys));
    if (!top || !compared->keys) {
        free(top);
        rbk_compare_fini(compared);
        return REDBUCKET_ERROR_MEMORY;
    }
    for (size_t i = 0; i < findings->len; i++)
        compared->limits[i] = rbk_summary_limit(findings->summaries[i], name);
    for (size_t i = 0; i < findings->len; i++) {
        const size_t len =
            compared->limits[i] ? rbk_hits_top(compared->limits[i]->hits, most, top) : 0;

        for (size_t j = 0; j < len; j++)
            if (!is_there(compared, &top[j]))
                put(compared, &top[j], findings->len);
    }
    if (compared->keys_len > most)
        compared->keys_len = most;
    free(top);
    return REDBUCKET_OK;
}

void rbk_compare_fini(struct rbk_compared_limit *compared)
{
    free(compared->keys);
    compared->keys = NULL;
    compared->keys_len = 0;
}
