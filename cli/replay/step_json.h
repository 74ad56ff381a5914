/* SPDX-License-Identifier: MIT */
/*
 * Steps as JSON, one object a line, and their answers.
 *
 *   {"t": SECONDS, "op": "request", "keys": {"LIMIT": "KEY"}, "cost": 1}
 *
 * "op" (request, peek, refund, charge, reset) and "cost" may be left out. Other members are passed
 * over, so that a file of expectations can be replayed as it is.
 */
#ifndef RBK_REPLAY_STEP_JSON_H
#define RBK_REPLAY_STEP_JSON_H

#include "redbucket/redbucket.h"

#include "span.h"
#include "step.h"

#include <stddef.h>
#include <stdio.h>

/*
 * What steps are read with.
 *
 *   names        of the limits there are; a step's keys point to them
 *   with_states  whether steps have room for the states
 */
struct rbk_step_setting {
    const char *const *names;
    size_t names_len;
    bool with_states;
    struct rbk_step_pool *pool;
};

/* Reads one line, into a step of the pool. ERROR_ARGUMENT, and what was expected, when it is no
 * step; ERROR_UNKNOWN_LIMIT; ERROR_MEMORY. Destroy the step with rbk_step_destroy. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_step_parse(struct rbk_span line,
                                                          const struct rbk_step_setting *setting,
                                                          struct rbk_step **step,
                                                          struct redbucket_error *error);

/* Writes a decided step's answer as one line. */
void rbk_step_print(const struct rbk_step *step, FILE *out);

#endif
