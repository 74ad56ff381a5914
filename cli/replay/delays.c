/* SPDX-License-Identifier: MIT */
/*
 * A limit's delays lie between nothing and delay / rate, mostly all over that, so equal bins show
 * them as they are.
 */
#include "delays.h"

#include <math.h>

/* Longer than any log, and still a number of nanoseconds that fits. */
#define QUANTILE_MOST_S 1e9

void rbk_delays_init(struct rbk_delays *delays)
{
    *delays = (struct rbk_delays){.sum_s = 0};
    rbk_histogram_init(&delays->histogram, delays->bins, RBK_DELAYS_BINS);
}

void rbk_delays_add(struct rbk_delays *delays, double delay_s)
{
    delays->sum_s += delay_s;
    delays->longest_s = fmax(delays->longest_s, delay_s);
    rbk_latency_add(&delays->quantiles, (uint64_t)(fmin(delay_s, QUANTILE_MOST_S) * 1e9));
    rbk_histogram_add(&delays->histogram, delay_s, RBK_HISTOGRAM_DELAYED);
}
