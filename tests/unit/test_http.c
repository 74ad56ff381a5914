/* SPDX-License-Identifier: MIT */
/*
 * What answers come to as header fields and bodies: the numbers of the mapping in docs/http.md,
 * by requests that a table really decided, at times of the test's own.
 */
#include "redbucket/http.h"
#include "test.h"

#include <math.h>
#include <stdio.h>

struct fixture {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
};

static int make(void **state)
{
    static struct fixture fixture;

    assert_int_equal(redbucket_store_open("memory:?size=1m", &fixture.store, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_create(fixture.store, &fixture.limiter, NULL), REDBUCKET_OK);
    *state = &fixture;
    return 0;
}

static int unmake(void **state)
{
    struct fixture *fixture = *state;

    redbucket_limiter_destroy(fixture->limiter);
    redbucket_store_close(fixture->store);
    return 0;
}

static void add(struct fixture *fixture, const char *text)
{
    struct redbucket_named_limit limit;

    assert_int_equal(redbucket_limit_parse(text, &limit, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_add(fixture->limiter, limit.name, &limit.limit, NULL),
                     REDBUCKET_OK);
}

static struct redbucket_verdict verdicts[REDBUCKET_KEYS_MAX];

/* Decides and keeps the answer, in memory that the next one takes again. */
static struct redbucket_request *ask(struct fixture *fixture, const struct redbucket_key *keys,
                                     size_t len, double cost, double now)
{
    static struct redbucket_request request;

    request = (struct redbucket_request){
        .keys = keys, .keys_len = len, .cost = cost, .verdicts = verdicts};
    assert_int_equal(redbucket_decide_at(fixture->limiter, &request, 1, now), REDBUCKET_OK);
    return &request;
}

static const struct redbucket_key one[] = {{"a", "k"}};
static const struct redbucket_key both[] = {{"a", "k"}, {"b", "k"}};

static const char *fields_of(struct fixture *fixture, const struct redbucket_request *request,
                             unsigned fields)
{
    static char bytes[REDBUCKET_HTTP_SIZE(4)];
    struct redbucket_text text = {bytes, sizeof bytes, 0};

    assert_int_equal(redbucket_http_fields(fixture->limiter, request, fields, &text), REDBUCKET_OK);
    assert_int_equal(text.len, strlen(bytes));
    return bytes;
}

static const char *problem_of(struct fixture *fixture, const struct redbucket_request *request)
{
    static char bytes[REDBUCKET_HTTP_SIZE(4)];
    struct redbucket_text text = {bytes, sizeof bytes, 0};

    assert_int_equal(redbucket_http_problem(fixture->limiter, request, &text), REDBUCKET_OK);
    assert_int_equal(text.len, strlen(bytes));
    return bytes;
}

static void test_an_accepted_request_tells_what_is_left(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, "a:5/s,burst=10");
    assert_string_equal(
        fields_of(fixture, ask(fixture, one, 1, 1, 100), REDBUCKET_HTTP_ALL),
        "RateLimit: \"a\";r=10;t=1\r\n"
        "RateLimit-Policy: \"a\";q=15;w=3\r\n"
        "X-RateLimit-Limit: 11\r\nX-RateLimit-Remaining: 10\r\nX-RateLimit-Reset: 1\r\n");
    assert_string_equal(fields_of(fixture, ask(fixture, one, 1, 7, 100), REDBUCKET_HTTP_RATELIMIT),
                        "RateLimit: \"a\";r=3;t=2\r\n");
}

/* Nothing is left, and one request comes back before all of them do. */
static void test_with_nothing_left_the_reset_is_the_next_request(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, "a:0.5/s,burst=9");
    assert_string_equal(fields_of(fixture, ask(fixture, one, 1, 10, 100), REDBUCKET_HTTP_RATELIMIT),
                        "RateLimit: \"a\";r=0;t=2\r\n");
    assert_true(ask(fixture, one, 1, 1, 102)->response.accepted);
}

static void test_a_delayed_request_has_nothing_left_until_its_turn(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, "a:0.1/s,delay=5");
    (void)ask(fixture, one, 1, 1, 100);
    const struct redbucket_request *request = ask(fixture, one, 1, 1, 100);

    assert_true(request->response.delay == 10.0);
    assert_string_equal(
        fields_of(fixture, request, REDBUCKET_HTTP_ALL),
        "RateLimit: \"a\";r=0;t=20\r\n"
        "RateLimit-Policy: \"a\";q=1;w=10\r\n"
        "X-RateLimit-Limit: 1\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 20\r\n");
    assert_int_equal(redbucket_http_status(request), 200);
}

static void test_an_untouched_bucket_has_no_reset(void **state)
{
    struct fixture *fixture = *state;
    struct redbucket_request request = {
        .operation = REDBUCKET_RESET, .keys = one, .keys_len = 1, .verdicts = verdicts};

    add(fixture, "a:1/s,burst=2");
    assert_int_equal(redbucket_decide_at(fixture->limiter, &request, 1, 100), REDBUCKET_OK);
    assert_string_equal(fields_of(fixture, &request, REDBUCKET_HTTP_STANDARD),
                        "RateLimit: \"a\";r=3\r\nRateLimit-Policy: \"a\";q=3;w=3\r\n");
}

static void test_a_rejection_says_when_to_come_back(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, "a:1/m,burst=1");
    (void)ask(fixture, one, 1, 2, 100);
    const struct redbucket_request *request = ask(fixture, one, 1, 1, 100.5);

    assert_string_equal(
        fields_of(fixture, request, REDBUCKET_HTTP_ALL),
        "Retry-After: 60\r\n"
        "RateLimit: \"a\";r=0;t=60\r\n"
        "RateLimit-Policy: \"a\";q=2;w=120\r\n"
        "X-RateLimit-Limit: 2\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 60\r\n");
    assert_int_equal(redbucket_http_status(request), 429);
    assert_string_equal(problem_of(fixture, request),
                        "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-"
                        "exceeded\",\"title\":\"Quota Exceeded\",\"status\":429,"
                        "\"detail\":\"Try again in 60 seconds.\",\"violated-policies\":[\"a\"]}");
    assert_true(ask(fixture, one, 1, 1, 160.5)->response.accepted);
}

static void test_a_short_wait_is_a_whole_second(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, "a:1000/s");
    (void)ask(fixture, one, 1, 1, 100);
    const struct redbucket_request *request = ask(fixture, one, 1, 1, 100);

    assert_false(request->response.accepted);
    assert_string_equal(fields_of(fixture, request, REDBUCKET_HTTP_STANDARD),
                        "Retry-After: 1\r\nRateLimit: \"a\";r=0;t=1\r\n"
                        "RateLimit-Policy: \"a\";q=1000;w=1\r\n");
    assert_non_null(strstr(problem_of(fixture, request), "Try again in 1 second."));
}

/* Whoever waits a whole number of seconds too few is rejected again. */
static void test_a_wait_just_above_whole_seconds_is_rounded_up(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, "a:1/s");
    (void)ask(fixture, one, 1, 1, 100.001);
    assert_string_equal(
        fields_of(fixture, ask(fixture, one, 1, 1, 99.0), REDBUCKET_HTTP_RETRY_AFTER),
        "Retry-After: 3\r\n");
}

/* Whole seconds stay what they are, and nothing becomes 0. */
static void test_waits_are_rounded_up_to_whole_seconds(void **state)
{
    static const struct {
        double wait;
        const char *field;
    } waits[] = {
        {0.0001, "1"}, {0.2, "1"}, {0.9999, "1"}, {1.0, "1"},         {1.0001, "2"},
        {1.5, "2"},    {2.0, "2"}, {7.0, "7"},    {86339.0, "86339"}, {1e12 + 0.5, "1000000000001"},
    };
    struct fixture *fixture = *state;

    add(fixture, "a:1/s");
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        struct redbucket_request *request = ask(fixture, one, 1, 1, 0);
        char expected[64];

        request->response.accepted = false;
        request->response.retry_after = waits[i].wait;
        (void)snprintf(expected, sizeof expected, "Retry-After: %s\r\n", waits[i].field);
        assert_string_equal(fields_of(fixture, request, REDBUCKET_HTTP_RETRY_AFTER), expected);
    }
}

static void test_a_cost_that_never_fits_has_no_time_to_retry(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, "a:1/s,burst=2");
    const struct redbucket_request *request = ask(fixture, one, 1, 5, 100);

    assert_true(isinf(request->response.retry_after));
    assert_string_equal(
        fields_of(fixture, request, REDBUCKET_HTTP_ALL),
        "RateLimit: \"a\";r=3\r\nRateLimit-Policy: \"a\";q=3;w=3\r\n"
        "X-RateLimit-Limit: 3\r\nX-RateLimit-Remaining: 3\r\nX-RateLimit-Reset: 0\r\n");
    assert_int_equal(redbucket_http_status(request), 429);
    assert_non_null(strstr(problem_of(fixture, request), "never accepted"));
}

static void test_all_limits_are_told_and_only_who_rejects_is_violated(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, "a:1/h,burst=99");
    add(fixture, "b:0.1/s");
    const struct redbucket_request *request = ask(fixture, both, 2, 1, 100);

    assert_string_equal(
        fields_of(fixture, request, REDBUCKET_HTTP_ALL),
        "RateLimit: \"a\";r=99;t=3600, \"b\";r=0;t=10\r\n"
        "RateLimit-Policy: \"a\";q=100;w=360000, \"b\";q=1;w=10\r\n"
        "X-RateLimit-Limit: 1\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 10\r\n");
    request = ask(fixture, both, 2, 1, 104);
    assert_string_equal(
        fields_of(fixture, request, REDBUCKET_HTTP_ALL),
        "Retry-After: 6\r\n"
        "RateLimit: \"a\";r=99;t=6, \"b\";r=0;t=6\r\n"
        "RateLimit-Policy: \"a\";q=100;w=360000, \"b\";q=1;w=10\r\n"
        "X-RateLimit-Limit: 1\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 6\r\n");
    assert_non_null(strstr(problem_of(fixture, request), "\"violated-policies\":[\"b\"]}"));
}

/* The one in docs/http.md. */
static void test_the_example_of_the_documentation(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, "a:100/m,burst=99");
    add(fixture, "b:5/s,burst=10");
    (void)ask(fixture, one, 1, 32, 100);
    (void)ask(fixture, both, 2, 11, 100);
    assert_string_equal(
        fields_of(fixture, ask(fixture, both, 2, 1, 100), REDBUCKET_HTTP_ALL),
        "Retry-After: 1\r\n"
        "RateLimit: \"a\";r=57;t=1, \"b\";r=0;t=1\r\n"
        "RateLimit-Policy: \"a\";q=100;w=60, \"b\";q=15;w=3\r\n"
        "X-RateLimit-Limit: 11\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1\r\n");
}

static void test_two_limits_that_reject_are_both_violated(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, "a:0.1/s");
    add(fixture, "b:0.01/s");
    (void)ask(fixture, both, 2, 1, 100);
    const struct redbucket_request *request = ask(fixture, both, 2, 1, 100);

    assert_string_equal(
        fields_of(fixture, request,
                  REDBUCKET_HTTP_RETRY_AFTER | REDBUCKET_HTTP_RATELIMIT | REDBUCKET_HTTP_X_RESET),
        "Retry-After: 100\r\nRateLimit: \"a\";r=0;t=10, \"b\";r=0;t=100\r\n"
        "X-RateLimit-Reset: 100\r\n");
    assert_non_null(strstr(problem_of(fixture, request), "\"violated-policies\":[\"a\",\"b\"]}"));
}

/* Nobody knows the levels while a policy answers, and rejecting is the server's trouble. */
static void test_a_degraded_answer_tells_no_levels(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, "a:1/s");
    verdicts[0] = (struct redbucket_verdict){.retry_after = 1.0};
    struct redbucket_request request = {
        .keys = one,
        .keys_len = 1,
        .cost = 1,
        .verdicts = verdicts,
        .response = {.degraded = true, .retry_after = 1.0, .decided = 0},
    };

    assert_string_equal(fields_of(fixture, &request, REDBUCKET_HTTP_ALL),
                        "Retry-After: 1\r\nRateLimit-Policy: \"a\";q=1;w=1\r\n");
    assert_int_equal(redbucket_http_status(&request), 503);
    assert_string_equal(problem_of(fixture, &request),
                        "{\"type\":\"https://iana.org/assignments/http-problem-types#temporary-"
                        "reduced-capacity\",\"title\":\"Temporary Reduced Capacity\","
                        "\"status\":503,\"detail\":\"Try again in 1 second.\","
                        "\"violated-policies\":[\"a\"]}");
    request.response = (struct redbucket_response){.accepted = true, .degraded = true};
    assert_string_equal(fields_of(fixture, &request, REDBUCKET_HTTP_ALL),
                        "RateLimit-Policy: \"a\";q=1;w=1\r\n");
}

static void test_a_store_that_failed_is_no_rejection(void **state)
{
    struct fixture *fixture = *state;
    struct redbucket_request request = {.keys = one,
                                        .keys_len = 1,
                                        .cost = 1,
                                        .status = REDBUCKET_ERROR_UNAVAILABLE,
                                        .failed = REDBUCKET_NONE};

    add(fixture, "a:1/s");
    assert_int_equal(redbucket_http_status(&request), 503);
    assert_string_equal(fields_of(fixture, &request, REDBUCKET_HTTP_ALL),
                        "Retry-After: 1\r\nRateLimit-Policy: \"a\";q=1;w=1\r\n");
    assert_string_equal(problem_of(fixture, &request),
                        "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":"
                        "503,\"detail\":\"Try again in 1 second.\"}");
}

static void test_a_request_without_limits_has_no_fields(void **state)
{
    struct fixture *fixture = *state;
    const struct redbucket_request *request = ask(fixture, NULL, 0, 1, 100);

    assert_string_equal(fields_of(fixture, request, REDBUCKET_HTTP_ALL), "");
}

static void test_single_values_are_those_of_the_fields(void **state)
{
    static const char *const expected[] = {"2", "\"a\";r=0;t=2", "\"a\";q=1;w=2", "1", "0", "2"};
    struct fixture *fixture = *state;
    char bytes[REDBUCKET_HTTP_SIZE(1)];

    add(fixture, "a:0.5/s");
    (void)ask(fixture, one, 1, 1, 100);
    const struct redbucket_request *request = ask(fixture, one, 1, 1, 100);

    for (unsigned i = 0; i < 6; i++) {
        struct redbucket_text text = {bytes, sizeof bytes, 0};
        const enum redbucket_http_field field = (enum redbucket_http_field)(1u << i);

        assert_int_equal(redbucket_http_value(fixture->limiter, request, field, &text),
                         REDBUCKET_OK);
        assert_string_equal(bytes, expected[i]);
    }
    assert_string_equal(redbucket_http_name(REDBUCKET_HTTP_X_RESET), "X-RateLimit-Reset");
    assert_string_equal(redbucket_http_name(REDBUCKET_HTTP_RETRY_AFTER), "Retry-After");
    assert_string_equal(redbucket_http_name(REDBUCKET_HTTP_ALL), "unknown");
}

static void test_what_can_not_be_told_is_refused(void **state)
{
    struct fixture *fixture = *state;
    char bytes[64] = "x";
    struct redbucket_text text = {bytes, sizeof bytes, 1};
    struct redbucket_request request;
    const struct redbucket_key stranger[] = {{"c", "k"}};

    add(fixture, "a:1/s");
    request = *ask(fixture, one, 1, 1, 100);
    assert_int_equal(redbucket_http_problem(fixture->limiter, &request, &text),
                     REDBUCKET_ERROR_ARGUMENT);
    assert_int_equal(redbucket_http_value(fixture->limiter, &request, REDBUCKET_HTTP_ALL, &text),
                     REDBUCKET_ERROR_ARGUMENT);
    assert_int_equal(redbucket_http_fields(fixture->limiter, &request, 64, &text),
                     REDBUCKET_ERROR_ARGUMENT);
    request.verdicts = NULL;
    assert_int_equal(redbucket_http_fields(fixture->limiter, &request, 7, &text),
                     REDBUCKET_ERROR_ARGUMENT);
    request.verdicts = verdicts;
    request.keys = stranger;
    assert_int_equal(redbucket_http_fields(fixture->limiter, &request, 7, &text),
                     REDBUCKET_ERROR_UNKNOWN_LIMIT);
    request.status = REDBUCKET_ERROR_UNKNOWN_LIMIT;
    assert_int_equal(redbucket_http_status(&request), 500);
    assert_int_equal(redbucket_http_fields(fixture->limiter, &request, 7, &text),
                     REDBUCKET_ERROR_ARGUMENT);
    assert_string_equal(bytes, "x");
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, make, unmake)
    const struct CMUnitTest tests[] = {
        CASE(test_an_accepted_request_tells_what_is_left),
        CASE(test_with_nothing_left_the_reset_is_the_next_request),
        CASE(test_a_delayed_request_has_nothing_left_until_its_turn),
        CASE(test_an_untouched_bucket_has_no_reset),
        CASE(test_a_rejection_says_when_to_come_back),
        CASE(test_a_short_wait_is_a_whole_second),
        CASE(test_a_wait_just_above_whole_seconds_is_rounded_up),
        CASE(test_waits_are_rounded_up_to_whole_seconds),
        CASE(test_a_cost_that_never_fits_has_no_time_to_retry),
        CASE(test_all_limits_are_told_and_only_who_rejects_is_violated),
        CASE(test_the_example_of_the_documentation),
        CASE(test_two_limits_that_reject_are_both_violated),
        CASE(test_a_degraded_answer_tells_no_levels),
        CASE(test_a_store_that_failed_is_no_rejection),
        CASE(test_a_request_without_limits_has_no_fields),
        CASE(test_single_values_are_those_of_the_fields),
        CASE(test_what_can_not_be_told_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
