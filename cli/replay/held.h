/* SPDX-License-Identifier: MIT */
/*
 * Steps are decided in order of time, and their answers are shown in the order read. A step that
 * is decided before one read earlier has to be held until that one is decided as well.
 *
 * Invariant: a step leaves when it and all that were read before it are done. No more than a stated
 * number of steps is held, so that one line dated far ahead can't make memory grow with the log:
 * when it is reached, whoever owns the steps decides them until one leaves.
 */
#ifndef RBK_REPLAY_HELD_H
#define RBK_REPLAY_HELD_H

#include "redbucket/redbucket.h"

#include "step.h"

#include <stdbool.h>
#include <stddef.h>

struct rbk_held;

/* Holds at most so many steps, a power of two, and bytes of memory. NULL when memory is out. */
struct rbk_held *rbk_held_create(size_t steps, size_t bytes);

/* Destroys the decided steps that are still held. A step that waits belongs to the reorder, which
 * has to be destroyed afterwards. */
void rbk_held_destroy(struct rbk_held *held);

/* Whether there is no room: decide steps and take them out first. */
bool rbk_held_full(const struct rbk_held *held);

/* Gives the step its number and remembers it. ERROR_MEMORY: it was not. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_held_add(struct rbk_held *held,
                                                        struct rbk_step *step);

/* The step is decided and nobody wants to see it again: it may be destroyed. */
void rbk_held_forget(struct rbk_held *held, const struct rbk_step *step);

/* The next step to be shown, which then belongs to the caller, or NULL while it isn't decided. */
struct rbk_step *rbk_held_take(struct rbk_held *held);

#endif
