/* SPDX-License-Identifier: MIT */
#include "cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *size_of_bounded;

static const struct variant {
    const char *name;
    size_t kind;
    bool grows;
} variants[] = {
    {"memory", 0, false},
    {"growing memory", 0, true},
    {"shm", 1, false},
};

#define VARIANTS (sizeof variants / sizeof variants[0])

static int set_up(void **state)
{
    const struct variant *variant = *state;
    struct test_case *test = calloc(1, sizeof *test);
    char query[32];

    assert_non_null(test);
    test->kind = &test_stores[variant->kind];
    (void)snprintf(query, sizeof query, "?size=%s", size_of_bounded);
    test_store_url(test->kind, variant->grows ? "?grow=yes" : query, test->url, sizeof test->url);
    test->store = test_store_open(test->url);
    assert_int_equal(redbucket_limiter_create(test->store, &test->limiter, NULL), REDBUCKET_OK);
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    struct test_case *test = *state;

    redbucket_limiter_destroy(test->limiter);
    test_store_drop(test->url, test->store);
    free(test);
    return 0;
}

int cases_run(const char *group, const char *size, const struct case_entry *cases, size_t len)
{
    struct CMUnitTest *tests = calloc(len * VARIANTS, sizeof *tests);
    char(*names)[160] = calloc(len * VARIANTS, sizeof *names);

    if (tests == NULL || names == NULL)
        return 1;
    size_of_bounded = size;
    for (size_t i = 0; i < len * VARIANTS; i++) {
        const struct variant *variant = &variants[i % VARIANTS];

        (void)snprintf(names[i], sizeof names[i], "%s on %s", cases[i / VARIANTS].name,
                       variant->name);
        tests[i] = (struct CMUnitTest){.name = names[i],
                                       .test_func = cases[i / VARIANTS].body,
                                       .setup_func = set_up,
                                       .teardown_func = tear_down,
                                       .initial_state = (void *)(uintptr_t)variant};
    }

    int failed = _cmocka_run_group_tests(group, tests, len * VARIANTS, NULL, NULL);

    free(tests);
    free(names);
    return failed;
}

void add_limit(struct test_case *test, const char *name, struct redbucket_limit limit)
{
    assert_int_equal(redbucket_limiter_add(test->limiter, name, &limit, NULL), REDBUCKET_OK);
}

static struct redbucket_response ask(struct test_case *test, double t,
                                     const struct redbucket_key *keys, size_t len)
{
    struct redbucket_request request = {.keys = keys, .keys_len = len, .cost = 1};

    assert_int_equal(redbucket_decide_at(test->limiter, &request, 1, t), REDBUCKET_OK);
    return request.response;
}

void accepts(struct test_case *test, double t, const struct redbucket_key *keys, size_t len,
             double delay)
{
    struct redbucket_response response = ask(test, t, keys, len);

    assert_true(response.accepted);
    assert_false(signbit(response.delay));
    assert_true(fabs(response.delay - delay) <= 1e-12 * delay);
    assert_true(delay > 0 || response.delay_us == 0);
}

void accepts_so_many(struct test_case *test, unsigned count, double t)
{
    while (count-- > 0)
        accepts(test, t, K, 0);
}

void rejects(struct test_case *test, double t, const struct redbucket_key *keys, size_t len,
             double retry_after)
{
    struct redbucket_response response = ask(test, t, keys, len);
    double microseconds = (double)response.retry_after_us / 1e6;

    assert_false(response.accepted);
    assert_same(response.delay, 0.0);
    assert_true(response.retry_after >= retry_after);
    assert_true(response.retry_after <= retry_after + 2e-6 + 1e-6 * retry_after);
    assert_true(microseconds >= response.retry_after);
    assert_true(microseconds <= response.retry_after + 1e-6 + 1e-12 * retry_after);
}

void fails(struct test_case *test, double t, const struct redbucket_key *keys, size_t len,
           enum redbucket_status status)
{
    struct redbucket_request request = {.keys = keys, .keys_len = len, .cost = 1};

    assert_int_equal(redbucket_decide_at(test->limiter, &request, 1, t), status);
}

struct redbucket_state state_of(struct test_case *test, const char *limit, const char *key)
{
    struct redbucket_key named = {.limit = limit, .key = key};
    struct redbucket_state state;

    assert_int_equal(redbucket_read(test->limiter, &named, &state), REDBUCKET_OK);
    return state;
}
