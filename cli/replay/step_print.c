/* SPDX-License-Identifier: MIT */
/*
 * Writing a step's answer: members that the model doesn't give are absent, and every double reads
 * back exactly.
 */
#include "step_json.h"

#include "../json.h"

static bool asks(const struct rbk_step *step)
{
    return step->operation == REDBUCKET_REQUEST || step->operation == REDBUCKET_PEEK;
}

static void answer_print(const struct rbk_step *step, struct cli_json *json)
{
    rbk_json_bool(json, "accepted", step->accepted);
    if (step->accepted)
        rbk_json_real(json, "delay", step->delay);
    if (step->keys_len > 0)
        rbk_json_integer(json, "remaining", step->remaining);
    if (!step->accepted)
        rbk_json_real(json, "retry_after", step->retry_after);
}

static void state_print(const struct redbucket_state *state, const char *limit,
                        struct cli_json *json)
{
    if (!state->exists) {
        rbk_json_null(json, limit);
        return;
    }
    rbk_json_array(json, limit);
    rbk_json_real(json, NULL, state->timestamp);
    rbk_json_real(json, NULL, state->value);
    rbk_json_array_end(json);
}

void rbk_step_print(const struct rbk_step *step, FILE *out)
{
    struct cli_json json = {out, false};

    rbk_json_object(&json, NULL);
    if (asks(step))
        answer_print(step, &json);
    rbk_json_object(&json, "state");
    for (size_t i = 0; i < step->keys_len; i++)
        state_print(&step->states[i], step->keys[i].limit, &json);
    rbk_json_object_end(&json);
    rbk_json_object_end(&json);
    rbk_json_line(&json);
}
