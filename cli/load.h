/* SPDX-License-Identifier: MIT */
/*
 * Load on a store: threads that ask for permits as fast as they can.
 *
 * Invariant: only buckets of CLI_LOAD_LIMIT are touched, under keys that are the numbers below
 * `keys` in 8 hexadecimal digits: with the zone's name short enough to count as short keys.
 */
#ifndef RBK_CLI_LOAD_H
#define RBK_CLI_LOAD_H

#include "cli.h"
#include "latency.h"

/* The limit, and its zone, that `limiter` must have. */
#define CLI_LOAD_LIMIT "redbucket-bench"

struct cli_load {
    struct redbucket_limiter *limiter;
    double seconds;
    uint64_t threads;
    uint64_t keys;
};

/* `seconds` is how long it really took. */
struct cli_load_result {
    uint64_t decisions;
    double seconds;
    struct cli_latency latency;
};

/* Adds to *result, which begins as zeros. Every 32nd decision is timed: reading the clock twice
 * would be a large part of the others. */
int rbk_load_run(const struct cli_load *load, struct cli_load_result *result);

/* Resets every key, so that the table is as it was before. */
void rbk_load_forget(const struct cli_load *load);

#endif
