/* SPDX-License-Identifier: MIT */
/*
 * What a limit and a cost are, and which are none.
 *
 * The ranges are those within which doubles never absorb a cost: up to burst + delay = 1e12 one
 * unit in the last place is 1.2e-4, below the smallest cost.
 */
#ifndef RBK_MODEL_LIMIT_H
#define RBK_MODEL_LIMIT_H

#define RBK_RATE_MIN       1e-9
#define RBK_RATE_MAX       1e12
#define RBK_DEPTH_MAX      1e12 /* of burst + delay */
#define RBK_COST_MIN       1e-3
#define RBK_COST_MAX       1e12
#define RBK_EXPIRY_MAX     1e10
#define RBK_LEASE_MAX      1e12
#define RBK_LEASE_TIME_MAX 3600.0

/* The arithmetic part of a limit: rate in requests a second, burst and delay in requests. */
struct rbk_limit {
    double rate;
    double burst;
    double delay;
};

/* What may be taken ahead under a limit, from a store that is far away: so many permits, held for
 * at most so many seconds. Nothing of it is the model's business. */
struct rbk_lease_terms {
    double most;
    double time;
};

/* Why a limit is none. One fault, one message. */
enum rbk_limit_fault {
    RBK_LIMIT_GOOD,
    RBK_LIMIT_RATE,
    RBK_LIMIT_BURST,
    RBK_LIMIT_DELAY,
    RBK_LIMIT_DEPTH,
};

/* The first fault, in the order of the fields. */
enum rbk_limit_fault rbk_limit_check(const struct rbk_limit *limit);

/* True for a finite number from low to high. */
_Bool rbk_within(double number, double low, double high);

#endif
