/* SPDX-License-Identifier: MIT */
/*
 * Lengths come first, so that a zone and a key are never told apart in two ways.
 */
#include "bucket_hash.h"

#include "table/siphash.h"

#include <string.h>

/* Up to three bytes as a number, another for any others of so many. */
static inline uint64_t few(const unsigned char *bytes, size_t len)
{
    return len == 0 ? 0
                    : (uint64_t)bytes[0] | (uint64_t)bytes[len / 2] << 8 |
                          (uint64_t)bytes[len - 1] << 16;
}

/* Up to seven bytes, which make no whole word. */
static inline uint64_t tail_of(const unsigned char *bytes, size_t len)
{
    uint32_t first;

    if (len < sizeof first)
        return few(bytes, len);
    memcpy(&first, bytes, sizeof first);
    return first | few(bytes + sizeof first, len - sizeof first) << 32;
}

/* The whole words; returns the rest. */
static inline uint64_t absorb(struct rbk_siphash *hash, const unsigned char *bytes, size_t len)
{
    uint64_t word;

    for (; len >= sizeof word; bytes += sizeof word, len -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        rbk_siphash_word(hash, word);
    }
    return tail_of(bytes, len);
}

uint64_t rbk_bucket_hash(const uint64_t secret[2], const struct rbk_key *key)
{
    struct rbk_siphash hash;

    rbk_siphash_begin(&hash, secret);
    rbk_siphash_word(&hash, (uint64_t)key->zone_len << 32 | key->key_len);
    rbk_siphash_word(&hash, absorb(&hash, key->zone, key->zone_len));
    return rbk_siphash_end(&hash, absorb(&hash, key->key, key->key_len), key->key_len % 8);
}
