/* SPDX-License-Identifier: MIT */
/*
 * Waiting under a mutex for something that others do, as with a condition; but a signal is noticed:
 * a host that looks after its signals itself is asked whether it still waits, which the C library's
 * conditions have no way for. The clock is one that nobody can set.
 *
 * All zeros is one that nobody waits for, so it may lie in memory that a child finds cleared.
 */
#ifndef RBK_BELL_H
#define RBK_BELL_H

#include "deadline.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Both change under the mutex alone; `rings` is looked at without it by who falls asleep. */
struct rbk_bell {
    atomic_uint rings;
    unsigned waiting;
};

/* Wakes one of those who wait, or all. Under the mutex. */
void rbk_bell_ring(struct rbk_bell *bell);
void rbk_bell_ring_all(struct rbk_bell *bell);

/* Waits for the bell, the mutex let go meanwhile, at most until the deadline: false when that has
 * come, or the host waits no longer. May return early: look whether what is waited for holds. */
bool rbk_bell_await(struct rbk_bell *bell, pthread_mutex_t *mutex,
                    const struct rbk_deadline *deadline);

#endif
