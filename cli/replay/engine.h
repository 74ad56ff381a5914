/* SPDX-License-Identifier: MIT */
/*
 * Decides steps in a private store that grows with its live keys and gives up nothing, in order of
 * time where lines may be out of order, and hands the answers on: to a summary, or as lines in the
 * order read. What is decided doesn't depend on which of the two is wanted.
 */
#ifndef RBK_REPLAY_ENGINE_H
#define RBK_REPLAY_ENGINE_H

#include "redbucket/redbucket.h"

#include "faults.h"
#include "step.h"
#include "summary.h"

#include <stdbool.h>
#include <stdio.h>

/* At most so many steps wait to be put in order, with so many bytes. */
#define RBK_ENGINE_WAITING       ((size_t)1000000)
#define RBK_ENGINE_WAITING_BYTES ((size_t)256 << 20)

/* At most so many answers are held back for one that was read earlier; see held.h. */
#define RBK_ENGINE_HELD       ((size_t)1 << 21)
#define RBK_ENGINE_HELD_BYTES ((size_t)512 << 20)

/*
 *   limits     all limits; borrowed
 *   reorder_s  the window within which steps are put in order of time
 *   held       how many answers are held back at most, a power of two; RBK_ENGINE_HELD
 *   answers    where each step's answer goes, or NULL for a summary
 */
struct rbk_engine_setup {
    struct redbucket_named_limit *const *limits;
    size_t limits_len;
    double reorder_s;
    size_t held;
    FILE *answers;
};

struct rbk_engine;

/* The limiter's error when it can't be made. `faults` is borrowed. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_engine_create(const struct rbk_engine_setup *setup,
                                                             struct rbk_faults *faults,
                                                             struct rbk_engine **engine,
                                                             struct redbucket_error *error);

/* NULL does nothing. */
void rbk_engine_destroy(struct rbk_engine *engine);

/* Where steps come from and go back to. */
struct rbk_step_pool *rbk_engine_pool(struct rbk_engine *engine);

/* Takes a step over. `at_once`: it isn't put in order. ERROR_MEMORY alone stops a replay; a step
 * that the library refuses is a fault of its line. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_engine_put(struct rbk_engine *engine,
                                                          struct rbk_step *step, bool at_once);

/* Decides all that still waits. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_engine_finish(struct rbk_engine *engine);

/* The totals so far; `lines` is the caller's to count. */
struct rbk_summary *rbk_engine_summary(struct rbk_engine *engine);

#endif
