/* SPDX-License-Identifier: MIT */
/*
 * Store URLs: how they are taken apart, and one exact message for every fault. A URL may hold a
 * password, so no message holds a value.
 */
#include "stores.h"
#include "test.h"
#include "url.h"

#include <stdio.h>
#include <stdlib.h>

/* The struct holds pointers into itself, so it is parsed where it is looked at, never copied. */
#define PARSE(url, text) \
    struct rbk_url url;  \
    assert_int_equal(rbk_url_parse(text, &url, NULL), REDBUCKET_OK)

static void assert_no_url(const char *text, const char *message)
{
    struct redbucket_error error = {.position = 5};
    struct rbk_url url;

    assert_int_equal(rbk_url_parse(text, &url, &error), REDBUCKET_ERROR_URL);
    assert_int_equal(error.status, REDBUCKET_ERROR_URL);
    assert_int_equal(error.position, -1);
    assert_string_equal(error.message, message);
}

static void a_url_is_a_scheme_a_body_and_parameters(void **state)
{
    PARSE(url, "shm:name?size=1m&mode=0600");

    (void)state;
    assert_string_equal(url.scheme, "shm");
    assert_string_equal(url.body, "name");
    assert_int_equal(url.parameters_len, 2);
    assert_string_equal(rbk_url_get(&url, "size"), "1m");
    assert_string_equal(rbk_url_get(&url, "mode"), "0600");
    assert_null(rbk_url_get(&url, "siz"));
    assert_null(rbk_url_get(&url, "sizes"));
}

static void body_and_values_may_be_empty(void **state)
{
    PARSE(bare, "memory:");
    PARSE(empty, ":?a=");

    (void)state;
    assert_string_equal(bare.scheme, "memory");
    assert_string_equal(bare.body, "");
    assert_int_equal(bare.parameters_len, 0);
    assert_string_equal(empty.scheme, "");
    assert_string_equal(rbk_url_get(&empty, "a"), "");
}

static void percent_encoding_is_decoded(void **state)
{
    PARSE(url, "shm:%41%7e%0a%ff?x=%7A%7a");
    PARSE(plain, "shm:a+b:c?x=1=2?3");

    (void)state;
    assert_string_equal(url.body, "A~\n\xff");
    assert_string_equal(rbk_url_get(&url, "x"), "zz");
    assert_string_equal(plain.body, "a+b:c");
    assert_string_equal(rbk_url_get(&plain, "x"), "1=2?3");
}

static void splitting_comes_before_decoding(void **state)
{
    PARSE(url, "shm:a%3fb%3Fc%25%2fd?x=%26%3d%e2%82%AC");

    (void)state;
    assert_string_equal(url.body, "a?b?c%/d");
    assert_int_equal(url.parameters_len, 1);
    assert_string_equal(rbk_url_get(&url, "x"), "&=\xe2\x82\xac");
}

static void a_text_without_a_colon_is_no_url(void **state)
{
    (void)state;
    assert_no_url("", "store URL: expected " RBK_URL_KINDS);
    assert_no_url("memory", "store URL: expected " RBK_URL_KINDS);
}

static void half_an_encoding_is_refused(void **state)
{
    static const char *const bad[] = {"shm:%",   "shm:a%4",   "shm:%g0",    "shm:%0g",
                                      "shm:% 1", "shm:a?x=%", "shm:a?x=%4", "shm:a?x=y%zz"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_no_url(bad[i], "store URL: expected two hex digits after %");
}

static void an_encoded_nul_is_refused(void **state)
{
    (void)state;
    assert_no_url("shm:a%00b", "store URL: %00 means nothing here");
    assert_no_url("shm:a?x=%00", "store URL: %00 means nothing here");
}

static void a_parameter_is_a_name_and_a_value(void **state)
{
    static const char *const bad[] = {"shm:a?", "shm:a?x", "shm:a?=1", "shm:a?x=1&", "shm:a?&x=1"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_no_url(bad[i], "store URL: expected NAME=VALUE behind ? and &");
}

static void a_parameter_given_twice_is_refused(void **state)
{
    (void)state;
    assert_no_url("shm:a?x=1&y=2&x=1", "store URL: parameter \"x\" given twice");
}

/* x0=0&x1=1&... */
static void many_parameters(char *text, size_t size, int count)
{
    int used = snprintf(text, size, "shm:a?");

    for (int i = 0; i < count; i++)
        used += snprintf(text + used, size - (size_t)used, "%sx%d=%d", i == 0 ? "" : "&", i, i);
}

static void parameters_are_so_many_at_most(void **state)
{
    char text[1024];

    (void)state;
    many_parameters(text, sizeof text, RBK_URL_PARAMETERS);
    PARSE(url, text);
    assert_int_equal(url.parameters_len, RBK_URL_PARAMETERS);
    assert_string_equal(rbk_url_get(&url, "x31"), "31");
    many_parameters(text, sizeof text, RBK_URL_PARAMETERS + 1);
    assert_no_url(text, "store URL: too many parameters");
}

static void a_url_is_so_long_at_most(void **state)
{
    char text[RBK_URL_MAX + 1];

    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "shm:", 4);
    text[RBK_URL_MAX - 1] = '\0';
    PARSE(url, text);
    assert_int_equal(strlen(url.body), RBK_URL_MAX - 1 - 4);
    text[RBK_URL_MAX - 1] = 'a';
    text[RBK_URL_MAX] = '\0';
    assert_no_url(text, "store URL: longer than 4095 bytes");
}

static void an_unknown_parameter_is_refused(void **state)
{
    static const char *const unknown[] = {"siz", "sizes", "ize", "mode size", "size mode", "Size"};
    struct redbucket_error error;
    char text[64], message[128];
    PARSE(known, "shm:a?size=&timeout=");

    (void)state;
    assert_int_equal(rbk_url_known(&known, "size mode timeout", &error), REDBUCKET_OK);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        (void)snprintf(text, sizeof text, "shm:a?size=1&%s=secret", unknown[i]);
        (void)snprintf(message, sizeof message,
                       "store URL: unknown parameter \"%s\": shm: has size mode timeout",
                       unknown[i]);
        PARSE(url, text);
        assert_int_equal(rbk_url_known(&url, "size mode timeout", &error), REDBUCKET_ERROR_URL);
        assert_string_equal(error.message, message);
    }
}

static void a_size_is_bytes_with_a_unit_of_1024(void **state)
{
    static const struct {
        const char *text;
        size_t size;
    } good[] = {
        {"32768", RBK_URL_SIZE_MIN},
        {"32k", RBK_URL_SIZE_MIN},
        {"32K", RBK_URL_SIZE_MIN},
        {"0032769", 32769},
        {"64m", (size_t)64 << 20},
        {"64M", (size_t)64 << 20},
        {"1g", (size_t)1 << 30},
        {"1G", (size_t)1 << 30},
        {RBK_URL_SIZE_MOST, RBK_URL_SIZE_MAX},
    };
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        size_t size = 1234;

        (void)snprintf(text, sizeof text, "shm:a?size=%s", good[i].text);
        PARSE(url, text);
        assert_int_equal(rbk_url_size(&url, "size", &size, NULL), REDBUCKET_OK);
        assert_true(size == good[i].size);
    }
}

static enum redbucket_status read_size(uint64_t bytes, size_t *size)
{
    char text[64];

    (void)snprintf(text, sizeof text, "shm:a?size=%llu", (unsigned long long)bytes);
    PARSE(url, text);
    return rbk_url_size(&url, "size", size, NULL);
}

/* So a 32-bit program doesn't take a number for what is left of it in 32 bits. */
static void a_size_ends_at_the_byte(void **state)
{
    uint64_t past_32_bits = ((uint64_t)4 << 30) + 65536;
    size_t size = 1234;

    (void)state;
    assert_int_equal(read_size((uint64_t)RBK_URL_SIZE_MAX + 1, &size), REDBUCKET_ERROR_URL);
    assert_int_equal(read_size(RBK_URL_SIZE_MAX, &size), REDBUCKET_OK);
    assert_true(size == RBK_URL_SIZE_MAX);
    assert_int_equal(read_size(past_32_bits, &size),
                     RBK_URL_SIZE_MAX > past_32_bits ? REDBUCKET_OK : REDBUCKET_ERROR_URL);
}

static void what_is_no_size_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "k",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1q",
        "10kk",
        "10kb",
        "1.5m",
        "1e3",
        "0x10",
        "10t",
        "1,0",
        "k10",
        "1\x0b",
        "1\xeb",
        "18446744073709551616", /* one more than the largest number */
        "18446744073709551620",
        "184467440737095516150",
        "18014398509481984k",
        "17179869184g",
        "99999999999999999999999999m",
    };
    struct redbucket_error error;
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t size = 1234;

        (void)snprintf(text, sizeof text, "shm:a?size=%s", bad[i]);
        PARSE(url, text);
        assert_int_equal(rbk_url_size(&url, "size", &size, &error), REDBUCKET_ERROR_URL);
        assert_string_equal(error.message,
                            "store URL: size: expected a number of bytes, or with k, m or g");
    }
}

static void a_size_has_bounds(void **state)
{
    static const char *const bad[] = {
        "0",     "7",           "32767",        "31k",
        "201g",  "0g",          "214748364801", "18446744073709551615",
        "1025g", "17179869183g"};
    struct redbucket_error error;
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t size = 1234;

        (void)snprintf(text, sizeof text, "shm:a?size=%s", bad[i]);
        PARSE(url, text);
        assert_int_equal(rbk_url_size(&url, "size", &size, &error), REDBUCKET_ERROR_URL);
        assert_string_equal(error.message, "store URL: size: expected 32k to " RBK_URL_SIZE_MOST);
    }
}

static void what_is_absent_leaves_the_value_alone(void **state)
{
    PARSE(url, "shm:a");
    size_t size = 1;
    unsigned mode = 2;
    double seconds = 3;

    (void)state;
    assert_int_equal(rbk_url_size(&url, "size", &size, NULL), REDBUCKET_OK);
    assert_int_equal(rbk_url_mode(&url, "mode", &mode, NULL), REDBUCKET_OK);
    assert_int_equal(rbk_url_duration(&url, "timeout", &seconds, NULL), REDBUCKET_OK);
    assert_int_equal(size, 1);
    assert_int_equal(mode, 2);
    assert_same(seconds, 3.0);
}

static void a_mode_is_octal_and_lets_its_owner_read_and_write(void **state)
{
    static const struct {
        const char *text;
        unsigned mode;
    } good[] = {{"600", 0600}, {"0600", 0600}, {"0640", 0640}, {"0660", 0660}, {"666", 0666}};
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        unsigned mode = 0;

        (void)snprintf(text, sizeof text, "shm:a?mode=%s", good[i].text);
        PARSE(url, text);
        assert_int_equal(rbk_url_mode(&url, "mode", &mode, NULL), REDBUCKET_OK);
        assert_int_equal(mode, good[i].mode);
    }
}

static void what_is_no_mode_is_refused(void **state)
{
    static const char *const bad[] = {"",     "0",   "6",    "60",    "00600", "06000", "0800",
                                      "0700", "611", "0400", "0200",  "0066",  "4600",  "1600",
                                      "06 0", "rw",  "-600", "0600x", "0x180"};
    struct redbucket_error error;
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        unsigned mode = 0;

        (void)snprintf(text, sizeof text, "shm:a?mode=%s", bad[i]);
        PARSE(url, text);
        assert_int_equal(rbk_url_mode(&url, "mode", &mode, &error), REDBUCKET_ERROR_URL);
        assert_string_equal(error.message,
                            "store URL: mode: expected an octal mode from 0600 to 0666");
        assert_int_equal(mode, 0);
    }
}

static void a_duration_is_above_0_and_at_most_an_hour(void **state)
{
    static const struct {
        const char *text;
        double seconds;
    } good[] = {{"1", 1}, {"0.5", 0.5}, {"50ms", 0.05}, {"2s", 2}, {"1us", 1e-6}, {"1h", 3600}};
    static const char *const bad[] = {"",  "0",   "0ms",        "-1",  "-1s", "61m", "3601",
                                      "s", "1 s", "1fortnight", "inf", "nan", "1e9", "1e999"};
    struct redbucket_error error;
    double seconds;
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        (void)snprintf(text, sizeof text, "shm:a?timeout=%s", good[i].text);
        PARSE(url, text);
        assert_int_equal(rbk_url_duration(&url, "timeout", &seconds, NULL), REDBUCKET_OK);
        assert_same(seconds, good[i].seconds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(text, sizeof text, "shm:a?timeout=%s", bad[i]);
        PARSE(url, text);
        seconds = 7;
        assert_int_equal(rbk_url_duration(&url, "timeout", &seconds, &error), REDBUCKET_ERROR_URL);
        assert_string_equal(
            error.message,
            "store URL: timeout: expected a duration above 0, to 1h, such as 50ms or 2s");
        assert_same(seconds, 7.0);
    }
}

static void assert_no_store(const char *text, const char *message)
{
    struct redbucket_store *untouched = (struct redbucket_store *)(uintptr_t)1;
    struct redbucket_store *store = untouched;
    struct redbucket_error error = {.message = ""};

    assert_int_equal(redbucket_store_open(text, &store, &error), REDBUCKET_ERROR_URL);
    assert_string_equal(error.message, message);
    assert_ptr_equal(store, untouched);
}

static void a_store_of_no_known_kind_is_refused(void **state)
{
    (void)state;
    assert_no_store("memcache:x", "store URL: unknown kind \"memcache\", expected " RBK_URL_KINDS);
    assert_no_store("MEMORY:", "store URL: unknown kind \"MEMORY\", expected " RBK_URL_KINDS);
    assert_no_store(":", "store URL: unknown kind \"\", expected " RBK_URL_KINDS);
    assert_no_store("", "store URL: expected " RBK_URL_KINDS);
}

static void a_memory_stores_url_is_checked(void **state)
{
    (void)state;
    assert_no_store("memory:name", "store URL: memory: has no name, expected memory:[?size=64m]");
    assert_no_store("memory://", "store URL: memory: has no name, expected memory:[?size=64m]");
    assert_no_store(
        "memory:?mode=0600",
        "store URL: unknown parameter \"mode\": memory: has size grow on_error local_share");
    assert_no_store("memory:?size=x",
                    "store URL: size: expected a number of bytes, or with k, m or g");
    assert_no_store("memory:?grow=no", "store URL: grow: expected yes, without a size");
    assert_no_store("memory:?grow=yes&size=1m", "store URL: grow: expected yes, without a size");
    assert_no_store("memory:?size=0", "store URL: size: expected 32k to " RBK_URL_SIZE_MOST);
    assert_no_store("memory:?size=32767", "store URL: size: expected 32k to " RBK_URL_SIZE_MOST);
    assert_no_store("memory:?size=16777215g",
                    "store URL: size: expected 32k to " RBK_URL_SIZE_MOST);
}

static void a_shm_stores_url_is_checked(void **state)
{
    char text[256], message[300];

    (void)state;
    assert_no_store("shm:", "store URL: expected shm:NAME");
    assert_no_store("shm:a/b", "store URL: shm: expected a name without /, not \"a/b\"");
    assert_no_store("shm:a%2fb", "store URL: shm: expected a name without /, not \"a/b\"");
    assert_no_store("shm:.", "store URL: shm: expected a name without /, not \".\"");
    assert_no_store("shm:%2e.", "store URL: shm: expected a name without /, not \"..\"");
    assert_no_store("shm:a?grow=yes", "store URL: unknown parameter \"grow\": shm: has size mode "
                                      "timeout create on_error local_share");
    assert_no_store("shm:a?create=maybe", "store URL: create: expected yes or no");
    assert_no_store("shm:a?mode=0777", "store URL: mode: expected an octal mode from 0600 to 0666");
    assert_no_store("shm:a?size=1x",
                    "store URL: size: expected a number of bytes, or with k, m or g");
    assert_no_store("shm:a?size=0", "store URL: size: expected 32k to " RBK_URL_SIZE_MOST);
    assert_no_store("shm:a?timeout=0",
                    "store URL: timeout: expected a duration above 0, to 1h, such as 50ms or 2s");
    (void)snprintf(text, sizeof text, "shm:%0201d", 0);
    (void)snprintf(message, sizeof message, "store URL: shm: name longer than 200 bytes");
    assert_no_store(text, message);
}

static void an_error_may_be_left_out(void **state)
{
    struct redbucket_store *store;

    (void)state;
    assert_int_equal(redbucket_store_open("memory:?size=1", &store, NULL), REDBUCKET_ERROR_URL);
    assert_int_equal(redbucket_store_open("what", &store, NULL), REDBUCKET_ERROR_URL);
    assert_int_equal(redbucket_store_open("shm:a?x=%", &store, NULL), REDBUCKET_ERROR_URL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_is_a_scheme_a_body_and_parameters),
        cmocka_unit_test(body_and_values_may_be_empty),
        cmocka_unit_test(percent_encoding_is_decoded),
        cmocka_unit_test(splitting_comes_before_decoding),
        cmocka_unit_test(a_text_without_a_colon_is_no_url),
        cmocka_unit_test(half_an_encoding_is_refused),
        cmocka_unit_test(an_encoded_nul_is_refused),
        cmocka_unit_test(a_parameter_is_a_name_and_a_value),
        cmocka_unit_test(a_parameter_given_twice_is_refused),
        cmocka_unit_test(parameters_are_so_many_at_most),
        cmocka_unit_test(a_url_is_so_long_at_most),
        cmocka_unit_test(an_unknown_parameter_is_refused),
        cmocka_unit_test(a_size_is_bytes_with_a_unit_of_1024),
        cmocka_unit_test(what_is_no_size_is_refused),
        cmocka_unit_test(a_size_ends_at_the_byte),
        cmocka_unit_test(a_size_has_bounds),
        cmocka_unit_test(what_is_absent_leaves_the_value_alone),
        cmocka_unit_test(a_mode_is_octal_and_lets_its_owner_read_and_write),
        cmocka_unit_test(what_is_no_mode_is_refused),
        cmocka_unit_test(a_duration_is_above_0_and_at_most_an_hour),
        cmocka_unit_test(a_store_of_no_known_kind_is_refused),
        cmocka_unit_test(a_memory_stores_url_is_checked),
        cmocka_unit_test(a_shm_stores_url_is_checked),
        cmocka_unit_test(an_error_may_be_left_out),
    };

    return cmocka_run_group_tests_name("url", tests, NULL, NULL);
}
