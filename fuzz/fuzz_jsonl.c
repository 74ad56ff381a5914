/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a step in JSON: reading them is safe, and what is read is a step with keys of limits
 * that are there. Needs cli/replay/step.c and step_parse.c, Jansson, and -Icli.
 */
#include "replay/step_json.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"ip", "user", "all"};
    static struct rbk_step_pool pool;
    const struct rbk_step_setting setting = {names, 3, size % 2 == 0, &pool};
    struct redbucket_error error = {.message = ""};
    struct rbk_step *step;

    if (rbk_step_parse((struct rbk_span){(const char *)data, size}, &setting, &step, &error) !=
        REDBUCKET_OK) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    if (!isfinite(step->time_s) || !isfinite(step->cost) || step->keys_len > 3)
        abort();
    for (size_t i = 0; i < step->keys_len; i++)
        if (step->keys[i].limit != names[0] && step->keys[i].limit != names[1] &&
            step->keys[i].limit != names[2])
            abort();
    rbk_step_destroy(step);
    return 0;
}
