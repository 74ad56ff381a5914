/* SPDX-License-Identifier: MIT */
/*
 * Reading a line of an access log: its time by a calendar of its own, its fields, and what is
 * refused. A time that a client writes into its name or its request must not become the line's.
 */
#include "../../cli/replay/civil.h"
#include "../../cli/replay/log_line.h"
#include "../../cli/replay/log_time.h"
#include "../test.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TIME "17/May/2015:10:05:03 +0000"
#define AT   INT64_C(1431857103)

static struct rbk_span span(const char *text)
{
    return (struct rbk_span){text, strlen(text)};
}

static void assert_field(const struct rbk_log_line *line, enum rbk_log_field field,
                         const char *expected)
{
    const struct rbk_span got = line->fields[field];

    if (got.len != strlen(expected) || (got.len && memcmp(got.bytes, expected, got.len) != 0))
        fail_msg("field %d is \"%.*s\", expected \"%s\"", (int)field, (int)got.len,
                 got.bytes ? got.bytes : "", expected);
}

static struct rbk_log_line parsed(const char *text)
{
    struct rbk_log_line line;
    struct redbucket_error error = {0};

    if (rbk_log_parse(span(text), &line, &error) != REDBUCKET_OK)
        fail_msg("%s: %s", text, error.message);
    return line;
}

static void refused(const char *text, const char *why)
{
    struct rbk_log_line line;
    struct redbucket_error error = {0};

    if (rbk_log_parse(span(text), &line, &error) != REDBUCKET_ERROR_ARGUMENT)
        fail_msg("accepted: %s", text);
    if (!strstr(error.message, why))
        fail_msg("%s: \"%s\" says nothing of \"%s\"", text, error.message, why);
    assert_int_equal(rbk_log_parse(span(text), &line, NULL), REDBUCKET_ERROR_ARGUMENT);
}

static void every_day_of_four_centuries_is_the_day_after_the_one_before(void **state)
{
    struct rbk_civil date = {1800, 1, 1};
    int64_t days = rbk_civil_days(date);

    (void)state;
    assert_int_equal(rbk_civil_days((struct rbk_civil){1970, 1, 1}), 0);
    assert_int_equal(rbk_civil_days((struct rbk_civil){2015, 5, 17}), 16572);
    while (date.year < 2210) {
        const struct rbk_civil back = rbk_civil_date(days);

        assert_int_equal(rbk_civil_days(date), days);
        assert_int_equal(back.year, date.year);
        assert_int_equal(back.month, date.month);
        assert_int_equal(back.day, date.day);
        days++;
        if (++date.day > rbk_civil_month_days(date.year, date.month)) {
            date.day = 1;
            date.month = date.month % 12 + 1;
            date.year += date.month == 1;
        }
    }
}

static void dates_are_written_as_utc(void **state)
{
    char text[RBK_CIVIL_SIZE];

    (void)state;
    rbk_civil_format(AT * 1000 + 7, RBK_CIVIL_MILLISECOND, text);
    assert_string_equal(text, "2015-05-17 10:05:03.007");
    rbk_civil_format(AT * 1000, RBK_CIVIL_SECOND, text);
    assert_string_equal(text, "2015-05-17 10:05:03");
    rbk_civil_format(AT * 1000, RBK_CIVIL_MINUTE, text);
    assert_string_equal(text, "2015-05-17 10:05");
    rbk_civil_format(AT * 1000, RBK_CIVIL_DAY, text);
    assert_string_equal(text, "2015-05-17");
    rbk_civil_format(-1, RBK_CIVIL_MILLISECOND, text);
    assert_string_equal(text, "1969-12-31 23:59:59.999");
    rbk_civil_format(INT64_C(1000000000000000), RBK_CIVIL_DAY, text);
    assert_string_equal(text, "33658-09-27");
}

static void times_are_read_with_their_zone(void **state)
{
    static const struct {
        const char *text;
        int64_t time_s;
    } cases[] = {
        {TIME, AT},
        {"17/May/2015:12:05:03 +0200", AT},
        {"17/May/2015:05:35:03 -0430", AT},
        {"18/May/2015:00:05:03 +1400", AT},
        {"01/Jan/1970:00:00:00 +0000", 0},
        {"31/Dec/1969:23:59:59 +0000", -1},
        {"29/Feb/2016:00:00:00 +0000", 1456704000},
        {"29/Feb/2000:00:00:00 +0000", 951782400},
        {"31/Dec/2016:23:59:60 +0000", 1483228800},
        {"01/Jan/2017:00:00:00 +0000", 1483228800},
        {"31/Dec/9999:23:59:59 +0000", INT64_C(253402300799)},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t time_s = -7;

        if (!rbk_log_time_parse(cases[i].text, &time_s) || time_s != cases[i].time_s)
            fail_msg("%s: %lld", cases[i].text, (long long)time_s);
    }
}

static void every_month_is_known_and_the_time_zone_of_the_host_is_not(void **state)
{
    static const char *const months[12] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    char *zone = getenv("TZ") ? strdup(getenv("TZ")) : NULL;

    (void)state;
    setenv("TZ", "Asia/Kolkata", 1);
    tzset();
    for (int month = 1; month <= 12; month++) {
        char text[32];
        int64_t time_s;

        snprintf(text, sizeof(text), "28/%s/2015:01:02:03 +0000", months[month - 1]);
        assert_true(rbk_log_time_parse(text, &time_s));
        assert_int_equal(time_s,
                         rbk_civil_days((struct rbk_civil){2015, month, 28}) * 86400 + 3723);
    }
    if (zone)
        setenv("TZ", zone, 1);
    else
        unsetenv("TZ");
    free(zone);
    tzset();
}

static void what_is_no_time_is_refused(void **state)
{
    static const char *const texts[] = {
        "00/May/2015:10:05:03 +0000", "32/May/2015:10:05:03 +0000", "31/Jun/2015:10:05:03 +0000",
        "29/Feb/2015:10:05:03 +0000", "29/Feb/1900:10:05:03 +0000", "17/may/2015:10:05:03 +0000",
        "17/Mai/2015:10:05:03 +0000", "17/May/2015:24:05:03 +0000", "17/May/2015:10:60:03 +0000",
        "17/May/2015:10:05:61 +0000", "17/May/2015:10:05:03 +2400", "17/May/2015:10:05:03 +0060",
        "17/May/2015:10:05:03 00000", "17/May/2015:10:05:03  0000", "17/May/2015 10:05:03 +0000",
        "17-May-2015:10:05:03 +0000", "1a/May/2015:10:05:03 +0000", "17/May/20 5:10:05:03 +0000",
        "17/May/2015:-1:05:03 +0000", "17/May/2015:10:05:03+00000",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int64_t time_s = -7;

        if (rbk_log_time_parse(texts[i], &time_s) || time_s != -7)
            fail_msg("%s was read as %lld", texts[i], (long long)time_s);
    }
}

static void a_combined_line_gives_every_field(void **state)
{
    const struct rbk_log_line line =
        parsed("192.0.2.7 - alice [" TIME "] \"GET /a/b?q=1 HTTP/1.1\" 404 12 "
               "\"https://example.com/\" \"Agent/1.0 (x; y)\"");

    (void)state;
    assert_int_equal(line.time_s, AT);
    assert_true(line.combined);
    assert_field(&line, RBK_LOG_REMOTE_ADDR, "192.0.2.7");
    assert_field(&line, RBK_LOG_REMOTE_USER, "alice");
    assert_field(&line, RBK_LOG_REQUEST_METHOD, "GET");
    assert_field(&line, RBK_LOG_URI, "/a/b");
    assert_field(&line, RBK_LOG_STATUS, "404");
    assert_field(&line, RBK_LOG_HTTP_USER_AGENT, "Agent/1.0 (x; y)");
}

static void a_common_line_has_no_agent(void **state)
{
    const struct rbk_log_line line = parsed("2001:db8::1 - - [" TIME "] \"POST / HTTP/2.0\" 200 -");

    (void)state;
    assert_false(line.combined);
    assert_field(&line, RBK_LOG_REMOTE_ADDR, "2001:db8::1");
    assert_field(&line, RBK_LOG_REMOTE_USER, "-");
    assert_field(&line, RBK_LOG_HTTP_USER_AGENT, "");
}

static void what_follows_is_left_alone(void **state)
{
    (void)state;
    assert_true(
        parsed("a - - [" TIME "] \"GET / HTTP/1.1\" 200 1 \"-\" \"x\" \"-\" 0.004").combined);
    assert_false(parsed("a - - [" TIME "] \"GET / HTTP/1.1\" 200 1 0.004").combined);
}

static void escaped_quotes_do_not_end_a_field(void **state)
{
    struct rbk_log_line line = parsed(
        "a - - [" TIME "] \"GET /\\\"x\\\\ HTTP/1.1\" 200 1 \"-\" \"a \\\"b\\\" \\x22c\\\\\"");

    (void)state;
    assert_field(&line, RBK_LOG_URI, "/\\\"x\\\\");
    assert_field(&line, RBK_LOG_HTTP_USER_AGENT, "a \\\"b\\\" \\x22c\\\\");
    line = parsed("a - - [" TIME "] \"\\\\\" 400 0 \"\" \"\"");
    assert_field(&line, RBK_LOG_URI, "");
    assert_true(line.combined);
}

static void requests_that_are_no_http_have_neither_method_nor_uri(void **state)
{
    struct rbk_log_line line = parsed("a - - [" TIME "] \"-\" 408 0 \"-\" \"-\"");

    (void)state;
    assert_field(&line, RBK_LOG_REQUEST_METHOD, "");
    assert_field(&line, RBK_LOG_URI, "");
    line = parsed("a - - [" TIME "] \"\\x16\\x03\\x01\" 400 0 \"-\" \"-\"");
    assert_field(&line, RBK_LOG_REQUEST_METHOD, "");
    line = parsed("a - - [" TIME "] \"\" 400 0");
    assert_field(&line, RBK_LOG_URI, "");
    line = parsed("a - - [" TIME "] \"GET /old\" 200 0");
    assert_field(&line, RBK_LOG_URI, "/old");
    line = parsed("a - - [" TIME "] \"GET /with blank?b c HTTP/1.1\" 200 0");
    assert_field(&line, RBK_LOG_URI, "/with blank");
}

static void a_user_may_hold_blanks_and_brackets(void **state)
{
    const struct rbk_log_line line =
        parsed("a - the [old] one [" TIME "] \"GET / HTTP/1.1\" 200 0");

    (void)state;
    assert_field(&line, RBK_LOG_REMOTE_USER, "the [old] one");
}

static void a_client_can_not_choose_the_time(void **state)
{
    static const char *const lines[] = {
        "a - x [01/Jan/2001:00:00:00 +0000] \\\" [" TIME "] \"GET / HTTP/1.1\" 200 0",
        "a - x [01/Jan/2001:00:00:00 +0000] \\x22 [" TIME "] \"GET / HTTP/1.1\" 200 0",
        "a - - [" TIME "] \"GET / [01/Jan/2001:00:00:00 +0000] \" 200 0",
        "a - - [" TIME "] \"GET / HTTP/1.1\" 200 0 \"-\" \"[01/Jan/2001:00:00:00 +0000] \"",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_int_equal(parsed(lines[i]).time_s, AT);
}

static void lines_of_any_bytes_are_read(void **state)
{
    static const char bytes[] =
        "192.0.2.7 - - [" TIME "] \"GET /\0\xff HTTP/1.1\" 200 0 \"-\" \"\0\"";
    const struct rbk_span text = {bytes, sizeof(bytes) - 1};
    struct rbk_log_line line;

    (void)state;
    assert_int_equal(rbk_log_parse(text, &line, NULL), REDBUCKET_OK);
    assert_int_equal(line.fields[RBK_LOG_URI].len, 3);
    assert_memory_equal(line.fields[RBK_LOG_URI].bytes, "/\0\xff", 3);
    assert_int_equal(line.fields[RBK_LOG_HTTP_USER_AGENT].len, 1);
}

static void what_is_no_line_is_refused_and_told_why(void **state)
{
    (void)state;
    refused("", "time zone");
    refused("x", "time zone");
    refused("\"\"\"\"\"\"", "time zone");
    refused("a - - [" TIME "] GET /", "time zone");
    refused("a - - [99/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 0", "time zone");
    refused("[" TIME "] \"GET / HTTP/1.1\" 200 0", "time zone");
    refused("a [" TIME "] \"GET / HTTP/1.1\" 200 0", "an address, an identity");
    refused("a - [" TIME "] \"GET / HTTP/1.1\" 200 0", "an address, an identity");
    refused("a - -[" TIME "] \"GET / HTTP/1.1\" 200 0", "time zone");
    refused(" - - [" TIME "] \"GET / HTTP/1.1\" 200 0", "an address, an identity");
    refused("a - - [" TIME "] \"GET / HTT", "closing quote");
    refused("a - - [" TIME "] \"GET / HTTP/1.1\\\" 200 0", "closing quote");
    refused("a - - [" TIME "] \"GET / HTTP/1.1\"", "status");
    refused("a - - [" TIME "] \"GET / HTTP/1.1\" 2", "status");
    refused("a - - [" TIME "] \"GET / HTTP/1.1\" 200", "status");
    refused("a - - [" TIME "] \"GET / HTTP/1.1\" 200 ", "status");
    refused("a - - [" TIME "] \"GET / HTTP/1.1\" 20x 0", "status");
    refused("a - - [" TIME "] \"GET / HTTP/1.1\" 200 12x", "status");
    refused("a - - [" TIME "] \"GET / HTTP/1.1\" 200 0 \"-", "referrer");
    refused("a - - [" TIME "] \"GET / HTTP/1.1\" 200 0 \"-\"", "referrer");
    refused("a - - [" TIME "] \"GET / HTTP/1.1\" 200 0 \"-\" \"Agent", "referrer");
}

/* Each beginning of a line lies at the end of its own allocation, where a sanitizer sees a byte
 * read too far; and a line cut off anywhere but at its number of bytes is never taken for a whole
 * one. */
static void a_line_cut_off_anywhere_is_safe_to_read(void **state)
{
    static const char whole[] =
        "192.0.2.7 - bob [" TIME "] \"GET /\\\" HTTP/1.1\" 200 5 \"r\" \"a\\\\\"";

    (void)state;
    for (size_t len = 0; len < sizeof(whole) - 1; len++) {
        char *bytes = malloc(len + 1);
        struct rbk_log_line line;

        assert_non_null(bytes);
        memcpy(bytes + 1, whole, len);
        if (rbk_log_parse((struct rbk_span){bytes + 1, len}, &line, NULL) == REDBUCKET_OK)
            assert_false(line.combined);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_day_of_four_centuries_is_the_day_after_the_one_before),
        cmocka_unit_test(dates_are_written_as_utc),
        cmocka_unit_test(times_are_read_with_their_zone),
        cmocka_unit_test(every_month_is_known_and_the_time_zone_of_the_host_is_not),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(a_combined_line_gives_every_field),
        cmocka_unit_test(a_common_line_has_no_agent),
        cmocka_unit_test(what_follows_is_left_alone),
        cmocka_unit_test(escaped_quotes_do_not_end_a_field),
        cmocka_unit_test(requests_that_are_no_http_have_neither_method_nor_uri),
        cmocka_unit_test(a_user_may_hold_blanks_and_brackets),
        cmocka_unit_test(a_client_can_not_choose_the_time),
        cmocka_unit_test(lines_of_any_bytes_are_read),
        cmocka_unit_test(what_is_no_line_is_refused_and_told_why),
        cmocka_unit_test(a_line_cut_off_anywhere_is_safe_to_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
