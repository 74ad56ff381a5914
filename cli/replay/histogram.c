/* SPDX-License-Identifier: MIT */
/*
 * Merging bins. While counting, every width divides the next one, or merged bins would lose what
 * they counted; to be shown, any width that people use will do if it is a multiple of the present.
 */
#include "histogram.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

#define TIME_MOST_S 1e12

/* Each divides the next; then days are doubled. */
static const int64_t counting[] = {
    1,          10,          100,  SECOND,   5 * SECOND, 30 * SECOND, MINUTE,
    5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR,   12 * HOUR,   DAY,
};

static const int64_t showing[] = {
    1,           2,        5,          10,         20,          50,          100,
    200,         500,      SECOND,     2 * SECOND, 5 * SECOND,  10 * SECOND, 15 * SECOND,
    30 * SECOND, MINUTE,   2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
    HOUR,        2 * HOUR, 3 * HOUR,   4 * HOUR,   6 * HOUR,    12 * HOUR,   DAY,
};

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

static int64_t floor_div(int64_t number, int64_t by)
{
    return number / by - (number % by < 0);
}

/* The first width of the table above `width_ms`, or twice as much. */
static int64_t next_width(const int64_t *table, size_t len, int64_t width_ms)
{
    for (size_t i = 0; i < len; i++)
        if (table[i] > width_ms)
            return table[i];
    return width_ms * 2;
}

void rbk_histogram_init(struct rbk_histogram *histogram, struct rbk_histogram_bin *bins,
                        size_t most)
{
    memset(bins, 0, most * sizeof(bins[0]));
    *histogram = (struct rbk_histogram){.bins = bins, .most = most};
}

uint64_t rbk_histogram_total(const struct rbk_histogram_bin *bin)
{
    uint64_t total = 0;

    for (int kind = 0; kind < RBK_HISTOGRAM_KINDS; kind++)
        total += bin->counts[kind];
    return total;
}

/* Makes bins of a width that is a multiple of the present one. In place: no bin moves up. */
static void merge(struct rbk_histogram *histogram, int64_t width_ms)
{
    const int64_t by = width_ms / histogram->width_ms;
    const int64_t first = floor_div(histogram->first, by);
    size_t len = 0;

    for (size_t i = 0; i < histogram->len; i++) {
        const size_t to = (size_t)(floor_div(histogram->first + (int64_t)i, by) - first);
        const struct rbk_histogram_bin bin = histogram->bins[i];

        histogram->bins[i] = (struct rbk_histogram_bin){0};
        for (int kind = 0; kind < RBK_HISTOGRAM_KINDS; kind++)
            histogram->bins[to].counts[kind] += bin.counts[kind];
        len = to + 1;
    }
    histogram->width_ms = width_ms;
    histogram->first = first;
    histogram->len = len;
}

static int64_t milliseconds(double time_s)
{
    const double bounded = time_s < -TIME_MOST_S  ? -TIME_MOST_S
                           : time_s > TIME_MOST_S ? TIME_MOST_S
                                                  : time_s;
    const double ms = bounded * 1000;
    const int64_t whole = (int64_t)ms;

    return whole - ((double)whole > ms);
}

/* Makes room for bin `number`, which lies outside. */
static void extend(struct rbk_histogram *histogram, int64_t number)
{
    const int64_t end = histogram->first + (int64_t)histogram->len;

    if (number < histogram->first) {
        const size_t shift = (size_t)(histogram->first - number);

        memmove(&histogram->bins[shift], histogram->bins,
                histogram->len * sizeof(histogram->bins[0]));
        memset(histogram->bins, 0, shift * sizeof(histogram->bins[0]));
        histogram->first = number;
        histogram->len += shift;
    } else if (number >= end) {
        histogram->len = (size_t)(number - histogram->first) + 1;
    }
}

/* How many bins it takes to hold the time as well. */
static int64_t bins_needed(const struct rbk_histogram *histogram, int64_t number)
{
    const int64_t last = histogram->first + (int64_t)histogram->len - 1;

    return (number > last ? number : last) -
           (number < histogram->first ? number : histogram->first) + 1;
}

/* Makes the bins reach to this time, and wider if they must. Returns its bin. */
static size_t reach(struct rbk_histogram *histogram, int64_t time_ms)
{
    if (histogram->len == 0) {
        histogram->width_ms = counting[0];
        histogram->first = time_ms;
        histogram->len = 1;
    }
    while (bins_needed(histogram, floor_div(time_ms, histogram->width_ms)) >
           (int64_t)histogram->most)
        merge(histogram, next_width(counting, LEN(counting), histogram->width_ms));
    extend(histogram, floor_div(time_ms, histogram->width_ms));
    return (size_t)(floor_div(time_ms, histogram->width_ms) - histogram->first);
}

void rbk_histogram_add(struct rbk_histogram *histogram, double time_s, enum rbk_histogram_kind kind)
{
    if (histogram->len == 0 || time_s != histogram->recent_s) {
        histogram->recent = reach(histogram, milliseconds(time_s));
        histogram->recent_s = time_s;
    }
    histogram->bins[histogram->recent].counts[kind]++;
}

void rbk_histogram_settle(struct rbk_histogram *histogram, size_t shown)
{
    int64_t width_ms = histogram->width_ms;

    if (histogram->len == 0)
        return;
    for (;;) {
        const int64_t by = width_ms / histogram->width_ms;
        const int64_t last = histogram->first + (int64_t)histogram->len - 1;

        if (width_ms % histogram->width_ms == 0 &&
            floor_div(last, by) - floor_div(histogram->first, by) < (int64_t)shown)
            break;
        width_ms = next_width(showing, LEN(showing), width_ms);
    }
    merge(histogram, width_ms);
    histogram->recent_s = NAN;
}

struct rbk_axis rbk_histogram_axis(const struct rbk_histogram *histogram, size_t most)
{
    const int64_t last = histogram->first + (int64_t)histogram->len - 1;
    int64_t width_ms = histogram->width_ms;
    int64_t by = 1;

    if (histogram->len == 0)
        return (struct rbk_axis){.width_ms = counting[0]};
    while (floor_div(last, by) - floor_div(histogram->first, by) >= (int64_t)most) {
        width_ms = next_width(counting, LEN(counting), width_ms);
        by = width_ms / histogram->width_ms;
    }
    return (struct rbk_axis){width_ms, floor_div(histogram->first, by),
                             (size_t)(floor_div(last, by) - floor_div(histogram->first, by)) + 1};
}

void rbk_histogram_spread(const struct rbk_histogram *histogram, const struct rbk_axis *axis,
                          struct rbk_histogram_bin *bins)
{
    for (size_t i = 0; i < histogram->len; i++) {
        const int64_t by = axis->width_ms / histogram->width_ms;
        const int64_t to = floor_div(histogram->first + (int64_t)i, by) - axis->first;

        for (int kind = 0; kind < RBK_HISTOGRAM_KINDS; kind++)
            bins[to].counts[kind] += histogram->bins[i].counts[kind];
    }
}

void rbk_width_format(int64_t width_ms, char out[RBK_WIDTH_SIZE])
{
    static const struct {
        int64_t ms;
        const char *name;
    } units[] = {{DAY, "d"}, {HOUR, "h"}, {MINUTE, "min"}, {SECOND, "s"}, {1, "ms"}};
    size_t i = 0;

    while (width_ms % units[i].ms != 0)
        i++;
    snprintf(out, RBK_WIDTH_SIZE, "%lld %s", (long long)(width_ms / units[i].ms), units[i].name);
}
