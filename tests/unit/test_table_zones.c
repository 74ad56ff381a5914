/* SPDX-License-Identifier: MIT */
/*
 * The list of zones that a table counts by themselves: who is found again, what has no room, and
 * that bytes which may be anything lead nowhere.
 */
#include "processes.h"
#include "tables.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static unsigned zone_of(struct test_table *table, const char *name)
{
    return rbk_table_zone(&table->table, (const unsigned char *)name, strlen(name));
}

static bool is_named(const struct test_table *table, unsigned index, const char *name)
{
    const unsigned char *zone;
    size_t zone_len;

    return rbk_table_zone_name(&table->table, index, &zone, &zone_len) &&
           zone_len == strlen(name) && memcmp(zone, name, zone_len) == 0;
}

static void test_a_zone_keeps_its_index(void **state)
{
    struct test_table made;
    struct rbk_table other;

    (void)state;
    test_table_make(&made, 65536, 1, 1);
    assert_int_equal(zone_of(&made, "ip"), 1);
    assert_int_equal(zone_of(&made, "i"), 2);
    assert_int_equal(zone_of(&made, "ip:"), 3);
    assert_int_equal(zone_of(&made, "ip"), 1);
    assert_true(is_named(&made, 1, "ip") && is_named(&made, 2, "i") && is_named(&made, 3, "ip:"));
    assert_false(is_named(&made, 0, "ip"));
    assert_false(is_named(&made, 4, ""));
    assert_true(rbk_table_attach(&other, made.bytes, made.size));
    assert_int_equal(rbk_table_zone(&other, (const unsigned char *)"i", 1), 2);
    test_table_free(&made);
}

static void test_zones_that_have_no_room(void **state)
{
    struct test_table made;
    char name[256];

    (void)state;
    test_table_make(&made, 65536, 1, 1);
    for (unsigned i = 1; i <= RBK_TABLE_ZONES + 3; i++) {
        (void)snprintf(name, sizeof name, "zone %u", i);
        assert_int_equal(zone_of(&made, name), i <= RBK_TABLE_ZONES ? i : 0);
    }
    assert_int_equal(zone_of(&made, "zone 64"), 64);
    test_table_free(&made);

    /* Names of 255 bytes: so many as have room, and a shorter one behind them. */
    test_table_make(&made, 65536, 1, 1);
    memset(name, 'x', 255);
    name[255] = '\0';
    for (unsigned i = 1; i <= RBK_ZONE_NAMES / 256 + 2; i++) {
        name[0] = (char)('a' + i);
        assert_int_equal(zone_of(&made, name), i <= RBK_ZONE_NAMES / 256 ? i : 0);
    }
    assert_int_equal(zone_of(&made, "short"), RBK_ZONE_NAMES / 256 + 1);
    assert_int_equal(rbk_table_zone(&made.table, (const unsigned char *)"", 0), 0);
    test_table_free(&made);
}

/* Whoever died before the length was written has added nothing. */
static void test_a_name_that_was_begun_is_not_there(void **state)
{
    struct test_table made;

    (void)state;
    test_table_make(&made, 65536, 1, 1);
    assert_int_equal(zone_of(&made, "ip"), 1);
    memcpy(&made.table.header->names[3], "\4user", 5);
    assert_false(is_named(&made, 2, "user"));
    assert_int_equal(zone_of(&made, "path"), 2);
    assert_true(is_named(&made, 2, "path"));
    test_table_free(&made);
}

static void test_damaged_names_lead_nowhere(void **state)
{
    unsigned seed = 5;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct test_table made;
        struct rbk_zone_counts counts[RBK_TABLE_ZONES + 1] = {{0}};

        test_table_make(&made, rbk_table_size_min(), 1, 1);
        for (unsigned i = 0; i < RBK_ZONE_NAMES; i++)
            made.table.header->names[i] = (unsigned char)test_random(&seed, round % 3 ? 256 : 3);
        made.table.header->names_len =
            round % 2 ? test_random(&seed, RBK_ZONE_NAMES + 9) : UINT32_MAX - (unsigned)round;
        for (unsigned i = 0; i < 3; i++)
            assert_true(zone_of(&made, (const char *[]){"a", "ip", "user"}[i]) <= RBK_TABLE_ZONES);
        for (unsigned i = 0; i < RBK_TABLE_ZONES + 2; i++)
            (void)is_named(&made, i, "ip");
        rbk_table_count_zones(&made.table, 0, counts);
        test_table_free(&made);
    }
}

static void test_a_table_that_grows_takes_them_along(void **state)
{
    struct test_table small, large;
    struct rbk_zone_counts counts[RBK_TABLE_ZONES + 1] = {{0}};

    (void)state;
    test_table_make(&small, 65536, 1, 1);
    test_table_make(&large, 131072, 1, 1);
    assert_int_equal(zone_of(&small, "ip"), 1);
    small.table.shards[0].zones[1] = (struct rbk_zone_counts){3, 2, 1};
    rbk_table_take_counts(&large.table, &small.table);
    rbk_table_count_zones(&large.table, 0, counts);
    assert_true(is_named(&large, 1, "ip"));
    assert_int_equal(zone_of(&large, "user"), 2);
    assert_int_equal(counts[1].accepted, 3);
    assert_int_equal(counts[1].delayed, 2);
    assert_int_equal(counts[1].rejected, 1);
    test_table_free(&small);
    test_table_free(&large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_zone_keeps_its_index),
        cmocka_unit_test(test_zones_that_have_no_room),
        cmocka_unit_test(test_a_name_that_was_begun_is_not_there),
        cmocka_unit_test(test_damaged_names_lead_nowhere),
        cmocka_unit_test(test_a_table_that_grows_takes_them_along),
    };

    return cmocka_run_group_tests_name("table-zones", tests, NULL, NULL);
}
