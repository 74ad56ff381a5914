/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a request is found before anything is read, named exactly, and takes nothing;
 * what is right in an array goes on, in order.
 */
#include "inside.h"
#include "limiter.h"
#include "stores.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct fixture {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
};

static void add(struct redbucket_limiter *limiter, const char *name, double rate, double burst)
{
    struct redbucket_limit limit = {.rate = rate, .burst = burst};

    assert_int_equal(redbucket_limiter_add(limiter, name, &limit, NULL), REDBUCKET_OK);
}

/* Limits a, b and c, which take two, ten and a thousand at once. */
static int set_up(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);

    assert_non_null(fixture);
    fixture->store = test_store_open("memory:?size=64k");
    assert_int_equal(redbucket_limiter_create(fixture->store, &fixture->limiter, NULL),
                     REDBUCKET_OK);
    add(fixture->limiter, "a", 1, 1);
    add(fixture->limiter, "b", 1, 9);
    add(fixture->limiter, "c", 1, 1000);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    redbucket_limiter_destroy(fixture->limiter);
    redbucket_store_close(fixture->store);
    free(fixture);
    return 0;
}

static struct redbucket_limiter *limiter_of(void **state)
{
    return ((struct fixture *)*state)->limiter;
}

/* Decides one request, which fails: with its status, its key and its message, an answer that is
 * left alone, and not a byte of any bucket changed. */
static void assert_fails(void **state, struct redbucket_request request,
                         enum redbucket_status status, size_t failed, const char *message)
{
    struct redbucket_error error = {.position = 7};
    void *buckets = test_copy_buckets(((struct fixture *)*state)->store);

    request.response.delay = 77;
    request.status = REDBUCKET_ERROR_SYSTEM;
    request.failed = 55;
    assert_int_equal(redbucket_decide_at(limiter_of(state), &request, 1, 100), status);
    assert_int_equal(request.status, status);
    assert_true(request.failed == failed);
    assert_same(request.response.delay, 77.0);
    redbucket_request_error(&request, &error);
    assert_int_equal(error.status, status);
    assert_int_equal(error.position, -1);
    assert_string_equal(error.message, message);
    assert_true(test_same_buckets(((struct fixture *)*state)->store, buckets));
    free(buckets);
}

static void an_unknown_limit_is_found_before_anything_is_taken(void **state)
{
    const struct redbucket_key keys[] = {{"a", "k"}, {"b", "k"}, {"nope", "k"}};
    struct redbucket_request request = {.keys = keys, .keys_len = 3, .cost = 1};

    assert_fails(state, request, REDBUCKET_ERROR_UNKNOWN_LIMIT, 2, "there is no limit nope");
    request.keys_len = 2;
    assert_int_equal(redbucket_decide_at(limiter_of(state), &request, 1, 100), REDBUCKET_OK);
}

static void a_limit_named_twice_is_refused(void **state)
{
    const struct redbucket_key keys[] = {{"b", "k"}, {"a", "k"}, {"a", "other"}};
    const struct redbucket_key same[] = {{"a", "k"}, {"a", "k"}};

    assert_fails(state, (struct redbucket_request){.keys = keys, .keys_len = 3, .cost = 1},
                 REDBUCKET_ERROR_DUPLICATE, 2, "limit a: named twice");
    assert_fails(state, (struct redbucket_request){.keys = same, .keys_len = 2, .cost = 1},
                 REDBUCKET_ERROR_DUPLICATE, 1, "limit a: named twice");
}

/* The state under the key can't be read, so that whoever looked would say so. */
static void a_cost_out_of_range_is_refused_before_anything_is_read(void **state)
{
    static const struct {
        double cost;
        const char *text;
    } bad[] = {{0, "0"},
               {-1, "-1"},
               {NAN, "nan"},
               {1e-4, "0.0001"},
               {1e13, "10000000000000"},
               {INFINITY, "inf"},
               {-INFINITY, "-inf"}};
    const struct redbucket_key key = {"a", "k"};
    struct redbucket_request request = {.keys = &key, .keys_len = 1};
    char message[128];

    test_put_state(limiter_of(state), "a", "k", NAN, NAN);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(message, sizeof message, "cost: %s is out of range, expected 1e-3 to 1e12",
                       bad[i].text);
        for (int operation = 0; operation <= (int)REDBUCKET_GIVE_BACK; operation++) {
            request.operation = (enum redbucket_operation)operation;
            request.cost = bad[i].cost;
            if (operation != (int)REDBUCKET_RESET)
                assert_fails(state, request, REDBUCKET_ERROR_ARGUMENT, REDBUCKET_NONE, message);
        }
    }
}

static void costs_at_the_edges_are_costs(void **state)
{
    const double good[] = {1e-3, 1, 1e12};
    const double bad[] = {nextafter(1e-3, 0), nextafter(1e12, INFINITY)};
    const struct redbucket_key key = {"a", "k"};
    struct redbucket_request request = {.keys = &key, .keys_len = 1};

    for (size_t i = 0; i < 3; i++) {
        request.cost = good[i];
        assert_int_equal(redbucket_decide_at(limiter_of(state), &request, 1, 100), REDBUCKET_OK);
    }
    for (size_t i = 0; i < 2; i++) {
        request.cost = bad[i];
        assert_int_equal(redbucket_decide_at(limiter_of(state), &request, 1, 100),
                         REDBUCKET_ERROR_ARGUMENT);
    }
}

static void a_reset_ignores_the_cost(void **state)
{
    const struct redbucket_key key = {"a", "k"};
    struct redbucket_request request = {
        .operation = REDBUCKET_RESET, .keys = &key, .keys_len = 1, .cost = NAN};

    assert_int_equal(redbucket_decide_at(limiter_of(state), &request, 1, 100), REDBUCKET_OK);
    assert_true(request.response.accepted);
}

static void an_operation_that_is_none_is_refused(void **state)
{
    const struct redbucket_key key = {"a", "k"};
    struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1};

    request.operation = (enum redbucket_operation)6;
    assert_fails(state, request, REDBUCKET_ERROR_ARGUMENT, REDBUCKET_NONE, "operation: 6 is none");
    request.operation = (enum redbucket_operation) - 1;
    assert_fails(state, request, REDBUCKET_ERROR_ARGUMENT, REDBUCKET_NONE, "operation: -1 is none");
}

static void giving_back_wants_the_time_it_was_taken(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    const struct redbucket_key key = {"a", "k"};
    struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1};

    for (size_t i = 0; i < 3; i++) {
        request.taken_at = bad[i];
        request.operation = REDBUCKET_GIVE_BACK;
        assert_fails(state, request, REDBUCKET_ERROR_ARGUMENT, REDBUCKET_NONE,
                     "request: a time that isn't finite, or a key without text");
        request.operation = REDBUCKET_REFUND;
        assert_int_equal(redbucket_decide_at(limiter_of(state), &request, 1, 100), REDBUCKET_OK);
    }
}

static void a_time_that_isnt_finite_fails_every_request(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    const struct redbucket_key key = {"a", "k"};
    struct redbucket_request requests[2];
    struct redbucket_error error;

    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 2; j++)
            requests[j] = (struct redbucket_request){
                .keys = &key, .keys_len = 1, .cost = 1, .failed = 0, .response.delay = 77};
        assert_int_equal(redbucket_decide_at(limiter_of(state), requests, 2, bad[i]),
                         REDBUCKET_ERROR_ARGUMENT);
        for (size_t j = 0; j < 2; j++) {
            assert_int_equal(requests[j].status, REDBUCKET_ERROR_ARGUMENT);
            assert_true(requests[j].failed == REDBUCKET_NONE);
            assert_same(requests[j].response.delay, 77.0);
            redbucket_request_error(&requests[j], &error);
            assert_string_equal(error.message,
                                "request: a time that isn't finite, or a key without text");
        }
    }
}

static void a_key_has_a_limit_and_a_text(void **state)
{
    const struct redbucket_key no_limit[] = {{"a", "k"}, {NULL, "k"}};
    const struct redbucket_key no_text[] = {{"a", "k"}, {"b", NULL}};

    assert_fails(state, (struct redbucket_request){.keys = no_limit, .keys_len = 2, .cost = 1},
                 REDBUCKET_ERROR_ARGUMENT, 1,
                 "request: a time that isn't finite, or a key without text");
    assert_fails(state, (struct redbucket_request){.keys = no_text, .keys_len = 2, .cost = 1},
                 REDBUCKET_ERROR_ARGUMENT, 1,
                 "request: a time that isn't finite, or a key without text");
}

static void a_request_names_64_keys_at_most(void **state)
{
    static char names[REDBUCKET_KEYS_MAX + 1][8];
    struct redbucket_key keys[REDBUCKET_KEYS_MAX + 1];
    struct redbucket_verdict verdicts[REDBUCKET_KEYS_MAX];
    struct redbucket_request request = {
        .keys = keys, .keys_len = REDBUCKET_KEYS_MAX + 1, .cost = 1};

    for (size_t i = 0; i <= REDBUCKET_KEYS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%zu", i);
        add(limiter_of(state), names[i], 1, (double)(100 + i));
        keys[i] = (struct redbucket_key){.limit = names[i], .key = "k"};
    }
    assert_fails(state, request, REDBUCKET_ERROR_ARGUMENT, REDBUCKET_NONE,
                 "request: names 65 keys, at most 64 are allowed");
    request.keys_len = SIZE_MAX;
    assert_int_equal(redbucket_decide_at(limiter_of(state), &request, 1, 100),
                     REDBUCKET_ERROR_ARGUMENT);
    request.keys_len = REDBUCKET_KEYS_MAX;
    request.verdicts = verdicts;
    assert_int_equal(redbucket_decide_at(limiter_of(state), &request, 1, 100), REDBUCKET_OK);
    assert_true(request.response.accepted);
    assert_int_equal(request.response.remaining, 100);
    for (size_t i = 0; i < REDBUCKET_KEYS_MAX; i++)
        assert_int_equal(verdicts[i].remaining, 100 + i);
}

static void a_key_too_long_is_refused_and_never_cut(void **state)
{
    size_t max = limiter_of(state)->store->ops->key_max(limiter_of(state)->store);
    char *text = malloc(max + 1);
    struct redbucket_key keys[] = {{"b", "k"}, {"a", text, max, 0}};
    struct redbucket_request request = {.keys = keys, .keys_len = 2, .cost = 1};

    assert_non_null(text);
    memset(text, 'x', max + 1);
    assert_int_equal(redbucket_decide_at(limiter_of(state), &request, 1, 0), REDBUCKET_OK);
    keys[1].key_len = max + 1;
    assert_fails(state, request, REDBUCKET_ERROR_KEY, 1,
                 "limit a, key xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                 "xxxxxxxxxxxxxxxxxxxxxxxxxxxx...: key too long for the store");
    keys[1].key_len = SIZE_MAX;
    request.status = REDBUCKET_OK;
    assert_int_equal(redbucket_decide_at(limiter_of(state), &request, 1, 100), REDBUCKET_ERROR_KEY);
    free(text);
}

static void messages_escape_what_doesnt_print(void **state)
{
    const struct redbucket_key key = {"no\\pe\x7f", "a\0\n\xff z", 6, 0};
    struct redbucket_request request = {
        .keys = &key, .keys_len = 1, .status = REDBUCKET_ERROR_STATE, .failed = 0};
    struct redbucket_error error;

    redbucket_request_error(&request, &error);
    assert_string_equal(error.message,
                        "limit no\\x5cpe\\x7f, key a\\x00\\x0a\\xff z: stored state can't be read");
    request.status = REDBUCKET_ERROR_UNKNOWN_LIMIT;
    redbucket_request_error(&request, &error);
    assert_string_equal(error.message, "there is no limit no\\x5cpe\\x7f");
    request.status = REDBUCKET_ERROR_TIMEOUT;
    request.failed = REDBUCKET_NONE;
    redbucket_request_error(&request, &error);
    assert_string_equal(error.message, "deadline passed");
    redbucket_request_error(&request, NULL);
    (void)state;
}

static void messages_cut_long_limits_and_keys(void **state)
{
    char limit[300], text[300];
    const struct redbucket_key key = {limit, text, sizeof text, sizeof limit};
    struct redbucket_request request = {
        .keys = &key, .keys_len = 1, .status = REDBUCKET_ERROR_STATE, .failed = 0};
    struct redbucket_error error;

    memset(limit, '\n', sizeof limit);
    memset(text, '\xff', sizeof text);
    redbucket_request_error(&request, &error);
    /* 19 and 24 of them, four characters each. */
    assert_int_equal(strlen(error.message), strlen("limit ...") + 19 * 4 + strlen(", key ...") +
                                                24 * 4 + strlen(": stored state can't be read"));
    assert_non_null(strstr(error.message, "\\x0a..., key \\xff"));
    assert_non_null(strstr(error.message, "\\xff...: stored state can't be read"));
    (void)state;
}

static void a_lone_requests_answer_is_written_only_when_there_is_one(void **state)
{
    const struct redbucket_key good = {"a", "k"}, bad = {"nope", "k"};
    struct redbucket_response response = {.delay = 77, .decided = 5};

    assert_int_equal(redbucket_request(limiter_of(state), &bad, 1, &response),
                     REDBUCKET_ERROR_UNKNOWN_LIMIT);
    assert_same(response.delay, 77.0);
    assert_int_equal(redbucket_request(limiter_of(state), &good, 1, &response), REDBUCKET_OK);
    assert_true(response.accepted);
    assert_true(response.decided == REDBUCKET_NONE);
    assert_int_equal(response.remaining, 1);
    assert_false(response.degraded);
}

/* The fourth can't be, the sixth is about another key, and the others see each other. */
static void an_array_goes_on_past_what_fails(void **state)
{
    const struct redbucket_key key = {"a", "k"}, other = {"a", "other"}, bad = {"nope", "k"};
    struct redbucket_request requests[] = {
        {.keys = &key, .keys_len = 1, .cost = 1},
        {.keys = &key, .keys_len = 1, .cost = 1},
        {.keys = &key, .keys_len = 1, .cost = 1},
        {.keys = &bad, .keys_len = 1, .cost = 1},
        {.operation = REDBUCKET_REFUND, .keys = &key, .keys_len = 1, .cost = 1},
        {.keys = &other, .keys_len = 1, .cost = 0},
        {.keys = &key, .keys_len = 1, .cost = 1},
    };
    static const bool accepted[] = {true, true, false, false, true, false, true};

    assert_int_equal(redbucket_decide_at(limiter_of(state), requests, 7, 0),
                     REDBUCKET_ERROR_UNKNOWN_LIMIT);
    for (size_t i = 0; i < 7; i++) {
        if (i == 3 || i == 5)
            continue;
        assert_int_equal(requests[i].status, REDBUCKET_OK);
        assert_true(requests[i].failed == REDBUCKET_NONE);
        assert_int_equal(requests[i].response.accepted, accepted[i]);
    }
    assert_int_equal(requests[3].status, REDBUCKET_ERROR_UNKNOWN_LIMIT);
    assert_int_equal(requests[5].status, REDBUCKET_ERROR_ARGUMENT);
    assert_int_equal(requests[0].response.remaining, 1);
    assert_int_equal(requests[4].response.remaining, 1);
    assert_int_equal(redbucket_decide_at(limiter_of(state), requests + 4, 3, 0),
                     REDBUCKET_ERROR_ARGUMENT);
    assert_int_equal(redbucket_decide_at(limiter_of(state), requests, 0, 0), REDBUCKET_OK);
}

#define REQUEST_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        REQUEST_TEST(an_unknown_limit_is_found_before_anything_is_taken),
        REQUEST_TEST(a_limit_named_twice_is_refused),
        REQUEST_TEST(a_cost_out_of_range_is_refused_before_anything_is_read),
        REQUEST_TEST(costs_at_the_edges_are_costs),
        REQUEST_TEST(a_reset_ignores_the_cost),
        REQUEST_TEST(an_operation_that_is_none_is_refused),
        REQUEST_TEST(giving_back_wants_the_time_it_was_taken),
        REQUEST_TEST(a_time_that_isnt_finite_fails_every_request),
        REQUEST_TEST(a_key_has_a_limit_and_a_text),
        REQUEST_TEST(a_request_names_64_keys_at_most),
        REQUEST_TEST(a_key_too_long_is_refused_and_never_cut),
        cmocka_unit_test(messages_escape_what_doesnt_print),
        cmocka_unit_test(messages_cut_long_limits_and_keys),
        REQUEST_TEST(a_lone_requests_answer_is_written_only_when_there_is_one),
        REQUEST_TEST(an_array_goes_on_past_what_fails),
    };

    return cmocka_run_group_tests_name("requests", tests, NULL, NULL);
}
