/* SPDX-License-Identifier: MIT */
/*
 * The redis:// and redis+sentinel:// stores: buckets on one Redis or Valkey server, shared by every
 * process and machine.
 *
 * A batch is one round trip on one connection, under one deadline. Whatever goes wrong with it is
 * the status of its requests; nothing is sent a second time, but a script that the server said it
 * doesn't know.
 */
#include "redis/errand.h"
#include "redis/health.h"
#include "redis/master.h"
#include "redis/method.h"
#include "redis/options.h"
#include "redis/pool.h"
#include "redis/scan.h"
#include "redis/tally.h"
#include "redis/tls.h"
#include "url.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Longer keys are nobody's. */
#define KEY_MAX ((size_t)1 << 20)

struct redis {
    struct redbucket_store store;
    struct rbk_redis_options options;
    struct rbk_tls *tls;       /* or NULL */
    struct rbk_master *master; /* that sentinels name, or NULL */
    struct rbk_pool pool;
    struct rbk_tally tally;
    atomic_bool one_by_one; /* by transaction; a hint, relaxed */
};

static struct redis *redis_of(struct redbucket_store *store)
{
    return (struct redis *)store;
}

static enum redbucket_status by_method(struct redis *redis, struct rbk_use *use,
                                       struct rbk_request *requests, size_t len)
{
    bool one_by_one = use->peer->by_transaction;

    if (one_by_one != atomic_load_explicit(&redis->one_by_one, memory_order_relaxed))
        atomic_store_explicit(&redis->one_by_one, one_by_one, memory_order_relaxed);
    return one_by_one ? rbk_transaction_decide(use, requests, len)
                      : rbk_script_decide(use, requests, len);
}

/* As many requests as go in one round trip; returns how many. */
static size_t decide_some(struct redis *redis, struct rbk_request *requests, size_t len,
                          const struct rbk_deadline *deadline)
{
    struct rbk_use use = {.pool = &redis->pool, .deadline = deadline};
    size_t claims;
    size_t some = rbk_script_fit(requests, len, &claims);

    if (claims == 0)
        return some;
    enum redbucket_status status = rbk_pool_take(&redis->pool, deadline, &use.peer);

    if (status != REDBUCKET_OK) {
        rbk_requests_fail(requests, some, status);
    } else {
        status = by_method(redis, &use, requests, some);
        rbk_pool_give(&redis->pool, use.peer, status, use.usable);
    }
    return some;
}

static void decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                   struct rbk_batch *batch)
{
    struct redis *redis = redis_of(store);
    struct rbk_deadline deadline;
    double left = redis->options.timeout - batch->waited;

    rbk_deadline_start(&deadline, left > 0.0 ? left : 0.0);
    for (size_t done = 0; done < len;)
        done += decide_some(redis, requests + done, len - done, &deadline);
    rbk_requests_decide_here(requests, len);
    batch->waited = redis->options.timeout - rbk_deadline_left(&deadline);
    rbk_tally_add(&redis->tally, requests, len);
}

/* A connection for one use that isn't a decision, with all of the timeout before it. */
static enum redbucket_status borrow(struct redis *redis, struct rbk_deadline *deadline,
                                    struct rbk_use *use)
{
    *use = (struct rbk_use){.pool = &redis->pool, .deadline = deadline};
    rbk_deadline_start(deadline, redis->options.timeout);
    return rbk_pool_take(&redis->pool, deadline, &use->peer);
}

static enum redbucket_status read_state(struct redbucket_store *store, const struct rbk_key *key,
                                        struct rbk_state *state)
{
    struct redis *redis = redis_of(store);
    struct rbk_deadline deadline;
    struct rbk_use use;
    enum redbucket_status status = borrow(redis, &deadline, &use);

    if (status != REDBUCKET_OK)
        return status;
    status = rbk_method_read(&use, key, state);
    rbk_pool_give(&redis->pool, use.peer, status, use.usable);
    return status;
}

static enum redbucket_status walk(struct redbucket_store *store, struct rbk_walk *from,
                                  const struct rbk_visit *visit, bool *done)
{
    struct redis *redis = redis_of(store);
    struct rbk_deadline deadline;

    rbk_deadline_start(&deadline, redis->options.timeout);
    return rbk_scan_pool(&redis->pool, &deadline, from, visit, done);
}

static enum redbucket_status statistics(struct redbucket_store *store,
                                        struct redbucket_statistics *out)
{
    rbk_tally_read(&redis_of(store)->tally, out);
    return REDBUCKET_OK;
}

static enum redbucket_status check(struct redbucket_store *store, struct redbucket_health *health)
{
    struct redis *redis = redis_of(store);
    struct rbk_deadline deadline;
    struct rbk_use use;
    enum redbucket_status status = borrow(redis, &deadline, &use);

    if (status != REDBUCKET_OK)
        return status;
    status = rbk_health_ask(&use, health);
    rbk_pool_give(&redis->pool, use.peer, status, use.usable);
    return status;
}

static size_t key_max(const struct redbucket_store *store)
{
    (void)store;
    return KEY_MAX;
}

static bool apart(const struct redbucket_store *store, const struct rbk_key *a,
                  const struct rbk_key *b)
{
    return rbk_key_format_apart(&((const struct redis *)store)->options.key_format, a, b);
}

/* By transaction a batch takes as long as its requests one after the other. */
static size_t lane(const struct redbucket_store *store, const struct rbk_request *request)
{
    const struct redis *redis = (const struct redis *)store;

    (void)request;
    return redis->options.method == RBK_METHOD_TRANSACTION ||
                   atomic_load_explicit(&redis->one_by_one, memory_order_relaxed)
               ? RBK_NONE
               : 0;
}

static void failure(struct redbucket_store *store, struct redbucket_error *error)
{
    rbk_pool_last(&redis_of(store)->pool, error);
}

static void close_redis(struct redbucket_store *store)
{
    struct redis *redis = redis_of(store);

    rbk_pool_fini(&redis->pool);
    rbk_master_destroy(redis->master);
    rbk_tls_destroy(redis->tls);
    free(redis);
}

static const struct rbk_store_ops redis_ops = {
    .decide = decide,
    .read = read_state,
    .walk = walk,
    .statistics = statistics,
    .key_max = key_max,
    .apart = apart,
    .check = check,
    .failure = failure,
    .lane = lane,
    .close = close_redis,
    .lanes = 1,
    .together = (size_t)RBK_CALLS_MAX * RBK_CALL_REQUESTS,
    .own_clock_only = true,
    .far = true,
};

static enum redbucket_status init_pool(struct redis *redis, struct redbucket_error *error)
{
    struct rbk_pool_config config = {.options = &redis->options,
                                     .endpoint = &redis->options.hosts[0],
                                     .tls = redis->tls,
                                     .store = &redis->store};

    if (redis->options.kind == RBK_KIND_SENTINEL) {
        enum redbucket_status status =
            rbk_master_create(&redis->options, redis->tls, &redis->master, error);

        if (status != REDBUCKET_OK)
            return status;
        config.endpoint = NULL;
        config.master = redis->master;
    }
    return rbk_pool_init(&redis->pool, &config, error);
}

/* Nothing is connected yet: a server that is down now must not keep a service from starting. */
enum redbucket_status rbk_redis_open(const struct rbk_url *url, struct redbucket_store **store,
                                     struct redbucket_error *error)
{
    struct redis *redis = calloc(1, sizeof *redis);

    if (redis == NULL)
        return rbk_fail_system(error, ENOMEM, "redis: store");
    redis->store.ops = &redis_ops;
    enum redbucket_status status = rbk_redis_options_parse(url, &redis->options, error);

    if (status == REDBUCKET_OK)
        status = rbk_tls_create(&redis->options, &redis->tls, error);
    if (status == REDBUCKET_OK)
        status = init_pool(redis, error);
    if (status != REDBUCKET_OK) {
        close_redis(&redis->store);
        return status;
    }
    redis->store.timeout = redis->options.timeout;
    redis->store.connections = redis->options.connections;
    *store = &redis->store;
    return REDBUCKET_OK;
}
