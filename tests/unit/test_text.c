/* SPDX-License-Identifier: MIT */
/*
 * Texts become limits and limits texts: what is read, what is refused and with which message, that
 * doubles survive the way there and back, and that a locale changes none of it.
 */
#include "redbucket/redbucket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <ftw.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    for (int i = 0; i < 200000; i++) {
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
    strcpy(text + len, rest);
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

/* ---- O01: locales with another decimal point ---------------------------------------------- */

struct locale_case {
    const char *name;
    const char *point; /* what printf writes there */
    char folder[64];
};

static struct locale_case german = {.name = "de_DE", .point = ","};
static struct locale_case pashto = {.name = "ps_AF", .point = "\xd9\xab"}; /* two bytes long */

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

/* Compiles the locale into a folder of the test's own and makes it current; not every system has
 * localedef or the sources. */
static int enter_locale(void **state)
{
    struct locale_case *wanted = *state;
    char command[256];
    char name[32];

    strcpy(wanted->folder, "/tmp/redbucket-locale-XXXXXX");
    if (mkdtemp(wanted->folder) == NULL)
        return -1;
    snprintf(name, sizeof(name), "%s.UTF-8", wanted->name);
    snprintf(command, sizeof(command), "localedef -i %s -f UTF-8 %s/%s >/dev/null 2>&1",
             wanted->name, wanted->folder, name);
    /* Its status also tells of mere warnings; setlocale says whether it has become one. */
    if (system(command) == -1 || setenv("LOCPATH", wanted->folder, 1) != 0)
        return -1;
    setlocale(LC_ALL, name);
    return 0;
}

static int leave_locale(void **state)
{
    struct locale_case *wanted = *state;

    setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    return nftw(wanted->folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void test_a_locale_changes_nothing(void **state)
{
    const struct locale_case *wanted = *state;
    char text[32];

    if (strcmp(localeconv()->decimal_point, wanted->point) != 0) {
        print_message("skipped: no localedef or no sources of %s on this system\n", wanted->name);
        skip();
    }
    snprintf(text, sizeof(text), "%g", 0.5);
    assert_null(strchr(text, '.')); /* the locale is in force */
    READS(redbucket_number_parse, numbers);
    READS(redbucket_rate_parse, rates);
    READS(redbucket_duration_parse, durations);
    test_numbers_are_written_short_and_exact(NULL);
    test_any_double_reads_back(NULL);
    test_a_limit_is_written_and_read_back(NULL);
    test_one_exact_message_a_fault(NULL);
    snprintf(text, sizeof(text), "%g", 0.5);
    assert_null(strchr(text, '.')); /* and was left in force */
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
