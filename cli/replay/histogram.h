/* SPDX-License-Identifier: MIT */
/*
 * How decisions spread over time, in a fixed number of bins, which are the caller's memory: they
 * begin a millisecond wide, and when the time outgrows them, neighbours are merged into bins of the
 * next width.
 *
 * Invariant: bins begin at whole multiples of their width since the epoch, so that merging is exact
 * and hours begin at full hours.
 */
#ifndef RBK_REPLAY_HISTOGRAM_H
#define RBK_REPLAY_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum rbk_histogram_kind {
    RBK_HISTOGRAM_AT_ONCE, /* accepted without a delay */
    RBK_HISTOGRAM_DELAYED,
    RBK_HISTOGRAM_REJECTED,
    RBK_HISTOGRAM_KINDS,
};

struct rbk_histogram_bin {
    uint64_t counts[RBK_HISTOGRAM_KINDS];
};

/*
 *   bins      room for `most` of them, at least 1
 *   width_ms  of a bin
 *   first     the number of the first bin, counted in widths from the epoch
 *   len       how many bins are in use; the others are zeros
 */
struct rbk_histogram {
    struct rbk_histogram_bin *bins;
    size_t most;
    int64_t width_ms;
    int64_t first;
    size_t len;
    double recent_s;
    size_t recent;
};

/* Begins with these bins, which are cleared and borrowed. */
void rbk_histogram_init(struct rbk_histogram *histogram, struct rbk_histogram_bin *bins,
                        size_t most);

/* Counts one decision. A time more than 30,000 years from the epoch counts as that. */
void rbk_histogram_add(struct rbk_histogram *histogram, double time_s,
                       enum rbk_histogram_kind kind);

/* Merges to at most `shown` bins, each of a width that people use. */
void rbk_histogram_settle(struct rbk_histogram *histogram, size_t shown);

/* The bins that another histogram of `most` bins would have after the same times. */
struct rbk_axis {
    int64_t width_ms;
    int64_t first;
    size_t len;
};

struct rbk_axis rbk_histogram_axis(const struct rbk_histogram *histogram, size_t most);

/* Adds the histogram's counts to the axis' bins, in which all its times must lie; its bins must be
 * as wide at most. */
void rbk_histogram_spread(const struct rbk_histogram *histogram, const struct rbk_axis *axis,
                          struct rbk_histogram_bin *bins);

/* All counts of a bin together. */
uint64_t rbk_histogram_total(const struct rbk_histogram_bin *bin);

/* Writes a width as "4 h", "30 s", "100 ms". */
#define RBK_WIDTH_SIZE 32
void rbk_width_format(int64_t width_ms, char out[RBK_WIDTH_SIZE]);

#endif
