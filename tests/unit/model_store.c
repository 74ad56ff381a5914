/* SPDX-License-Identifier: MIT */
/*
 * The model as a server, and requests to it.
 */
#include "model_store.h"

#include "denial.h"
#include "test.h"

double model_here;

double model_store_clock(void)
{
    return model_here;
}

struct model_store model_store;

void model_store_decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                        struct rbk_batch *batch)
{
    (void)store;
    (void)batch;
    model_store.now += model_store.travel;
    model_here += model_store.travel;
    model_store.asked += (unsigned)len;
    for (size_t i = 0; i < len; i++) {
        struct rbk_request *request = &requests[i];

        request->status = model_store.status;
        request->failed = RBK_NONE;
        if (model_store.status != REDBUCKET_OK)
            continue;
        request->ask.now = model_store.now;
        for (size_t j = 0; j < request->len; j++)
            request->claims[j].state = model_store.states[request->keys[j].key[0]];
        rbk_decide(&request->ask, request->claims, request->len, &request->answer);
        for (size_t j = 0; j < request->len; j++) {
            if (request->claims[j].change != RBK_KEEP)
                model_store.states[request->keys[j].key[0]] = request->claims[j].state;
        }
    }
    model_store.now += model_store.travel;
    model_here += model_store.travel;
}

static enum redbucket_status inner_statistics(struct redbucket_store *store,
                                              struct redbucket_statistics *out)
{
    (void)store;
    out->rejected = 1000;
    return REDBUCKET_OK;
}

static void inner_close(struct redbucket_store *store)
{
    (void)store;
}

struct rbk_store_ops model_store_ops;

void model_store_begin(void)
{
    model_store_ops = (struct rbk_store_ops){
        .decide = model_store_decide, .statistics = inner_statistics, .close = inner_close};
    memset(&model_store, 0, sizeof model_store);
    model_store.store.ops = &model_store_ops;
    model_store.now = 1700000000.0;
    model_here = 5000.0;
}

struct redbucket_store *model_store_make(void)
{
    struct redbucket_store *store = NULL;
    struct redbucket_error error;

    model_store_begin();
    assert_int_equal(
        rbk_denial_create(&model_store.store, MODEL_DENIAL_TIME, model_store_clock, &store, &error),
        REDBUCKET_OK);
    return store;
}

void model_store_pass(double seconds)
{
    model_store.now += seconds;
    model_here += seconds;
}

const struct rbk_limit model_slow = {.rate = 1, .burst = 1};

struct model_ask *model_ask(struct model_ask *ask, enum rbk_operation operation, double cost,
                            struct rbk_limit limit, const char *buckets)
{
    size_t len = strlen(buckets);

    memset(ask, 0, sizeof *ask);
    for (size_t i = 0; i < len; i++) {
        ask->bytes[i] = (unsigned char)(buckets[i] - 'a');
        ask->keys[i] = (struct rbk_key){
            .zone = (const unsigned char *)"z", .zone_len = 1, .key = &ask->bytes[i], .key_len = 1};
        ask->claims[i].limit = limit;
    }
    ask->request = (struct rbk_request){.ask = {.operation = operation, .cost = cost},
                                        .keys = ask->keys,
                                        .claims = ask->claims,
                                        .len = len};
    return ask;
}

bool model_send(struct redbucket_store *store, struct model_ask *ask)
{
    struct rbk_batch batch = {.waited = 0.0};

    store->ops->decide(store, &ask->request, 1, &batch);
    return ask->request.status == REDBUCKET_OK && ask->request.answer.accepted;
}

bool model_request(struct redbucket_store *store, double cost, const char *buckets)
{
    struct model_ask ask;

    return model_send(store, model_ask(&ask, RBK_REQUEST, cost, model_slow, buckets));
}

/* How many requests the server was asked since last time. */
unsigned model_store_asked(void)
{
    unsigned count = model_store.asked;

    model_store.asked = 0;
    return count;
}

struct redbucket_store *model_store_rejecting(void)
{
    struct redbucket_store *store = model_store_make();

    assert_true(model_request(store, 2, "a"));
    assert_false(model_request(store, 1, "a"));
    assert_int_equal(model_store_asked(), 2);
    return store;
}
