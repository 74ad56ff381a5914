/* SPDX-License-Identifier: MIT */
/*
 * Leases in front of the model.
 */
#include "leased.h"

#include "denial.h"
#include "test.h"

const struct rbk_lease_terms leased_terms = {10000.0, 1.0};

void leased_begin(bool one_server)
{
    model_store_begin();
    model_store_ops.lanes = one_server ? 1 : 2;
    model_store.store.timeout = LEASED_TIMEOUT;
}
const struct rbk_limit leased_large = {.rate = 1e-6, .burst = 1e6};

static struct redbucket_store *join(struct redbucket_store *inner)
{
    struct redbucket_store *store = NULL;
    struct redbucket_error error;

    assert_int_equal(rbk_lease_create(inner, model_store_clock, &store, &error), REDBUCKET_OK);
    return store;
}

struct redbucket_store *leased_join(void)
{
    return join(&model_store.store);
}

struct redbucket_store *leased_join_denying(void)
{
    struct redbucket_store *inner = NULL;
    struct redbucket_error error;

    assert_int_equal(
        rbk_denial_create(&model_store.store, MODEL_DENIAL_TIME, model_store_clock, &inner, &error),
        REDBUCKET_OK);
    return join(inner);
}

struct model_ask *leased_ask(struct model_ask *ask, enum rbk_operation operation, double cost,
                             struct rbk_limit limit, const char *buckets)
{
    (void)model_ask(ask, operation, cost, limit, buckets);
    for (size_t i = 0; i < ask->request.len; i++)
        ask->claims[i].lease = &leased_terms;
    ask->request.leases = (unsigned)ask->request.len;
    return ask;
}

bool leased_request(struct redbucket_store *store, double cost, struct rbk_limit limit,
                    const char *buckets)
{
    struct model_ask ask;

    return model_send(store, leased_ask(&ask, RBK_REQUEST, cost, limit, buckets));
}

void leased_warm(struct redbucket_store *store, struct rbk_limit limit, const char *bucket)
{
    bool held = false;

    for (int i = 0; i < 100 && !held; i++) {
        (void)model_store_asked();
        assert_true(leased_request(store, 1, limit, bucket));
        held = model_store_asked() == 2;
    }
    assert_true(held);
}

double leased_level(struct rbk_limit limit, char bucket)
{
    return rbk_level(&limit, &model_store.states[bucket - 'a'], model_store.now);
}

struct redbucket_store *leased_store;

int leased_setup(void **state)
{
    (void)state;
    leased_begin(true);
    leased_store = leased_join();
    return 0;
}

int leased_teardown(void **state)
{
    (void)state;
    redbucket_store_close(leased_store);
    return 0;
}

unsigned leased_asked_for(double cost, const char *buckets)
{
    (void)model_store_asked();
    assert_true(leased_request(leased_store, cost, leased_large, buckets));
    return model_store_asked();
}
