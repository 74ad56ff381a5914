/* SPDX-License-Identifier: MIT */
/*
 * The slow and obvious reference of one bucket: the list of all that got in, and when.
 *
 * Nothing is carried on from one decision to the next. How full the bucket is, is the most that any
 * window which ends now has taken beyond what it drained:
 *
 *     level = max over k of (what got in since the k-th, and it) - rate * (now - time of the k-th)
 *
 * in long doubles. The same sums say whether in any window whatever more got in than the limit
 * allows.
 */
#ifndef TEST_REFERENCE_H
#define TEST_REFERENCE_H

#include "redbucket/redbucket.h"

#define REFERENCE_MAX 256

struct reference {
    struct redbucket_limit limit;
    double latest; /* a clock that steps back stands still here */
    unsigned len;
    unsigned decisions;
    struct {
        double time;
        double cost;
    } taken[REFERENCE_MAX];
};

/* The bucket's time, when the clock says `now`. */
double reference_time(const struct reference *reference, double now);

long double reference_level(const struct reference *reference, double now);

/* By how much a request passes the point of rejection (negative where it is accepted). */
long double reference_excess(const struct reference *reference, double cost, double now);

/* As close as this to a bound, doubles may go either way. */
long double reference_doubt(const struct reference *reference, double cost);

/* What got in; at most REFERENCE_MAX times. Returns its index. */
unsigned reference_take(struct reference *reference, double cost, double now);

/* True when in no window more got in than burst + 1 + delay + rate * (W + 2e-6), and a unit in the
 * last place of burst + 1 + delay for each decision in it. */
bool reference_within_bound(const struct reference *reference);

#endif
