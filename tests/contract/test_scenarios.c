/* SPDX-License-Identifier: MIT */
/*
 * The model's scenarios on every embedded store, each with a store of its own.
 */
#include "redbucket/redbucket.h"
#include "scenario.h"
#include "stores.h"
#include "test.h"

struct embedded {
    const struct test_store *kind;
    const char *query;
    char url[256];
};

static struct redbucket_store *begin(void *data)
{
    struct embedded *embedded = data;

    test_store_url(embedded->kind, embedded->query, embedded->url, sizeof embedded->url);
    return test_store_open(embedded->url);
}

static enum redbucket_status decide(struct redbucket_limiter *limiter,
                                    struct redbucket_request *request, double t)
{
    return redbucket_decide_at(limiter, request, 1, t);
}

static void end(void *data, struct redbucket_store *store)
{
    test_store_drop(((struct embedded *)data)->url, store);
}

static void run_all(const struct test_store *kind, const char *query)
{
    struct embedded embedded = {.kind = kind, .query = query};
    const struct scenario_runner runner = {begin, decide, end, &embedded};

    assert_int_equal(scenarios_run(&runner), SCENARIOS);
}

static void memory_follows_the_model(void **state)
{
    (void)state;
    run_all(&test_stores[0], "");
}

static void growing_memory_follows_the_model(void **state)
{
    (void)state;
    run_all(&test_stores[0], "?grow=yes");
}

static void shm_follows_the_model(void **state)
{
    (void)state;
    run_all(&test_stores[1], "?size=64k");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_follows_the_model),
        cmocka_unit_test(growing_memory_follows_the_model),
        cmocka_unit_test(shm_follows_the_model),
    };

    return cmocka_run_group_tests_name("scenarios", tests, NULL, NULL);
}
