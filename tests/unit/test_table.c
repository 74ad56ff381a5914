/* SPDX-License-Identifier: MIT */
/*
 * The table's form: sizes, what is a table and what is none, how many keys fit, and that each key
 * is found again and is nobody else's.
 */
#include "processes.h"
#include "tables.h"
#include "test.h"
#include "url.h"

#include <stdio.h>
#include <stdlib.h>

/* Keeps a unit request out after one, for a thousand years. */
static const struct rbk_limit once = {1e-9, 0.0, 0.0};

static void test_plan_uses_its_bytes(void **state)
{
    struct rbk_table_plan plan;

    (void)state;
    assert_false(rbk_table_plan(0, 64, &plan));
    assert_false(rbk_table_plan(rbk_table_size_min() - 1, 64, &plan));
#if SIZE_MAX > UINT32_MAX
    assert_false(rbk_table_plan(SIZE_MAX, 64, &plan));
#endif
    for (size_t size = rbk_table_size_min(); size < RBK_URL_SIZE_MAX; size += size / 3 + 1) {
        assert_true(rbk_table_plan(size, 64, &plan));

        size_t shards = plan.shards;
        size_t used = sizeof(struct rbk_table_header) + shards * sizeof(struct rbk_shard) +
                      shards * plan.shard_pages * RBK_PAGE_SIZE;

        assert_true(shards >= 1 && shards <= 64 && (shards & (shards - 1)) == 0);
        assert_true(plan.shard_pages >= 2 && (shards == 1 || plan.shard_pages >= 64));
        assert_true(used <= size);
        assert_true(size - used < (shards + 2) * RBK_PAGE_SIZE);
        assert_true(rbk_table_plan(size, 1, &plan) || size > (size_t)60 << 30);
        assert_true(plan.shards == 1 || size > (size_t)60 << 30);
    }
}

static void test_attach_takes_what_format_made(void **state)
{
    static const size_t sizes[] = {16384, 16385, 65536, 100003, 1 << 20, 3000000};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct test_table made;

        test_table_make(&made, sizes[i], 64, i);
        test_table_audit(&made);
        assert_int_equal(test_table_counts(&made).bytes, sizes[i]);
        assert_int_equal(test_table_counts(&made).capacity, rbk_table_capacity(&made.table));
        assert_true(rbk_table_capacity(&made.table) * 64 > (sizes[i] - 12288) / 100 * 90);
        test_table_free(&made);
    }
}

struct fault {
    size_t offset;
    size_t len;
    uint64_t value;
};

#define FAULT(field, value)                                                                   \
    {                                                                                         \
        offsetof(struct rbk_table_header, field), sizeof((struct rbk_table_header){0}.field), \
            value                                                                             \
    }

static void test_attach_refuses(void **state)
{
    static const struct fault faults[] = {
        FAULT(magic, 0),
        FAULT(magic, 0x315442424f5f424bu),
        FAULT(format, 0),
        FAULT(format, RBK_TABLE_FORMAT + 1),
        FAULT(format, RBK_TABLE_FORMAT ^ (uint64_t)1 << 56),
        FAULT(size, 65535),
        FAULT(size, 65537),
        FAULT(shards, 0),
        FAULT(shards, 3),
        FAULT(shards, 128),
        FAULT(shards, UINT32_MAX),
        FAULT(shards, 2), /* too many for the pages there are */
        FAULT(pages, 0),
        FAULT(pages, 1),
        FAULT(pages, 16),
        FAULT(pages, UINT32_MAX),
    };
    struct rbk_table other;
    struct test_table made;

    (void)state;
    test_table_make(&made, 65536, 64, 1);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        unsigned char header[sizeof(struct rbk_table_header)];

        memcpy(header, made.bytes, sizeof header);
        memcpy(made.bytes + faults[i].offset, &faults[i].value, faults[i].len);
        if (rbk_table_attach(&other, made.bytes, made.size))
            fail_msg("fault %zu was taken for a table", i);
        memcpy(made.bytes, header, sizeof header);
    }
    assert_false(rbk_table_attach(&other, made.bytes, made.size - 1));
    assert_false(rbk_table_attach(&other, made.bytes, 0));
    assert_false(rbk_table_attach(&other, made.bytes, sizeof(struct rbk_table_header)));
    assert_true(rbk_table_attach(&other, made.bytes, made.size));
    test_table_free(&made);
}

/* Whatever lies behind a good header, nothing is read or written outside, and everything ends. */
static void test_survives_any_bytes(void **state)
{
    unsigned seed = 7;
    char text[200];

    (void)state;
    memset(text, 'x', sizeof text);
    for (int round = 0; round < 60; round++) {
        struct test_table made;

        test_table_make(&made, test_table_size(2 + test_random(&seed, 6)), 1, 1);
        for (size_t i = sizeof(struct rbk_table_header); i < made.size; i++)
            made.bytes[i] = (unsigned char)test_random(&seed, round % 2 ? 256 : 4);
        for (unsigned shard = 0; shard < rbk_table_shards(&made.table); shard++)
            rbk_table_recover(&made.table, shard);
        for (int i = 0; i < 300; i++) {
            struct rbk_key keys[3] = {test_numbered(test_random(&seed, 50)),
                                      test_key(text, test_random(&seed, sizeof text)),
                                      test_key(text, test_random(&seed, sizeof text))};
            struct rbk_ask ask = {(enum rbk_operation)test_random(&seed, 6), 1.0, 0.0, i};

            keys[2].zone_len = 0;
            (void)test_table_apply(&made, keys, 1 + test_random(&seed, 3), &once, &ask);
        }
        test_table_free(&made);
    }
}

/* With two pages, every key may lie in every slot. */
static void test_every_slot_is_usable(void **state)
{
    struct test_table made;

    (void)state;
    test_table_make(&made, rbk_table_size_min(), 64, 1);
    assert_int_equal(rbk_table_capacity(&made.table), 138);
    for (uint64_t i = 0; i < 138; i++) {
        struct rbk_key key = test_numbered(i);

        assert_int_equal(test_table_ask(&made, &key, &once, 0.0), TEST_ACCEPTED);
    }
    test_table_keep(&made);
    for (uint64_t i = 0; i < 300; i++) {
        struct rbk_key key = test_numbered(i);
        enum test_outcome expected = i < 138 ? TEST_REJECTED : TEST_FULL;

        assert_int_equal(test_table_ask(&made, &key, &once, 1.0), expected);
    }
    assert_true(test_table_same(&made));
    test_table_audit(&made);
    test_table_free(&made);
}

/* Zone and key lie one behind the other: whatever the border, and whatever is in them, each pair is
 * a bucket of its own. */
static void test_zone_and_key_are_apart(void **state)
{
    unsigned char text[64] = {0};
    struct test_table made;

    (void)state;
    test_table_make(&made, 1 << 20, 64, 3);
    for (size_t len = 0; len < sizeof text; len++) {
        for (size_t zone_len = 0; zone_len <= len; zone_len++) {
            struct rbk_key key = {text, zone_len, text + zone_len, len - zone_len};

            assert_int_equal(test_table_ask(&made, &key, &once, (double)len), TEST_ACCEPTED);
            assert_int_equal(test_table_ask(&made, &key, &once, (double)len), TEST_REJECTED);
            assert_same(test_table_read(&made, &key).timestamp, (double)len);
        }
    }
    assert_int_equal(test_table_counts(&made).buckets, 64 * 65 / 2);
    test_table_audit(&made);
    test_table_free(&made);
}

/* Each key's state is its own, also of keys that differ in one bit anywhere. */
static void test_every_key_is_found(void **state)
{
    unsigned char text[24];
    struct test_table made;
    double stamp = 0.0;

    (void)state;
    test_table_make(&made, 1 << 20, 64, 5);
    memset(text, 0x55, sizeof text);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t len = 1; len < sizeof text; len++) {
            for (size_t bit = 0; bit < 8 * len; bit++) {
                struct rbk_key key = test_key(text, len);

                text[bit / 8] ^= (unsigned char)(1u << bit % 8);
                stamp = (double)(len * 256 + bit);
                if (pass == 0)
                    assert_int_equal(test_table_ask(&made, &key, &once, stamp), TEST_ACCEPTED);
                assert_same(test_table_read(&made, &key).timestamp, stamp);
                text[bit / 8] ^= (unsigned char)(1u << bit % 8);
            }
        }
    }
    test_table_audit(&made);
    test_table_free(&made);
}

/* Fills the table with keys of 23 bytes in zone "z" and counts how many found no free slot. */
static uint64_t count_crowded_out(size_t size, uint64_t keys, uint64_t seed)
{
    uint64_t full = 0;
    struct test_table made;
    char text[32];

    test_table_make(&made, size, 64, seed);
    for (uint64_t i = 0; i < keys; i++) {
        (void)snprintf(text, sizeof text, "key-%019llu", (unsigned long long)i);

        struct rbk_key key = test_key(text, 23);

        full += test_table_ask(&made, &key, &once, 0.0) != TEST_ACCEPTED;
    }
    assert_int_equal(test_table_counts(&made).evicted, 0);
    assert_int_equal(test_table_counts(&made).buckets + full, keys);
    test_table_free(&made);
    return full;
}

static void test_a_million_keys_at_64_bytes(void **state)
{
    uint64_t seeds = TEST_SANITIZED ? 1 : 4;

    (void)state;
    for (uint64_t seed = 0; seed < seeds; seed++)
        assert_int_equal(count_crowded_out(64000000, 1000000, seed), 0);
}

/* Keys chosen to crowd two pages of one table are spread over another's. */
static void test_chosen_keys_crowd_one_table_only(void **state)
{
    struct test_table known, secret;
    uint64_t chosen = 0;

    (void)state;
    test_table_make(&known, test_table_size(64), 1, 1);
    test_table_make(&secret, test_table_size(64), 1, 2);
    for (uint64_t i = 0; chosen < 200; i++) {
        struct rbk_key key = test_numbered(i);
        struct rbk_place place;

        rbk_table_place(&known.table, &key, &place);
        if (place.page[0] > 1 || place.page[1] > 1)
            continue;
        chosen++;
        assert_int_equal(test_table_ask(&known, &key, &once, 0.0),
                         chosen <= 138 ? TEST_ACCEPTED : TEST_FULL);
        assert_int_equal(test_table_ask(&secret, &key, &once, 0.0), TEST_ACCEPTED);
    }
    test_table_free(&known);
    test_table_free(&secret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_uses_its_bytes),
        cmocka_unit_test(test_attach_takes_what_format_made),
        cmocka_unit_test(test_attach_refuses),
        cmocka_unit_test(test_survives_any_bytes),
        cmocka_unit_test(test_every_slot_is_usable),
        cmocka_unit_test(test_zone_and_key_are_apart),
        cmocka_unit_test(test_every_key_is_found),
        cmocka_unit_test(test_a_million_keys_at_64_bytes),
        cmocka_unit_test(test_chosen_keys_crowd_one_table_only),
    };

    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
