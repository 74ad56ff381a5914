/* SPDX-License-Identifier: MIT */
/*
 * Moments of CLOCK_MONOTONIC as the system takes them: how one is made and how two compare, in one
 * place, since a carry of nanoseconds is easily forgotten.
 */
#ifndef RBK_MOMENT_H
#define RBK_MOMENT_H

#include <math.h>
#include <stdbool.h>
#include <time.h>

/* So many seconds, at least 0, after `at`. */
static inline struct timespec rbk_moment_after(struct timespec at, double seconds)
{
    double whole = floor(seconds);

    at.tv_sec += (time_t)whole;
    at.tv_nsec += (long)((seconds - whole) * 1e9);
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

/* The same from now. */
static inline struct timespec rbk_moment_in(double seconds)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return rbk_moment_after(now, seconds);
}

static inline bool rbk_moment_is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

#endif
