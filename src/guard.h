/* SPDX-License-Identifier: MIT */
/*
 * What stands around calls that may wait for somebody else.
 *
 * A thread is not cancelled inside (pthread_cancel): it would take its connection, its place in a
 * call and the lock on a file with it, for ever. The request to cancel it is kept, and met by
 * whatever the thread waits in next. And what the host has said of an earlier call's waits is
 * forgotten (interrupt.h).
 */
#ifndef RBK_GUARD_H
#define RBK_GUARD_H

#include "store.h"

/* The first half alone. Returns what to give back at the end, in the same thread. On a fiber, whose
 * thread has others to serve before that, there is nothing to it: whoever lets fibers run has this
 * around all of them. */
int rbk_guard_begin(void);
void rbk_guard_end(int before);

/* Puts a guard around all that waits in `inner`, which is the guard's then. ERROR_MEMORY. */
enum redbucket_status rbk_guard_create(struct redbucket_store *inner,
                                       struct redbucket_store **store);

#endif
