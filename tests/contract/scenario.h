/* SPDX-License-Identifier: MIT */
/*
 * The model's scenarios, and the cases that are steps and nothing else: answers and states to the
 * last bit, retry times never below the model's and above it by next to nothing. Which store
 * decides, and how it learns the time, is the caller's.
 */
#ifndef TEST_SCENARIO_H
#define TEST_SCENARIO_H

#include "redbucket/redbucket.h"

/* How many there are. */
#define SCENARIOS 231

/*
 *   begin   a store without a bucket in it
 *   decide  one request at time `t`
 *   end     the scenario is done with the store
 *   apart   the limits of a request are taken one after another, and given back when a later one
 *           rejects: what is stored then is another state of the same level, so levels are
 *           compared, and waits, to within what a double loses
 */
struct scenario_runner {
    struct redbucket_store *(*begin)(void *data);
    enum redbucket_status (*decide)(struct redbucket_limiter *limiter,
                                    struct redbucket_request *request, double t);
    void (*end)(void *data, struct redbucket_store *store);
    void *data;
    bool apart;
};

/* Runs all of them, and fails the test at the first step that differs; returns how many were run to
 * their end: all but, with `apart`, those in which the clock steps back, which are run until then.
 */
unsigned scenarios_run(const struct scenario_runner *runner);

#endif
