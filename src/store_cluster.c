/* SPDX-License-Identifier: MIT */
/*
 * The redis+cluster:// store: buckets on the nodes of a Redis or Valkey cluster, found by the slots
 * of their names.
 *
 * A batch is one volley of calls when each of its requests keeps to one slot, under one deadline.
 * What threads work with is large, so one is kept for the next batch; a second thread makes its
 * own.
 */
#include "redis/cluster.h"
#include "redis/cluster_health.h"
#include "redis/tally.h"
#include "redis/tls.h"
#include "url.h"
#include "wire/colocation.h"

#include <errno.h>
#include <stdlib.h>

/* Longer keys are nobody's. */
#define KEY_MAX ((size_t)1 << 20)

struct cluster {
    struct redbucket_store store;
    struct rbk_redis_options options;
    struct rbk_tls *tls; /* or NULL */
    struct rbk_nodes nodes;
    struct rbk_tally tally;
    _Atomic(struct rbk_cluster_work *) spare; /* or NULL */
};

static struct cluster *cluster_of(struct redbucket_store *store)
{
    return (struct cluster *)store;
}

/* A child of a fork that took the one of another thread makes its own. */
static struct rbk_cluster_work *take_work(struct cluster *cluster)
{
    struct rbk_cluster_work *work = atomic_exchange(&cluster->spare, NULL);

    return work != NULL ? work : rbk_cluster_work_create(&cluster->options);
}

static void give_work(struct cluster *cluster, struct rbk_cluster_work *work)
{
    rbk_cluster_work_destroy(atomic_exchange(&cluster->spare, work));
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

static void failure(struct redbucket_store *store, struct redbucket_error *error)
{
    rbk_nodes_failure(&cluster_of(store)->nodes, error);
}

static void close_cluster(struct redbucket_store *store)
{
    struct cluster *cluster = cluster_of(store);

    rbk_cluster_work_destroy(atomic_load(&cluster->spare));
    rbk_nodes_fini(&cluster->nodes);
    rbk_tls_destroy(cluster->tls);
    free(cluster);
}

static const struct rbk_store_ops cluster_ops = {
    .decide = decide,
    .read = read_state,
    .statistics = statistics,
    .key_max = key_max,
    .apart = apart,
    .colocation = colocation,
    .check = check,
    .failure = failure,
    .close = close_cluster,
    .in_steps = true,
    .own_clock_only = true,
    .far = true,
};

/* Callers are not gathered: those who ask a node that answers must not wait for one that doesn't.
 * Nothing is connected yet: nodes that are down now must not keep a service from starting. */
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
    *store = &cluster->store;
    return REDBUCKET_OK;
}
