/* SPDX-License-Identifier: MIT */
/*
 * Decides steps in a private store that grows with its live keys and gives up nothing, in order of
 * time where lines may be out of order, and hands the answers on: to a summary, or as lines in the
 * order read. What is decided doesn't depend on which of the two is wanted.
 *
 * Several sets of limits each have a store and a summary of their own, and decide the same steps.
 */
#ifndef RBK_REPLAY_ENGINE_H
#define RBK_REPLAY_ENGINE_H

#include "redbucket/redbucket.h"

#include "faults.h"
#include "findings.h"
#include "limit_sets.h"
#include "spool.h"
#include "step.h"

#include <stdbool.h>
#include <stdio.h>

/* At most so many steps wait to be put in order, with so many bytes. */
#define RBK_ENGINE_WAITING       ((size_t)1000000)
#define RBK_ENGINE_WAITING_BYTES ((size_t)256 << 20)

/* How many keys have their requests counted: up to so many, exactly. */
#define RBK_ENGINE_ASKED ((size_t)16384)

/* At most so many answers are held back for one that was read earlier; see held.h. */
#define RBK_ENGINE_HELD       ((size_t)1 << 21)
#define RBK_ENGINE_HELD_BYTES ((size_t)512 << 20)

/*
 *   sets            which to try; borrowed
 *   with_timelines  whether each key that is hit gets a timeline, and all requests of keys are
 *                   counted as well
 *   reorder_s       the window within which steps are put in order of time
 *   held            how many answers are held back at most, a power of two; RBK_ENGINE_HELD
 *   spool           gets every request that was decided, with a hash for each name of the sets, or
 *                   NULL; borrowed
 *   answers         where the first set's answer to each step goes, or NULL for a summary
 */
struct rbk_engine_setup {
    const struct rbk_limit_sets *sets;
    bool with_timelines;
    double reorder_s;
    size_t held;
    struct rbk_spool *spool;
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

/* Takes a step over. `at_once`: it isn't put in order. A step that the library refuses is a fault
 * of its line; what stops a replay is ERROR_MEMORY, and ERROR_SYSTEM of the spool, which
 * rbk_engine_fail tells. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_engine_put(struct rbk_engine *engine,
                                                          struct rbk_step *step, bool at_once);

/* Decides all that still waits. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_engine_finish(struct rbk_engine *engine);

/* Tells what stopped the replay; returns the exit status for it. */
int rbk_engine_fail(const struct rbk_engine *engine, enum redbucket_status status);

/* What is known of the traffic so far; `lines` is the caller's to count. */
struct rbk_traffic *rbk_engine_traffic(struct rbk_engine *engine);

/* For each name of the sets the keys that asked most; NULL without timelines. */
struct rbk_hits *const *rbk_engine_asked(const struct rbk_engine *engine);

/* One summary for each set. */
struct rbk_summary *const *rbk_engine_summaries(const struct rbk_engine *engine);

#endif
