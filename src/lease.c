/* SPDX-License-Identifier: MIT */
/*
 * The front: whom leases concern at all, statistics, and the end.
 */
#include "lease.h"

#include "fork_page.h"
#include "front.h"
#include "lease_call.h"

#include <stdlib.h>
#include <sys/random.h>

/* Seconds that giving back may take at the end, as far as the timeout is longer. */
#define CLOSE_TIME 0.25

/* What part of the timeout is for giving back what nobody waits for, on a call of its own. */
#define SWEEP_PART 0.25

struct lease {
    struct rbk_front front;
    struct rbk_leases leases;
};

static struct lease *lease_of(struct redbucket_store *store)
{
    return (struct lease *)store;
}

static bool any_leases(const struct rbk_request *requests, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (requests[i].leases > 0)
            return true;
    }
    return false;
}

/* Who needs no lease pays a look at whether there is one to give back. */
static bool concerns(struct rbk_leases *leases, const struct rbk_request *requests, size_t len)
{
    return any_leases(requests, len) ||
           (atomic_load_explicit(&leases->places->holding, memory_order_relaxed) > 0 &&
            rbk_lease_places_are_due(leases->places, leases->clock()));
}

static void make_trip(struct lease *lease, struct rbk_lease_call *call)
{
    struct redbucket_store *inner = lease->front.inner;
    double timeout = lease->leases.timeout;
    struct rbk_batch apart = *call->batch;
    double begun;

    if (call->stage != RBK_LEASE_SWEEP) {
        inner->ops->decide(inner, call->trip.requests, call->trip.len, call->batch);
        return;
    }
    if (apart.waited < timeout * (1.0 - SWEEP_PART))
        apart.waited = timeout * (1.0 - SWEEP_PART);
    begun = apart.waited;
    inner->ops->decide(inner, call->trip.requests, call->trip.len, &apart);
    call->batch->waited += apart.waited - begun;
}

static void decide_with(struct lease *lease, struct rbk_request *requests, size_t len,
                        struct rbk_batch *batch)
{
    struct rbk_lease_call call;

    /* Not all of it: clearing the room for a trip would take longer than serving without one. */
    call.leases = &lease->leases;
    call.requests = requests;
    call.len = len;
    call.batch = batch;
    for (bool more = rbk_lease_call_begin(&call); more; more = rbk_lease_call_next(&call))
        make_trip(lease, &call);
    rbk_lease_call_fini(&call);
}

static void decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                   struct rbk_batch *batch)
{
    struct lease *lease = lease_of(store);
    struct redbucket_store *inner = lease->front.inner;

    if (concerns(&lease->leases, requests, len))
        decide_with(lease, requests, len, batch);
    else
        inner->ops->decide(inner, requests, len, batch);
}

/* A request that was asked for twice was rejected the first time, which counts for nothing. */
static enum redbucket_status statistics(struct redbucket_store *store,
                                        struct redbucket_statistics *out)
{
    struct lease *lease = lease_of(store);
    struct redbucket_store *inner = lease->front.inner;
    enum redbucket_status status = inner->ops->statistics(inner, out);
    uint64_t delayed;

    rbk_lease_places_count(lease->leases.places, &out->leased, &delayed);
    out->accepted += out->leased;
    out->delayed += delayed;
    out->rejected -= atomic_load_explicit(&lease->leases.rescued, memory_order_relaxed);
    out->denied -= atomic_load_explicit(&lease->leases.undenied, memory_order_relaxed);
    return status;
}

/* ---- The end -----------------------------------------------------------------------------------
 */

static bool all_done(const struct rbk_lease_trip *trip)
{
    for (size_t i = 0; i < trip->len; i++) {
        if (trip->requests[i].status != REDBUCKET_OK)
            return false;
    }
    return true;
}

/* Gives back all that is held, as far as the store answers soon. */
static void give_all_back(struct lease *lease)
{
    struct rbk_leases *leases = &lease->leases;
    struct redbucket_store *inner = lease->front.inner;
    double time = leases->timeout < CLOSE_TIME ? leases->timeout : CLOSE_TIME;
    struct rbk_batch batch = {.waited = leases->timeout - time};
    struct rbk_lease_trip trip;

    if (!rbk_lease_trip_init(&trip, 0))
        return;
    while (rbk_lease_collect(leases, leases->clock(), true, &trip) &&
           batch.waited < leases->timeout) {
        inner->ops->decide(inner, trip.requests, trip.len, &batch);
        if (!all_done(&trip))
            break;
        rbk_lease_trip_clear(&trip);
    }
    rbk_lease_trip_fini(&trip);
}

static void close_lease(struct redbucket_store *store)
{
    struct lease *lease = lease_of(store);

    if (atomic_load(&lease->leases.places->holding) > 0)
        give_all_back(lease);
    redbucket_store_close(lease->front.inner);
    rbk_fork_page_unmap(lease->leases.places, sizeof *lease->leases.places);
    free(lease);
}

enum redbucket_status rbk_lease_create(struct redbucket_store *inner, rbk_clock *clock,
                                       struct redbucket_store **store,
                                       struct redbucket_error *error)
{
    struct lease *lease = calloc(1, sizeof *lease);
    struct rbk_leases *leases;
    enum redbucket_status status;

    if (lease == NULL)
        return rbk_fail(error, REDBUCKET_ERROR_MEMORY, -1, "store: out of memory");
    leases = &lease->leases;
    if (getrandom(leases->secret, sizeof leases->secret, 0) != sizeof leases->secret)
        status = rbk_fail(error, REDBUCKET_ERROR_SYSTEM, -1, "store: no random numbers");
    else
        status = rbk_fork_page_map(sizeof *leases->places, (void **)&leases->places, error);
    if (status != REDBUCKET_OK) {
        free(lease);
        return status;
    }
    rbk_front_init(&lease->front, inner);
    lease->front.ops.decide = decide;
    lease->front.ops.statistics = statistics;
    lease->front.ops.close = close_lease;
    leases->clock = clock;
    leases->timeout = inner->timeout;
    leases->one_server = inner->ops->lanes <= 1;
    *store = &lease->front.store;
    return REDBUCKET_OK;
}
