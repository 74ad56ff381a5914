/* SPDX-License-Identifier: MIT */
/*
 * Many rates and bursts tried on the same requests in one pass, without delays: how many requests
 * each would have touched.
 *
 * The arithmetic is the model's, of one key at a time. Memory grows with the keys that aren't
 * drained under the slowest rate; those that are, are given up when room is needed.
 */
#ifndef RBK_REPLAY_TRIAL_H
#define RBK_REPLAY_TRIAL_H

#include "redbucket/redbucket.h"

#include "spool.h"

#include <stddef.h>
#include <stdint.h>

/* At most so many are tried at once. */
#define RBK_TRIALS_MAX ((size_t)64)

/*
 *   rate, burst  what to try; a burst of INFINITY touches nobody
 *   touched      out: how many requests find no room
 *   highest      out: the highest level of a bucket
 */
struct rbk_trial {
    double rate;
    double burst;
    uint64_t touched;
    double highest;
};

/* Tries them on the requests that name this limit. ERROR_MEMORY; ERROR_SYSTEM when the spool can't
 * be read. */
REDBUCKET_MUST_CHECK enum redbucket_status
rbk_trials_run(struct rbk_spool *spool, size_t limit, struct rbk_trial *trials, size_t trials_len);

#endif
