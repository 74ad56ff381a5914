/* SPDX-License-Identifier: MIT */
/*
 * Names of zones and counters beside them. A name, once it has its place, keeps it for as long as
 * the store is open, so that a claim brings its index and nobody looks for it.
 *
 * No lock, which a child after fork could find taken: a name's place is had by whoever exchanges
 * its pointer first. Counters are in a few stripes, so that threads don't take a cache line from
 * each other for each request.
 */
#include "census.h"

#include "front.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define STRIPES 8u

struct name {
    size_t len;
    unsigned char bytes[];
};

/* Relaxed: counts order nothing. */
struct counts {
    atomic_ullong accepted;
    atomic_ullong delayed;
    atomic_ullong rejected;
};

struct stripe {
    _Alignas(64) struct counts zones[RBK_ZONES_NAMED + 1];
};

/* Of the names, those that are there come first; release and acquire hand over their bytes. */
struct census {
    struct rbk_front front;
    _Atomic(struct name *) names[RBK_ZONES_NAMED];
    struct stripe stripes[STRIPES];
};

static struct census *census_of(struct redbucket_store *store)
{
    return (struct census *)store;
}

static bool is_of(const struct name *name, const struct rbk_key *zone)
{
    return name->len == zone->zone_len && memcmp(name->bytes, zone->zone, name->len) == 0;
}

static struct name *make_name(const struct rbk_key *zone)
{
    struct name *made = malloc(sizeof *made + zone->zone_len);

    if (made == NULL)
        return NULL;
    made->len = zone->zone_len;
    memcpy(made->bytes, zone->zone, zone->zone_len);
    return made;
}

static unsigned enroll(struct redbucket_store *store, const struct rbk_key *zone)
{
    struct census *census = census_of(store);
    struct name *made = make_name(zone);

    for (unsigned i = 0; made != NULL && i < RBK_ZONES_NAMED; i++) {
        struct name *found = NULL;

        if (atomic_compare_exchange_strong_explicit(&census->names[i], &found, made,
                                                    memory_order_acq_rel, memory_order_acquire))
            return i + 1;
        if (is_of(found, zone)) {
            free(made);
            return i + 1;
        }
    }
    free(made);
    return 0;
}

static void add_one(atomic_ullong *counter)
{
    (void)atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void count_claim(struct stripe *stripe, const struct rbk_claim *claim, bool accepted)
{
    struct counts *counts = &stripe->zones[claim->zone_index];

    if (accepted) {
        add_one(&counts->accepted);
        if (claim->verdict.delay > 0.0)
            add_one(&counts->delayed);
    } else if (!claim->verdict.accepted) {
        add_one(&counts->rejected);
    }
}

/* Threads have stacks of their own: where we are on one tells them apart well enough. */
static struct stripe *stripe_of(struct census *census)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    return &census->stripes[(uint32_t)(here >> 16) * 0x9e3779b1u >> 29];
}

_Static_assert(STRIPES == 1u << (32 - 29), "the hash has a stripe for each of its values");

static void decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                   struct rbk_batch *batch)
{
    struct census *census = census_of(store);
    struct stripe *stripe = stripe_of(census);

    census->front.inner->ops->decide(census->front.inner, requests, len, batch);
    for (size_t i = 0; i < len; i++) {
        const struct rbk_request *request = &requests[i];

        if (request->status != REDBUCKET_OK || request->ask.operation != RBK_REQUEST)
            continue;
        for (size_t j = 0; j < request->len; j++)
            count_claim(stripe, &request->claims[j], request->answer.accepted);
    }
}

static void read_counts(const struct census *census, size_t index,
                        struct redbucket_zone_statistics *zone)
{
    zone->accepted = 0;
    zone->delayed = 0;
    zone->rejected = 0;
    for (size_t i = 0; i < STRIPES; i++) {
        const struct counts *counts = &census->stripes[i].zones[index];

        zone->accepted += atomic_load_explicit(&counts->accepted, memory_order_relaxed);
        zone->delayed += atomic_load_explicit(&counts->delayed, memory_order_relaxed);
        zone->rejected += atomic_load_explicit(&counts->rejected, memory_order_relaxed);
    }
}

static enum redbucket_status zones(struct redbucket_store *store,
                                   struct redbucket_zone_statistics *out, size_t *len)
{
    const struct census *census = census_of(store);
    struct name *name;
    size_t named = 0;

    while (named < RBK_ZONES_NAMED &&
           (name = atomic_load_explicit(&census->names[named], memory_order_acquire)) != NULL) {
        memcpy(out[named].zone, name->bytes, name->len);
        out[named].zone[name->len] = '\0';
        out[named].zone_len = name->len;
        read_counts(census, named + 1, &out[named]);
        named++;
    }
    out[named].zone[0] = '\0';
    out[named].zone_len = 0;
    read_counts(census, 0, &out[named]);
    *len = named + 1;
    return REDBUCKET_OK;
}

static void close_census(struct redbucket_store *store)
{
    struct census *census = census_of(store);

    redbucket_store_close(census->front.inner);
    for (size_t i = 0; i < RBK_ZONES_NAMED; i++)
        free(atomic_load_explicit(&census->names[i], memory_order_relaxed));
    free(census);
}

enum redbucket_status rbk_census_create(struct redbucket_store *inner,
                                        struct redbucket_store **store)
{
    struct census *census = aligned_alloc(_Alignof(struct census), sizeof *census);

    if (census == NULL)
        return REDBUCKET_ERROR_MEMORY;
    memset(census, 0, sizeof *census);
    rbk_front_init(&census->front, inner);
    census->front.ops.decide = decide;
    census->front.ops.enroll = enroll;
    census->front.ops.zones = zones;
    census->front.ops.close = close_census;
    *store = &census->front.store;
    return REDBUCKET_OK;
}
