/* SPDX-License-Identifier: MIT */
/*
 * Steps by their time. A log's times are whole seconds, so thousands of lines share a moment: the
 * steps of one moment are a queue, and only the moments are kept in order. That costs a step next
 * to nothing where there are many, and the logarithm of the waiting moments where each is alone.
 */
#ifndef RBK_REPLAY_MOMENTS_H
#define RBK_REPLAY_MOMENTS_H

#include "redbucket/redbucket.h"

#include "step.h"

#include <stdbool.h>

struct rbk_moments;

/* NULL when memory is out. */
struct rbk_moments *rbk_moments_create(void);

/* Destroys the steps in it as well. */
void rbk_moments_destroy(struct rbk_moments *moments);

/* Takes the step over. ERROR_MEMORY: it was not taken. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_moments_put(struct rbk_moments *moments,
                                                           struct rbk_step *step);

/* The earliest time; false when there is no step. */
bool rbk_moments_earliest(const struct rbk_moments *moments, double *time_s);

/* Takes out a step of the earliest time, of these the first that was put in; NULL when there is
 * none. */
struct rbk_step *rbk_moments_take(struct rbk_moments *moments);

#endif
