/* SPDX-License-Identifier: MIT */
/*
 * Gathering: threads that ask while calls to a store are in flight become the next call.
 *
 * A lone caller goes straight through, and pays one round trip and nothing else. When as many calls
 * are in flight as there may be, a caller waits in a queue; each call that ends hands its place to
 * those that wait, all of them together as far as they fit, and the one of them whose deadline is
 * the latest makes the call for all. So nobody waits behind more than two calls, no thread is ours,
 * and nothing waits in order to collect more.
 *
 * Each caller has its own deadline and leaves when that has come, whatever becomes of the call:
 * what is asked for others is a copy. A failure of the store is the failure of all of a call's
 * requests, and of nobody else's.
 *
 * All of that is for each lane of the store by itself, a node of a cluster: who asks one that
 * answers waits for nobody who asks one that doesn't. A request that is everybody's at once, or
 * nobody's, goes straight through.
 */
#ifndef RBK_GATHER_H
#define RBK_GATHER_H

#include "store.h"

/* Calls of a lane that are in flight at one time: one on its way while the server decides another.
 */
#define RBK_GATHER_FLIGHTS 2u

/*
 * Puts gathering in front of `inner`, which has a `lane`; it belongs to the new store on success
 * and stays the caller's on failure. `timeout` is the inner store's, in seconds; `flights` at
 * least 1.
 */
enum redbucket_status rbk_gather_create(struct redbucket_store *inner, double timeout,
                                        unsigned flights, struct redbucket_store **store,
                                        struct redbucket_error *error);

#endif
