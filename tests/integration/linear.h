/* SPDX-License-Identifier: MIT */
/*
 * Histories of concurrent requests, and whether what they were answered can have been.
 *
 * A history is linearizable when its requests can be put in one row such that none stands before
 * one that had ended when it began, and a machine that decides them one after the other in that row
 * gives every answer that was given. The machine here is another one than the library's: whole
 * numbers in buckets that don't drain, for limits so slow that nothing does.
 */
#ifndef TEST_LINEAR_H
#define TEST_LINEAR_H

#include "redbucket/redbucket.h"

#define LINEAR_THREADS 4
#define LINEAR_STEPS   4 /* of one thread */
#define LINEAR_LIMITS  2
#define LINEAR_KEYS    2
#define LINEAR_BUCKETS (LINEAR_LIMITS * LINEAR_KEYS)
#define LINEAR_RATE    1e-9

/*
 * Their rates are LINEAR_RATE. The fractions differ, so that no two of them ever delay or reject
 * for the same time, and neither is ever a whole number away from its bound.
 */
extern const struct redbucket_limit linear_limits[LINEAR_LIMITS];

/* What one claim of a request was told. */
struct linear_verdict {
    bool accepted;
    int64_t remaining;
    double wait; /* of delay, else of retry_after, in permits: seconds times the rate */
};

/*
 * A request of some thread. A bucket is limit * LINEAR_KEYS + key; no limit is named twice. `cost`
 * is whole, at most 3. `begun` and `ended` are moments by one clock that all threads share.
 */
struct linear_step {
    enum redbucket_operation operation;
    unsigned cost;
    unsigned buckets[LINEAR_LIMITS];
    size_t len;
    uint64_t begun;
    uint64_t ended;
    bool accepted;
    size_t decided;
    int64_t remaining;
    struct linear_verdict verdicts[LINEAR_LIMITS];
};

/* Those of one thread are in their order, also where they were asked as one array. */
struct linear_history {
    struct linear_step steps[LINEAR_THREADS][LINEAR_STEPS];
    size_t len[LINEAR_THREADS];
};

/* How much is in each bucket. */
struct linear_machine {
    unsigned levels[LINEAR_BUCKETS];
};

/* Decides a step: what it is told is put into its own fields. */
void linear_decide(struct linear_machine *machine, struct linear_step *step);

/* True when there is such a row. */
bool linear_holds(const struct linear_history *history);

/* The history as text, for a test that fails. */
void linear_print(const struct linear_history *history);

#endif
