/* SPDX-License-Identifier: MIT */
/*
 * Lengths come first, so that a zone and a key are never told apart in two ways.
 */
#include "bucket_hash.h"

#include "table/siphash.h"

#include <string.h>

static void absorb(struct rbk_siphash *hash, const unsigned char *bytes, size_t len)
{
    uint64_t word;

    for (; len >= sizeof word; bytes += sizeof word, len -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        rbk_siphash_word(hash, word);
    }
    word = 0;
    if (len > 0)
        memcpy(&word, bytes, len);
    rbk_siphash_word(hash, word);
}

uint64_t rbk_bucket_hash(const uint64_t secret[2], const struct rbk_key *key)
{
    struct rbk_siphash hash;

    rbk_siphash_begin(&hash, secret);
    rbk_siphash_word(&hash, (uint64_t)key->zone_len << 32 | key->key_len);
    absorb(&hash, key->zone, key->zone_len);
    absorb(&hash, key->key, key->key_len);
    return rbk_siphash_end(&hash, 0, 0);
}
