/* SPDX-License-Identifier: MIT */
/*
 * Statistics as OpenMetrics text: which store tells what, names of any bytes, rooms of any size. A
 * parser reads texts of the command in tests/cli/test_metrics.py.
 */
#include "redbucket/metrics.h"
#include "test.h"

#include <stdlib.h>

static const struct redbucket_statistics embedded = {
    .size = sizeof(struct redbucket_statistics),
    .accepted = 11,
    .delayed = 2,
    .rejected = 33,
    .evicted = 4,
    .full = 5,
    .recovered = 6,
    .buckets = 7,
    .capacity = 1000,
    .bytes = 65536,
};

static const struct redbucket_statistics served = {
    .size = sizeof(struct redbucket_statistics),
    .accepted = UINT64_MAX,
    .delayed = 1,
    .rejected = 2,
    .failed = 3,
    .degraded = 4,
    .denied = 5,
    .leased = 6,
};

static const char *write_text(const struct redbucket_metered *stores, size_t len)
{
    static char bytes[REDBUCKET_METRICS_SIZE(2)];
    struct redbucket_text text = {bytes, sizeof bytes, 0};

    assert_int_equal(redbucket_metrics(stores, len, &text), REDBUCKET_OK);
    assert_int_equal(text.len, strlen(bytes));
    return bytes;
}

static void test_a_table_and_a_server_tell_what_they_know(void **state)
{
    const struct redbucket_metered stores[] = {{.name = "here", .statistics = &embedded},
                                               {.name = "there", .statistics = &served}};

    (void)state;
    assert_string_equal(
        write_text(stores, 2),
        "# TYPE redbucket_build info\n"
        "# HELP redbucket_build The library that counts.\n"
        "redbucket_build_info{version=\"0.1.0\"} 1\n"
        "# TYPE redbucket_accepted_requests counter\n"
        "# HELP redbucket_accepted_requests Requests accepted, delayed ones among them.\n"
        "redbucket_accepted_requests_total{store=\"here\"} 11\n"
        "redbucket_accepted_requests_total{store=\"there\"} 18446744073709551615\n"
        "# TYPE redbucket_delayed_requests counter\n"
        "# HELP redbucket_delayed_requests Requests accepted with a wait.\n"
        "redbucket_delayed_requests_total{store=\"here\"} 2\n"
        "redbucket_delayed_requests_total{store=\"there\"} 1\n"
        "# TYPE redbucket_rejected_requests counter\n"
        "# HELP redbucket_rejected_requests Requests rejected, denied ones among them.\n"
        "redbucket_rejected_requests_total{store=\"here\"} 33\n"
        "redbucket_rejected_requests_total{store=\"there\"} 2\n"
        "# TYPE redbucket_denied_requests counter\n"
        "# HELP redbucket_denied_requests Requests rejected without asking the server.\n"
        "redbucket_denied_requests_total{store=\"there\"} 5\n"
        "# TYPE redbucket_leased_requests counter\n"
        "# HELP redbucket_leased_requests Requests accepted out of a lease, without asking the "
        "server.\n"
        "redbucket_leased_requests_total{store=\"there\"} 6\n"
        "# TYPE redbucket_failed_requests counter\n"
        "# HELP redbucket_failed_requests Requests that the server failed to answer.\n"
        "redbucket_failed_requests_total{store=\"there\"} 3\n"
        "# TYPE redbucket_degraded_requests counter\n"
        "# HELP redbucket_degraded_requests Requests that a failure policy answered.\n"
        "redbucket_degraded_requests_total{store=\"here\"} 0\n"
        "redbucket_degraded_requests_total{store=\"there\"} 4\n"
        "# TYPE redbucket_refused_requests counter\n"
        "# HELP redbucket_refused_requests Requests that failed because the table was full.\n"
        "redbucket_refused_requests_total{store=\"here\"} 5\n"
        "# TYPE redbucket_evicted_buckets counter\n"
        "# HELP redbucket_evicted_buckets Buckets given up before they were empty.\n"
        "redbucket_evicted_buckets_total{store=\"here\"} 4\n"
        "# TYPE redbucket_recoveries counter\n"
        "# HELP redbucket_recoveries Changes undone because a process died in the middle.\n"
        "redbucket_recoveries_total{store=\"here\"} 6\n"
        "# TYPE redbucket_buckets gauge\n"
        "# HELP redbucket_buckets Buckets held now.\n"
        "redbucket_buckets{store=\"here\"} 7\n"
        "# TYPE redbucket_capacity_buckets gauge\n"
        "# HELP redbucket_capacity_buckets Buckets with short keys that fit.\n"
        "redbucket_capacity_buckets{store=\"here\"} 1000\n"
        "# TYPE redbucket_table_bytes gauge\n"
        "# UNIT redbucket_table_bytes bytes\n"
        "# HELP redbucket_table_bytes Memory set aside for the table.\n"
        "redbucket_table_bytes{store=\"here\"} 65536\n"
        "# EOF\n");
}

static void test_zones_have_metrics_of_their_own(void **state)
{
    const struct redbucket_zone_statistics here[] = {
        {.zone = "ip", .zone_len = 2, .accepted = 9, .delayed = 1, .rejected = 4},
        {.zone = "a\"\\", .zone_len = 3},
        {.zone = "\xff\n", .zone_len = 2, .rejected = UINT64_MAX},
        {.zone = "", .zone_len = 0},
    };
    const struct redbucket_zone_statistics there[] = {{.zone = "", .zone_len = 0, .rejected = 5}};
    const struct redbucket_metered stores[] = {{"here", &embedded, here, 4},
                                               {"there", &served, there, 1}};
    const char *begin;

    (void)state;
    begin = strstr(write_text(stores, 2), "# TYPE redbucket_zone_accepted_requests counter\n");
    assert_non_null(begin);
    assert_string_equal(
        begin,
        "# TYPE redbucket_zone_accepted_requests counter\n"
        "# HELP redbucket_zone_accepted_requests Requests accepted that named the zone's limit, "
        "delayed ones among them.\n"
        "redbucket_zone_accepted_requests_total{store=\"here\",zone=\"ip\"} 9\n"
        "redbucket_zone_accepted_requests_total{store=\"here\",zone=\"a\\\"\\\\\"} 0\n"
        "redbucket_zone_accepted_requests_total{store=\"here\",zone_hex=\"ff0a\"} 0\n"
        "redbucket_zone_accepted_requests_total{store=\"there\"} 0\n"
        "# TYPE redbucket_zone_delayed_requests counter\n"
        "# HELP redbucket_zone_delayed_requests Requests that the zone's limit had wait.\n"
        "redbucket_zone_delayed_requests_total{store=\"here\",zone=\"ip\"} 1\n"
        "redbucket_zone_delayed_requests_total{store=\"here\",zone=\"a\\\"\\\\\"} 0\n"
        "redbucket_zone_delayed_requests_total{store=\"here\",zone_hex=\"ff0a\"} 0\n"
        "redbucket_zone_delayed_requests_total{store=\"there\"} 0\n"
        "# TYPE redbucket_zone_rejected_requests counter\n"
        "# HELP redbucket_zone_rejected_requests Requests rejected for which the zone's limit had "
        "no room.\n"
        "redbucket_zone_rejected_requests_total{store=\"here\",zone=\"ip\"} 4\n"
        "redbucket_zone_rejected_requests_total{store=\"here\",zone=\"a\\\"\\\\\"} 0\n"
        "redbucket_zone_rejected_requests_total{store=\"here\",zone_hex=\"ff0a\"} "
        "18446744073709551615\n"
        "redbucket_zone_rejected_requests_total{store=\"there\"} 5\n"
        "# EOF\n");
}

static void test_no_store_is_a_text_too(void **state)
{
    (void)state;
    assert_string_equal(write_text(NULL, 0), "# TYPE redbucket_build info\n"
                                             "# HELP redbucket_build The library that counts.\n"
                                             "redbucket_build_info{version=\"0.1.0\"} 1\n# EOF\n");
}

/* A caller of an older version has fewer numbers, and room for no more. */
static void test_what_is_beyond_the_size_is_not_read(void **state)
{
    const size_t size = offsetof(struct redbucket_statistics, rejected);
    struct redbucket_statistics *older = malloc(size);
    const struct redbucket_metered stores[] = {{.name = "older", .statistics = older}};

    (void)state;
    memcpy(older, &served, size);
    memcpy(older, &size, sizeof size);
    const char *text = write_text(stores, 1);

    assert_non_null(strstr(text, "\nredbucket_delayed_requests_total{store=\"older\"} 1\n"));
    assert_null(strstr(text, "rejected"));
    assert_null(strstr(text, "degraded"));
    free(older);
}

static void test_names_may_hold_any_bytes(void **state)
{
    static const struct {
        const char *name;
        const char *label;
    } rows[] = {
        {"", ""},
        {"a\"b\\c\nd", "a\\\"b\\\\c\\nd"},
        {"\"} 1\n# EOF\n", "\\\"} 1\\n# EOF\\n"},
        {"h\xc3\xb6h \xe2\x82\xac \xf0\x9f\x8d\x8e", "h\xc3\xb6h \xe2\x82\xac \xf0\x9f\x8d\x8e"},
        {"\xff\x01\r\x7f", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc0\xae", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe0\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct redbucket_metered store = {.name = rows[i].name, .statistics = &embedded};
        char expected[128] = "\nredbucket_buckets{store=\"";

        strncat(expected, rows[i].label, 60);
        strncat(expected, "\"} 7\n", 8);
        assert_non_null(strstr(write_text(&store, 1), expected));
    }
}

static void test_the_promised_size_is_enough(void **state)
{
    char first[256];
    char second[256];
    const struct redbucket_metered stores[] = {{.name = first, .statistics = &embedded},
                                               {.name = second, .statistics = &served}};
    struct redbucket_statistics most;

    (void)state;
    memset(first, '\xff', sizeof first);
    memset(second, '\x01', sizeof second);
    first[255] = second[254] = '\0'; /* or they would be shown alike */
    (void)write_text(stores, 2);
    memset(&most, 0xff, sizeof most);
    most.size = sizeof most;
    (void)write_text(&(struct redbucket_metered){.name = first, .statistics = &most}, 1);
}

static void test_the_promised_size_is_enough_for_zones(void **state)
{
    const size_t size = REDBUCKET_METRICS_SIZE(1) + REDBUCKET_METRICS_ZONES_SIZE(65);
    static struct redbucket_zone_statistics zones[REDBUCKET_ZONES_MAX];
    char name[256];
    char *bytes = malloc(size);
    struct redbucket_text text = {bytes, size, 0};

    (void)state;
    memset(name, '\xff', sizeof name - 1);
    name[255] = '\0';
    memset(zones, 0xff, sizeof zones);
    for (size_t i = 0; i < REDBUCKET_ZONES_MAX; i++)
        zones[i].zone_len = REDBUCKET_ZONE_MAX;
    for (size_t i = 0; i < 30; i++)
        memset(zones[i].zone, i % 2 ? '"' : '\\', sizeof zones[i].zone);
    assert_int_equal(
        redbucket_metrics(&(struct redbucket_metered){name, &embedded, zones, REDBUCKET_ZONES_MAX},
                          1, &text),
        REDBUCKET_OK);
    free(bytes);
}

static void test_what_makes_no_text_is_refused(void **state)
{
    const struct redbucket_metered twice[] = {{.name = "a", .statistics = &embedded},
                                              {.name = "b", .statistics = &served},
                                              {.name = "a", .statistics = &served}};
    /* Both are shown as U+FFFD. */
    const struct redbucket_metered alike[] = {{.name = "a\xff", .statistics = &embedded},
                                              {.name = "a\x01", .statistics = &served}};
    const struct redbucket_statistics sizeless = {.size = 0};
    const struct redbucket_metered wrong[] = {{.name = "a", .statistics = &sizeless}};
    char bytes[8] = "x";
    struct redbucket_text text = {bytes, sizeof bytes, 1};

    (void)state;
    assert_int_equal(redbucket_metrics(twice, 3, &text), REDBUCKET_ERROR_DUPLICATE);
    assert_int_equal(redbucket_metrics(alike, 2, &text), REDBUCKET_ERROR_DUPLICATE);
    assert_int_equal(redbucket_metrics(wrong, 1, &text), REDBUCKET_ERROR_ARGUMENT);
    assert_int_equal(redbucket_metrics(twice, 2, &text), REDBUCKET_ERROR_SPACE);
    assert_string_equal(bytes, "x");
    assert_int_equal(text.len, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_table_and_a_server_tell_what_they_know),
        cmocka_unit_test(test_zones_have_metrics_of_their_own),
        cmocka_unit_test(test_no_store_is_a_text_too),
        cmocka_unit_test(test_what_is_beyond_the_size_is_not_read),
        cmocka_unit_test(test_names_may_hold_any_bytes),
        cmocka_unit_test(test_the_promised_size_is_enough),
        cmocka_unit_test(test_the_promised_size_is_enough_for_zones),
        cmocka_unit_test(test_what_makes_no_text_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
