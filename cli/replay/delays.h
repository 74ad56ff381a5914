/* SPDX-License-Identifier: MIT */
/*
 * How long delays were, in bounded memory: exact counts in equal bins, which grow wider with the
 * longest delay, and quantiles to 7 percent.
 */
#ifndef RBK_REPLAY_DELAYS_H
#define RBK_REPLAY_DELAYS_H

#include "../latency.h"

#include "histogram.h"

#include <stddef.h>

#define RBK_DELAYS_BINS ((size_t)512)

/* The histogram's times are delays, all of kind DELAYED. */
struct rbk_delays {
    double sum_s;
    double longest_s;
    struct cli_latency quantiles;
    struct rbk_histogram histogram;
    struct rbk_histogram_bin bins[RBK_DELAYS_BINS];
};

void rbk_delays_init(struct rbk_delays *delays);

void rbk_delays_add(struct rbk_delays *delays, double delay_s);

#endif
