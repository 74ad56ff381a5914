/* SPDX-License-Identifier: MIT */
/*
 * What a full table gives up, against a slow reference that looks at the bytes: of the buckets in
 * the new key's two pages, one that drains soonest among those that keep nobody out; where all keep
 * somebody out, nothing, and nothing changes. And what is never given up.
 */
#include "processes.h"
#include "tables.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

static const struct rbk_limit once = {1e-9, 0.0, 0.0};

/* By the model, from the bytes alone. */
static double level_of(const struct rbk_bucket *bucket, double now)
{
    double drained = fmax(now - bucket->timestamp, 0.0) * bucket->rate;

    return fmax(bucket->value - drained, 0.0);
}

static bool keeps_out(const struct rbk_bucket *bucket, double now)
{
    return level_of(bucket, now) + 1.0 > bucket->depth + 1.0 + bucket->rate * 2e-6;
}

/* What the reference says of a new key: a free slot, or how soon a victim drains, or nothing. */
struct reference {
    unsigned free;
    unsigned willing;
    double soonest;
};

static struct reference look(const struct test_table *table, const struct rbk_place *place,
                             double now)
{
    struct reference seen = {.soonest = INFINITY};

    for (int side = 0; side < 2; side++) {
        const struct rbk_page *page = &table->table.pages[place->page[side]];

        for (unsigned i = 0; i < RBK_PAGE_SLOTS; i++) {
            const struct rbk_bucket *bucket = &page->slot[i].bucket;

            seen.free += page->tag[i] == RBK_TAG_FREE;
            if (page->tag[i] < RBK_TAG_BUCKET || keeps_out(bucket, now))
                continue;
            seen.willing++;
            seen.soonest = fmin(seen.soonest, level_of(bucket, now) / bucket->rate);
        }
    }
    return seen;
}

/* Of the buckets kept by test_table_keep, the only one that is now another; fails when there are
 * more. */
static const struct rbk_bucket *replaced(const struct test_table *table)
{
    const struct rbk_bucket *found = NULL;
    size_t offset = (size_t)((unsigned char *)table->table.pages - table->bytes);
    const struct rbk_page *before = (void *)(table->copy + offset);

    for (uint32_t slot = 0; slot < rbk_table_capacity(&table->table); slot++) {
        const struct rbk_page *then = &before[slot / RBK_PAGE_SLOTS];
        const struct rbk_page *now = &table->table.pages[slot / RBK_PAGE_SLOTS];
        uint32_t i = slot % RBK_PAGE_SLOTS;

        if (then->tag[i] == now->tag[i] &&
            memcmp(&then->slot[i], &now->slot[i], sizeof now->slot[i]) == 0)
            continue;
        assert_null(found);
        found = &then->slot[i].bucket;
    }
    assert_non_null(found);
    return found;
}

/* Asks for a key that isn't there and checks against the reference what became of it. */
static enum test_outcome ask_and_check(struct test_table *table, const struct rbk_key *key,
                                       const struct rbk_limit *limit, double now)
{
    uint64_t evicted = test_table_counts(table).evicted;
    struct rbk_place place;

    rbk_table_place(&table->table, key, &place);
    test_table_keep(table);

    struct reference seen = look(table, &place, now);
    enum test_outcome outcome = test_table_ask(table, key, limit, now);

    if (seen.free == 0 && seen.willing == 0) {
        assert_int_equal(outcome, TEST_FULL);
        assert_true(test_table_same(table));
        return outcome;
    }
    assert_int_equal(outcome, TEST_ACCEPTED);

    const struct rbk_bucket *victim = replaced(table);

    if (seen.free == 0) {
        assert_false(keeps_out(victim, now));
        assert_same(level_of(victim, now) / victim->rate, seen.soonest);
    }
    assert_int_equal(test_table_counts(table).evicted - evicted,
                     seen.free == 0 && level_of(victim, now) > 0.0);
    return outcome;
}

/* Often without a burst, and slow enough that a table fills up with buckets that keep others out.
 */
static struct rbk_limit random_limit(unsigned *seed)
{
    unsigned burst = test_random(seed, 6);

    return (struct rbk_limit){0.004 * (1 + test_random(seed, 40)), burst < 3 ? 0 : burst - 2,
                              burst < 3 ? 0 : 0.5 * test_random(seed, 3)};
}

/* Fresh keys and keys asked again, under all sorts of limits, for a while in which some drain. */
static void churn(struct test_table *table, unsigned *seed, uint64_t outcomes[3])
{
    double now = 1000.0;

    for (uint64_t i = 0; i < 3000; i++) {
        struct rbk_key fresh = test_numbered(i);
        struct rbk_limit limit = random_limit(seed);

        outcomes[ask_and_check(table, &fresh, &limit, now)]++;
        for (unsigned again = test_random(seed, 4); again > 0; again--) {
            struct rbk_key key = test_numbered(i - test_random(seed, 20) % (i + 1));

            if (test_table_read(table, &key).exists)
                (void)test_table_ask(table, &key, &limit, now);
        }
        now += 0.01 * test_random(seed, 8);
    }
}

static void test_victims_follow_the_rule(void **state)
{
    uint64_t outcomes[3] = {0};
    uint64_t evicted = 0;
    unsigned seed = 11;

    (void)state;
    for (uint32_t pages = 2; pages < 7; pages++) {
        struct test_table table;

        test_table_make(&table, test_table_size(pages), 1, pages);
        churn(&table, &seed, outcomes);
        evicted += test_table_counts(&table).evicted;
        test_table_audit(&table);
        test_table_free(&table);
    }
    /* All that the rule tells apart has happened. */
    assert_true(outcomes[TEST_ACCEPTED] > 1000);
    assert_true(outcomes[TEST_FULL] > 100);
    assert_true(evicted > 100);
}

/* Fills both pages of a smallest table with buckets of one limit. */
static void fill(struct test_table *table, const struct rbk_limit *limit, double now)
{
    test_table_make(table, rbk_table_size_min(), 1, 1);
    for (uint64_t i = 0; i < 138; i++) {
        struct rbk_key key = test_numbered(i);

        assert_int_equal(test_table_ask(table, &key, limit, now), TEST_ACCEPTED);
    }
}

/* A bucket that lets a unit request in only with a wait keeps nobody out; one that rejects it does.
 */
static void test_a_delay_is_no_rejection(void **state)
{
    const struct rbk_limit waits = {1e-9, 0.0, 1.0};
    struct rbk_key fresh = test_numbered(1000);
    struct test_table table;

    (void)state;
    fill(&table, &waits, 0.0);
    assert_int_equal(ask_and_check(&table, &fresh, &waits, 0.0), TEST_ACCEPTED);
    test_table_free(&table);
    fill(&table, &once, 0.0);
    assert_int_equal(ask_and_check(&table, &fresh, &waits, 0.0), TEST_FULL);
    test_table_free(&table);
}

/* The moment the model would let somebody in again is the moment the bucket may go. */
static void test_the_tick_belongs_to_the_rule(void **state)
{
    const struct rbk_limit limit = {10.0, 0.0, 0.0};
    struct rbk_key fresh = test_numbered(1000);
    struct test_table table;

    (void)state;
    fill(&table, &limit, 0.0);
    assert_int_equal(ask_and_check(&table, &fresh, &limit, 0.0999), TEST_FULL);
    assert_int_equal(ask_and_check(&table, &fresh, &limit, 0.0999985), TEST_ACCEPTED);
    assert_int_equal(test_table_counts(&table).evicted, 1);
    test_table_free(&table);
}

/* A faster limit on the same zone doesn't make the table think that the bucket drains sooner: it
 * goes by the slowest rate and the least depth since the bucket was last empty. */
static void test_the_strictest_limit_is_remembered(void **state)
{
    const struct rbk_limit strict = {0.1, 1.0, 0.0};
    const struct rbk_limit loose = {100.0, 50.0, 50.0};
    struct test_table table;

    (void)state;
    for (int order = 0; order < 2; order++) {
        struct rbk_key fresh = test_numbered(1000);

        fill(&table, order ? &strict : &loose, 0.0);
        for (uint64_t i = 0; i < 138; i++) {
            struct rbk_key key = test_numbered(i);

            assert_int_equal(test_table_ask(&table, &key, order ? &loose : &strict, 0.0),
                             TEST_ACCEPTED);
        }
        /* Level 2 of strict's 2: it keeps others out until one has drained, 10 s later. */
        assert_int_equal(test_table_ask(&table, &fresh, &loose, 9.9), TEST_FULL);
        assert_int_equal(test_table_ask(&table, &fresh, &loose, 10.1), TEST_ACCEPTED);
        assert_int_equal(test_table_counts(&table).evicted, 1);
        test_table_free(&table);
    }
}

/* Once it was empty, the limits of before don't matter any more. */
static void test_an_empty_bucket_forgets_its_limits(void **state)
{
    const struct rbk_limit slow = {0.01, 0.0, 0.0};
    const struct rbk_limit fast = {10.0, 5.0, 0.0};
    struct rbk_key fresh = test_numbered(1000);
    struct test_table table;

    (void)state;
    fill(&table, &slow, 0.0);
    for (uint64_t i = 0; i < 138; i++) {
        struct rbk_key key = test_numbered(i);

        assert_int_equal(test_table_ask(&table, &key, &fast, 100.0), TEST_ACCEPTED);
    }
    assert_int_equal(test_table_ask(&table, &fresh, &fast, 100.2), TEST_ACCEPTED);
    assert_int_equal(test_table_counts(&table).evicted, 0);
    test_table_free(&table);
}

/* A state that can't be read is somebody's; it stays, and doesn't count as drained. */
static void test_an_unreadable_bucket_stays(void **state)
{
    struct rbk_key fresh = test_numbered(1000);
    struct test_table table;

    (void)state;
    fill(&table, &once, 0.0);
    for (uint32_t slot = 0; slot < 138; slot++) {
        struct rbk_bucket *bucket =
            &table.table.pages[slot / RBK_PAGE_SLOTS].slot[slot % RBK_PAGE_SLOTS].bucket;

        if (slot % 3 == 0)
            bucket->value = NAN;
        else if (slot % 3 == 1)
            bucket->timestamp = -INFINITY;
        else
            bucket->rate = 0.0;
    }
    test_table_keep(&table);
    assert_int_equal(test_table_ask(&table, &fresh, &once, 1e12), TEST_FULL);
    assert_true(test_table_same(&table));
    test_table_free(&table);
}

/* Buckets that a request itself names make no room for its other keys. */
static void test_a_request_spares_its_own(void **state)
{
    const struct rbk_limit roomy = {1.0, 100.0, 0.0};
    const struct rbk_ask ask = {RBK_REQUEST, 1.0, 0.0, 0.5};
    struct test_table table;

    (void)state;
    fill(&table, &roomy, 0.0);
    for (uint64_t i = 0; i < 138; i++) {
        struct rbk_key keys[] = {test_numbered(i), test_numbered(500 + i), test_numbered(700 + i)};

        if (!test_table_read(&table, &keys[0]).exists)
            (void)test_table_ask(&table, &keys[0], &roomy, 0.5);
        assert_int_equal(test_table_apply(&table, keys, 3, &roomy, &ask), TEST_ACCEPTED);
        for (int k = 0; k < 3; k++)
            assert_true(test_table_read(&table, &keys[k]).exists);
    }
    test_table_audit(&table);
    test_table_free(&table);
}

/* Where one of several keys finds no room, the others get none either. */
static void test_no_room_for_one_is_none_for_all(void **state)
{
    const struct rbk_ask ask = {RBK_REQUEST, 1.0, 0.0, 0.0};
    struct test_table table;

    (void)state;
    test_table_make(&table, rbk_table_size_min(), 1, 1);
    for (uint64_t i = 0; i < 137; i++) {
        struct rbk_key key = test_numbered(i);

        assert_int_equal(test_table_ask(&table, &key, &once, 0.0), TEST_ACCEPTED);
    }
    struct rbk_key keys[] = {test_numbered(500), test_numbered(501)};

    test_table_keep(&table);
    assert_int_equal(test_table_apply(&table, keys, 2, &once, &ask), TEST_FULL);
    assert_true(test_table_same(&table));
    assert_int_equal(test_table_apply(&table, keys, 1, &once, &ask), TEST_ACCEPTED);
    test_table_audit(&table);
    test_table_free(&table);
}

/* A growing table gives up nothing, not even what is empty. */
static void test_growing_gives_up_nothing(void **state)
{
    const struct rbk_limit limit = {10.0, 0.0, 0.0};
    struct rbk_key fresh = test_numbered(1000);
    struct test_table table;

    (void)state;
    fill(&table, &limit, 0.0);
    table.table.growing = true;
    test_table_keep(&table);
    assert_int_equal(test_table_ask(&table, &fresh, &limit, 1000.0), TEST_FULL);
    assert_true(test_table_same(&table));
    table.table.growing = false;
    assert_int_equal(test_table_ask(&table, &fresh, &limit, 1000.0), TEST_ACCEPTED);
    assert_int_equal(test_table_counts(&table).evicted, 0);
    test_table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_victims_follow_the_rule),
        cmocka_unit_test(test_a_delay_is_no_rejection),
        cmocka_unit_test(test_the_tick_belongs_to_the_rule),
        cmocka_unit_test(test_the_strictest_limit_is_remembered),
        cmocka_unit_test(test_an_empty_bucket_forgets_its_limits),
        cmocka_unit_test(test_an_unreadable_bucket_stays),
        cmocka_unit_test(test_a_request_spares_its_own),
        cmocka_unit_test(test_no_room_for_one_is_none_for_all),
        cmocka_unit_test(test_growing_gives_up_nothing),
    };

    return cmocka_run_group_tests_name("table-room", tests, NULL, NULL);
}
