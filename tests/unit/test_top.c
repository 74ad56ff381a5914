/* SPDX-License-Identifier: MIT */
/*
 * What top makes of two passes: rates that are never too high, who is kept out, and the hottest
 * keys, with memory that is bounded however many keys there are.
 */
#include "../../cli/top_frame.h"
#include "../../cli/top_pass.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static struct cli_context context = {.store_url = (char *)"shm:test"};

/* A bucket as a walk tells of it. */
struct given {
    const char *zone;
    const char *key;
    double timestamp;
    double value;
    double now;
    double rate;
    double depth;
};

static void meet(struct cli_top *top, const struct given *given)
{
    const struct redbucket_bucket bucket = {
        .zone = given->zone,
        .zone_len = strlen(given->zone),
        .key = given->key,
        .key_len = strlen(given->key),
        .state = {true, given->timestamp, given->value},
        .now = given->now,
        .rate = given->rate,
        .depth = given->depth,
    };

    rbk_top_visit(top, &bucket);
}

/* One pass over some buckets, as many as have a key. */
static const struct cli_top_view *pass(struct cli_top *top, const struct given *given)
{
    rbk_top_begin(top);
    for (; given->key != NULL; given++)
        meet(top, given);
    rbk_top_end(top);
    return rbk_top_view(top);
}

static struct cli_top *make(size_t keys_max)
{
    struct cli_top *top = rbk_top_create(&context, keys_max);

    assert_non_null(top);
    return top;
}

static void test_what_was_taken_is_told_of_two_passes(void **state)
{
    struct cli_top *top = make(10);
    const struct cli_top_view *view;

    (void)state;
    view = pass(top, (struct given[]){{"ip", "a", 100, 5, 101, 1, 9}, {0}});
    assert_false(view->rated);
    assert_false(view->keys[0].rated);
    /* 5 at 100 are 3 at 102; 7 at 102 are 4 more, seen 2 seconds later. */
    view = pass(top, (struct given[]){{"ip", "a", 102, 7, 103, 1, 9}, {0}});
    assert_true(view->rated && view->keys[0].rated);
    assert_true(view->keys[0].taken_per_second == 2.0);
    assert_true(view->zones[0].taken_per_second == 2.0);
    assert_true(view->taken_per_second == 2.0);
    /* Nothing since. */
    view = pass(top, (struct given[]){{"ip", "a", 102, 7, 104, 1, 9}, {0}});
    assert_true(view->keys[0].rated && view->keys[0].taken_per_second == 0.0);
    rbk_top_destroy(top);
}

static void test_a_bucket_that_ran_empty_took_at_least_what_is_in_it(void **state)
{
    struct cli_top *top = make(10);
    const struct cli_top_view *view;

    (void)state;
    (void)pass(top, (struct given[]){{"ip", "a", 100, 5, 100, 10, 9}, {0}});
    view = pass(top, (struct given[]){{"ip", "a", 110, 3, 110, 10, 9}, {0}});
    assert_true(view->keys[0].taken_per_second == 0.3);
    /* Given back. */
    view = pass(top, (struct given[]){{"ip", "a", 110, 1, 111, 10, 9}, {0}});
    assert_true(view->taken_per_second == 0.0);
    rbk_top_destroy(top);
}

/* A new one took all that is in it; one that is only new to us, perhaps not. */
static void test_new_buckets(void **state)
{
    struct cli_top *top = make(10);
    const struct cli_top_view *view;

    (void)state;
    (void)pass(top, (struct given[]){{"ip", "a", 100, 1, 100, 0.001, 9}, {0}});
    view = pass(top, (struct given[]){{"ip", "a", 100, 1, 102, 0.001, 9},
                                      {"ip", "new", 101, 4, 102, 0.001, 9},
                                      {"ip", "old", 50, 4, 102, 0.001, 9},
                                      {0}});
    assert_int_equal(view->keys_len, 3);
    assert_memory_equal(view->keys[0].key, "new", 3);
    assert_true(view->keys[0].taken_per_second == 2.0);
    assert_true(view->taken_per_second == 2.0);
    /* Behind a pass with a gap nobody is known to be new. */
    rbk_top_gap(top);
    view = pass(top, (struct given[]){{"ip", "a", 100, 1, 104, 0.001, 9},
                                      {"ip", "newer", 103, 4, 104, 0.001, 9},
                                      {0}});
    assert_true(view->taken_per_second == 0.0);
    rbk_top_destroy(top);
}

/* Without a rate, what drained can't be told from what wasn't taken. */
static void test_a_rate_that_nobody_knows(void **state)
{
    struct cli_top *top = make(10);
    const struct cli_top_view *view;

    (void)state;
    (void)pass(top, (struct given[]){{"ip", "a", 100, 5, 100, 0, 0}, {0}});
    view = pass(top, (struct given[]){{"ip", "a", 104, 9, 104, 0, 0}, {0}});
    assert_true(view->keys[0].taken_per_second == 1.0);
    assert_false(view->zones[0].bounded);
    assert_false(view->keys[0].kept_out);
    rbk_top_destroy(top);
}

static void test_who_is_kept_out(void **state)
{
    struct cli_top *top = make(10);
    const struct cli_top_view *view = pass(top, (struct given[]){
                                                    {"ip", "full", 100, 10, 100, 1, 9},
                                                    {"ip", "room", 100, 9, 100, 1, 9},
                                                    {"ip", "drained", 100, 9, 200, 1, 9},
                                                    {"user", "full", 100, 2, 100, 1, 0},
                                                    {0},
                                                });

    (void)state;
    assert_int_equal(view->buckets, 3);
    assert_int_equal(view->drained, 1);
    assert_int_equal(view->kept_out, 2);
    assert_int_equal(view->zones_len, 2);
    assert_int_equal(view->zones[0].buckets, 2);
    assert_int_equal(view->zones[0].kept_out, 1);
    assert_int_equal(view->zones[1].kept_out, 1);
    rbk_top_destroy(top);
}

/* A server may name a key twice in a pass. */
static void test_a_key_counts_once(void **state)
{
    struct cli_top *top = make(10);
    const struct cli_top_view *view = pass(
        top, (struct given[]){{"ip", "a", 100, 5, 100, 1, 9}, {"ip", "a", 100, 6, 100, 1, 9}, {0}});

    (void)state;
    assert_int_equal(view->buckets, 1);
    rbk_top_destroy(top);
}

static void meet_numbered(struct cli_top *top, unsigned number, double now, double value)
{
    char key[16];

    (void)snprintf(key, sizeof key, "k%06u", number);
    meet(top, &(struct given){"ip", key, now, value, now, 0.001, 1e6});
}

static void test_the_hottest_are_kept_in_order(void **state)
{
    struct cli_top *top = make(5);
    const struct cli_top_view *view;

    (void)state;
    for (double now = 100; now <= 102; now += 2) {
        rbk_top_begin(top);
        for (unsigned i = 0; i < 1000; i++)
            meet_numbered(top, i, now, now == 100 ? 1.0 : 1.0 + (i * 7919u) % 1000u);
        rbk_top_end(top);
    }
    view = rbk_top_view(top);
    assert_int_equal(view->buckets, 1000);
    assert_int_equal(view->keys_len, 5);
    for (size_t i = 0; i < 5; i++) {
        const double taken = view->keys[i].taken_per_second;

        assert_true(taken > (999.0 - (double)i) / 2 && taken < (999.5 - (double)i) / 2);
    }
    rbk_top_order(top, true);
    rbk_top_begin(top);
    meet_numbered(top, 1, 104, 900);
    meet_numbered(top, 2, 104, 5000);
    rbk_top_end(top);
    assert_memory_equal(rbk_top_view(top)->keys[0].key, "k000002", 7);
    rbk_top_destroy(top);
}

/* What has no room is counted, and nobody is said to be new for it. */
static void test_more_keys_than_can_be_compared(void **state)
{
    struct cli_top *top = make(5);
    const struct cli_top_view *view;

    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        rbk_top_begin(top);
        for (unsigned i = 0; i < 400000; i++)
            meet_numbered(top, i, 100 + round, 5);
        rbk_top_end(top);
    }
    view = rbk_top_view(top);
    assert_int_equal(view->buckets, 400000);
    assert_true(view->untracked > 100000 && view->untracked < 250000);
    assert_true(view->taken_per_second < 1000);
    rbk_top_destroy(top);
}

static void test_more_zones_than_are_kept(void **state)
{
    struct cli_top *top = make(5);
    char zone[16];
    uint64_t sum = 0;

    (void)state;
    rbk_top_begin(top);
    for (unsigned i = 0; i < 200; i++) {
        (void)snprintf(zone, sizeof zone, "z%u", i);
        meet(top, &(struct given){zone, "k", 100, 5, 100, 1, 9});
    }
    rbk_top_end(top);
    assert_int_equal(rbk_top_view(top)->zones_len, CLI_TOP_ZONES);
    assert_int_equal(rbk_top_view(top)->zones[0].zone_len, 0);
    for (size_t i = 0; i < CLI_TOP_ZONES; i++)
        sum += rbk_top_view(top)->zones[i].buckets;
    assert_int_equal(sum, 200);
    rbk_top_destroy(top);
}

/* Whatever a key holds, and however small the page is: no line is longer, and none too many. */
static void test_a_page_keeps_to_its_size(void **state)
{
    struct cli_top *top = make(50);
    const struct cli_top_table table = {.known = true, .rated = true, .capacity = 10, .evicted = 1};
    char key[600];

    (void)state;
    memset(key, '\x1b', sizeof key);
    key[sizeof key - 1] = '\0';
    rbk_top_begin(top);
    for (unsigned i = 0; i < 100; i++)
        meet_numbered(top, i, 100, 5);
    meet(top, &(struct given){"\n\xff", key, 100, 1e9, 100, 1, 9});
    rbk_top_end(top);
    for (size_t columns = 1; columns < 200; columns += 7) {
        const struct cli_top_frame frame = {
            .context = &context,
            .view = rbk_top_view(top),
            .table = &table,
            .status = "something is wrong",
            .columns = columns,
            .rows = columns / 3,
        };
        char *page = NULL;
        size_t size, column = 0, rows = 0;
        FILE *out = open_memstream(&page, &size);

        assert_non_null(out);
        rbk_top_text(&frame, out);
        assert_int_equal(fclose(out), 0);
        for (size_t i = 0; i < size; i++) {
            assert_true(page[i] == '\n' || (page[i] >= 0x20 && page[i] < 0x7f));
            column = page[i] == '\n' ? 0 : column + 1;
            rows += page[i] == '\n';
            assert_true(column <= columns);
        }
        assert_true(rows <= columns / 3);
        free(page);
    }
    rbk_top_destroy(top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_taken_is_told_of_two_passes),
        cmocka_unit_test(test_a_bucket_that_ran_empty_took_at_least_what_is_in_it),
        cmocka_unit_test(test_new_buckets),
        cmocka_unit_test(test_a_rate_that_nobody_knows),
        cmocka_unit_test(test_who_is_kept_out),
        cmocka_unit_test(test_a_key_counts_once),
        cmocka_unit_test(test_the_hottest_are_kept_in_order),
        cmocka_unit_test(test_more_keys_than_can_be_compared),
        cmocka_unit_test(test_more_zones_than_are_kept),
        cmocka_unit_test(test_a_page_keeps_to_its_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
