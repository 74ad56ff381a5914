/* SPDX-License-Identifier: MIT */
/*
 * One step of a replay: what a line asks for, and the answer once it is decided. A step is a single
 * piece of memory, keys and all, because it may wait for others long after its line is gone.
 */
#ifndef RBK_REPLAY_STEP_H
#define RBK_REPLAY_STEP_H

#include "redbucket/redbucket.h"

#include "span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a line stands: the file's index among those given, and the line's number in it, from 1. */
struct rbk_place {
    uint32_t file;
    uint64_t line;
};

enum rbk_step_result {
    RBK_STEP_WAITS,
    RBK_STEP_DECIDED,
    RBK_STEP_FAILED, /* the library refused it: its line counts as one that can't be read */
};

/*
 *   next     the next one of the same time; of struct rbk_moments
 *   number   its place in the order read, over all files; set by struct rbk_held
 *   size     of this piece of memory
 *   states   one for each key after the step, or NULL when nobody wants to know
 *   keys     their texts lie behind them, in the same piece of memory
 *
 * accepted, delay, retry_after and remaining are as in struct redbucket_response.
 */
struct rbk_step {
    struct rbk_step *next;
    double time_s;
    double cost;
    uint64_t number;
    struct rbk_place place;
    struct redbucket_state *states;
    double delay;
    double retry_after;
    int64_t remaining;
    enum redbucket_operation operation;
    enum rbk_step_result result;
    bool accepted;
    uint32_t keys_len;
    size_t size;
    struct redbucket_key keys[];
};

/* What a new step is made of: the limits' names, which must outlive it, and the keys. */
struct rbk_step_keys {
    const char *limits[REDBUCKET_KEYS_MAX];
    struct rbk_span keys[REDBUCKET_KEYS_MAX];
    size_t len;
};

/*
 * Steps that are done, for the next ones to be made of: a replay makes and ends one for every line.
 * Begin with all zeros.
 */
#define RBK_STEP_POOL_UNIT  ((size_t)64)
#define RBK_STEP_POOL_UNITS 8

struct rbk_step_pool {
    struct rbk_step *done[RBK_STEP_POOL_UNITS + 1];
};

/* Frees what is in it. */
void rbk_step_pool_fini(struct rbk_step_pool *pool);

/* A step of cost 1 that asks for a permit; the keys are copied. NULL when memory is out. */
struct rbk_step *rbk_step_create(struct rbk_step_pool *pool, const struct rbk_step_keys *keys,
                                 bool with_states);

/* Gives a step back to the pool, or frees it when it is none that would fit many. */
void rbk_step_recycle(struct rbk_step_pool *pool, struct rbk_step *step);

/* Frees a step of any pool. */
void rbk_step_destroy(struct rbk_step *step);

#endif
