/* SPDX-License-Identifier: MIT */
/*
 * What a store counts by zone: of each limit what it accepted, delayed and had no room for, and
 * nothing that wasn't a request.
 */
#include "cases.h"

#include <stdio.h>
#include <string.h>

static struct redbucket_zone_statistics zones[REDBUCKET_ZONES_MAX];

static size_t read_zones(struct redbucket_store *store)
{
    size_t len = 0;

    assert_int_equal(redbucket_store_zones(store, zones, REDBUCKET_ZONES_MAX, &len), REDBUCKET_OK);
    assert_true(len >= 1 && zones[len - 1].zone_len == 0);
    return len;
}

static void expect(size_t index, const char *zone, const uint64_t counts[3])
{
    assert_string_equal(zones[index].zone, zone);
    assert_int_equal(zones[index].zone_len, strlen(zone));
    assert_int_equal(zones[index].accepted, counts[0]);
    assert_int_equal(zones[index].delayed, counts[1]);
    assert_int_equal(zones[index].rejected, counts[2]);
}

#define COUNTS(...) ((const uint64_t[3]){__VA_ARGS__})

static void each_limit_counts_what_it_decided(void **state)
{
    struct test_case *test = *state;

    add_limit(test, "a", (struct redbucket_limit){.rate = 1, .burst = 1, .zone = "all"});
    add_limit(test, "b", (struct redbucket_limit){.rate = 1, .burst = 9});
    add_limit(test, "c", (struct redbucket_limit){.rate = 1, .delay = 2});
    accepts(test, 0, KEYS({"a", "k"}, {"b", "k"}, {"c", "k"}), 0);
    accepts(test, 0, KEYS({"b", "k"}, {"c", "k"}), 1);
    accepts(test, 0, KEYS({"a", "k"}, {"c", "k"}), 2);
    /* Only a and c have no room; b, which has, decides nothing. */
    rejects(test, 0, KEYS({"a", "k"}, {"b", "k"}, {"c", "k"}), 1);
    rejects(test, 0, KEYS({"b", "k"}, {"a", "k"}), 1);
    assert_int_equal(read_zones(test->store), 4);
    expect(0, "all", COUNTS(2, 0, 2));
    expect(1, "b", COUNTS(2, 0, 0));
    expect(2, "c", COUNTS(3, 2, 1));
    expect(3, "", COUNTS(0, 0, 0));
}

static void nothing_but_requests_counts(void **state)
{
    struct test_case *test = *state;
    struct redbucket_key key = {.limit = "a", .key = "k"};

    add_limit(test, "a", (struct redbucket_limit){.rate = 1});
    for (int operation = REDBUCKET_PEEK; operation <= REDBUCKET_GIVE_BACK; operation++) {
        struct redbucket_request request = {.operation = (enum redbucket_operation)operation,
                                            .keys = &key,
                                            .keys_len = 1,
                                            .cost = 1};

        assert_int_equal(redbucket_decide_at(test->limiter, &request, 1, 0), REDBUCKET_OK);
    }
    accepts(test, 0, NULL, 0, 0);
    assert_int_equal(read_zones(test->store), 2);
    expect(0, "a", COUNTS(0, 0, 0));
    expect(1, "", COUNTS(0, 0, 0));
}

/* Another limiter on the store goes on with the same counters: as after a reload. */
static void counters_outlive_a_limiter(void **state)
{
    struct test_case *test = *state;
    struct redbucket_limit limit = {.rate = 1};

    add_limit(test, "b", limit);
    add_limit(test, "a", limit);
    accepts(test, 0, K, 0);
    redbucket_limiter_destroy(test->limiter);
    assert_int_equal(redbucket_limiter_create(test->store, &test->limiter, NULL), REDBUCKET_OK);
    add_limit(test, "a", limit);
    rejects(test, 0, K, 1);
    assert_int_equal(read_zones(test->store), 3);
    expect(1, "a", COUNTS(1, 0, 1));
}

static void more_zones_than_are_counted_by_themselves(void **state)
{
    struct test_case *test = *state;
    char name[16];

    for (int i = 0; i < 70; i++) {
        (void)snprintf(name, sizeof name, "zone%d", i);
        add_limit(test, name, (struct redbucket_limit){.rate = 1});
        accepts(test, 0, &(struct redbucket_key){name, "k", 0, 0}, 1, 0);
    }
    rejects(test, 0, &(struct redbucket_key){name, "k", 0, 0}, 1, 1);
    assert_int_equal(read_zones(test->store), REDBUCKET_ZONES_MAX);
    expect(63, "zone63", COUNTS(1, 0, 0));
    expect(64, "", COUNTS(6, 0, 1));
}

static void zones_keep_any_bytes(void **state)
{
    struct test_case *test = *state;
    struct redbucket_key key = {.limit = "a", .key = "k"};

    add_limit(test, "a", (struct redbucket_limit){.rate = 1, .zone = "\0\xff\n", .zone_len = 3});
    accepts(test, 0, &key, 1, 0);
    assert_int_equal(read_zones(test->store), 2);
    assert_int_equal(zones[0].zone_len, 3);
    assert_memory_equal(zones[0].zone, "\0\xff\n", 4);
    assert_int_equal(zones[0].accepted, 1);
}

/* A growing store moves to larger tables meanwhile; the others stay as they are. */
static void nothing_is_lost_among_many_keys(void **state)
{
    struct test_case *test = *state;
    char name[16];

    add_limit(test, "a", (struct redbucket_limit){.rate = 0.001});
    for (unsigned i = 0; i < 20000; i++) {
        (void)snprintf(name, sizeof name, "%u", i % 10000);
        if (i < 10000)
            accepts(test, 0, &(struct redbucket_key){"a", name, 0, 0}, 1, 0);
        else
            rejects(test, 0, &(struct redbucket_key){"a", name, 0, 0}, 1, 1000);
    }
    assert_int_equal(read_zones(test->store), 2);
    expect(0, "a", COUNTS(10000, 0, 10000));
}

static void too_little_room_is_refused(void **state)
{
    struct test_case *test = *state;
    size_t len = 7;

    assert_int_equal(redbucket_store_zones(test->store, zones, REDBUCKET_ZONES_MAX - 1, &len),
                     REDBUCKET_ERROR_SPACE);
    assert_int_equal(len, 7);
}

int main(void)
{
    static const struct case_entry cases[] = {
        CASE(each_limit_counts_what_it_decided),
        CASE(nothing_but_requests_counts),
        CASE(counters_outlive_a_limiter),
        CASE(more_zones_than_are_counted_by_themselves),
        CASE(zones_keep_any_bytes),
        CASE(nothing_is_lost_among_many_keys),
        CASE(too_little_room_is_refused),
    };

    return cases_run("zones", "4m", cases, sizeof cases / sizeof cases[0]);
}
