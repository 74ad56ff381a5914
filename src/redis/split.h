/* SPDX-License-Identifier: MIT */
/*
 * A request whose buckets lie in several slots of a cluster, cut into parts of one slot each, which
 * a server decides one by one.
 *
 * What takes permits takes them part after part, in the order of the slots. When a part is rejected
 * or fails, what the parts before it took is given back, by the model's rule for that: only what
 * can't have drained since, by each server's own clock. So never more is admitted than the limits
 * allow, and for the moment in between less. What nobody can refuse, and a peek, goes to all parts
 * at once.
 *
 * Pure: which parts are due is asked, what became of them is told.
 */
#ifndef RBK_REDIS_SPLIT_H
#define RBK_REDIS_SPLIT_H

#include "store.h"

struct rbk_part {
    struct rbk_request request; /* some of the whole's keys and claims */
    unsigned slot;
    bool due;   /* to be decided next; cleared by whoever has done so */
    bool torn;  /* it could not be, since its keys are on two nodes just now */
    bool alone; /* not in one call with other requests */
};

/* Freed by rbk_split_end. Not to be moved. */
struct rbk_split {
    struct rbk_request *whole;
    struct rbk_part *parts;
    size_t parts_len;
    size_t step;          /* the part that takes next */
    bool undoing;         /* some part said no, or nothing */
    struct rbk_part only; /* the part of one that is in one slot */
    void *memory;         /* of all below, when there are more */
    struct rbk_key *keys; /* the whole's, by slot */
    struct rbk_claim *claims;
    struct rbk_claim *returned; /* for giving back */
    size_t *order;              /* where in the whole each was */
};

/* `slots` says where each key lies. The whole has at least one key. False without memory. */
bool rbk_split_begin(struct rbk_split *split, struct rbk_request *whole, const unsigned *slots);

/* All parts that were due have been decided, or were torn. Returns true when there are parts due
 * again. */
bool rbk_split_advance(struct rbk_split *split);

/* True while it may still take something that would have to be given back. */
bool rbk_split_takes(const struct rbk_split *split);

/* Tells the whole what became of it, and frees what was needed. */
void rbk_split_end(struct rbk_split *split);

#endif
