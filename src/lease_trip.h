/* SPDX-License-Identifier: MIT */
/*
 * An array on its way to the store: requests of callers, and among them what is asked for leases: a
 * permit or more taken ahead behind the request that found none, and leftovers given back before
 * what may need them.
 *
 * The store decides them in order in one call. Whoever took one ahead has a ticket of its place.
 */
#ifndef RBK_LEASE_TRIP_H
#define RBK_LEASE_TRIP_H

#include "lease_places.h"
#include "store.h"

#define RBK_LEASE_TRIP_FEW    32u /* requests of callers for which no memory is asked for */
#define RBK_LEASE_TRIP_EXTRAS 16u

/* One that no caller has asked. */
struct rbk_extra {
    struct rbk_key key;
    struct rbk_claim claim;
    uint64_t bucket;
    unsigned ticket; /* 0: gives back */
    double cost;     /* of the request behind which permits are taken */
    struct rbk_lease_text text;
};

/* To take so many permits of a bucket ahead. */
struct rbk_turn {
    uint64_t bucket;
    unsigned ticket;
    double permits;
};

struct rbk_lease_trip {
    struct rbk_request *requests;
    size_t *origin; /* where a caller's was in its array; behind that, which extra it is */
    size_t len;
    size_t callers; /* length of the callers' array */
    struct rbk_extra extras[RBK_LEASE_TRIP_EXTRAS];
    size_t extras_len;
    void *memory;
    struct rbk_request few[RBK_LEASE_TRIP_FEW + RBK_LEASE_TRIP_EXTRAS];
    size_t few_origin[RBK_LEASE_TRIP_FEW + RBK_LEASE_TRIP_EXTRAS];
};

/* An empty one, for an array of so many requests; false without memory. */
bool rbk_lease_trip_init(struct rbk_lease_trip *trip, size_t callers);
void rbk_lease_trip_fini(struct rbk_lease_trip *trip);

/* Empties it, to be used for the same array again. */
void rbk_lease_trip_clear(struct rbk_lease_trip *trip);

bool rbk_lease_trip_has_room(const struct rbk_lease_trip *trip);

void rbk_lease_trip_add(struct rbk_lease_trip *trip, const struct rbk_request *request,
                        size_t origin);

/* These two need room for an extra. `at` is which of the request's buckets. */
void rbk_lease_trip_give_back(struct rbk_lease_trip *trip, const struct rbk_leftover *leftover);
void rbk_lease_trip_take_ahead(struct rbk_lease_trip *trip, const struct rbk_request *request,
                               size_t at, const struct rbk_turn *turn);

/* The extra that a request of the trip is, or NULL for a caller's. */
struct rbk_extra *rbk_lease_trip_extra(struct rbk_lease_trip *trip, size_t index);

#endif
