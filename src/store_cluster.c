/* SPDX-License-Identifier: MIT */
/*
 * The redis+cluster:// store: buckets on the nodes of a Redis or Valkey cluster, found by the slots
 * of their names.
 *
 * A batch is one volley of calls when each of its requests keeps to one slot, under one deadline.
 * What threads work with is large, so some are kept for the next batches; when more threads than
 * that are at it, they make their own.
 */
#include "redis/cluster.h"
#include "redis/cluster_health.h"
#include "redis/cluster_walk.h"
#include "redis/tally.h"
#include "redis/tls.h"
#include "url.h"
#include "wire/colocation.h"
#include "wire/slot.h"

#include <errno.h>
#include <stdlib.h>

/* Longer keys are nobody's. */
#define KEY_MAX ((size_t)1 << 20)

/* Buckets of longer names are not gathered. */
#define LANE_NAME_MAX 512u

/* Threads that find what they work with already there. */
#define SPARES_MAX 8u

struct cluster {
    struct redbucket_store store;
    struct rbk_redis_options options;
    struct rbk_tls *tls; /* or NULL */
    struct rbk_nodes nodes;
    struct rbk_tally tally;
    _Atomic(struct rbk_cluster_work *) spares[SPARES_MAX]; /* or NULL */
};

static struct cluster *cluster_of(struct redbucket_store *store)
{
    return (struct cluster *)store;
}

/* A child of a fork that took the one of another thread makes its own. */
static struct rbk_cluster_work *take_work(struct cluster *cluster)
{
    struct rbk_cluster_work *work = NULL;

    for (size_t i = 0; i < SPARES_MAX && work == NULL; i++) {
        if (atomic_load_explicit(&cluster->spares[i], memory_order_relaxed) != NULL)
            work = atomic_exchange(&cluster->spares[i], NULL);
    }
    return work != NULL ? work : rbk_cluster_work_create(&cluster->options);
}

static void give_work(struct cluster *cluster, struct rbk_cluster_work *work)
{
    for (size_t i = 0; i < SPARES_MAX && work != NULL; i++) {
        struct rbk_cluster_work *none = NULL;

        if (atomic_compare_exchange_strong(&cluster->spares[i], &none, work))
            work = NULL;
    }
    rbk_cluster_work_destroy(work);
}

static void decide_there(struct cluster *cluster, struct rbk_request *requests, size_t len,
                         const struct rbk_deadline *deadline)
{
    struct rbk_cluster_work *work = take_work(cluster);

    if (work == NULL) {
        rbk_requests_fail(requests, len, REDBUCKET_ERROR_MEMORY);
        return;
    }
    rbk_nodes_enter(&cluster->nodes);
    for (size_t done = 0; done < len;) {
        size_t some = len - done < RBK_CLUSTER_MAX ? len - done : RBK_CLUSTER_MAX;

        done += rbk_cluster_decide(&cluster->nodes, work, requests + done, some, deadline);
    }
    give_work(cluster, work);
}

static void decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                   struct rbk_batch *batch)
{
    struct cluster *cluster = cluster_of(store);
    struct rbk_deadline deadline;
    double left = cluster->options.timeout - batch->waited;

    rbk_deadline_start(&deadline, left > 0.0 ? left : 0.0);
    decide_there(cluster, requests, len, &deadline);
    rbk_requests_decide_here(requests, len);
    batch->waited = cluster->options.timeout - rbk_deadline_left(&deadline);
    rbk_tally_add(&cluster->tally, requests, len);
}

/* By a peek, whose answer brings the state as it is; what the limit is doesn't matter to that. */
static enum redbucket_status read_state(struct redbucket_store *store, const struct rbk_key *key,
                                        struct rbk_state *state)
{
    struct cluster *cluster = cluster_of(store);
    struct rbk_claim claim = {.limit = {.rate = 1.0}};
    struct rbk_request request = {
        .ask = {.operation = RBK_PEEK, .cost = 1.0}, .keys = key, .claims = &claim, .len = 1};
    struct rbk_deadline deadline;

    rbk_deadline_start(&deadline, cluster->options.timeout);
    decide_there(cluster, &request, 1, &deadline);
    *state = claim.state;
    return request.status;
}

static enum redbucket_status walk(struct redbucket_store *store, struct rbk_walk *from,
                                  const struct rbk_visit *visit, bool *done)
{
    struct cluster *cluster = cluster_of(store);
    struct rbk_deadline deadline;

    rbk_nodes_enter(&cluster->nodes);
    rbk_deadline_start(&deadline, cluster->options.timeout);
    return rbk_cluster_walk(&cluster->nodes, &deadline, from, visit, done);
}

static enum redbucket_status statistics(struct redbucket_store *store,
                                        struct redbucket_statistics *out)
{
    rbk_tally_read(&cluster_of(store)->tally, out);
    return REDBUCKET_OK;
}

static enum redbucket_status check(struct redbucket_store *store, struct redbucket_health *health)
{
    struct cluster *cluster = cluster_of(store);
    struct rbk_deadline deadline;

    rbk_nodes_enter(&cluster->nodes);
    rbk_deadline_start(&deadline, cluster->options.timeout);
    return rbk_cluster_check(&cluster->nodes, &deadline, health);
}

static size_t key_max(const struct redbucket_store *store)
{
    (void)store;
    return KEY_MAX;
}

static bool apart(const struct redbucket_store *store, const struct rbk_key *a,
                  const struct rbk_key *b)
{
    return rbk_key_format_apart(&((const struct cluster *)store)->options.key_format, a, b);
}

static enum redbucket_colocation colocation(const struct redbucket_store *store,
                                            const struct rbk_key *a, const struct rbk_key *b)
{
    return rbk_colocation(&((const struct cluster *)store)->options.key_format, a, b);
}

/* The slot of a bucket; RBK_SLOTS when its name is too long to be looked at here. */
static unsigned slot_of(const struct cluster *cluster, const struct rbk_key *key)
{
    const struct rbk_key_format *format = &cluster->options.key_format;
    unsigned char name[LANE_NAME_MAX];
    size_t len = rbk_key_format_len(format, key);

    if (len > sizeof name)
        return RBK_SLOTS;
    rbk_key_format_write(format, key, name);
    return rbk_slot_of(name, len);
}

/* The node that is asked. What takes in steps takes several calls, and others would wait for all of
 * them. */
static size_t lane(const struct redbucket_store *store, const struct rbk_request *request)
{
    const struct cluster *cluster = (const struct cluster *)store;
    unsigned slot = request->len > 0 ? slot_of(cluster, &request->keys[0]) : RBK_SLOTS;

    for (size_t i = 1; i < request->len && slot < RBK_SLOTS; i++) {
        if (slot_of(cluster, &request->keys[i]) != slot)
            slot = RBK_SLOTS;
    }
    return slot < RBK_SLOTS ? rbk_nodes_number(&cluster->nodes, slot) : RBK_NONE;
}

static void failure(struct redbucket_store *store, struct redbucket_error *error)
{
    rbk_nodes_failure(&cluster_of(store)->nodes, error);
}

static void close_cluster(struct redbucket_store *store)
{
    struct cluster *cluster = cluster_of(store);

    for (size_t i = 0; i < SPARES_MAX; i++)
        rbk_cluster_work_destroy(atomic_load(&cluster->spares[i]));
    rbk_nodes_fini(&cluster->nodes);
    rbk_tls_destroy(cluster->tls);
    free(cluster);
}

static const struct rbk_store_ops cluster_ops = {
    .decide = decide,
    .read = read_state,
    .walk = walk,
    .statistics = statistics,
    .key_max = key_max,
    .apart = apart,
    .colocation = colocation,
    .check = check,
    .failure = failure,
    .lane = lane,
    .close = close_cluster,
    .lanes = RBK_PLACES_MAX,
    .together = RBK_CLUSTER_MAX,
    .in_steps = true,
    .own_clock_only = true,
    .far = true,
};

/* Nothing is connected yet: nodes that are down now must not keep a service from starting. */
enum redbucket_status rbk_cluster_open(const struct rbk_url *url, struct redbucket_store **store,
                                       struct redbucket_error *error)
{
    struct cluster *cluster = calloc(1, sizeof *cluster);
    struct rbk_pool_config config;
    enum redbucket_status status;

    if (cluster == NULL)
        return rbk_fail_system(error, ENOMEM, "redis: store");
    cluster->store.ops = &cluster_ops;
    config = (struct rbk_pool_config){.options = &cluster->options, .store = &cluster->store};
    status = rbk_redis_options_parse(url, &cluster->options, error);
    if (status == REDBUCKET_OK)
        status = rbk_tls_create(&cluster->options, &cluster->tls, error);
    config.tls = cluster->tls;
    if (status == REDBUCKET_OK)
        status = rbk_nodes_init(&cluster->nodes, &config, error);
    if (status != REDBUCKET_OK) {
        close_cluster(&cluster->store);
        return status;
    }
    cluster->store.timeout = cluster->options.timeout;
    cluster->store.connections = cluster->options.connections;
    *store = &cluster->store;
    return REDBUCKET_OK;
}
