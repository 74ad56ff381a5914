/* SPDX-License-Identifier: MIT */
/*
 * How many permits of one bucket to take ahead: pure arithmetic over what was seen of it.
 *
 * A bucket is hot once it was asked for RBK_PACE_HOT times within a second, or within the time that
 * its leases last where that is shorter. Then a lease begins small. It doubles each time it is used
 * up before its time; one that outlives its use is followed by one of as much as was used, and by
 * none when that was less than two requests, until the bucket is hot again.
 *
 * Never more than half of the room that is left as far as is known is taken: the other half is for
 * other processes, so that most leases are granted, and near the bound the store decides each
 * request.
 */
#ifndef RBK_LEASE_PACE_H
#define RBK_LEASE_PACE_H

#include "model/limit.h"

#include <stdbool.h>

#define RBK_PACE_HOT   8u
#define RBK_PACE_FIRST 4.0 /* requests that the first lease is for */

/* Times are of the clock here. All zeros: nothing is known. */
struct rbk_pace {
    double since; /* when the requests began that are counted */
    unsigned asked;
    double last; /* when one was asked for last */
    double next; /* permits to take ahead, 0 while the bucket isn't hot */
    double room; /* permits that a store would still have given at `room_at`, 0 for unknown */
    double room_at;
};

/* Counts a request that nothing is held for. */
void rbk_pace_count(struct rbk_pace *pace, double now, double time);

/* A bucket that hasn't been asked for lately: its place may be another's. */
bool rbk_pace_is_stale(const struct rbk_pace *pace, double now, double time);

/* How many to take ahead for such requests, 0 for none. */
double rbk_pace_amount(struct rbk_pace *pace, const struct rbk_limit *limit,
                       const struct rbk_lease_terms *terms, double cost, double now);

/* What became of a lease: it was used up before its time; or it was over with so much of it used,
 * by requests of `cost`. */
void rbk_pace_used_up(struct rbk_pace *pace, double taken);
void rbk_pace_outlived(struct rbk_pace *pace, double used, double cost);

/* The store has said how full the bucket is. */
void rbk_pace_learn(struct rbk_pace *pace, const struct rbk_limit *limit, double level, double now);

#endif
