/* SPDX-License-Identifier: MIT */
/*
 * Several limits together: all of them take a request, or none does.
 *
 * A store reads the states of all claims, has them decided here, and then writes what changed. The
 * answer doesn't depend on the order of the claims, but for which of equals is named first.
 *
 * Invariant: a rejection, and a peek, change no claim.
 */
#ifndef RBK_MODEL_DECIDE_H
#define RBK_MODEL_DECIDE_H

#include "model/bucket.h"

#include <stddef.h>

enum rbk_operation {
    RBK_REQUEST,
    RBK_PEEK,
    RBK_REFUND,
    RBK_CHARGE,
    RBK_RESET,
    RBK_GIVE_BACK,
};

/* What a store has to do with a bucket after the decision. */
enum rbk_change {
    RBK_KEEP,
    RBK_WRITE,
    RBK_FORGET,
};

/* One limit's answer for itself alone; see struct redbucket_verdict. */
struct rbk_verdict {
    bool accepted;
    double delay;
    double retry_after;
    double reset_after;
    int64_t remaining;
};

/* One key under one limit. In: limit, expiry (whole seconds that a server keeps it at least, 0 for
 * as long as it needs), the terms of leases or NULL, which counters are the zone's (0 for those of
 * zones that have none of their own), and the state as stored, which is readable. Out: the state to
 * store, what to do, the level before the decision, and the verdict. */
struct rbk_claim {
    struct rbk_limit limit;
    double expiry;
    const struct rbk_lease_terms *lease;
    struct rbk_state state;
    double level;
    unsigned zone_index;
    enum rbk_change change;
    struct rbk_verdict verdict;
};

/* taken_at matters to GIVE_BACK, cost to all but RESET. */
struct rbk_ask {
    enum rbk_operation operation;
    double cost;
    double taken_at;
    double now;
};

#define RBK_NONE SIZE_MAX

/* All claims together; see struct redbucket_response. */
struct rbk_answer {
    bool accepted;
    double delay;
    double retry_after;
    double reset_after;
    int64_t remaining;
    size_t decided;
};

/* No claim at all is accepted at once, with nothing that bounds `remaining`. */
void rbk_decide(const struct rbk_ask *ask, struct rbk_claim *claims, size_t claims_len,
                struct rbk_answer *answer);

/* What becomes of a request whose claims were decided apart from each other, each with a verdict of
 * its own. Where not all accepted it, none took it: the verdicts are changed to say so. */
void rbk_decide_together(const struct rbk_ask *ask, struct rbk_claim *claims, size_t claims_len,
                         struct rbk_answer *answer);

/* Seconds as whole microseconds, rounded up; UINT64_MAX for INFINITY and for nothing else. */
uint64_t rbk_microseconds(double seconds);

#endif
