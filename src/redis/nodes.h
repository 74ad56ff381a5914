/* SPDX-License-Identifier: MIT */
/*
 * The nodes of a cluster, each with its own connections, and which of them serves which slot.
 *
 * Where the slots are is learnt from any node by CLUSTER SLOTS, and one by one from redirections. A
 * map that turns out to be old is read anew by whoever comes next, at most every tenth of a second;
 * everybody else goes on with what there is, since a node that is wrongly asked says so.
 *
 * Nodes are never forgotten before the store is closed: who holds one needs no lock. The map is
 * read without one as well; a mixture of an old and a new one is only another old one.
 */
#ifndef RBK_REDIS_NODES_H
#define RBK_REDIS_NODES_H

#include "redis/pool.h"
#include "wire/redirect.h"
#include "wire/topology.h"

#include <stdatomic.h>

struct rbk_node {
    struct rbk_place place;
    size_t number; /* in the order in which whoever needs several has to borrow of them */
    struct rbk_pool pool;
};

struct rbk_nodes_live;

struct rbk_nodes {
    const struct rbk_redis_options *options;
    struct rbk_tls *tls;
    struct redbucket_store *store;
    struct rbk_nodes_live *live;
    _Atomic(struct rbk_node *) at[RBK_PLACES_MAX];
    atomic_size_t len;
    _Atomic(uint16_t) owner[RBK_SLOTS]; /* an index of `at`, or RBK_NO_OWNER */
    atomic_size_t turn;                 /* whom to ask next when anybody will do */
    atomic_bool stale;
    _Atomic(double) tried;             /* when the map was last asked for */
    _Atomic(struct rbk_node *) failed; /* the last that did */
};

/* All is borrowed and outlives it. Connects to nobody. ERROR_MEMORY, ERROR_SYSTEM,
 * ERROR_UNSUPPORTED; then, too, it is ended by rbk_nodes_fini. */
enum redbucket_status rbk_nodes_init(struct rbk_nodes *nodes, const struct rbk_pool_config *config,
                                     struct redbucket_error *error);
void rbk_nodes_fini(struct rbk_nodes *nodes);

/* To be called before anything else is done with them: a child closes its copies of its parent's
 * connections, to all nodes. */
void rbk_nodes_enter(struct rbk_nodes *nodes);

/* Who serves the slot, as far as is known; any node when it isn't, who will tell. Never NULL. */
struct rbk_node *rbk_nodes_owner(struct rbk_nodes *nodes, unsigned slot);

/* The number of whoever serves the slot, as far as is known; RBK_NONE when it isn't. */
size_t rbk_nodes_number(const struct rbk_nodes *nodes, unsigned slot);

/* The node that a redirection names; with MOVED, the slot is its from now on. NULL without memory,
 * or when there are more places than a cluster can have. */
struct rbk_node *rbk_nodes_redirected(struct rbk_nodes *nodes, const struct rbk_redirect *redirect);

/* The node at a place, which may be a new one. NULL as above. */
struct rbk_node *rbk_nodes_at(struct rbk_nodes *nodes, const struct rbk_place *place);

/* Somebody met what the map doesn't tell. */
void rbk_nodes_doubt(struct rbk_nodes *nodes);

/* Reads the map anew if somebody doubts it and nobody has just tried. Leaves a third of the time.
 */
void rbk_nodes_refresh(struct rbk_nodes *nodes, const struct rbk_deadline *deadline);

/* Reads the map now, for whoever wants to know: `out` has been initialized. ERROR_UNAVAILABLE, or
 * why the last node that was asked had no answer. */
enum redbucket_status rbk_nodes_ask(struct rbk_nodes *nodes, const struct rbk_deadline *deadline,
                                    struct rbk_topology *out);

/* Remembers who failed, for rbk_nodes_failure. */
void rbk_nodes_blame(struct rbk_nodes *nodes, struct rbk_node *node);

/* Copies why a node could not be used last, its place first; status OK when that hasn't been. */
void rbk_node_failure(struct rbk_node *node, struct redbucket_error *error);

/* The same of whoever failed last. */
void rbk_nodes_failure(const struct rbk_nodes *nodes, struct redbucket_error *error);

#endif
