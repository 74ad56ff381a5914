/* SPDX-License-Identifier: MIT */
/*
 * Keys longer than a bucket: kept whole, compared whole, and whatever mixture of long and short
 * ones comes and goes, no slot is ever lost and the space never falls to pieces.
 */
#include "processes.h"
#include "tables.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct rbk_limit once = {1e-9, 0.0, 0.0};

/* Long texts are pieces of this; two that begin apart differ nearly everywhere. */
static unsigned char noise[2 * RBK_TABLE_KEY_MAX];

static int make_noise(void **state)
{
    unsigned seed = 3;

    (void)state;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)test_random(&seed, 256);
    return 0;
}

/* Slots that a key of zone "z" takes, by the layout: 24 bytes near, else 16 and 52 a link. */
static uint64_t slots_for(size_t key_len)
{
    size_t text = key_len + 1;

    return text <= 24 ? 1 : 1 + (text - 16 + 51) / 52;
}

static void test_every_length(void **state)
{
    static const size_t longer[] = {4096, 65535, 65536, 100000, 131071, 131072};
    struct test_table table;

    (void)state;
    test_table_make(&table, 16 << 20, 1, 1);
    assert_int_equal(rbk_table_key_max(&table.table), RBK_TABLE_KEY_MAX);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i <= 3000 + sizeof longer / sizeof longer[0]; i++) {
            size_t len = i <= 3000 ? i : longer[i - 3001];
            struct rbk_key key = test_key(noise, len);

            if (pass == 0)
                assert_int_equal(test_table_ask(&table, &key, &once, (double)len), TEST_ACCEPTED);
            assert_same(test_table_read(&table, &key).timestamp, (double)len);
        }
    }
    test_table_audit(&table);
    test_table_free(&table);
}

/* Long keys that differ in one byte, anywhere, and long zones with long keys. */
static void test_compared_whole(void **state)
{
    static const size_t places[] = {0, 15, 16, 17, 67, 68, 69, 254, 255, 256, 500, 998, 999};
    struct test_table table;
    unsigned char text[1000];

    (void)state;
    test_table_make(&table, 4 << 20, 64, 1);
    memcpy(text, noise, sizeof text);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            struct rbk_key key = {text, places[i] % 256, text + places[i] % 256,
                                  sizeof text - places[i] % 256};

            for (int bit = 0; bit < 8; bit++) {
                double stamp = (double)(8 * i) + bit;

                text[places[i]] ^= (unsigned char)(1 << bit);
                if (pass == 0)
                    assert_int_equal(test_table_ask(&table, &key, &once, stamp), TEST_ACCEPTED);
                assert_same(test_table_read(&table, &key).timestamp, stamp);
                text[places[i]] ^= (unsigned char)(1 << bit);
            }
        }
    }
    test_table_audit(&table);
    test_table_free(&table);
}

/* Keys of so many bytes, of which the last differs, in the smallest table, where all have the same
 * places: of some the tags are alike too. */
static void compare_to_the_end(unsigned char *text, size_t len, unsigned keys)
{
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct test_table table;

        test_table_make(&table, rbk_table_size_min(), 1, seed);
        for (int pass = 0; pass < 2; pass++) {
            for (unsigned last = 0; last < keys; last++) {
                struct rbk_key key = test_key(text, len);

                text[len - 1] = (unsigned char)last;
                if (pass == 0)
                    assert_int_equal(test_table_ask(&table, &key, &once, last), TEST_ACCEPTED);
                assert_same(test_table_read(&table, &key).timestamp, (double)last);
            }
        }
        test_table_free(&table);
    }
}

/* Where pages and tags agree, only the text is left to tell keys apart: to its last byte. */
static void test_compared_to_the_end(void **state)
{
    unsigned char text[400];

    (void)state;
    memcpy(text, noise, sizeof text);
    compare_to_the_end(text, 60, 50);
    compare_to_the_end(text, 257, 14);
    compare_to_the_end(text, 400, 9);
}

/* Takes exactly the slots it should, and gives them back when forgotten. */
static void test_slots_are_counted(void **state)
{
    const struct rbk_ask reset = {.operation = RBK_RESET};
    uint32_t pages = 20;
    struct test_table table;
    uint64_t used = 0;

    (void)state;
    test_table_make(&table, test_table_size(pages), 1, 1);
    for (size_t len = 0; used + slots_for(len) <= (uint64_t)pages * 50; len++) {
        struct rbk_key key = test_key(noise + 7 * len, len);

        assert_int_equal(test_table_ask(&table, &key, &once, 0.0), TEST_ACCEPTED);
        used += slots_for(len);
        test_table_audit(&table);
    }
    for (size_t len = 0; test_table_counts(&table).buckets > 0; len++) {
        struct rbk_key key = test_key(noise + 7 * len, len);

        assert_int_equal(test_table_apply(&table, &key, 1, &once, &reset), TEST_ACCEPTED);
        test_table_audit(&table);
    }
    test_table_free(&table);
}

/* The longest key fits beside the longest zone, in a table of any size, and twice. */
static void test_the_longest_key_fits(void **state)
{
    (void)state;
    for (uint32_t pages = 2; pages < 300; pages += 1 + pages / 3) {
        struct test_table table;

        test_table_make(&table, test_table_size(pages), 1, pages);
        for (size_t i = 0; i < 2; i++) {
            struct rbk_key key = {noise, 255, noise + i, rbk_table_key_max(&table.table)};

            assert_int_equal(test_table_ask(&table, &key, &once, 0.0), TEST_ACCEPTED);
            assert_int_equal(test_table_ask(&table, &key, &once, 0.0), TEST_REJECTED);
        }
        test_table_audit(&table);
        test_table_free(&table);
    }
}

static size_t random_len(unsigned *seed, size_t key_max)
{
    switch (test_random(seed, 8)) {
    case 0:
        return test_random(seed, (unsigned)key_max + 1);
    case 1:
    case 2:
        return test_random(seed, 600);
    default:
        return test_random(seed, 30);
    }
}

/* Requests of up to four keys of any length, and forgetting, while time goes on. */
static void churn(struct test_table *table, unsigned *seed, double *now)
{
    size_t key_max = rbk_table_key_max(&table->table);
    struct rbk_key keys[4];

    for (int i = 0; i < 4; i++) {
        keys[i] = test_key(noise + test_random(seed, 20000), random_len(seed, key_max));
        keys[i].zone = (const unsigned char *)"wxyz" + i;
    }

    struct rbk_limit limit = {0.01 * (1 + test_random(seed, 50)), test_random(seed, 3), 0.0};
    struct rbk_ask ask = {.operation = test_random(seed, 20) == 0 ? RBK_RESET : RBK_REQUEST,
                          .cost = 1.0,
                          .now = *now};

    test_table_keep(table);
    if (test_table_apply(table, keys, 1 + test_random(seed, 4), &limit, &ask) != TEST_ACCEPTED)
        assert_true(test_table_same(table));
    *now += 0.02 * test_random(seed, 20);
}

static void test_churn_loses_nothing(void **state)
{
    const int rounds = TEST_SANITIZED ? 4000 : 20000;

    (void)state;
    for (uint32_t pages = 2; pages < 40; pages *= 3) {
        struct test_table table;
        unsigned seed = pages;
        double now = 0.0;

        test_table_make(&table, test_table_size(pages), 1, pages);
        for (int i = 0; i < rounds; i++) {
            churn(&table, &seed, &now);
            if (i % 16 == 0)
                test_table_audit(&table);
        }
        /* All has drained: whatever went on before, there is room for three of the longest. */
        for (size_t i = 0; i < 3; i++) {
            struct rbk_key key = test_key(noise + i, rbk_table_key_max(&table.table));

            assert_int_equal(test_table_ask(&table, &key, &once, now + 1e6), TEST_ACCEPTED);
        }
        test_table_audit(&table);
        test_table_free(&table);
    }
}

static struct rbk_bucket *bucket_at(struct test_table *table, uint32_t slot)
{
    return &table->table.pages[slot / RBK_PAGE_SLOTS].slot[slot % RBK_PAGE_SLOTS].bucket;
}

/* A table full of short-keyed buckets that would all make room. */
static void fill(struct test_table *table, uint32_t pages, uint64_t seed)
{
    const struct rbk_limit roomy = {1.0, 5.0, 0.0};

    test_table_make(table, test_table_size(pages), 1, seed);
    for (uint64_t i = 0; test_table_counts(table).buckets < rbk_table_capacity(&table->table);
         i++) {
        struct rbk_key key = test_numbered(i);

        (void)test_table_ask(table, &key, &roomy, 0.0);
    }
}

/* Has all slots that links may take keep somebody out, but for the last `links` of them. */
static void leave_links(struct test_table *table, uint64_t links)
{
    uint64_t left = 0;

    for (uint32_t slot = (uint32_t)rbk_table_capacity(&table->table); slot-- > 0;) {
        if (slot % RBK_PAGE_SLOTS >= 16 && left++ >= links)
            bucket_at(table, slot)->depth = 0.0;
    }
}

/* Several long keys in one request: each finds its links, wherever the other stopped looking, as
 * long as there are just as many as they need. */
static void test_long_keys_together(void **state)
{
    const struct rbk_limit roomy = {1.0, 5.0, 0.0};
    const struct rbk_ask ask = {RBK_REQUEST, 1.0, 0.0, 0.0};

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct rbk_key keys[] = {test_key(noise + seed, 1000), test_key(noise + 500 + seed, 1500),
                                 test_key(noise + 900 + seed, 700)};
        uint64_t wanted = slots_for(1000) + slots_for(1500) + slots_for(700);
        struct test_table table;

        fill(&table, 8, seed);
        leave_links(&table, wanted - 3 - seed % 2);
        test_table_keep(&table);
        if (seed % 2) {
            assert_int_equal(test_table_apply(&table, keys, 3, &roomy, &ask), TEST_FULL);
            assert_true(test_table_same(&table));
        } else {
            uint64_t evicted = test_table_counts(&table).evicted;

            assert_int_equal(test_table_apply(&table, keys, 3, &roomy, &ask), TEST_ACCEPTED);
            assert_int_equal(test_table_counts(&table).evicted - evicted, wanted);
            for (int i = 0; i < 3; i++)
                assert_true(test_table_read(&table, &keys[i]).exists);
        }
        test_table_audit(&table);
        test_table_free(&table);
    }
}

/* Long keys that keep somebody out leave places for short ones on every page. */
static void test_chains_leave_places_for_buckets(void **state)
{
    uint32_t pages = 16;
    struct test_table table;
    uint64_t i = 0;

    (void)state;
    test_table_make(&table, test_table_size(pages), 1, 1);
    for (struct rbk_key key = test_key(noise, 400);
         test_table_ask(&table, &key, &once, 0.0) == TEST_ACCEPTED; key = test_key(noise + i, 400))
        i++;
    /* Chains of 8 have taken most of what they may. */
    assert_true(i * slots_for(400) > (uint64_t)pages * 69 * 6 / 10);
    for (i = 0; i < pages * 8; i++) {
        struct rbk_key key = test_numbered(i);

        assert_int_equal(test_table_ask(&table, &key, &once, 0.0), TEST_ACCEPTED);
    }
    test_table_audit(&table);
    test_table_free(&table);
}

/* Links take the place of what is empty before that of what is not. */
static void test_links_spare_what_is_not_empty(void **state)
{
    const struct rbk_limit roomy = {1.0, 5.0, 0.0};
    struct rbk_key key = test_key(noise, 1000);

    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct test_table table;
        uint64_t evicted, empty = 0;

        fill(&table, 8, seed);
        evicted = test_table_counts(&table).evicted;
        for (uint32_t slot = 0; slot < 8 * 69; slot++) {
            bucket_at(&table, slot)->timestamp = slot % 8 == seed % 8 ? 0.0 : 99.5;
            empty += slot % 8 == seed % 8;
        }
        assert_true(empty > slots_for(1000));
        assert_int_equal(test_table_ask(&table, &key, &roomy, 100.0), TEST_ACCEPTED);
        assert_int_equal(test_table_counts(&table).evicted, evicted);
        test_table_audit(&table);
        test_table_free(&table);
    }
}

struct live {
    struct rbk_key key;
    double drained;
};

/* At most half of the slots hold what hasn't drained: nothing of it is ever given up, however many
 * keys have come and gone. */
static void test_nothing_live_is_forgotten_while_there_is_room(void **state)
{
    enum { LIVE = 200 };
    struct live *live = calloc(LIVE, sizeof *live);
    unsigned seed = 17;
    struct test_table table;
    double now = 0.0;

    (void)state;
    assert_non_null(live);
    test_table_make(&table, test_table_size(32), 1, 9);
    for (uint32_t i = 0; i < 20000; i++) {
        struct rbk_limit limit = {0.5 + test_random(&seed, 4), 5.0, 0.0};
        struct live *mine = &live[i % LIVE];

        if (mine->drained > now)
            assert_true(test_table_read(&table, &mine->key).exists);
        now = fmax(now, mine->drained);
        mine->key = test_key(noise + i, 8 + test_random(&seed, 400));
        assert_int_equal(test_table_ask(&table, &mine->key, &limit, now), TEST_ACCEPTED);
        mine->drained = now + 1.0 / limit.rate;
    }
    assert_int_equal(test_table_counts(&table).evicted, 0);
    test_table_audit(&table);
    test_table_free(&table);
    free(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_compared_whole),
        cmocka_unit_test(test_compared_to_the_end),
        cmocka_unit_test(test_slots_are_counted),
        cmocka_unit_test(test_the_longest_key_fits),
        cmocka_unit_test(test_churn_loses_nothing),
        cmocka_unit_test(test_long_keys_together),
        cmocka_unit_test(test_chains_leave_places_for_buckets),
        cmocka_unit_test(test_links_spare_what_is_not_empty),
        cmocka_unit_test(test_nothing_live_is_forgotten_while_there_is_room),
    };

    return cmocka_run_group_tests_name("table-chains", tests, make_noise, NULL);
}
