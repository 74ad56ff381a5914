/* SPDX-License-Identifier: MIT */
/*
 * A store in front of another, which changes some of what it does and passes on the rest.
 *
 * Whoever makes one begins its struct with this, and sets those operations in `ops` that are its
 * own: `decide` and `close` at least. Events of the inner store are told as the front's.
 */
#ifndef RBK_FRONT_H
#define RBK_FRONT_H

#include "store.h"

struct rbk_front {
    struct redbucket_store store;
    struct rbk_store_ops ops;
    struct redbucket_store *inner;
};

/* `inner` is the front's from now on. */
void rbk_front_init(struct rbk_front *front, struct redbucket_store *inner);

#endif
