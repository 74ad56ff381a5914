/* SPDX-License-Identifier: MIT */
/*
 * The connections of a store to one place: at most so many, each lent to one thread at a time.
 *
 * A caller gets an idle connection that is still good, or a new one, or waits for one until its
 * deadline. A child process after fork begins with none: it closes its copies of its parent's
 * descriptors and says nothing on them.
 */
#ifndef RBK_REDIS_POOL_H
#define RBK_REDIS_POOL_H

#include "bell.h"
#include "redis/circuit.h"
#include "redis/connection.h"
#include "redis/options.h"
#include "redis/server.h"
#include "store.h"
#include "wire/call.h"

#include <pthread.h>

#define RBK_POOL_MAX 1024u

/* Calls of one round trip on one connection. */
#define RBK_CALLS_MAX 8

/* A connection, what is behind it, and what a caller works with. */
struct rbk_peer {
    struct rbk_connection *connection; /* NULL: not connected */
    struct rbk_server server;
    bool by_transaction;
    bool lent;
    bool hurried;        /* who has it had less than half of its time left */
    unsigned probe;      /* the circuit's ticket of who has it */
    unsigned generation; /* of the master, where one is followed */
    struct rbk_call call;
    struct rbk_call *more; /* RBK_CALLS_MAX - 1 of them, once a long array needed some, or NULL */
};

struct rbk_master;

/* In memory that a child finds cleared. */
struct rbk_pool_live {
    pthread_mutex_t mutex;
    struct rbk_bell returned;
    bool here; /* clear: this is a child that has not looked yet */
};

struct rbk_pool {
    const struct rbk_redis_options *options;
    struct rbk_transport *transport; /* or NULL, and then there is a master */
    struct rbk_master *master;       /* or NULL */
    struct redbucket_store *store;   /* whom to tell of events, or NULL */
    struct rbk_pool_live *live;
    struct rbk_peer *peers; /* options->connections of them; guarded by live->mutex, as all below */
    struct rbk_circuit circuit;
    uint64_t random;
    struct redbucket_error last; /* why the server could not be used last */
    enum redbucket_status down;  /* what opened the circuit last */
    bool told;                   /* that it is open; else that it is closed, or nothing so far */
    bool telling;                /* a thread is at it */
};

/*
 * What a pool is made of. All is borrowed and outlives the pool, but for the endpoint, which is
 * copied. Pools of one store share options and certificates.
 */
struct rbk_pool_config {
    const struct rbk_redis_options *options;
    const struct rbk_endpoint *endpoint; /* whom to connect to, or NULL for the */
    struct rbk_master *master;           /* of a service */
    struct rbk_tls *tls;                 /* or NULL */
    struct redbucket_store *store;       /* whom to tell of events, or NULL */
};

/* ERROR_MEMORY, ERROR_SYSTEM, ERROR_UNSUPPORTED; then, too, it is ended by rbk_pool_fini. Connects
 * to nobody yet. */
enum redbucket_status rbk_pool_init(struct rbk_pool *pool, const struct rbk_pool_config *config,
                                    struct redbucket_error *error);
void rbk_pool_fini(struct rbk_pool *pool);

/* Lends a connected peer. ERROR_UNAVAILABLE at once while the circuit is open. ERROR_TIMEOUT leaves
 * nobody a connection that has no time to use it. */
enum redbucket_status rbk_pool_take(struct rbk_pool *pool, const struct rbk_deadline *deadline,
                                    struct rbk_peer **taken);

/* The same, but waiting for a connection, or making one, ends earlier. */
enum redbucket_status rbk_pool_take_by(struct rbk_pool *pool, const struct rbk_deadline *deadline,
                                       const struct rbk_deadline *ready, struct rbk_peer **taken);

/* False when the server is known to be down, and whoever asks it next is the one to find out
 * whether it still is. */
bool rbk_pool_is_up(struct rbk_pool *pool);

/*
 * Takes it back. `status` is how the use of it went: OK, or an answer of the server after which the
 * connection goes on being good (`usable`); anything else closes it. A time-out opens the circuit,
 * unless half of the time had gone before the peer was lent, and so does a server that says that
 * it can't serve.
 */
void rbk_pool_give(struct rbk_pool *pool, struct rbk_peer *peer, enum redbucket_status status,
                   bool usable);

/* Keeps a message of the server's for rbk_pool_last. */
void rbk_pool_note(struct rbk_pool *pool, enum redbucket_status status, const char *message);

/* Copies why the server could not be used last. */
void rbk_pool_last(struct rbk_pool *pool, struct redbucket_error *error);

/* One of the calls that whoever has the peer may use, from 0 to RBK_CALLS_MAX - 1; NULL without
 * memory, but never for the first. They live as long as the pool. */
struct rbk_call *rbk_peer_call(const struct rbk_pool *pool, struct rbk_peer *peer, size_t number);

/* A random number, for back-off. */
uint32_t rbk_pool_random(struct rbk_pool *pool);

#endif
