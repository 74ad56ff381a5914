/* SPDX-License-Identifier: MIT */
/*
 * How decisions spread over time, in a fixed number of bins: they begin a millisecond wide, and
 * when the time outgrows them, neighbours are merged into bins of the next width.
 *
 * Invariant: bins begin at whole multiples of their width since the epoch, so that merging is exact
 * and hours begin at full hours.
 */
#ifndef RBK_REPLAY_HISTOGRAM_H
#define RBK_REPLAY_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

/* How many bins there are while counting, and how many are shown at most. */
#define RBK_HISTOGRAM_BINS  128
#define RBK_HISTOGRAM_SHOWN 24

enum rbk_histogram_kind {
    RBK_HISTOGRAM_AT_ONCE, /* accepted without a delay */
    RBK_HISTOGRAM_DELAYED,
    RBK_HISTOGRAM_REJECTED,
    RBK_HISTOGRAM_KINDS,
};

struct rbk_histogram_bin {
    uint64_t counts[RBK_HISTOGRAM_KINDS];
};

/* `first` is the number of the first bin, counted in widths from the epoch. Begin with all zeros.
 */
struct rbk_histogram {
    int64_t width_ms;
    int64_t first;
    size_t len;
    double recent_s;
    size_t recent;
    struct rbk_histogram_bin bins[RBK_HISTOGRAM_BINS];
};

/* Counts one decision. A time more than 30,000 years from the epoch counts as that. */
void rbk_histogram_add(struct rbk_histogram *histogram, double time_s,
                       enum rbk_histogram_kind kind);

/* Merges to at most RBK_HISTOGRAM_SHOWN bins, each of a width that people use. */
void rbk_histogram_settle(struct rbk_histogram *histogram);

#endif
