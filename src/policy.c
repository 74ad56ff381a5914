/* SPDX-License-Identifier: MIT */
/*
 * Answering for a store that failed. A fault of one request (a state that can't be read, a key that
 * is too long) is not the store's, and stays an error whatever the policy.
 */
#include "policy.h"

#include "front.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Seconds after which a request that was rejected unseen may try again: by then the store has been
 * tried again at least once. */
#define CLOSED_RETRY 1.0

struct policy {
    struct rbk_front front;
    struct redbucket_store *local;
    enum rbk_policy_kind kind;
    double share;
    atomic_ullong degraded; /* relaxed: a count */
    atomic_bool told;       /* of this outage; relaxed: at worst two are told */
};

static struct policy *policy_of(struct redbucket_store *store)
{
    return (struct policy *)store;
}

static bool store_failed(enum redbucket_status status)
{
    switch (status) {
    case REDBUCKET_OK:
    case REDBUCKET_ERROR_ARGUMENT:
    case REDBUCKET_ERROR_LIMIT:
    case REDBUCKET_ERROR_DUPLICATE:
    case REDBUCKET_ERROR_UNKNOWN_LIMIT:
    case REDBUCKET_ERROR_URL:
    case REDBUCKET_ERROR_KEY:
    case REDBUCKET_ERROR_STATE:
        return false;
    default:
        return true;
    }
}

static bool asks(const struct rbk_request *request)
{
    return request->ask.operation == RBK_REQUEST || request->ask.operation == RBK_PEEK;
}

/* Everybody the same. Nobody knows the levels: nothing remains, and nothing is known to drain. Nor
 * does anybody know the time by the store's clock: 0 is so long ago that giving such a permit back
 * gives nothing. */
static void answer_all(struct rbk_request *request, bool accepted)
{
    double retry_after = accepted ? 0.0 : CLOSED_RETRY;

    request->status = REDBUCKET_OK;
    request->ask.now = 0.0;
    request->answer = (struct rbk_answer){
        .accepted = accepted, .retry_after = retry_after, .decided = accepted ? RBK_NONE : 0};
    for (size_t i = 0; i < request->len; i++)
        request->claims[i].verdict =
            (struct rbk_verdict){.accepted = accepted, .retry_after = retry_after};
}

static double part(double number, double share, double least)
{
    return number * share > least ? number * share : least;
}

static void answer_locally(struct policy *policy, struct rbk_request *request)
{
    for (size_t i = 0; i < request->len; i++) {
        struct rbk_limit *limit = &request->claims[i].limit;

        limit->rate = part(limit->rate, policy->share, RBK_RATE_MIN);
        limit->burst = part(limit->burst, policy->share, 0.0);
        limit->delay = part(limit->delay, policy->share, 0.0);
    }
    policy->local->ops->decide(policy->local, request, 1, &(struct rbk_batch){.now = NULL});
}

/* What was to be changed in the store itself can only be changed there or in its stand-in. */
static void answer(struct policy *policy, struct rbk_request *request)
{
    if (policy->kind == RBK_POLICY_LOCAL)
        answer_locally(policy, request);
    else if (asks(request))
        answer_all(request, policy->kind == RBK_POLICY_OPEN);
    request->degraded = request->status == REDBUCKET_OK;
    if (!request->degraded)
        return;
    (void)atomic_fetch_add_explicit(&policy->degraded, 1, memory_order_relaxed);
    if (!atomic_exchange_explicit(&policy->told, true, memory_order_relaxed))
        rbk_store_tell(&policy->front.store, REDBUCKET_EVENT_DEGRADED,
                       "the store failed, its failure policy answers");
}

/* For who is gone, somebody else has answered already. */
static bool waits(const struct rbk_request *request)
{
    return request->gone == NULL || !*request->gone;
}

static void stand_in(struct redbucket_store *store, struct rbk_request *requests, size_t len)
{
    struct policy *policy = policy_of(store);

    for (size_t i = 0; i < len; i++) {
        if (store_failed(requests[i].status) && waits(&requests[i]))
            answer(policy, &requests[i]);
    }
}

static bool has_answered(const struct rbk_request *request)
{
    return !store_failed(request->status) && request->len > 0 && !request->here;
}

static void decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                   struct rbk_batch *batch)
{
    struct policy *policy = policy_of(store);
    bool answered = false;

    policy->front.inner->ops->decide(policy->front.inner, requests, len, batch);
    for (size_t i = 0; i < len; i++)
        answered = answered || has_answered(&requests[i]);
    if (answered && atomic_load_explicit(&policy->told, memory_order_relaxed))
        atomic_store_explicit(&policy->told, false, memory_order_relaxed);
    stand_in(store, requests, len);
}

static enum redbucket_status statistics(struct redbucket_store *store,
                                        struct redbucket_statistics *out)
{
    struct policy *policy = policy_of(store);
    enum redbucket_status status = policy->front.inner->ops->statistics(policy->front.inner, out);

    out->degraded = atomic_load_explicit(&policy->degraded, memory_order_relaxed);
    return status;
}

static size_t key_max(const struct redbucket_store *store)
{
    const struct policy *policy = (const struct policy *)store;
    size_t most = policy->front.inner->ops->key_max(policy->front.inner);
    size_t local = policy->local != NULL ? policy->local->ops->key_max(policy->local) : most;

    return local < most ? local : most;
}

static void close_policy(struct redbucket_store *store)
{
    struct policy *policy = policy_of(store);

    redbucket_store_close(policy->front.inner);
    redbucket_store_close(policy->local);
    free(policy);
}

enum redbucket_status rbk_policy_create(enum rbk_policy_kind kind, struct redbucket_store *inner,
                                        struct redbucket_store *local, double share,
                                        struct redbucket_store **store)
{
    struct policy *policy = calloc(1, sizeof *policy);

    if (policy == NULL)
        return REDBUCKET_ERROR_MEMORY;
    rbk_front_init(&policy->front, inner);
    policy->front.ops.decide = decide;
    policy->front.ops.stand_in = stand_in;
    policy->front.ops.statistics = statistics;
    policy->front.ops.key_max = key_max;
    policy->front.ops.close = close_policy;
    policy->kind = kind;
    policy->local = local;
    policy->share = share;
    *store = &policy->front.store;
    return REDBUCKET_OK;
}
