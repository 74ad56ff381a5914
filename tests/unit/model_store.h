/* SPDX-License-Identifier: MIT */
/*
 * A server that is nothing but the model, behind a denial cache, with two clocks that a test moves:
 * the server's, and the one here.
 */
#ifndef TEST_MODEL_STORE_H
#define TEST_MODEL_STORE_H

#include "store.h"

#define MODEL_BUCKETS     5
#define MODEL_DENIAL_TIME 1.0

/* What the server holds, and how it is. */
struct model_store {
    struct redbucket_store store;
    struct rbk_state states[MODEL_BUCKETS];
    double now;
    double travel; /* from sending to deciding, and back, seconds by both clocks */
    unsigned asked;
    enum redbucket_status status; /* of every request */
};

extern struct model_store model_store;
extern struct rbk_store_ops model_store_ops;
extern double model_here;

double model_store_clock(void);
void model_store_decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                        struct rbk_batch *batch);

/* An empty server; and one behind a cache. */
void model_store_begin(void);
struct redbucket_store *model_store_make(void);

/* Time goes by, for both. */
void model_store_pass(double seconds);

/* How many requests the server was asked since last time. */
unsigned model_store_asked(void);

/* One a second, and two at once. */
extern const struct rbk_limit model_slow;

/* For the buckets a to e; each letter is a key. */
struct model_ask {
    struct rbk_request request;
    struct rbk_key keys[8];
    struct rbk_claim claims[8];
    unsigned char bytes[8];
};

struct model_ask *model_ask(struct model_ask *ask, enum rbk_operation operation, double cost,
                            struct rbk_limit limit, const char *buckets);

/* True when it was accepted. */
bool model_send(struct redbucket_store *store, struct model_ask *ask);
bool model_request(struct redbucket_store *store, double cost, const char *buckets);

/* One that has just rejected a request of cost 1 for bucket a. */
struct redbucket_store *model_store_rejecting(void);

#endif
