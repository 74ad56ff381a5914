/* SPDX-License-Identifier: MIT */
/*
 * Numbers, rates and durations as text: what is read, what is refused and with which message, that
 * any double survives the way there and back, and that a locale changes none of it.
 */
#include "locales.h"
#include "redbucket/redbucket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

typedef enum redbucket_status parser(const char *text, double *number,
                                     struct redbucket_error *error);

struct reading {
    const char *text;
    double number;
};

struct refusal {
    const char *text;
    int position;
    const char *message;
};

static void assert_reads(parser *parse, const struct reading *readings, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct redbucket_error error = {.message = "untouched"};
        double number = -7.0;

        if (parse(readings[i].text, &number, &error) != REDBUCKET_OK)
            fail_msg("\"%s\": %s", readings[i].text, error.message);
        if (memcmp(&number, &readings[i].number, sizeof(number)) != 0)
            fail_msg("\"%s\": read %.17g, not %.17g", readings[i].text, number, readings[i].number);
        assert_string_equal(error.message, "untouched");
    }
}

static void assert_refuses(parser *parse, const struct refusal *refusals, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct redbucket_error error = {0};
        double number = -7.0;

        if (parse(refusals[i].text, &number, &error) != REDBUCKET_ERROR_ARGUMENT)
            fail_msg("\"%s\" was read as %.17g", refusals[i].text, number);
        assert_true(number == -7.0);
        assert_int_equal(error.status, REDBUCKET_ERROR_ARGUMENT);
        assert_string_equal(error.message, refusals[i].message);
        assert_int_equal(error.position, refusals[i].position);
        assert_int_equal(parse(refusals[i].text, &number, NULL), REDBUCKET_ERROR_ARGUMENT);
    }
}

#define READS(parse, readings) assert_reads(parse, readings, sizeof(readings) / sizeof(*readings))
#define REFUSES(parse, refusals) \
    assert_refuses(parse, refusals, sizeof(refusals) / sizeof(*refusals))

static const struct reading numbers[] = {
    {"0", 0.0},
    {"-0", 0.0},
    {"-0.0e5", 0.0},
    {"7", 7.0},
    {"007", 7.0},
    {"0.5", 0.5},
    {"-1.25", -1.25},
    {"1e3", 1000.0},
    {"1E3", 1000.0},
    {"1e+3", 1000.0},
    {"2.5e-1", 0.25},
    {"0.1", 0.1},
    {"1.7976931348623157e308", DBL_MAX},
    {"5e-324", 4.9406564584124654e-324},
    {"1e-400", 0.0},
    {"9007199254740993", 9007199254740992.0},
    {"0.3333333333333333", 0.3333333333333333},
    {"0.1000000000000000055511151231257827021181583404541015625", 0.1},
};

static void test_numbers_are_read(void **state)
{
    (void)state;
    READS(redbucket_number_parse, numbers);
}

static void test_what_is_no_number_is_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"", 0, "\"\": expected a number"},
        {" 1", 0, "\" 1\": expected a number"},
        {"1 ", 1, "\"1 \": expected a number"},
        {"+1", 0, "\"+1\": expected a number"},
        {"--1", 0, "\"--1\": expected a number"},
        {"-", 0, "\"-\": expected a number"},
        {".5", 0, "\".5\": expected a number"},
        {"5.", 0, "\"5.\": expected a number"},
        {"1,5", 1, "\"1,5\": expected a number"},
        {"1e", 1, "\"1e\": expected a number"},
        {"1e+", 1, "\"1e+\": expected a number"},
        {"1e5e5", 3, "\"1e5e5\": expected a number"},
        {"0x10", 1, "\"0x10\": expected a number"},
        {"inf", 0, "\"inf\": expected a number"},
        {"-inf", 0, "\"-inf\": expected a number"},
        {"nan", 0, "\"nan\": expected a number"},
        {"infinity", 0, "\"infinity\": expected a number"},
        {"5x", 1, "\"5x\": expected a number"},
        {"1_000", 1, "\"1_000\": expected a number"},
        {"1e309", 0, "\"1e309\": too large for a number"},
        {"-1e400", 0, "\"-1e400\": too large for a number"},
        {"\n1\xff", 0, "\"\\x0a1\\xff\": expected a number"},
        {"%s%n", 0, "\"%s%n\": expected a number"},
        {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy", 0,
         "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\": expected a number"},
    };

    (void)state;
    REFUSES(redbucket_number_parse, refusals);
}

/* C07: what nginx writes, plain numbers, fractions and exponents. */
static const struct reading rates[] = {
    {"10r/s", 10.0},  {"30r/m", 0.5},    {"0.5r/s", 0.5},      {"10", 10.0},
    {"1e3", 1000.0},  {"5/s", 5.0},      {"60/m", 1.0},        {"3600/h", 1.0},
    {"86400/d", 1.0}, {"1/m", 1.0 / 60}, {"1e-1/s", 0.1},      {"100/h", 100.0 / 3600},
    {"1e-9", 1e-9},   {"1e12", 1e12},    {"1/d", 1.0 / 86400}, {"6e13/m", 1e12},
};

static void test_rates_are_read(void **state)
{
    (void)state;
    READS(redbucket_rate_parse, rates);
}

#define RATE_EXPECTED ": expected a number or N/s, N/m, N/h, N/d"
#define RATE_RANGE    ": out of range, expected from 1e-9 to 1e12 a second"

/* C07: nothing behind the unit, nothing before the number, nothing that can't limit. */
static void test_what_is_no_rate_is_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"10r/sFOO", 2, "\"10r/sFOO\"" RATE_EXPECTED},
        {"r/s", 0, "\"r/s\"" RATE_EXPECTED},
        {"-10r/s", 0, "\"-10r/s\"" RATE_RANGE},
        {"0r/s", 0, "\"0r/s\"" RATE_RANGE},
        {"0x10r/s", 1, "\"0x10r/s\"" RATE_EXPECTED},
        {"infr/s", 0, "\"infr/s\"" RATE_EXPECTED},
        {"nanr/s", 0, "\"nanr/s\"" RATE_EXPECTED},
        {"1e400r/s", 0, "\"1e400r/s\"" RATE_RANGE},
        {" 10r/s", 0, "\" 10r/s\"" RATE_EXPECTED},
        {"10r/s ", 2, "\"10r/s \"" RATE_EXPECTED},
        {"99999999999999999999999r/s", 0, "\"99999999999999999999999r/s\"" RATE_RANGE},
        {"", 0, "\"\"" RATE_EXPECTED},
        {"10q", 2, "\"10q\"" RATE_EXPECTED},
        {"10r", 2, "\"10r\"" RATE_EXPECTED},
        {"10/", 2, "\"10/\"" RATE_EXPECTED},
        {"10/S", 2, "\"10/S\"" RATE_EXPECTED},
        {"10/ s", 2, "\"10/ s\"" RATE_EXPECTED},
        {"10/sec", 2, "\"10/sec\"" RATE_EXPECTED},
        {"10r/h", 2, "\"10r/h\"" RATE_EXPECTED},
        {"0,5/s", 1, "\"0,5/s\"" RATE_EXPECTED},
        {"0", 0, "\"0\"" RATE_RANGE},
        {"-0.0", 0, "\"-0.0\"" RATE_RANGE},
        {"1e-400", 0, "\"1e-400\"" RATE_RANGE},
        {"9e-10", 0, "\"9e-10\"" RATE_RANGE},
        {"1.1e12", 0, "\"1.1e12\"" RATE_RANGE},
    };

    (void)state;
    REFUSES(redbucket_rate_parse, refusals);
}

static const struct reading durations[] = {
    {"0", 0.0},     {"-0", 0.0},      {"2", 2.0},       {"1.5", 1.5},      {"50us", 0.00005},
    {"50ms", 0.05}, {"2s", 2.0},      {"5m", 300.0},    {"1h", 3600.0},    {"1d", 86400.0},
    {"0.1s", 0.1},  {"1e-3s", 0.001}, {"1e308", 1e308}, {"0.3ms", 0.0003},
};

static void test_durations_are_read(void **state)
{
    (void)state;
    READS(redbucket_duration_parse, durations);
}

#define DURATION_EXPECTED ": expected seconds, or a number with one of us, ms, s, m, h, d"

static void test_what_is_no_duration_is_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"", 0, "\"\"" DURATION_EXPECTED},
        {"s", 0, "\"s\"" DURATION_EXPECTED},
        {"5x", 1, "\"5x\"" DURATION_EXPECTED},
        {"5 s", 1, "\"5 s\"" DURATION_EXPECTED},
        {"5mss", 1, "\"5mss\"" DURATION_EXPECTED},
        {"5S", 1, "\"5S\"" DURATION_EXPECTED},
        {"nan", 0, "\"nan\"" DURATION_EXPECTED},
        {"-5", 0, "\"-5\": expected a duration from 0"},
        {"-1ms", 0, "\"-1ms\": expected a duration from 0"},
        {"1e308d", 0, "\"1e308d\": too large for a duration"},
        {"1e999us", 0, "\"1e999us\": too large for a duration"},
    };

    (void)state;
    REFUSES(redbucket_duration_parse, refusals);
}

static const struct reading written[] = {
    {"0", 0.0},
    {"0", -0.0},
    {"1", 1.0},
    {"0.1", 0.1},
    {"0.5", 0.5},
    {"-2.5", -2.5},
    {"0.30000000000000004", 0.1 + 0.2},
    {"0.3333333333333333", 1.0 / 3},
    {"1000000", 1e6},
    {"1e+22", 1e22},
    {"1e-09", 1e-9},
    {"1000000000000", 1e12},
    {"999999999999", 999999999999.0},
    {"123451234512", 123451234512.0},
    {"999999999999999", 999999999999999.0},
    {"1700000000.5", 1700000000.5},
    {"1.7976931348623157e+308", DBL_MAX},
    {"4.94065645841247e-324", 4.9406564584124654e-324},
    {"inf", INFINITY},
    {"-inf", -INFINITY},
    {"nan", NAN},
};

static void test_numbers_are_written_short_and_exact(void **state)
{
    char text[REDBUCKET_NUMBER_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(written) / sizeof(*written); i++) {
        redbucket_number_format(written[i].number, text);
        assert_string_equal(text, written[i].text);
    }
}

/* A fixed sequence of any bits at all, so a failure is there again the next time. */
static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* C09: what is written reads back as the same double, for any bits. */
static void test_any_double_reads_back(void **state)
{
    uint64_t seed = 88172645463325252u;
    char text[REDBUCKET_NUMBER_SIZE];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = next_random(&seed);
        double number;
        double again = -1.0;

        memcpy(&number, &bits, sizeof(number));
        if (!isfinite(number))
            continue;
        redbucket_number_format(number, text);
        assert_int_equal(redbucket_number_parse(text, &again, NULL), REDBUCKET_OK);
        assert_memory_equal(&again, &number, sizeof(number));
    }
}

/* O01. */
static void test_a_locale_changes_nothing(void **state)
{
    const struct locale_case *wanted = *state;

    need_locale(wanted);
    READS(redbucket_number_parse, numbers);
    READS(redbucket_rate_parse, rates);
    READS(redbucket_duration_parse, durations);
    test_numbers_are_written_short_and_exact(NULL);
    test_any_double_reads_back(NULL);
    test_what_is_no_number_is_refused(NULL);
    assert_locale_in_force(wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_read),
        cmocka_unit_test(test_what_is_no_number_is_refused),
        cmocka_unit_test(test_rates_are_read),
        cmocka_unit_test(test_what_is_no_rate_is_refused),
        cmocka_unit_test(test_durations_are_read),
        cmocka_unit_test(test_what_is_no_duration_is_refused),
        cmocka_unit_test(test_numbers_are_written_short_and_exact),
        cmocka_unit_test(test_any_double_reads_back),
        {"test_O01_german_decimal_comma", test_a_locale_changes_nothing, enter_locale, leave_locale,
         &german},
        {"test_O01_decimal_point_of_two_bytes", test_a_locale_changes_nothing, enter_locale,
         leave_locale, &pashto},
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
