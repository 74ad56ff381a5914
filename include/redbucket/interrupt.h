/* SPDX-License-Identifier: MIT */
/*
 * Red Bucket: what a signal does to a call that waits.
 *
 * By itself nothing: a signal neither ends a call that waits nor extends it. For hosts
 * whose signal handlers only take notice, and that have to be come back to for the rest, as most
 * interpreters are, that would mean an answer to Ctrl-C only when the store's timeout is over.
 */
#ifndef REDBUCKET_INTERRUPT_H
#define REDBUCKET_INTERRUPT_H

#include "redbucket/redbucket.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Called in the waiting thread after a signal has cut a wait short, holding no lock of ours: a wait
 * for a server, for a name to be looked up, for a connection to come free, for another thread's
 * call. While a thread waits for another process, on shared memory, it is called twenty times a
 * second instead, signal or not.
 *
 * When it returns true, the call waits no longer and ends with an error, as if the connection had
 * broken or the time were over: whether a request was counted is unknown. Nobody else is the worse
 * for it, but who has a request in the very call that was cut short.
 */
typedef bool redbucket_interrupt(void *data);

/* Sets it for calls of this thread from now on; NULL for none. Not to be called by one. */
REDBUCKET_API void redbucket_thread_interrupt(redbucket_interrupt *ask, void *data);

#ifdef __cplusplus
}
#endif

#endif
