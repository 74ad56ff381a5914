/* SPDX-License-Identifier: MIT */
/*
 * Which node of a cluster serves which slot, out of a node's answer to CLUSTER SLOTS, as Redis from
 * 3.0 and Valkey give it.
 *
 * Invariant: each owner is a master's place, each place is there once, and there are no more than
 * RBK_PLACES_MAX. An answer is taken as a whole or not at all.
 */
#ifndef RBK_WIRE_TOPOLOGY_H
#define RBK_WIRE_TOPOLOGY_H

#include "redbucket/redbucket.h"
#include "wire/place.h"
#include "wire/slot.h"

#include <stdint.h>

/* As many nodes as a cluster is meant to have at most. */
#define RBK_PLACES_MAX 1024u
#define RBK_NO_OWNER   UINT16_MAX

struct rbk_topology {
    struct rbk_place *places; /* masters first, replicas behind them */
    size_t places_len;
    size_t masters_len;
    uint16_t owner[RBK_SLOTS]; /* which of the masters' places, or RBK_NO_OWNER */
};

/* No places, and no slot served. */
void rbk_topology_init(struct rbk_topology *topology);
void rbk_topology_fini(struct rbk_topology *topology);

/*
 * Reads an answer of the node at `asked`, whose host is meant where none is named; what `out` held
 * is replaced. ERROR_PROTOCOL, and nothing is changed, when the answer says something impossible:
 * a slot out of range or with two masters, a host or port that can't be one, too many places, or
 * nothing at all. ERROR_MEMORY.
 *
 * A node whose port is 0 has none of the kind that was asked through (a cluster that speaks TLS and
 * plain text, not everywhere both): it has no place, and its slots no owner.
 */
enum redbucket_status rbk_topology_read(const struct rbk_reply *cluster_slots_reply,
                                        const struct rbk_place *asked, struct rbk_topology *out);

#endif
