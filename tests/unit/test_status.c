/* SPDX-License-Identifier: MIT */
/*
 * Status codes, names and texts: one test for each, so that a code without a name, two texts that
 * are the same, or a code that moved is a failure of its own. And how error structs are filled in.
 */
#include "error.h"
#include "test.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

/* The numbers are part of the ABI and written out, not taken from the table that they check. */
static const struct {
    enum redbucket_status status;
    int number;
    const char *name;
} codes[] = {
    {REDBUCKET_OK, 0, "REDBUCKET_OK"},
    {REDBUCKET_ERROR_ARGUMENT, 1, "REDBUCKET_ERROR_ARGUMENT"},
    {REDBUCKET_ERROR_LIMIT, 2, "REDBUCKET_ERROR_LIMIT"},
    {REDBUCKET_ERROR_DUPLICATE, 3, "REDBUCKET_ERROR_DUPLICATE"},
    {REDBUCKET_ERROR_UNKNOWN_LIMIT, 4, "REDBUCKET_ERROR_UNKNOWN_LIMIT"},
    {REDBUCKET_ERROR_URL, 5, "REDBUCKET_ERROR_URL"},
    {REDBUCKET_ERROR_KEY, 6, "REDBUCKET_ERROR_KEY"},
    {REDBUCKET_ERROR_FULL, 7, "REDBUCKET_ERROR_FULL"},
    {REDBUCKET_ERROR_STATE, 8, "REDBUCKET_ERROR_STATE"},
    {REDBUCKET_ERROR_TIMEOUT, 9, "REDBUCKET_ERROR_TIMEOUT"},
    {REDBUCKET_ERROR_FOREIGN, 10, "REDBUCKET_ERROR_FOREIGN"},
    {REDBUCKET_ERROR_MISMATCH, 11, "REDBUCKET_ERROR_MISMATCH"},
    {REDBUCKET_ERROR_UNSUPPORTED, 12, "REDBUCKET_ERROR_UNSUPPORTED"},
    {REDBUCKET_ERROR_MEMORY, 13, "REDBUCKET_ERROR_MEMORY"},
    {REDBUCKET_ERROR_SYSTEM, 14, "REDBUCKET_ERROR_SYSTEM"},
    {REDBUCKET_ERROR_UNAVAILABLE, 15, "REDBUCKET_ERROR_UNAVAILABLE"},
    {REDBUCKET_ERROR_IO, 16, "REDBUCKET_ERROR_IO"},
    {REDBUCKET_ERROR_PROTOCOL, 17, "REDBUCKET_ERROR_PROTOCOL"},
    {REDBUCKET_ERROR_AUTH, 18, "REDBUCKET_ERROR_AUTH"},
    {REDBUCKET_ERROR_READONLY, 19, "REDBUCKET_ERROR_READONLY"},
    {REDBUCKET_ERROR_TLS, 20, "REDBUCKET_ERROR_TLS"},
    {REDBUCKET_ERROR_CONFLICT, 21, "REDBUCKET_ERROR_CONFLICT"},
    {REDBUCKET_ERROR_SERVER, 22, "REDBUCKET_ERROR_SERVER"},
    {REDBUCKET_ERROR_SPACE, 23, "REDBUCKET_ERROR_SPACE"},
    {REDBUCKET_CANCELLED, 24, "REDBUCKET_CANCELLED"},
};

#define CODES_LEN (sizeof codes / sizeof codes[0])

/* Every code of the header's map, so that the tests below can't leave one out. */
static const enum redbucket_status mapped[] = {
#define MAPPED(name, text) REDBUCKET_##name,
    REDBUCKET_STATUS_MAP(MAPPED)
#undef MAPPED
};

_Static_assert(sizeof mapped / sizeof mapped[0] == CODES_LEN, "each code has its test");

/* In lower case, without a full stop, and nobody else's. */
static void check_text(size_t index)
{
    const char *text = redbucket_status_text(codes[index].status);

    assert_true(strlen(text) > 1);
    assert_true(islower((unsigned char)text[0]));
    assert_true(text[strlen(text) - 1] != '.');
    assert_string_not_equal(text, redbucket_status_text((enum redbucket_status)1000));
    for (size_t i = 0; i < CODES_LEN; i++) {
        if (i != index)
            assert_string_not_equal(text, redbucket_status_text(codes[i].status));
    }
}

static void check_code(void **state)
{
    size_t index = *(const size_t *)*state;

    assert_int_equal(codes[index].status, codes[index].number);
    assert_int_equal(mapped[index], codes[index].number);
    assert_string_equal(redbucket_status_name(codes[index].status), codes[index].name);
    check_text(index);
}

static void an_unknown_code_has_a_name_and_a_text(void **state)
{
    static const int unknown[] = {(int)CODES_LEN, 1000, -1};

    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_string_equal(redbucket_status_name((enum redbucket_status)unknown[i]), "unknown");
        assert_string_equal(redbucket_status_text((enum redbucket_status)unknown[i]),
                            "unknown status");
    }
}

static void the_version_is_the_headers(void **state)
{
    char version[32];

    (void)state;
    (void)snprintf(version, sizeof version, "%d.%d.%d", REDBUCKET_VERSION_MAJOR,
                   REDBUCKET_VERSION_MINOR, REDBUCKET_VERSION_PATCH);
    assert_string_equal(redbucket_version(), version);
}

static void failing_fills_in_the_error(void **state)
{
    struct redbucket_error error = {.position = 7};

    (void)state;
    assert_int_equal(rbk_fail(&error, REDBUCKET_ERROR_KEY, 3, "%s %d", "here", 5),
                     REDBUCKET_ERROR_KEY);
    assert_int_equal(error.status, REDBUCKET_ERROR_KEY);
    assert_int_equal(error.position, 3);
    assert_string_equal(error.message, "here 5");
    rbk_error_set(&error, REDBUCKET_ERROR_URL, -1, "no %c", 'x');
    assert_int_equal(error.status, REDBUCKET_ERROR_URL);
    assert_int_equal(error.position, -1);
    assert_string_equal(error.message, "no x");
}

static void an_error_may_be_left_out(void **state)
{
    (void)state;
    assert_int_equal(rbk_fail(NULL, REDBUCKET_ERROR_FULL, -1, "nobody sees %s", "this"),
                     REDBUCKET_ERROR_FULL);
    assert_int_equal(rbk_fail_system(NULL, EACCES, "file"), REDBUCKET_ERROR_SYSTEM);
    rbk_error_set(NULL, REDBUCKET_ERROR_URL, -1, "nothing");
}

static void a_long_message_is_cut_to_fit(void **state)
{
    struct redbucket_error error;
    char text[1000];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)rbk_fail(&error, REDBUCKET_ERROR_URL, -1, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

static void a_message_stays_one_printable_line(void **state)
{
    struct redbucket_error error;

    (void)state;
    rbk_error_set(&error, REDBUCKET_ERROR_LIMIT, -1, "limit %s: \x7f", "a\nb\033[2Jc");
    assert_string_equal(error.message, "limit a?b?[2Jc: ?");
}

static void what_the_system_refuses_is_told(void **state)
{
    struct redbucket_error error;
    char expected[64];

    (void)state;
    (void)snprintf(expected, sizeof expected, "limiter: %s", strerror(ENOMEM));
    assert_int_equal(rbk_fail_system(&error, EACCES, "file"), REDBUCKET_ERROR_SYSTEM);
    assert_string_equal(error.message, "file: Permission denied");
    assert_int_equal(error.position, -1);
    assert_int_equal(rbk_fail_system(&error, ENOMEM, "limiter"), REDBUCKET_ERROR_MEMORY);
    assert_string_equal(error.message, expected);
}

int main(void)
{
    static size_t index[CODES_LEN];
    struct CMUnitTest tests[CODES_LEN + 7];
    const struct CMUnitTest others[] = {
        cmocka_unit_test(an_unknown_code_has_a_name_and_a_text),
        cmocka_unit_test(the_version_is_the_headers),
        cmocka_unit_test(failing_fills_in_the_error),
        cmocka_unit_test(an_error_may_be_left_out),
        cmocka_unit_test(a_long_message_is_cut_to_fit),
        cmocka_unit_test(a_message_stays_one_printable_line),
        cmocka_unit_test(what_the_system_refuses_is_told),
    };

    for (size_t i = 0; i < CODES_LEN; i++) {
        index[i] = i;
        tests[i] = (struct CMUnitTest){
            .name = codes[i].name, .test_func = check_code, .initial_state = &index[i]};
    }
    memcpy(&tests[CODES_LEN], others, sizeof others);
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
