/* SPDX-License-Identifier: MIT */
/*
 * Servers log a request when it ends, so the lines of a log are out of order by as long as requests
 * take. Steps wait here until nothing earlier can come any more, and leave in order of time, equal
 * times in the order read.
 *
 * Invariant: what leaves is never earlier than what has left before; a step that would be, or that
 * is further behind the latest than the window reaches, is late and not taken in.
 */
#ifndef RBK_REPLAY_REORDER_H
#define RBK_REPLAY_REORDER_H

#include "redbucket/redbucket.h"

#include "step.h"

#include <stdbool.h>
#include <stddef.h>

/* How much waits at most, whatever the window: lines, and bytes of memory. */
struct rbk_reorder_bounds {
    double window_s;
    size_t steps;
    size_t bytes;
};

struct rbk_reorder;

/* NULL when memory is out. */
struct rbk_reorder *rbk_reorder_create(const struct rbk_reorder_bounds *bounds);

/* Destroys the steps that still wait. */
void rbk_reorder_destroy(struct rbk_reorder *reorder);

/* Whether a step of this time comes too late to be put in order: decide it where it stands. */
bool rbk_reorder_late(const struct rbk_reorder *reorder, double time_s);

/* Takes a step that isn't late; it belongs to the reorder until it leaves. ERROR_MEMORY: it was not
 * taken. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_reorder_put(struct rbk_reorder *reorder,
                                                           struct rbk_step *step);

/* The next step that need not wait any longer, or NULL. */
struct rbk_step *rbk_reorder_take_due(struct rbk_reorder *reorder);

/* The earliest step, due or not, or NULL when none waits. */
struct rbk_step *rbk_reorder_take(struct rbk_reorder *reorder);

#endif
