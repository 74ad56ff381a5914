/* SPDX-License-Identifier: MIT */
/*
 * Hostile names and extreme numbers in header fields and bodies: what comes out is read again by a
 * reader of structured fields that knows no mercy, and by a JSON parser.
 */
#include "redbucket/http.h"
#include "test.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct redbucket_limiter *limiter_of(struct redbucket_store *store, const char *name,
                                            struct redbucket_limit limit)
{
    struct redbucket_limiter *limiter;

    assert_int_equal(redbucket_limiter_create(store, &limiter, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_add(limiter, name, &limit, NULL), REDBUCKET_OK);
    return limiter;
}

static struct redbucket_store *open_store(void)
{
    struct redbucket_store *store;

    assert_int_equal(redbucket_store_open("memory:?size=1m", &store, NULL), REDBUCKET_OK);
    return store;
}

static const char *digits(const char *at)
{
    size_t len = strspn(at, "0123456789");

    assert_in_range(len, 1, 15);
    assert_true(len == 1 || at[0] != '0');
    return at + len;
}

/* Reads what RFC 9651 calls a string into `out`; returns what is behind it. */
static const char *string(const char *at, char *out)
{
    assert_int_equal(*at++, '"');
    for (; *at != '"'; at++) {
        assert_in_range((unsigned char)*at, 0x20, 0x7e);
        if (*at == '\\') {
            at++;
            assert_true(*at == '"' || *at == '\\');
        }
        *out++ = *at;
    }
    *out = '\0';
    return at + 1;
}

/* Reads "NAME";x=1;y=2 and returns the name as it was before it was escaped. */
static void read_item(const char *item, char *name)
{
    char escaped[1024];
    const char *at = string(item, escaped);

    while (*at != '\0') {
        assert_int_equal(at[0], ';');
        assert_in_range(at[1], 'a', 'z');
        assert_int_equal(at[2], '=');
        at = digits(at + 3);
    }
    for (at = escaped; *at != '\0'; at++) {
        char hex[3] = {at[0] == '%' ? at[1] : '\0', at[0] == '%' ? at[2] : '\0', '\0'};

        *name++ = *at == '%' ? (char)strtoul(hex, NULL, 16) : *at;
        at += *at == '%' ? 2 : 0;
    }
    *name = '\0';
}

/* Every text about one rejected request under one limit of that name. */
static void check_name(const char *name)
{
    const struct redbucket_key key = {name, "k"};
    struct redbucket_verdict verdict;
    struct redbucket_request request = {
        .keys = &key, .keys_len = 1, .cost = 2, .verdicts = &verdict};
    struct redbucket_store *store = open_store();
    struct redbucket_limiter *limiter =
        limiter_of(store, name, (struct redbucket_limit){.rate = 1});
    char bytes[REDBUCKET_HTTP_SIZE(1)];
    char read[1024];

    assert_int_equal(redbucket_decide_at(limiter, &request, 1, 1), REDBUCKET_OK);
    for (unsigned field = REDBUCKET_HTTP_RATELIMIT; field <= REDBUCKET_HTTP_RATELIMIT_POLICY;
         field *= 2) {
        struct redbucket_text text = {bytes, sizeof bytes, 0};

        assert_int_equal(
            redbucket_http_value(limiter, &request, (enum redbucket_http_field)field, &text),
            REDBUCKET_OK);
        read_item(bytes, read);
        assert_string_equal(read, name);
    }
    struct redbucket_text text = {bytes, sizeof bytes, 0};

    assert_int_equal(redbucket_http_problem(limiter, &request, &text), REDBUCKET_OK);
    json_t *problem = json_loadb(bytes, text.len, 0, NULL);

    assert_non_null(problem);
    assert_int_equal(json_array_size(json_object_get(problem, "violated-policies")), 1);
    json_decref(problem);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

static void test_names_come_back_whatever_is_in_them(void **state)
{
    static const char *const hostile[] = {
        "plain",  "with space", "\r\nSet-Cookie: a=b",  "\"; rm=1, \"x",     "back\\slash\\",
        "100%",   "%0D%0A",     "\x01\x1f\x7f\x80\xff", "h\xc3\xb6\xc3\x9f", "</script>",
        ",;=:?*",
    };

    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++)
        check_name(hostile[i]);
}

static void test_each_byte_of_a_name_comes_back(void **state)
{
    char name[2] = "";

    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        name[0] = (char)byte;
        check_name(name);
    }
}

/* The longest names of the worst bytes, twice: what REDBUCKET_HTTP_SIZE promises. */
static void test_the_promised_size_is_enough(void **state)
{
    struct redbucket_store *store = open_store();
    char first[REDBUCKET_ZONE_MAX + 1];
    char second[REDBUCKET_ZONE_MAX + 1];
    char bytes[REDBUCKET_HTTP_SIZE(2)];

    (void)state;
    memset(first, '\n', sizeof first);
    memset(second, '\xff', sizeof second);
    first[REDBUCKET_ZONE_MAX] = second[REDBUCKET_ZONE_MAX] = '\0';
    const struct redbucket_limit limit = {.rate = 1e-9, .burst = 1e12};
    struct redbucket_limiter *limiter = limiter_of(store, first, limit);

    assert_int_equal(redbucket_limiter_add(limiter, second, &limit, NULL), REDBUCKET_OK);
    const struct redbucket_key keys[] = {{first, "k"}, {second, "k"}};
    struct redbucket_verdict verdicts[2];
    struct redbucket_request request = {
        .keys = keys, .keys_len = 2, .cost = 1e12, .verdicts = verdicts};

    assert_int_equal(redbucket_decide_at(limiter, &request, 1, 1), REDBUCKET_OK);
    assert_int_equal(redbucket_decide_at(limiter, &request, 1, 1), REDBUCKET_OK);
    assert_false(request.response.accepted);
    struct redbucket_text text = {bytes, sizeof bytes, 0};

    assert_int_equal(redbucket_http_fields(limiter, &request, REDBUCKET_HTTP_ALL, &text),
                     REDBUCKET_OK);
    text.len = 0;
    assert_int_equal(redbucket_http_problem(limiter, &request, &text), REDBUCKET_OK);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

static void check_numbers(const struct redbucket_limit *limit,
                          const struct redbucket_verdict *given, const char *expected)
{
    const struct redbucket_key key = {"a", "k"};
    struct redbucket_verdict verdict = *given;
    struct redbucket_request request = {
        .keys = &key,
        .keys_len = 1,
        .cost = 1,
        .verdicts = &verdict,
        .response = {.accepted = given->accepted, .retry_after = given->retry_after},
    };
    struct redbucket_store *store = open_store();
    struct redbucket_limiter *limiter = limiter_of(store, "a", *limit);
    char bytes[REDBUCKET_HTTP_SIZE(1)];
    struct redbucket_text text = {bytes, sizeof bytes, 0};

    assert_int_equal(redbucket_http_fields(limiter, &request, REDBUCKET_HTTP_STANDARD, &text),
                     REDBUCKET_OK);
    assert_string_equal(bytes, expected);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

static void test_numbers_stay_in_range(void **state)
{
    (void)state;
    check_numbers(&(struct redbucket_limit){.rate = 1e-9, .burst = 1e12},
                  &(struct redbucket_verdict){.retry_after = DBL_MAX, .remaining = INT64_MAX},
                  "Retry-After: 999999999999999\r\n"
                  "RateLimit: \"a\";r=999999999999999;t=999999999999999\r\n"
                  "RateLimit-Policy: \"a\";q=1000000000001;w=999999999999999\r\n");
    check_numbers(&(struct redbucket_limit){.rate = 1e12},
                  &(struct redbucket_verdict){.accepted = true, .reset_after = INFINITY},
                  "RateLimit: \"a\";r=0;t=999999999999999\r\n"
                  "RateLimit-Policy: \"a\";q=1000000000000;w=1\r\n");
    check_numbers(
        &(struct redbucket_limit){.rate = 1, .burst = 1},
        &(struct redbucket_verdict){.accepted = true, .reset_after = NAN, .remaining = -1},
        "RateLimit: \"a\";r=0;t=1\r\nRateLimit-Policy: \"a\";q=2;w=2\r\n");
}

/* A quota a minute or an hour is read back as just that, though its rate is no round double. */
static void test_policies_are_the_round_numbers_that_were_meant(void **state)
{
    static const struct {
        struct redbucket_limit limit;
        const char *expected;
    } rows[] = {
        {{.rate = 100.0 / 60, .burst = 99}, "RateLimit-Policy: \"a\";q=100;w=60\r\n"},
        {{.rate = 1000.0 / 3600, .burst = 999}, "RateLimit-Policy: \"a\";q=1000;w=3600\r\n"},
        {{.rate = 5000.0 / 86400, .burst = 4999}, "RateLimit-Policy: \"a\";q=5000;w=86400\r\n"},
        {{.rate = 7.0 / 86400, .burst = 6}, "RateLimit-Policy: \"a\";q=7;w=86400\r\n"},
        {{.rate = 1.0 / 3, .burst = 0}, "RateLimit-Policy: \"a\";q=1;w=3\r\n"},
        {{.rate = 5, .burst = 0}, "RateLimit-Policy: \"a\";q=5;w=1\r\n"},
        {{.rate = 2.5, .burst = 0.5}, "RateLimit-Policy: \"a\";q=2;w=1\r\n"},
        {{.rate = 0.5, .burst = 0, .delay = 50}, "RateLimit-Policy: \"a\";q=1;w=2\r\n"},
    };
    const struct redbucket_key key = {"a", "k"};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct redbucket_store *store = open_store();
        struct redbucket_limiter *limiter = limiter_of(store, "a", rows[i].limit);
        struct redbucket_verdict verdict;
        struct redbucket_request request = {
            .keys = &key, .keys_len = 1, .cost = 1, .verdicts = &verdict};
        char bytes[REDBUCKET_HTTP_SIZE(1)];
        struct redbucket_text text = {bytes, sizeof bytes, 0};

        assert_int_equal(redbucket_decide_at(limiter, &request, 1, 1), REDBUCKET_OK);
        assert_int_equal(
            redbucket_http_fields(limiter, &request, REDBUCKET_HTTP_RATELIMIT_POLICY, &text),
            REDBUCKET_OK);
        assert_string_equal(bytes, rows[i].expected);
        redbucket_limiter_destroy(limiter);
        redbucket_store_close(store);
    }
}

/* Every size of room: all of the text, or what was there before and not a byte more. */
static void test_a_text_is_written_in_full_or_not_at_all(void **state)
{
    const struct redbucket_key key = {"a", "k"};
    struct redbucket_verdict verdict;
    struct redbucket_request request = {
        .keys = &key, .keys_len = 1, .cost = 9, .verdicts = &verdict};
    struct redbucket_store *store = open_store();
    struct redbucket_limiter *limiter = limiter_of(store, "a", (struct redbucket_limit){.rate = 1});
    char whole[REDBUCKET_HTTP_SIZE(1)];
    struct redbucket_text all = {whole, sizeof whole, 0};

    (void)state;
    assert_int_equal(redbucket_decide_at(limiter, &request, 1, 1), REDBUCKET_OK);
    assert_int_equal(redbucket_http_problem(limiter, &request, &all), REDBUCKET_OK);
    for (size_t size = 0; size <= all.len + 4; size++) {
        char *bytes = malloc(size);
        struct redbucket_text text = {bytes, size, size < 3 ? 0 : 3};
        const bool fits = text.len + all.len + 1 <= size;

        memcpy(bytes, "abc", text.len);
        assert_int_equal(redbucket_http_problem(limiter, &request, &text),
                         fits ? REDBUCKET_OK : REDBUCKET_ERROR_SPACE);
        assert_int_equal(text.len, (size < 3 ? 0 : 3) + (fits ? all.len : 0));
        assert_true(memcmp(bytes, "abc", size < 3 ? 0 : 3) == 0);
        assert_true(text.len >= size || bytes[text.len] == '\0');
        free(bytes);
    }
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_come_back_whatever_is_in_them),
        cmocka_unit_test(test_each_byte_of_a_name_comes_back),
        cmocka_unit_test(test_the_promised_size_is_enough),
        cmocka_unit_test(test_numbers_stay_in_range),
        cmocka_unit_test(test_policies_are_the_round_numbers_that_were_meant),
        cmocka_unit_test(test_a_text_is_written_in_full_or_not_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
