/* SPDX-License-Identifier: MIT */
/*
 * What a summary is made of: the sketch of the keys hit hardest, bins over time, and bytes and
 * numbers as text. The sketch is compared with exact counts, and its promise is checked where it no
 * longer is exact.
 */
#include "../../cli/replay/faults.h"
#include "../../cli/replay/histogram.h"
#include "../../cli/replay/hits.h"
#include "../../cli/replay/printable.h"
#include "../../cli/replay/progress.h"
#include "../test.h"

#include <stdio.h>
#include <stdlib.h>

enum { BINS = 128, SHOWN = 24 };

static struct rbk_span span(const char *text)
{
    return (struct rbk_span){text, strlen(text)};
}

static void hit(struct rbk_hits *hits, const char *key, unsigned rejected, unsigned delayed)
{
    for (unsigned i = 0; i < rejected + delayed; i++)
        assert_int_equal(rbk_hits_add(hits, span(key),
                                      i < rejected ? RBK_HISTOGRAM_REJECTED : RBK_HISTOGRAM_DELAYED,
                                      1),
                         REDBUCKET_OK);
}

static void assert_hit(const struct rbk_hit *hit, const char *key, uint64_t rejected,
                       uint64_t delayed)
{
    assert_int_equal(hit->key_len, strlen(key));
    assert_memory_equal(hit->key.bytes, key, hit->key.len);
    assert_int_equal(hit->rejected, rejected);
    assert_int_equal(hit->delayed, delayed);
    assert_int_equal(hit->missed, 0);
}

static void keys_are_ranked_by_rejections_then_delays_then_bytes(void **state)
{
    struct rbk_hits *hits = rbk_hits_create(16, false);
    struct rbk_hit top[8];
    bool exact;

    (void)state;
    assert_non_null(hits);
    hit(hits, "many delays", 0, 50);
    hit(hits, "one", 1, 0);
    hit(hits, "two", 2, 0);
    hit(hits, "b", 2, 3);
    hit(hits, "a", 2, 3);
    hit(hits, "", 0, 1);
    assert_int_equal(rbk_hits_top(hits, 8, top), 6);
    assert_hit(&top[0], "a", 2, 3);
    assert_hit(&top[1], "b", 2, 3);
    assert_hit(&top[2], "two", 2, 0);
    assert_hit(&top[3], "one", 1, 0);
    assert_hit(&top[4], "many delays", 0, 50);
    assert_hit(&top[5], "", 0, 1);
    assert_int_equal(rbk_hits_top(hits, 2, top), 2);
    assert_hit(&top[1], "b", 2, 3);
    assert_int_equal(rbk_hits_keys(hits, &exact), 6);
    assert_true(exact);
    rbk_hits_destroy(hits);
    rbk_hits_destroy(NULL);
}

static void keys_longer_than_what_is_kept_are_told_apart(void **state)
{
    struct rbk_hits *hits = rbk_hits_create(16, false);
    struct rbk_hit top[4];
    char key[RBK_HITS_KEY + 20];
    bool exact;

    (void)state;
    assert_non_null(hits);
    memset(key, 'A', sizeof(key));
    for (size_t i = 0; i < 3; i++) {
        key[sizeof(key) - 2] = (char)('0' + i);
        assert_int_equal(
            rbk_hits_add(hits, (struct rbk_span){key, sizeof(key) - 1}, RBK_HISTOGRAM_REJECTED, 1),
            REDBUCKET_OK);
    }
    assert_int_equal(
        rbk_hits_add(hits, (struct rbk_span){key, RBK_HITS_KEY}, RBK_HISTOGRAM_REJECTED, 1),
        REDBUCKET_OK);
    assert_int_equal(rbk_hits_keys(hits, &exact), 4);
    assert_int_equal(rbk_hits_top(hits, 4, top), 4);
    assert_int_equal(top[3].key_len, sizeof(key) - 1);
    assert_int_equal(top[3].key.len, RBK_HITS_KEY);
    rbk_hits_destroy(hits);
}

/* Heavy keys among a crowd: each of them is found, and its true count lies within what is said. */
static void heavy_keys_are_found_in_a_crowd_that_does_not_fit(void **state)
{
    enum { COUNTERS = 64, HEAVY = 5, HITS = 200000 };
    struct rbk_hits *hits = rbk_hits_create(COUNTERS, false);
    struct rbk_hit top[COUNTERS];
    unsigned counts[HEAVY] = {0};
    unsigned seed = 5;
    bool exact;
    size_t len;

    (void)state;
    assert_non_null(hits);
    for (int i = 0; i < HITS; i++) {
        const int roll = rand_r(&seed) % 100;
        char key[32];

        if (roll < 50) {
            snprintf(key, sizeof(key), "heavy%d", roll % HEAVY);
            counts[roll % HEAVY]++;
        } else {
            snprintf(key, sizeof(key), "crowd%d", rand_r(&seed) % 50000);
        }
        assert_int_equal(rbk_hits_add(hits, span(key), RBK_HISTOGRAM_REJECTED, i), REDBUCKET_OK);
    }
    len = rbk_hits_top(hits, COUNTERS, top);
    assert_int_equal(len, COUNTERS);
    assert_int_equal(rbk_hits_keys(hits, &exact), COUNTERS);
    assert_false(exact);
    for (int heavy = 0; heavy < HEAVY; heavy++) {
        const size_t at = (size_t)(top[heavy].key.bytes[5] - '0');

        assert_memory_equal(top[heavy].key.bytes, "heavy", 5);
        assert_true(top[heavy].rejected <= counts[at]);
        assert_true(top[heavy].rejected + top[heavy].missed >= counts[at]);
    }
    rbk_hits_destroy(hits);
}

/* One counter: every other key takes it over, and inherits the count as what it may have missed. */
static void a_counter_taken_over_says_what_it_may_have_missed(void **state)
{
    struct rbk_hits *hits = rbk_hits_create(1, false);
    struct rbk_hit top[1];

    (void)state;
    assert_non_null(hits);
    hit(hits, "a", 3, 0);
    hit(hits, "b", 1, 0);
    hit(hits, "c", 1, 1);
    assert_int_equal(rbk_hits_top(hits, 1, top), 1);
    assert_int_equal(top[0].key_len, 1);
    assert_memory_equal(top[0].key.bytes, "c", 1);
    assert_int_equal(top[0].rejected, 1);
    assert_int_equal(top[0].delayed, 1);
    assert_int_equal(top[0].missed, 4);
    rbk_hits_destroy(hits);
}

/* Whoever takes over takes the smallest, also when it wasn't the last to come. */
static void the_smallest_counter_is_taken_over(void **state)
{
    struct rbk_hits *hits = rbk_hits_create(3, false);
    struct rbk_hit top[3];

    (void)state;
    assert_non_null(hits);
    hit(hits, "a", 2, 0);
    hit(hits, "b", 1, 0);
    hit(hits, "c", 5, 0);
    hit(hits, "b", 3, 0);
    hit(hits, "d", 3, 0);
    assert_int_equal(rbk_hits_top(hits, 3, top), 3);
    assert_hit(&top[0], "c", 5, 0);
    assert_hit(&top[1], "b", 4, 0);
    assert_memory_equal(top[2].key.bytes, "d", 1);
    assert_int_equal(top[2].missed, 2);
    rbk_hits_destroy(hits);
}

static uint64_t total(const struct rbk_histogram *histogram, enum rbk_histogram_kind kind)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < histogram->len; i++)
        sum += histogram->bins[i].counts[kind];
    return sum;
}

/* Two sketches of the same keys: each finds the other's, and says what it can't know. */
static void a_key_is_found_in_another_sketch(void **state)
{
    struct rbk_hits *one = rbk_hits_create(16, false);
    struct rbk_hits *other = rbk_hits_create(2, false);
    struct rbk_hit top[2];
    struct rbk_hit found;

    (void)state;
    assert_non_null(one);
    assert_non_null(other);
    hit(one, "a", 5, 0);
    hit(one, "b", 1, 0);
    hit(other, "a", 0, 3);
    assert_int_equal(rbk_hits_top(one, 2, top), 2);
    rbk_hits_find(other, &top[0], &found);
    assert_hit(&found, "a", 0, 3);
    rbk_hits_find(other, &top[1], &found);
    assert_hit(&found, "b", 0, 0);
    hit(other, "c", 2, 0);
    rbk_hits_find(other, &top[1], &found);
    assert_hit(&found, "b", 0, 0);
    hit(other, "d", 2, 0); /* takes over c's counter */
    rbk_hits_find(other, &top[1], &found);
    assert_int_equal(found.rejected + found.delayed, 0);
    assert_int_equal(found.missed, 3);
    rbk_hits_destroy(one);
    rbk_hits_destroy(other);
}

/* A key's timeline has its own hits alone, also behind growing counters and for one that took a
 * counter over. */
static void a_timeline_has_the_hits_of_its_key(void **state)
{
    enum { KEYS = 300 };
    struct rbk_hits *hits = rbk_hits_create(KEYS, true);
    struct rbk_hit top[KEYS];

    (void)state;
    assert_non_null(hits);
    for (int i = 0; i < KEYS * 7; i++) {
        char key[16];

        snprintf(key, sizeof(key), "key%d", i % KEYS);
        assert_int_equal(rbk_hits_add(hits, span(key),
                                      i % 2 ? RBK_HISTOGRAM_DELAYED : RBK_HISTOGRAM_REJECTED, i),
                         REDBUCKET_OK);
    }
    assert_int_equal(rbk_hits_add(hits, span("late"), RBK_HISTOGRAM_REJECTED, 1e6), REDBUCKET_OK);
    assert_int_equal(rbk_hits_top(hits, KEYS, top), KEYS);
    for (size_t i = 0; i < KEYS; i++) {
        assert_non_null(top[i].timeline);
        assert_int_equal(total(top[i].timeline, RBK_HISTOGRAM_REJECTED), top[i].rejected);
        assert_int_equal(total(top[i].timeline, RBK_HISTOGRAM_DELAYED), top[i].delayed);
    }
    rbk_hits_destroy(hits);
}

static void a_moment_is_one_bin(void **state)
{
    struct rbk_histogram_bin bins[BINS];
    struct rbk_histogram histogram;

    (void)state;
    rbk_histogram_init(&histogram, bins, BINS);
    rbk_histogram_settle(&histogram, SHOWN);
    assert_int_equal(histogram.len, 0);
    for (int i = 0; i < 3; i++)
        rbk_histogram_add(&histogram, 1431857103, RBK_HISTOGRAM_REJECTED);
    rbk_histogram_settle(&histogram, SHOWN);
    assert_int_equal(histogram.len, 1);
    assert_int_equal(histogram.bins[0].counts[RBK_HISTOGRAM_REJECTED], 3);
    assert_int_equal(histogram.first * histogram.width_ms, INT64_C(1431857103000));
}

static void four_days_are_shown_in_rows_of_hours(void **state)
{
    struct rbk_histogram_bin bins[BINS];
    struct rbk_histogram histogram;

    (void)state;
    rbk_histogram_init(&histogram, bins, BINS);
    /* From 2015-05-17 10:05 on, 83 hours, one a minute. */
    for (int i = 0; i < 83 * 60; i++)
        rbk_histogram_add(&histogram, 1431857103.0 + i * 60, RBK_HISTOGRAM_AT_ONCE);
    rbk_histogram_settle(&histogram, SHOWN);
    assert_int_equal(histogram.width_ms, 4 * 3600 * 1000);
    assert_int_equal(histogram.first, 1431849600 / (4 * 3600)); /* 08:00 */
    assert_int_equal(histogram.len, 22);
    assert_int_equal(histogram.bins[0].counts[RBK_HISTOGRAM_AT_ONCE], 115);
    assert_int_equal(histogram.bins[1].counts[RBK_HISTOGRAM_AT_ONCE], 240);
    assert_int_equal(total(&histogram, RBK_HISTOGRAM_AT_ONCE), 83 * 60);
}

/* However times jump about, into the past and beyond all dates, every count is kept, and bins begin
 * at multiples of their width. */
static void nothing_is_lost_however_times_jump(void **state)
{
    static const double scales[] = {1e-3, 1, 60, 3600, 1e6, 1e9, 1e300};
    unsigned seed = 9;

    (void)state;
    for (size_t scale = 0; scale < sizeof(scales) / sizeof(scales[0]); scale++) {
        struct rbk_histogram_bin bins[BINS];
        struct rbk_histogram histogram;

        rbk_histogram_init(&histogram, bins, BINS);
        for (int i = 0; i < 2000; i++) {
            const double time_s = ((double)rand_r(&seed) / RAND_MAX - 0.5) * scales[scale] * 100;

            rbk_histogram_add(&histogram, time_s, (enum rbk_histogram_kind)(i % 3));
            assert_true(histogram.len <= BINS);
        }
        rbk_histogram_settle(&histogram, SHOWN);
        assert_true(histogram.len <= SHOWN);
        for (int kind = 0; kind < RBK_HISTOGRAM_KINDS; kind++)
            assert_in_range(total(&histogram, (enum rbk_histogram_kind)kind), 666, 667);
    }
}

/* Each count is in the bin of its time: merged bins against a plain division. */
static void counts_stay_in_the_bin_of_their_time(void **state)
{
    struct rbk_histogram_bin bins[BINS];
    struct rbk_histogram histogram;
    uint64_t expected[SHOWN] = {0};
    static double times[5000];
    unsigned seed = 13;

    (void)state;
    rbk_histogram_init(&histogram, bins, BINS);
    for (int i = 0; i < 5000; i++) {
        times[i] = -5000 + (double)(rand_r(&seed) % 9000);
        rbk_histogram_add(&histogram, times[i], RBK_HISTOGRAM_DELAYED);
    }
    rbk_histogram_settle(&histogram, SHOWN);
    for (int i = 0; i < 5000; i++) {
        const int64_t from_first = (int64_t)times[i] * 1000 - histogram.first * histogram.width_ms;

        expected[from_first / histogram.width_ms]++;
    }
    for (size_t i = 0; i < histogram.len; i++)
        assert_int_equal(histogram.bins[i].counts[RBK_HISTOGRAM_DELAYED], expected[i]);
}

static void assert_printable(struct rbk_span bytes, size_t whole_len, size_t columns,
                             const char *expected)
{
    char out[RBK_PRINTABLE_SIZE];

    assert_int_equal(rbk_printable(bytes, whole_len, columns, out), strlen(expected));
    assert_string_equal(out, expected);
}

static void bytes_are_escaped_and_cut_to_their_columns(void **state)
{
    static const char bytes[] = "a\n\x1b[31m\\\0\xff";

    (void)state;
    assert_printable((struct rbk_span){bytes, 10}, 10, 40, "a\\x0a\\x1b[31m\\\\\\x00\\xff");
    assert_printable(span("12345"), 5, 5, "12345");
    assert_printable(span("123456"), 6, 5, "12...");
    assert_printable(span("12345"), 6, 8, "12345...");
    assert_printable(span("12345"), 6, 7, "1234...");
    assert_printable(span("1\n345"), 5, 7, "1...");
    assert_printable(span("\n\n\n"), 3, 12, "\\x0a\\x0a\\x0a");
    assert_printable(span("\n\n\n"), 3, 11, "\\x0a\\x0a...");
    assert_printable(span("\n\n"), 2, 4, "...");
    assert_printable(span(""), 0, 4, "");
}

static void numbers_are_grouped_and_shares_never_lie(void **state)
{
    static const struct {
        uint64_t number;
        const char *text;
    } numbers[] = {
        {0, "0"},          {999, "999"},           {1000, "1,000"},
        {12345, "12,345"}, {1234567, "1,234,567"}, {UINT64_MAX, "18,446,744,073,709,551,615"}};
    static const struct {
        uint64_t part;
        uint64_t whole;
        const char *text;
    } shares[] = {{0, 0, "-"},           {0, 7, "0.0 %"},
                  {7, 7, "100.0 %"},     {9917, 10000, "99.2 %"},
                  {1, 100000, "<0.1 %"}, {99999, 100000, ">99.9 %"},
                  {1, 3, "33.3 %"},      {2, 3, "66.7 %"}};
    char text[RBK_NUMBER_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        rbk_grouped(numbers[i].number, text);
        assert_string_equal(text, numbers[i].text);
    }
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        rbk_share(shares[i].part, shares[i].whole, text);
        assert_string_equal(text, shares[i].text);
    }
}

static void the_first_fault_is_the_first_in_the_order_read(void **state)
{
    char first[] = "a.log";
    char second[] = "-";
    char *const files[] = {first, second};
    struct rbk_faults faults = {.files = files};

    (void)state;
    rbk_faults_add(&faults, (struct rbk_place){1, 3}, "later", span("x"));
    assert_string_equal(rbk_faults_file(&faults), "standard input");
    rbk_faults_add(&faults, (struct rbk_place){0, 9}, "first", span("\t\x80"));
    rbk_faults_add(&faults, (struct rbk_place){1, 1}, "last", span("y"));
    assert_int_equal(faults.count, 3);
    assert_int_equal(faults.first.line, 9);
    assert_string_equal(faults.reason, "first");
    assert_string_equal(faults.text, "\\x09\\x80");
    assert_string_equal(rbk_faults_file(&faults), "a.log");
}

static void progress_tells_the_rate_and_the_time_left(void **state)
{
    static const struct {
        struct rbk_progress_done done;
        const char *text;
    } cases[] = {
        {{4300000, 430, 1000, 4}, " 43 %  4,300,000 lines  1,075,000 lines/s  6 s left"},
        {{1000, 0, 0, 2}, "1,000 lines  500 lines/s"},
        {{1000, 0, 99, 2}, "1,000 lines  500 lines/s"},
        {{10, 1, 100, 2}, "  1 %  10 lines  5 lines/s  3 min 18 s left"},
        {{10, 1, 10000, 2}, "  0 %  10 lines  5 lines/s  5 h 33 min left"},
        {{10, 100, 100, 2}, "100 %  10 lines  5 lines/s  0 s left"},
        {{10, 101, 100, 2}, "10 lines  5 lines/s"}, /* a file that has grown meanwhile */
    };
    char text[RBK_PROGRESS_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rbk_progress_text(&cases[i].done, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_ranked_by_rejections_then_delays_then_bytes),
        cmocka_unit_test(keys_longer_than_what_is_kept_are_told_apart),
        cmocka_unit_test(heavy_keys_are_found_in_a_crowd_that_does_not_fit),
        cmocka_unit_test(a_counter_taken_over_says_what_it_may_have_missed),
        cmocka_unit_test(the_smallest_counter_is_taken_over),
        cmocka_unit_test(a_key_is_found_in_another_sketch),
        cmocka_unit_test(a_timeline_has_the_hits_of_its_key),
        cmocka_unit_test(a_moment_is_one_bin),
        cmocka_unit_test(four_days_are_shown_in_rows_of_hours),
        cmocka_unit_test(nothing_is_lost_however_times_jump),
        cmocka_unit_test(counts_stay_in_the_bin_of_their_time),
        cmocka_unit_test(bytes_are_escaped_and_cut_to_their_columns),
        cmocka_unit_test(numbers_are_grouped_and_shares_never_lie),
        cmocka_unit_test(the_first_fault_is_the_first_in_the_order_read),
        cmocka_unit_test(progress_tells_the_rate_and_the_time_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
