/* SPDX-License-Identifier: MIT */
/*
 * The interface of a store: few operations, and batches the one that counts.
 *
 * A store decides an array of independent requests, in order, each atomically over its claims. It
 * sets `status` of each; where that is OK, also `answer`, `time` and the claims' verdicts, where it
 * isn't, `failed`. Arguments were validated before: costs, limits and operations are good, keys are
 * at most `key_max` long, and no bucket is named twice in one request.
 *
 * All operations are safe from any thread.
 */
#ifndef RBK_STORE_H
#define RBK_STORE_H

#include "error.h"
#include "model/decide.h"
#include "model/key.h"

struct redbucket_store;
struct rbk_url;
struct rbk_walk;
struct rbk_visit;

/* So many zones have counters of their own. */
#define RBK_ZONES_NAMED 64u

struct rbk_request {
    struct rbk_ask ask; /* `now` is the store's to fill in */
    const struct rbk_key *keys;
    struct rbk_claim *claims;
    size_t len; /* of keys and claims, at most REDBUCKET_KEYS_MAX */
    enum redbucket_status status;
    size_t failed;
    unsigned leases; /* how many of its limits have terms of leases */
    bool degraded;   /* a failure policy answered */
    bool here;       /* a front answered it without asking the store */
    bool aside;      /* a front asks for itself: nobody counts it */
    struct rbk_answer answer;
    const bool *gone; /* becomes true when nobody waits for it any more; NULL: never */
};

/*
 * What all requests of one call have in common, in however many pieces they come to the store.
 *
 *   now     the caller's time, or NULL for the store's own; only where `own_clock_only` is false
 *   waited  seconds that the call has waited for locks or a server so far, which a store adds to,
 * so that a long array waits no longer for one that is stuck than a single request does
 */
struct rbk_batch {
    const double *now;
    double waited;
};

struct rbk_store_ops {
    void (*decide)(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                   struct rbk_batch *batch);
    enum redbucket_status (*read)(struct redbucket_store *store, const struct rbk_key *key,
                                  struct rbk_state *state);
    enum redbucket_status (*statistics)(struct redbucket_store *store,
                                        struct redbucket_statistics *statistics);
    size_t (*key_max)(const struct redbucket_store *store);

    /* Which of the store's counters are the zone's, for its claims; only the zone of the key
     * matters. 0 when it has to go without its own. */
    unsigned (*enroll)(struct redbucket_store *store, const struct rbk_key *zone);

    /* Writes what was counted of each zone, and then of all others together, which have no name;
     * there is room for REDBUCKET_ZONES_MAX. Both are NULL where no front counts zones yet. */
    enum redbucket_status (*zones)(struct redbucket_store *store,
                                   struct redbucket_zone_statistics *zones, size_t *len);

    /* A step of a walk; see redbucket_walk_step. */
    enum redbucket_status (*walk)(struct redbucket_store *store, struct rbk_walk *walk,
                                  const struct rbk_visit *visit, bool *done);

    /* False when a key of one zone could have the name of a key of the other; only the zones of `a`
     * and `b` matter. NULL where zones can't meet. */
    bool (*apart)(const struct redbucket_store *store, const struct rbk_key *a,
                  const struct rbk_key *b);

    /* Which of their buckets are decided in one step; only the zones of `a` and `b` matter. NULL
     * where all are. */
    enum redbucket_colocation (*colocation)(const struct redbucket_store *store,
                                            const struct rbk_key *a, const struct rbk_key *b);

    /* Fills in what is known of a server. NULL where there is none. */
    enum redbucket_status (*check)(struct redbucket_store *store, struct redbucket_health *health);

    /* Why the store failed last, status OK when it hasn't. NULL where there is no more to say than
     * a request's status does. */
    void (*failure)(struct redbucket_store *store, struct redbucket_error *error);

    /* With whom a request may be brought together, since a batch of them takes as long as one does:
     * those that have the same lane, as far as is known, and one lane doesn't wait for another.
     * RBK_NONE for nobody. NULL where it never pays. */
    size_t (*lane)(const struct redbucket_store *store, const struct rbk_request *request);

    /* Answers for a store that has failed, where somebody does. NULL where nobody does. */
    void (*stand_in)(struct redbucket_store *store, struct rbk_request *requests, size_t len);

    void (*close)(struct redbucket_store *store);
    size_t lanes;    /* those of `lane` are below this */
    size_t together; /* requests of one lane that take as long as one does */
    bool own_clock_only;
    bool in_steps; /* a request over several buckets may take from some and give back */
    bool far;      /* each call of `decide` costs a round trip */
};

/* What every store begins with. */
struct redbucket_store {
    const struct rbk_store_ops *ops;
    redbucket_listener *listener; /* set before the store is shared, then immutable */
    void *listener_data;
    double timeout;       /* seconds that a call of `decide` may take; 0: it waits for nobody */
    unsigned connections; /* how many calls may be under way at a time; 0: it doesn't matter */
};

/* Gives requests a status that is no answer. */
static inline void rbk_requests_fail(struct rbk_request *requests, size_t len,
                                     enum redbucket_status status)
{
    for (size_t i = 0; i < len; i++) {
        requests[i].status = status;
        requests[i].failed = RBK_NONE;
    }
}

/* Tells the host, if it wants to know. Call it holding no lock. */
void rbk_store_tell(struct redbucket_store *store, enum redbucket_event event, const char *message);

/* Opens a store by its URL; only store.c knows which. */
typedef enum redbucket_status rbk_store_opener(const struct rbk_url *url,
                                               struct redbucket_store **store,
                                               struct redbucket_error *error);

rbk_store_opener rbk_memory_open;
rbk_store_opener rbk_shm_open;
rbk_store_opener rbk_redis_open;
rbk_store_opener rbk_cluster_open;

#endif
