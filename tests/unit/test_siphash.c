/* SPDX-License-Identifier: MIT */
/*
 * The table's hash against values of other implementations, and against a second one that goes byte
 * by byte, for every length.
 *
 * CPython hashes bytes by SipHash-1-3 from 3.11 on. The values below are
 * hash(bytes(range(n))) & (2**64 - 1) under PYTHONHASHSEED=0, which makes the key zero, and under
 * PYTHONHASHSEED=1, from which it makes the other key. The first two values under the key
 * 00 01 .. 0f are those that the test suites of hash tables have for this variant.
 */
#include "table/siphash.h"
#include "test.h"

#include <stdbool.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE_ENDIAN_MACHINE 1
#else
#define LITTLE_ENDIAN_MACHINE 0
#endif

static const uint64_t key_zero[2] = {0, 0};
static const uint64_t key_seed_1[2] = {0xaed66ce184be2329u, 0xebe9bbf1f1499052u};
static const uint64_t key_counting[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};

struct vector {
    const uint64_t *key;
    size_t len;
    uint64_t hash;
};

static const struct vector vectors[] = {
    {key_zero, 1, 0x68a914128e01e473u},     {key_zero, 7, 0x2f098ab0c751325au},
    {key_zero, 8, 0xead411e67ebe2eeau},     {key_zero, 9, 0x75927f9d95124362u},
    {key_zero, 15, 0xf30eb725bb91c9eau},    {key_zero, 16, 0x8972188433a5c5b7u},
    {key_zero, 24, 0x31185a47af932f3au},    {key_zero, 31, 0x169739443111d49bu},
    {key_zero, 32, 0x31ef8061c910629bu},    {key_zero, 40, 0x95bc321ab41d8206u},
    {key_zero, 64, 0x75e05fd5bbc870c6u},    {key_seed_1, 1, 0xecd3e5afcecda4b9u},
    {key_seed_1, 7, 0xfd15e78052a69ddfu},   {key_seed_1, 8, 0xc0b5739e7e28dd01u},
    {key_seed_1, 9, 0x208a1a5a0cbbf778u},   {key_seed_1, 15, 0xfa87985f39e97a53u},
    {key_seed_1, 16, 0x12e9d283f9f37002u},  {key_seed_1, 24, 0x19b4e5f288f874ceu},
    {key_seed_1, 31, 0xb8c17103f21d8810u},  {key_seed_1, 32, 0xf78bafba3c64318eu},
    {key_seed_1, 40, 0xdb056b8b4f38310bu},  {key_seed_1, 64, 0x7e644b6edc375dc8u},
    {key_counting, 0, 0xabac0158050fc4dcu}, {key_counting, 1, 0xc9f49bf37d57ca93u},
};

/* The table's hash of bytes: whole words, then the rest as the tail. */
static uint64_t hash_words(const uint64_t key[2], const unsigned char *bytes, size_t len)
{
    struct rbk_siphash hash;
    uint64_t tail = 0;
    size_t at = 0;

    rbk_siphash_begin(&hash, key);
    for (; at + 8 <= len; at += 8) {
        uint64_t word;

        memcpy(&word, bytes + at, 8);
        rbk_siphash_word(&hash, word);
    }
    for (size_t i = at; i < len; i++)
        tail |= (uint64_t)bytes[i] << 8 * (i - at);
    return rbk_siphash_end(&hash, tail, (unsigned)(len - at));
}

struct slow {
    uint64_t a, b, c, d;
};

static uint64_t left(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

/* One round, as two half rounds that are the same but for their shifts. */
static void half(uint64_t *a, uint64_t *b, unsigned shift, bool swap)
{
    *a += *b;
    *b = left(*b, shift) ^ *a;
    if (swap)
        *a = left(*a, 32);
}

static void mix(struct slow *s)
{
    half(&s->a, &s->b, 13, true);
    half(&s->c, &s->d, 16, false);
    half(&s->a, &s->d, 21, false);
    half(&s->c, &s->b, 17, true);
}

/* The same from the paper, a byte at a time: the message ends with its length. */
static uint64_t hash_bytes(const uint64_t key[2], const unsigned char *bytes, size_t len)
{
    struct slow s = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                     key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    uint64_t word = 0;

    for (size_t i = 0; i < (len / 8 + 1) * 8; i++) {
        uint64_t byte = i < len ? bytes[i] : i % 8 == 7 ? len & 0xff : 0;

        word |= byte << 8 * (i % 8);
        if (i % 8 != 7)
            continue;
        s.d ^= word;
        mix(&s);
        s.a ^= word;
        word = 0;
    }
    s.c ^= 0xff;
    mix(&s);
    mix(&s);
    mix(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

static void test_vectors(void **state)
{
    unsigned char bytes[64];

    (void)state;
    if (!LITTLE_ENDIAN_MACHINE)
        skip();
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const struct vector *vector = &vectors[i];

        assert_int_equal(hash_words(vector->key, bytes, vector->len), vector->hash);
        assert_int_equal(hash_bytes(vector->key, bytes, vector->len), vector->hash);
    }
}

/* Past 256, where the length that ends the message wraps. */
static void test_all_lengths(void **state)
{
    unsigned char bytes[600];
    uint64_t key[2] = {0x0123456789abcdefu, 0xfedcba9876543210u};

    (void)state;
    if (!LITTLE_ENDIAN_MACHINE)
        skip();
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 167 + i / 256);
    for (size_t len = 0; len <= sizeof bytes; len++) {
        assert_int_equal(hash_words(key, bytes, len), hash_bytes(key, bytes, len));
        key[0] += 0x9e3779b97f4a7c15u;
        key[1] ^= left(key[0], 17);
    }
}

/* One bit of the key or of the message changes about half of the hash's. */
static void test_avalanche(void **state)
{
    unsigned char bytes[24] = {0};
    uint64_t key[2] = {1, 2};
    uint64_t plain = hash_words(key, bytes, sizeof bytes);

    (void)state;
    for (unsigned bit = 0; bit < 128; bit++) {
        key[bit / 64] ^= (uint64_t)1 << bit % 64;
        assert_in_range(__builtin_popcountll(hash_words(key, bytes, sizeof bytes) ^ plain), 10, 54);
        key[bit / 64] ^= (uint64_t)1 << bit % 64;
    }
    for (unsigned bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_in_range(__builtin_popcountll(hash_words(key, bytes, sizeof bytes) ^ plain), 10, 54);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_all_lengths),
        cmocka_unit_test(test_avalanche),
    };

    return cmocka_run_group_tests_name("siphash", tests, NULL, NULL);
}
