/* SPDX-License-Identifier: MIT */
/*
 * SipHash-1-3 over 64-bit words: the keyed hash of the table.
 *
 * Whoever doesn't know the key can't choose texts that collide, so nobody can crowd a page at will.
 * Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012; one compression and three
 * finalization rounds are the variant that hash tables use. Word by word, since that is how the
 * table has its texts; on a little-endian machine a message hashes as the reference says for its
 * bytes.
 */
#ifndef RBK_TABLE_SIPHASH_H
#define RBK_TABLE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct rbk_siphash {
    uint64_t v[4];
    uint64_t bytes;
};

static inline uint64_t rbk_siphash_rotate(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void rbk_siphash_round(struct rbk_siphash *hash)
{
    uint64_t *v = hash->v;

    v[0] += v[1];
    v[2] += v[3];
    v[1] = rbk_siphash_rotate(v[1], 13) ^ v[0];
    v[3] = rbk_siphash_rotate(v[3], 16) ^ v[2];
    v[0] = rbk_siphash_rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rbk_siphash_rotate(v[1], 17) ^ v[2];
    v[3] = rbk_siphash_rotate(v[3], 21) ^ v[0];
    v[2] = rbk_siphash_rotate(v[2], 32);
}

static inline void rbk_siphash_begin(struct rbk_siphash *hash, const uint64_t key[2])
{
    hash->v[0] = key[0] ^ 0x736f6d6570736575u;
    hash->v[1] = key[1] ^ 0x646f72616e646f6du;
    hash->v[2] = key[0] ^ 0x6c7967656e657261u;
    hash->v[3] = key[1] ^ 0x7465646279746573u;
    hash->bytes = 0;
}

static inline void rbk_siphash_word(struct rbk_siphash *hash, uint64_t word)
{
    hash->v[3] ^= word;
    rbk_siphash_round(hash);
    hash->v[0] ^= word;
    hash->bytes += sizeof word;
}

/* `tail` is the up to seven bytes that make no whole word: a number below 2^56, and how many they
 * are. */
static inline uint64_t rbk_siphash_end(struct rbk_siphash *hash, uint64_t tail, unsigned tail_len)
{
    rbk_siphash_word(hash, (hash->bytes + tail_len) << 56 | tail);
    hash->v[2] ^= 0xff;
    rbk_siphash_round(hash);
    rbk_siphash_round(hash);
    rbk_siphash_round(hash);
    return hash->v[0] ^ hash->v[1] ^ hash->v[2] ^ hash->v[3];
}

#endif
