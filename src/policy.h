/* SPDX-License-Identifier: MIT */
/*
 * Failure policies: who answers when a store can't.
 *
 *   fail    nobody: the request has an error of its own (the default; no policy store is made)
 *   open    everybody is accepted
 *   closed  everybody is rejected, to come back in a second
 *   local   an embedded table with the same limits, or a share of them, until the store is back
 *
 * A policy is a store in front of another. It asks that one first, always, so that going back to it
 * takes nothing but its being back. What it answers itself is marked degraded, counted, and told.
 */
#ifndef RBK_POLICY_H
#define RBK_POLICY_H

#include "store.h"

enum rbk_policy_kind {
    RBK_POLICY_OPEN,
    RBK_POLICY_CLOSED,
    RBK_POLICY_LOCAL,
};

/*
 * Puts a policy in front of `inner`. `local` is the store that answers under LOCAL, NULL otherwise;
 * `share`, above 0 to 1, is what part of rate, burst and delay it goes by. Both belong to the new
 * store on success, and stay the caller's on failure.
 */
enum redbucket_status rbk_policy_create(enum rbk_policy_kind kind, struct redbucket_store *inner,
                                        struct redbucket_store *local, double share,
                                        struct redbucket_store **store);

#endif
