/* SPDX-License-Identifier: MIT */
/*
 * Walks from outside: what they begin with, and what they end with. The steps are the stores'.
 */
#include "redbucket/walk.h"

#include "limiter.h"
#include "walk_step.h"

#include <stdlib.h>
#include <string.h>

struct redbucket_walk {
    struct redbucket_store *store;
    struct rbk_walk walk;
    struct rbk_key only;
    unsigned char only_bytes[REDBUCKET_ZONE_MAX];
    struct rbk_key zones[]; /* of the limiter */
};

static enum redbucket_status take_only(const struct redbucket_walk_options *options,
                                       struct redbucket_walk *made)
{
    size_t len;

    if (options->zone == NULL)
        return REDBUCKET_OK;
    len = rbk_given_len(options->zone, options->zone_len);
    if (len == 0 || len > REDBUCKET_ZONE_MAX)
        return REDBUCKET_ERROR_ARGUMENT;
    memcpy(made->only_bytes, options->zone, len);
    made->only = (struct rbk_key){.zone = made->only_bytes, .zone_len = len};
    made->walk.only = &made->only;
    return REDBUCKET_OK;
}

static void take_zones(const struct redbucket_limiter *limiter, struct redbucket_walk *made)
{
    for (size_t i = 0; limiter != NULL && i < limiter->len; i++)
        made->zones[i] = (struct rbk_key){.zone = limiter->limits[i]->zone,
                                          .zone_len = limiter->limits[i]->zone_len};
    made->walk.zones = made->zones;
    made->walk.zones_len = limiter != NULL ? limiter->len : 0;
}

enum redbucket_status redbucket_walk_create(struct redbucket_store *store,
                                            const struct redbucket_walk_options *options,
                                            struct redbucket_walk **walk)
{
    const struct redbucket_walk_options defaults = {.size = sizeof defaults};
    const struct redbucket_walk_options *given = options != NULL ? options : &defaults;
    struct redbucket_walk *made;
    enum redbucket_status status;

    if (given->size != 0 && given->size != sizeof *given)
        return REDBUCKET_ERROR_ARGUMENT;
    made = calloc(1, sizeof *made + (given->limiter != NULL ? given->limiter->len : 0) *
                                        sizeof made->zones[0]);
    if (made == NULL)
        return REDBUCKET_ERROR_MEMORY;
    made->store = store;
    take_zones(given->limiter, made);
    status = take_only(given, made);
    if (status == REDBUCKET_OK)
        *walk = made;
    else
        free(made);
    return status;
}

void redbucket_walk_destroy(struct redbucket_walk *walk)
{
    if (walk == NULL)
        return;
    free(walk->walk.memory);
    free(walk);
}

enum redbucket_status redbucket_walk_step(struct redbucket_walk *walk, redbucket_visitor *visit,
                                          void *data, bool *done)
{
    return walk->store->ops->walk(walk->store, &walk->walk, &(struct rbk_visit){visit, data}, done);
}
