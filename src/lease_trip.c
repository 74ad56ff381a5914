/* SPDX-License-Identifier: MIT */
/*
 * Packing. Extras live in the trip, with keys that borrow from callers or are copies.
 */
#include "lease_trip.h"

#include <stdlib.h>

bool rbk_lease_trip_init(struct rbk_lease_trip *trip, size_t callers)
{
    size_t len = callers + RBK_LEASE_TRIP_EXTRAS;

    trip->requests = trip->few;
    trip->origin = trip->few_origin;
    trip->memory = NULL;
    trip->callers = callers;
    rbk_lease_trip_clear(trip);
    if (callers <= RBK_LEASE_TRIP_FEW)
        return true;
    trip->memory = malloc(len * (sizeof *trip->requests + sizeof *trip->origin));
    if (trip->memory == NULL)
        return false;
    trip->requests = trip->memory;
    trip->origin = (size_t *)(trip->requests + len);
    return true;
}

void rbk_lease_trip_fini(struct rbk_lease_trip *trip)
{
    free(trip->memory);
}

void rbk_lease_trip_clear(struct rbk_lease_trip *trip)
{
    trip->len = 0;
    trip->extras_len = 0;
}

bool rbk_lease_trip_has_room(const struct rbk_lease_trip *trip)
{
    return trip->extras_len < RBK_LEASE_TRIP_EXTRAS;
}

void rbk_lease_trip_add(struct rbk_lease_trip *trip, const struct rbk_request *request,
                        size_t origin)
{
    trip->requests[trip->len] = *request;
    trip->origin[trip->len++] = origin;
}

static void add_extra(struct rbk_lease_trip *trip, struct rbk_extra *extra,
                      const struct rbk_ask *ask)
{
    struct rbk_request request = {
        .ask = *ask, .keys = &extra->key, .claims = &extra->claim, .len = 1, .aside = true};

    rbk_lease_trip_add(trip, &request, trip->callers + trip->extras_len++);
}

void rbk_lease_trip_give_back(struct rbk_lease_trip *trip, const struct rbk_leftover *leftover)
{
    struct rbk_extra *extra = &trip->extras[trip->extras_len];
    struct rbk_ask ask = {
        .operation = RBK_GIVE_BACK, .cost = leftover->permits, .taken_at = leftover->note.taken_at};

    extra->ticket = 0;
    extra->text = leftover->text;
    extra->key = rbk_lease_text_key(&extra->text);
    extra->claim = (struct rbk_claim){.limit = leftover->note.limit, .expiry = leftover->expiry};
    add_extra(trip, extra, &ask);
}

void rbk_lease_trip_take_ahead(struct rbk_lease_trip *trip, const struct rbk_request *request,
                               size_t at, const struct rbk_turn *turn)
{
    struct rbk_extra *extra = &trip->extras[trip->extras_len];
    struct rbk_ask ask = {.operation = RBK_REQUEST, .cost = turn->permits};

    extra->bucket = turn->bucket;
    extra->ticket = turn->ticket;
    extra->cost = request->ask.cost;
    extra->key = request->keys[at];
    extra->claim = (struct rbk_claim){.limit = request->claims[at].limit,
                                      .expiry = request->claims[at].expiry,
                                      .lease = request->claims[at].lease};
    add_extra(trip, extra, &ask);
}

struct rbk_extra *rbk_lease_trip_extra(struct rbk_lease_trip *trip, size_t index)
{
    size_t origin = trip->origin[index];

    return origin < trip->callers ? NULL : &trip->extras[origin - trip->callers];
}
