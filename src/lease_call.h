/* SPDX-License-Identifier: MIT */
/*
 * What becomes of an array of requests, step by step: each step ends with a trip to the store, or
 * with all of them answered. No lock is held between steps, whoever makes the trips, and however.
 *
 *   ask     what is held here is served from here; the rest is asked for, with permits ahead of
 *           those buckets that are hot
 *   rescue  whoever was rejected though this process holds some of what it lacks: all that is held
 *           of these buckets is given back, and it is asked for again
 *   sweep   what nobody uses is given back, where that can't go with the others
 */
#ifndef RBK_LEASE_CALL_H
#define RBK_LEASE_CALL_H

#include "clock.h"
#include "lease_serve.h"

/*
 *   timeout     seconds that a call may take
 *   one_server  all buckets are on one server, so that giving one back holds up nobody
 */
struct rbk_leases {
    struct rbk_lease_places *places; /* in memory that a child finds cleared */
    uint64_t secret[2];
    rbk_clock *clock;
    double timeout;
    bool one_server;
    atomic_uint tickets;    /* that were given, in this process and in those that it comes from */
    atomic_ullong rescued;  /* requests that were asked for twice; relaxed: counts */
    atomic_ullong undenied; /* of which the first answer came from here */
};

enum rbk_lease_stage {
    RBK_LEASE_ASK,
    RBK_LEASE_RESCUE,
    RBK_LEASE_SWEEP,
    RBK_LEASE_DONE,
};

struct rbk_lease_call {
    struct rbk_leases *leases;
    struct rbk_request *requests;
    size_t len;
    struct rbk_batch *batch;
    double here;
    enum rbk_lease_stage stage;
    struct rbk_lease_trip trip;
};

/* Requests, their number and the batch are set. True when there is a trip to make; then, when it is
 * made, `next` says whether there is one more. `fini` ends it in any case. */
bool rbk_lease_call_begin(struct rbk_lease_call *call);
bool rbk_lease_call_next(struct rbk_lease_call *call);
void rbk_lease_call_fini(struct rbk_lease_call *call);

/* Fills the trip with leftovers, of all leases if `all`: false when there are none. */
bool rbk_lease_collect(struct rbk_leases *leases, double here, bool all,
                       struct rbk_lease_trip *trip);

#endif
