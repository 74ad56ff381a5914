/* SPDX-License-Identifier: MIT */
/*
 * Serving a request from what is held here: all of its buckets give, or none does.
 *
 * What it answers is never more than there is. `remaining` counts permits that are held here and
 * need not wait; `delay` is what the model says of what this process spends, at the times when it
 * does, or more; `reset_after` takes all of the lease for used; `time` is when the lease was taken,
 * from which on its permits drain.
 */
#ifndef RBK_LEASE_SERVE_H
#define RBK_LEASE_SERVE_H

#include "lease_trip.h"

/* Requests of more limits are the store's to decide. */
#define RBK_LEASE_CLAIMS 4u

/* The hashes of a request's buckets, none of which is 0. */
struct rbk_sought {
    uint64_t buckets[RBK_LEASE_CLAIMS];
};

uint64_t rbk_lease_bucket(const uint64_t secret[2], const struct rbk_key *key);

/* True for a request, or a peek, that leases may serve. */
bool rbk_lease_may_serve(const struct rbk_request *request);

/* Serves it, or returns false. Permits that a request has put back too late are leftovers of the
 * trip then, which has room for them. */
bool rbk_lease_serve(struct rbk_lease_places *places, struct rbk_request *request,
                     const struct rbk_sought *sought, double here, struct rbk_lease_trip *trip);

#endif
