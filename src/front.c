/* SPDX-License-Identifier: MIT */
/*
 * Passing on. An operation that the inner store doesn't have, its front doesn't have either.
 */
#include "front.h"

static struct redbucket_store *inner_of(const struct redbucket_store *store)
{
    return ((const struct rbk_front *)store)->inner;
}

static enum redbucket_status read_state(struct redbucket_store *store, const struct rbk_key *key,
                                        struct rbk_state *state)
{
    return inner_of(store)->ops->read(inner_of(store), key, state);
}

static enum redbucket_status statistics(struct redbucket_store *store,
                                        struct redbucket_statistics *out)
{
    return inner_of(store)->ops->statistics(inner_of(store), out);
}

static unsigned enroll(struct redbucket_store *store, const struct rbk_key *zone)
{
    return inner_of(store)->ops->enroll(inner_of(store), zone);
}

static enum redbucket_status zones(struct redbucket_store *store,
                                   struct redbucket_zone_statistics *out, size_t *len)
{
    return inner_of(store)->ops->zones(inner_of(store), out, len);
}

static enum redbucket_status walk(struct redbucket_store *store, struct rbk_walk *from,
                                  const struct rbk_visit *visit, bool *done)
{
    return inner_of(store)->ops->walk(inner_of(store), from, visit, done);
}

static size_t key_max(const struct redbucket_store *store)
{
    return inner_of(store)->ops->key_max(inner_of(store));
}

static bool apart(const struct redbucket_store *store, const struct rbk_key *a,
                  const struct rbk_key *b)
{
    return inner_of(store)->ops->apart(inner_of(store), a, b);
}

static enum redbucket_colocation colocation(const struct redbucket_store *store,
                                            const struct rbk_key *a, const struct rbk_key *b)
{
    return inner_of(store)->ops->colocation(inner_of(store), a, b);
}

static enum redbucket_status check(struct redbucket_store *store, struct redbucket_health *health)
{
    return inner_of(store)->ops->check(inner_of(store), health);
}

static void failure(struct redbucket_store *store, struct redbucket_error *error)
{
    inner_of(store)->ops->failure(inner_of(store), error);
}

static size_t lane(const struct redbucket_store *store, const struct rbk_request *request)
{
    return inner_of(store)->ops->lane(inner_of(store), request);
}

static void pass_on(void *data, enum redbucket_event event, const char *message)
{
    rbk_store_tell(data, event, message);
}

void rbk_front_init(struct rbk_front *front, struct redbucket_store *inner)
{
    const struct rbk_store_ops *ops = inner->ops;

    *front = (struct rbk_front){.inner = inner};
    front->ops = (struct rbk_store_ops){
        .read = read_state,
        .statistics = statistics,
        .key_max = key_max,
        .walk = walk,
        .enroll = ops->enroll != NULL ? enroll : NULL,
        .zones = ops->zones != NULL ? zones : NULL,
        .apart = ops->apart != NULL ? apart : NULL,
        .colocation = ops->colocation != NULL ? colocation : NULL,
        .check = ops->check != NULL ? check : NULL,
        .failure = ops->failure != NULL ? failure : NULL,
        .lane = ops->lane != NULL ? lane : NULL,
        .lanes = ops->lanes,
        .together = ops->together,
        .in_steps = ops->in_steps,
        .own_clock_only = ops->own_clock_only,
        .far = ops->far,
    };
    front->store.ops = &front->ops;
    front->store.timeout = inner->timeout;
    front->store.connections = inner->connections;
    redbucket_store_listen(inner, pass_on, &front->store);
}
