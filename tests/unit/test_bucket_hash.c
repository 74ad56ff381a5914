/* SPDX-License-Identifier: MIT */
/*
 * The hash by which fronts know buckets: every byte of a zone and of a key counts, and so does
 * where the one ends and the other begins.
 */
#include "bucket_hash.h"
#include "test.h"

#define TEXT_MAX 40

static const uint64_t secret[2] = {0x0123456789abcdefu, 0xfedcba9876543210u};

static uint64_t hash(const unsigned char *text, size_t zone_len, size_t key_len)
{
    struct rbk_key key = {
        .zone = text, .zone_len = zone_len, .key = text + zone_len, .key_len = key_len};

    return rbk_bucket_hash(secret, &key);
}

static void every_byte_counts(void **state)
{
    unsigned char text[TEXT_MAX];

    (void)state;
    for (size_t len = 1; len <= TEXT_MAX; len++) {
        for (size_t zone_len = 0; zone_len <= len; zone_len++) {
            memset(text, 'a', sizeof text);
            uint64_t before = hash(text, zone_len, len - zone_len);

            for (size_t i = 0; i < len; i++) {
                text[i] ^= 1;
                assert_int_not_equal(hash(text, zone_len, len - zone_len), before);
                text[i] ^= 1;
            }
        }
    }
}

/* The same bytes, cut otherwise; and more of what an end may be filled with. */
static void where_they_end_counts(void **state)
{
    static const unsigned char zeros[TEXT_MAX];
    uint64_t seen[TEXT_MAX * TEXT_MAX];
    size_t len = 0;

    (void)state;
    for (size_t zone_len = 0; zone_len < TEXT_MAX / 2; zone_len++) {
        for (size_t key_len = 0; key_len < TEXT_MAX / 2; key_len++) {
            seen[len] = hash(zeros, zone_len, key_len);
            for (size_t i = 0; i < len; i++)
                assert_int_not_equal(seen[i], seen[len]);
            len++;
        }
    }
}

static void a_secret_makes_another_hash(void **state)
{
    static const uint64_t other[2] = {0x0123456789abcdefu, 0xfedcba9876543211u};
    struct rbk_key key = {
        .zone = (const unsigned char *)"zone", .zone_len = 4, .key = NULL, .key_len = 0};

    (void)state;
    key.key = key.zone;
    assert_int_not_equal(rbk_bucket_hash(secret, &key), rbk_bucket_hash(other, &key));
    assert_int_equal(rbk_bucket_hash(secret, &key), rbk_bucket_hash(secret, &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(where_they_end_counts),
        cmocka_unit_test(a_secret_makes_another_hash),
    };

    return cmocka_run_group_tests_name("bucket_hash", tests, NULL, NULL);
}
