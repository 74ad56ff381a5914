/* SPDX-License-Identifier: MIT */
/*
 * How long things took, kept in a bounded table: 16 steps for each doubling, so that a quantile is
 * right to 7 percent and never too low.
 */
#ifndef RBK_CLI_LATENCY_H
#define RBK_CLI_LATENCY_H

#include <stdint.h>

#define CLI_LATENCY_STEPS (64 * 16)

/* Begins as zeros. Times are in nanoseconds. */
struct cli_latency {
    uint64_t counts[CLI_LATENCY_STEPS];
    uint64_t total;
    uint64_t max_ns;
};

void rbk_latency_add(struct cli_latency *latency, uint64_t ns);

/* Adds what `other` holds. */
void rbk_latency_merge(struct cli_latency *latency, const struct cli_latency *other);

/* The time, in seconds, within which `share` (from 0 to 1) of them stayed; 0 of none. */
double rbk_latency_quantile(const struct cli_latency *latency, double share);

#endif
