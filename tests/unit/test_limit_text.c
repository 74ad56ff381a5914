/* SPDX-License-Identifier: MIT */
/*
 * Limits as text: what is read, one exact message for each fault, and that what is written reads
 * back as the same doubles, in any locale.
 */
#include "locales.h"
#include "redbucket/redbucket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

struct refusal {
    const char *text;
    int position;
    const char *message;
};

#define RATE_EXPECTED     ": expected a number or N/s, N/m, N/h, N/d"
#define RATE_RANGE        ": out of range, expected from 1e-9 to 1e12 a second"
#define DURATION_EXPECTED ": expected seconds, or a number with one of us, ms, s, m, h, d"

static struct redbucket_named_limit parse_limit(const char *text)
{
    struct redbucket_named_limit limit;
    struct redbucket_error error;

    if (redbucket_limit_parse(text, &limit, &error) != REDBUCKET_OK)
        fail_msg("\"%s\": %s", text, error.message);
    limit.limit.zone = NULL; /* points into what is copied here */
    return limit;
}

static void test_a_limit_has_defaults(void **state)
{
    struct redbucket_named_limit limit;

    (void)state;
    memset(&limit, 0xa5, sizeof(limit));
    assert_int_equal(redbucket_limit_parse("ip:5/s", &limit, NULL), REDBUCKET_OK);
    assert_string_equal(limit.name, "ip");
    assert_string_equal(limit.zone, "ip");
    assert_ptr_equal(limit.limit.zone, limit.zone);
    assert_int_equal(limit.limit.zone_len, 2);
    assert_int_equal(limit.limit.size, sizeof(struct redbucket_limit));
    assert_true(limit.limit.rate == 5.0);
    assert_true(limit.limit.burst == 0.0 && limit.limit.delay == 0.0);
    assert_true(limit.limit.expiry == 0.0 && limit.limit.lease == 0.0);
    assert_true(limit.limit.lease_time == 0.0);
}

static void test_a_limit_is_read_in_full(void **state)
{
    const struct redbucket_named_limit limit =
        parse_limit("A-z_0.9:30r/m,zone=shared,lease_time=250ms,burst=0.5,delay=10,lease=8,"
                    "expiry=1e3");

    (void)state;
    assert_string_equal(limit.name, "A-z_0.9");
    assert_string_equal(limit.zone, "shared");
    assert_true(limit.limit.rate == 0.5);
    assert_true(limit.limit.burst == 0.5);
    assert_true(limit.limit.delay == 10.0);
    assert_true(limit.limit.expiry == 1000.0);
    assert_true(limit.limit.lease == 8.0);
    assert_true(limit.limit.lease_time == 0.25);
}

static void assert_limit_refused(const struct refusal *refusal)
{
    struct redbucket_named_limit limit;
    struct redbucket_named_limit before;
    struct redbucket_error error = {0};

    memset(&limit, 0x5a, sizeof(limit));
    before = limit;
    if (redbucket_limit_parse(refusal->text, &limit, &error) != REDBUCKET_ERROR_LIMIT)
        fail_msg("\"%s\" was read", refusal->text);
    assert_int_equal(error.status, REDBUCKET_ERROR_LIMIT);
    assert_string_equal(error.message, refusal->message);
    assert_int_equal(error.position, refusal->position);
    assert_memory_equal(&limit, &before, sizeof(limit));
}

#define WORD_EXPECTED ": expected one of burst= delay= expiry= zone= lease= lease_time="

static void test_one_exact_message_a_fault(void **state)
{
    static const struct refusal refusals[] = {
        {"", 0, "\"\": expected NAME:RATE, for instance ip:5/s,burst=10"},
        {"ip", 2, "\"ip\": expected NAME:RATE, for instance ip:5/s,burst=10"},
        {":5/s", 0, "name is empty"},
        {"i p:5/s", 1, "name \"i p\": expected only A-Z a-z 0-9 _ . -"},
        {"\xc3\xbc:5", 0, "name \"\\xc3\\xbc\": expected only A-Z a-z 0-9 _ . -"},
        {"ip:", 3, "rate: \"\"" RATE_EXPECTED},
        {"ip:10q", 5, "rate: \"10q\"" RATE_EXPECTED},
        {"ip:10q,burst=1", 5, "rate: \"10q\"" RATE_EXPECTED},
        {"ip:0", 3, "rate: \"0\"" RATE_RANGE},
        {"ip:5:6", 4, "rate: \"5:6\"" RATE_EXPECTED},
        {"ip:5,", 5, "\"\"" WORD_EXPECTED},
        {"ip:5,,burst=1", 5, "\"\"" WORD_EXPECTED},
        {"ip:5,nodelayFOO", 5, "\"nodelayFOO\"" WORD_EXPECTED},
        {"ip:5,burst", 5, "\"burst\"" WORD_EXPECTED},
        {"ip:5,burst5=1", 5, "\"burst5=1\"" WORD_EXPECTED},
        {"ip:5,Burst=1", 5, "\"Burst=1\"" WORD_EXPECTED},
        {"ip:5, burst=1", 5, "\" burst=1\"" WORD_EXPECTED},
        {"ip:5,burst=5x", 12, "burst: \"5x\": expected a number"},
        {"ip:5,burst=", 11, "burst: \"\": expected a number"},
        {"ip:5,burst=1,delay=1,burst=1", 21, "burst is given twice"},
        {"ip:5,zone=a,zone=a", 12, "zone is given twice"},
        {"ip:5,zone=", 10, "zone is empty"},
        {"ip:5,zone=a:b", 11, "zone \"a:b\": expected only A-Z a-z 0-9 _ . -"},
        {"ip:5,expiry=-5", 12, "expiry: \"-5\": expected a duration from 0"},
        {"ip:5,expiry=NaN", 12, "expiry: \"NaN\"" DURATION_EXPECTED},
        {"ip:5,lease_time=1x", 17, "lease_time: \"1x\"" DURATION_EXPECTED},
        {"ip:5,lease=1e400", 11, "lease: \"1e400\": too large for a number"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++)
        assert_limit_refused(&refusals[i]);
}

/* N06, N08, C02, C07: numbers that are numbers and no limit. */
static void test_out_of_range_is_refused(void **state)
{
    static const char *const texts[] = {
        "ip:-1",
        "ip:-0.0",
        "ip:5,burst=-1",
        "ip:5,delay=-0.5",
        "ip:1e13",
        "ip:5,burst=1e18",
        "ip:5,burst=9007199254740992",
        "ip:5,burst=1e308,delay=1e308",
        "ip:5,burst=6e11,delay=6e11",
        "ip:5,lease=-1",
        "ip:5,lease=1e13",
        "ip:5,lease_time=2h",
        "ip:5,expiry=1e300",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct redbucket_named_limit limit;
        struct redbucket_error error = {0};

        if (redbucket_limit_parse(texts[i], &limit, &error) != REDBUCKET_ERROR_LIMIT)
            fail_msg("\"%s\" was read", texts[i]);
        assert_int_equal(error.status, REDBUCKET_ERROR_LIMIT);
        assert_true(strlen(error.message) > 0);
        assert_null(strchr(error.message, '\n'));
    }
}

static void fill_name(char *text, size_t len, const char *rest)
{
    memset(text, 'n', len);
    memcpy(text + len, rest, strlen(rest) + 1);
}

static void test_names_have_a_longest(void **state)
{
    char text[2 * REDBUCKET_ZONE_MAX + 32];
    struct redbucket_error error;
    struct redbucket_named_limit limit;

    (void)state;
    fill_name(text, REDBUCKET_ZONE_MAX, ":5");
    assert_int_equal(redbucket_limit_parse(text, &limit, &error), REDBUCKET_OK);
    assert_int_equal(strlen(limit.name), REDBUCKET_ZONE_MAX);
    assert_int_equal(limit.limit.zone_len, REDBUCKET_ZONE_MAX);
    fill_name(text, REDBUCKET_ZONE_MAX + 1, ":5");
    assert_int_equal(redbucket_limit_parse(text, &limit, &error), REDBUCKET_ERROR_LIMIT);
    assert_string_equal(error.message,
                        "name \"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...\": longer than 255 bytes");
}

static void assert_canonical(const char *text, const char *canonical)
{
    const struct redbucket_named_limit limit = parse_limit(text);
    char out[REDBUCKET_LIMIT_TEXT_SIZE];
    struct redbucket_named_limit again;

    redbucket_limit_format(&limit, out);
    assert_string_equal(out, canonical);
    again = parse_limit(out);
    assert_memory_equal(&again.limit, &limit.limit, sizeof(limit.limit));
    assert_string_equal(again.name, limit.name);
    assert_string_equal(again.zone, limit.zone);
}

/* C09: a limit that is printed reads back as the same doubles. */
static void test_a_limit_is_written_and_read_back(void **state)
{
    (void)state;
    assert_canonical("ip:5/s", "ip:5");
    assert_canonical("ip:30r/m,burst=0,delay=0", "ip:0.5");
    assert_canonical("ip:1/m,burst=10", "ip:0.016666666666666666,burst=10");
    assert_canonical("ip:0.3333333333333333,burst=999999999999",
                     "ip:0.3333333333333333,burst=999999999999");
    assert_canonical("ip:1,burst=123451234512,delay=0.1", "ip:1,burst=123451234512,delay=0.1");
    assert_canonical("ip:1,zone=ip", "ip:1");
    assert_canonical("a:1,zone=b,lease_time=50ms,lease=3,expiry=1h,delay=2,burst=1",
                     "a:1,burst=1,delay=2,expiry=3600,lease=3,lease_time=0.05,zone=b");
    assert_canonical("a:1,burst=-0,lease_time=0", "a:1");
}

static void test_the_longest_limit_fits_its_text(void **state)
{
    struct redbucket_named_limit limit = {
        .limit = {.rate = 1.2345678901234567e-9,
                  .burst = 1.2345678901234567e-300,
                  .delay = 1.2345678901234567e-300,
                  .expiry = 1.2345678901234567e-300,
                  .lease = 1.2345678901234567e-300,
                  .lease_time = 1.2345678901234567e-300},
    };
    char out[REDBUCKET_LIMIT_TEXT_SIZE];
    struct redbucket_named_limit again;

    (void)state;
    memset(limit.name, 'n', REDBUCKET_ZONE_MAX);
    memset(limit.zone, 'z', REDBUCKET_ZONE_MAX);
    redbucket_limit_format(&limit, out);
    assert_true(strlen(out) < sizeof(out) - 1);
    again = parse_limit(out);
    assert_string_equal(again.name, limit.name);
    assert_string_equal(again.zone, limit.zone);
    assert_true(again.limit.lease_time == limit.limit.lease_time);
}

/* O01. */
static void test_a_locale_changes_nothing(void **state)
{
    const struct locale_case *wanted = *state;

    need_locale(wanted);
    test_a_limit_is_read_in_full(NULL);
    test_a_limit_is_written_and_read_back(NULL);
    test_one_exact_message_a_fault(NULL);
    assert_locale_in_force(wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_limit_has_defaults),
        cmocka_unit_test(test_a_limit_is_read_in_full),
        cmocka_unit_test(test_one_exact_message_a_fault),
        cmocka_unit_test(test_out_of_range_is_refused),
        cmocka_unit_test(test_names_have_a_longest),
        cmocka_unit_test(test_a_limit_is_written_and_read_back),
        cmocka_unit_test(test_the_longest_limit_fits_its_text),
        {"test_O01_german_decimal_comma", test_a_locale_changes_nothing, enter_locale, leave_locale,
         &german},
        {"test_O01_decimal_point_of_two_bytes", test_a_locale_changes_nothing, enter_locale,
         leave_locale, &pashto},
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
