/* SPDX-License-Identifier: MIT */
/*
 * Leases: permits of hot buckets, taken ahead from a store that is far away, and spent here.
 *
 * Only a limit that asks for it has any, and a request is served here only when each of its limits
 * does and holds enough. A permit is spent within `lease_time` of the moment when its taking was
 * sent, so that over all processes what is admitted in a window of W seconds is at most
 *
 *     burst + 1 + delay + rate * (W + lease_time)
 *
 * What isn't used is given back by the rule of the model, so far as it can't have drained: with a
 * later call, when its time is over or nobody has used it for a while, and when the store is
 * closed. No thread is ours. A process that is killed loses what it held; nothing is ever invented.
 *
 * Memory is fixed and shared by all threads; who spends takes no lock. A child after fork holds
 * nothing of its parent's.
 */
#ifndef RBK_LEASE_H
#define RBK_LEASE_H

#include "clock.h"
#include "store.h"

/*
 * Puts leases in front of `inner`, which belongs to the new store on success and stays the caller's
 * on failure. `clock` is rbk_clock_now, or a test's.
 */
enum redbucket_status rbk_lease_create(struct redbucket_store *inner, rbk_clock *clock,
                                       struct redbucket_store **store,
                                       struct redbucket_error *error);

#endif
