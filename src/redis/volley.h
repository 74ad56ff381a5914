/* SPDX-License-Identifier: MIT */
/*
 * Calls to a cluster: each goes to the node that serves its slot, all of them are on their way
 * before any reply is awaited, and redirections are followed.
 *
 * Nothing that a node may have run is sent a second time. What it said that it didn't run is sent
 * where it belongs, a few times at most; and a call that could not be sent at all is tried once
 * more when the map says by then that another node serves the slot.
 */
#ifndef RBK_REDIS_VOLLEY_H
#define RBK_REDIS_VOLLEY_H

#include "redis/errand.h"
#include "redis/nodes.h"

/* As many shots as one volley may have. */
#define RBK_VOLLEY_MAX 64u

/* One call, whose keys are all of one slot. Zeros, but for the slot and the errand, at first. */
struct rbk_shot {
    struct rbk_errand errand; /* packed */
    unsigned slot;
    struct rbk_node *node; /* whom to ask next; NULL: who serves the slot */
    bool asking;           /* that node only takes it behind an ASKING */
    unsigned hops;
    bool heard;                   /* this round's reply has been taken */
    enum redbucket_status missed; /* why `node` could not be reached in the last round, or OK */
    bool ended;                   /* out: the requests have their status */
    bool torn; /* out, then too: its keys lie on two nodes just now. Nothing ran, and the requests'
                * status is ERROR_UNAVAILABLE; keys one at a time can be asked for */
};

/* When it returns, all have ended. */
void rbk_volley(struct rbk_nodes *nodes, struct rbk_shot *shots, size_t len,
                const struct rbk_deadline *deadline);

#endif
