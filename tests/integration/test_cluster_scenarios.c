/* SPDX-License-Identifier: MIT */
/*
 * The model's scenarios on a cluster, whose nodes' clocks are a test's: exact, to the last bit,
 * where a hash tag brings the buckets together; where limits are in slots of their own, taken one
 * after another and given back, to what a double loses by that.
 */
#include "by_loop.h"
#include "clustered.h"
#include "scenario.h"
#include "wire/call.h"

static struct redbucket_store *begin(void *data)
{
    const struct clustered *clustered = data;

    clustered_flush(clustered);
    return clustered->store;
}

static enum redbucket_status decide(struct redbucket_limiter *limiter,
                                    struct redbucket_request *request, double t)
{
    rbk_test_now = t;
    enum redbucket_status status = redbucket_decide(limiter, request, 1);

    if (status == REDBUCKET_OK && request->keys_len > 0)
        assert_same(request->response.time, t);
    return status;
}

static void end(void *data, struct redbucket_store *store)
{
    (void)data;
    (void)store;
}

static void scenarios_are_decided_as_by_the_model(void **state)
{
    const struct scenario_runner runner = {begin, decide, end, *state, .apart = false};

    assert_int_equal(scenarios_run(&runner), SCENARIOS);
}

static enum redbucket_status decide_on_loop(struct redbucket_limiter *limiter,
                                            struct redbucket_request *request, double t)
{
    rbk_test_now = t;
    return by_loop(limiter, request);
}

static void scenarios_are_decided_on_a_loop(void **state)
{
    const struct scenario_runner runner = {begin, decide_on_loop, end, *state, .apart = false};

    assert_int_equal(scenarios_run(&runner), SCENARIOS);
}

static void scenarios_are_decided_across_slots(void **state)
{
    const struct scenario_runner runner = {begin, decide, end, *state, .apart = true};
    unsigned whole = scenarios_run(&runner);

    print_message("# %u of %d to their end\n", whole, SCENARIOS);
    assert_in_range(whole, SCENARIOS / 2, SCENARIOS);
}

int main(void)
{
    static const struct clustered_case cases[] = {
        CLUSTERED(CLUSTERED_TAGGED | CLUSTERED_REDIS, scenarios_are_decided_as_by_the_model),
        CLUSTERED(CLUSTERED_TAGGED | CLUSTERED_REDIS | CLUSTERED_STRUCT,
                  scenarios_are_decided_on_a_loop),
        CLUSTERED(CLUSTERED_UNTAGGED | CLUSTERED_REDIS, scenarios_are_decided_across_slots),
        CLUSTERED(CLUSTERED_TAGGED | CLUSTERED_VALKEY | CLUSTERED_STRUCT,
                  scenarios_are_decided_as_by_the_model),
        CLUSTERED(CLUSTERED_UNTAGGED | CLUSTERED_VALKEY | CLUSTERED_STRUCT,
                  scenarios_are_decided_across_slots),
    };

    return clustered_run("cluster_scenarios", cases, sizeof cases / sizeof cases[0]);
}
