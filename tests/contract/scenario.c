/* SPDX-License-Identifier: MIT */
/*
 * Reading a scenario's steps, asking for them, and comparing.
 */
#include "scenario.h"

#include "test.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef TEST_DATA
#error "where are the scenarios?"
#endif

#define KEYS_MAX 8

static const char *const operations[] = {"request", "peek", "refund", "charge", "reset"};

/* What a double may lose where limits are taken and given back, of a number of this size. */
#define LOSS(number) (1e-12 * (1.0 + fabs(number)))

struct scenario {
    json_t *limits;
    json_t *steps;
    struct redbucket_limiter *limiter;
    bool apart;
};

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static void add_limits(struct scenario *scenario)
{
    const char *name;
    json_t *limit;

    json_object_foreach(scenario->limits, name, limit)
    {
        struct redbucket_limit given = {
            .zone = json_string_value(json_object_get(limit, "zone")),
            .rate = number(limit, "rate"),
            .burst = number(limit, "burst"),
            .delay = number(limit, "delay"),
            .expiry = number(limit, "expiry"),
        };

        assert_int_equal(redbucket_limiter_add(scenario->limiter, name, &given, NULL),
                         REDBUCKET_OK);
    }
}

static void read_step(const json_t *step, struct redbucket_request *request,
                      struct redbucket_key *keys)
{
    const json_t *op = json_object_get(step, "op");
    const json_t *cost = json_object_get(step, "cost");
    const char *name;
    json_t *key;
    size_t len = 0;

    json_object_foreach(json_object_get(step, "keys"), name, key)
    {
        assert_true(len < KEYS_MAX);
        keys[len++] =
            (struct redbucket_key){name, json_string_value(key), json_string_length(key), 0};
    }
    *request = (struct redbucket_request){
        .keys = keys, .keys_len = len, .cost = cost != NULL ? json_number_value(cost) : 1.0};
    for (size_t i = 0; op != NULL && i < sizeof operations / sizeof operations[0]; i++) {
        if (strcmp(json_string_value(op), operations[i]) == 0)
            request->operation = (enum redbucket_operation)i;
    }
}

static void check_retry(const json_t *expected, double retry_after, double loss)
{
    if (json_is_null(expected)) {
        assert_true(isinf(retry_after));
        return;
    }
    double model = json_number_value(expected);

    assert_true(retry_after >= model - loss);
    assert_true(retry_after <= model + 2e-6 + model * 1e-6 + loss);
}

static void check_answer(const struct scenario *scenario, const json_t *step,
                         const struct redbucket_response *response)
{
    const json_t *accepted = json_object_get(step, "accepted");
    const json_t *remaining = json_object_get(step, "remaining");
    double loss = scenario->apart ? 1e-6 + LOSS(response->delay) : 0.0;

    if (accepted == NULL)
        return;
    assert_int_equal(response->accepted, json_is_true(accepted));
    if (remaining != NULL)
        assert_int_equal(response->remaining, json_integer_value(remaining));
    if (!response->accepted)
        check_retry(json_object_get(step, "retry_after"), response->retry_after, loss);
    else if (scenario->apart)
        assert_true(fabs(response->delay - number(step, "delay")) <= loss);
    else
        assert_same(response->delay, number(step, "delay"));
}

static double level_at(double now, double rate, double timestamp, double value)
{
    return fmax(value - fmax(now - timestamp, 0.0) * rate, 0.0);
}

static void check_level(const struct scenario *scenario, const json_t *step, const char *limit,
                        const struct redbucket_state *state)
{
    const json_t *expected = json_object_get(json_object_get(step, "state"), limit);
    double rate = number(json_object_get(scenario->limits, limit), "rate");
    double now = number(step, "t");
    double is = state->exists ? level_at(now, rate, state->timestamp, state->value) : 0.0;
    double model = 0.0;

    if (json_is_array(expected))
        model = level_at(now, rate, json_number_value(json_array_get(expected, 0)),
                         json_number_value(json_array_get(expected, 1)));
    double loss = LOSS(state->value) + LOSS(now) * rate;

    if (fabs(is - model) > loss)
        fail_msg("level %.17g, not %.17g", is, model);
}

static void check_state(const json_t *expected, const struct redbucket_state *state)
{
    assert_int_equal(state->exists, json_is_array(expected));
    if (!state->exists)
        return;
    assert_same(state->timestamp, json_number_value(json_array_get(expected, 0)));
    assert_same(state->value, json_number_value(json_array_get(expected, 1)));
}

static void check_states(const struct scenario *scenario, const json_t *step,
                         const struct redbucket_request *request)
{
    for (size_t i = 0; i < request->keys_len; i++) {
        const char *limit = request->keys[i].limit;
        struct redbucket_state state;

        assert_int_equal(redbucket_read(scenario->limiter, &request->keys[i], &state),
                         REDBUCKET_OK);
        if (scenario->apart)
            check_level(scenario, step, limit, &state);
        else
            check_state(json_object_get(json_object_get(step, "state"), limit), &state);
    }
}

/* Returns whether all of it was run: a clock that steps back tells a state from another of the same
 * level. */
static bool run_scenario(const struct scenario_runner *runner, struct scenario *scenario)
{
    double last = -INFINITY;
    size_t index;
    json_t *step;

    add_limits(scenario);
    json_array_foreach(scenario->steps, index, step)
    {
        struct redbucket_request request;
        struct redbucket_key keys[KEYS_MAX];

        if (scenario->apart && number(step, "t") < last)
            return false;
        last = number(step, "t");
        read_step(step, &request, keys);
        assert_int_equal(runner->decide(scenario->limiter, &request, number(step, "t")),
                         REDBUCKET_OK);
        check_answer(scenario, step, &request.response);
        check_states(scenario, step, &request);
    }
    return true;
}

static unsigned run_file(const struct scenario_runner *runner, const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    unsigned count = 0;

    assert_non_null(file);
    while (getline(&line, &size, file) > 0) {
        json_t *json = json_loads(line, 0, NULL);

        assert_non_null(json);
        struct redbucket_store *store = runner->begin(runner->data);
        struct scenario scenario = {
            .limits = json_object_get(json, "limits"),
            .steps = json_object_get(json, "steps"),
            .apart = runner->apart,
        };

        assert_int_equal(redbucket_limiter_create(store, &scenario.limiter, NULL), REDBUCKET_OK);
        count += run_scenario(runner, &scenario);
        redbucket_limiter_destroy(scenario.limiter);
        runner->end(runner->data, store);
        json_decref(json);
    }
    free(line);
    (void)fclose(file);
    return count;
}

unsigned scenarios_run(const struct scenario_runner *runner)
{
    return run_file(runner, TEST_DATA "/scenarios.jsonl") +
           run_file(runner, TEST_DATA "/cases.jsonl");
}
