/* SPDX-License-Identifier: MIT */
/*
 * Waiting, wherever in the library somebody waits for a server, a clock or another thread.
 *
 * A thread of the host's waits here as it would anywhere. On a fiber nobody waits: the fiber is
 * left until what it waits for has come, and the thread goes on with other things. Whoever waits
 * holds no lock: what else the thread does meanwhile may need it.
 */
#ifndef RBK_WAIT_H
#define RBK_WAIT_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* As poll; but `timeout_ms` is at least 0, and it may find nothing ready earlier. */
int rbk_wait_poll(struct pollfd *polled, size_t len, int timeout_ms);

/* Waits for so many seconds, at least; on a fiber that is hurried, no longer than it has, and no
 * longer than the host does. Holding no lock. */
void rbk_wait_pause(double seconds);

/* False for a thread, which is to wait for its condition. On a fiber: lets the mutex go, waits for
 * a moment, takes the mutex again, and says true: look whether the condition holds by now. */
bool rbk_wait_unlocked(pthread_mutex_t *mutex);

/* errno, in functions that may wait before: these must not remember where that of a thread is. */
int rbk_wait_errno(void);
void rbk_wait_errno_clear(void);

/* True when nobody waits any more, for this fiber or in the host of this thread: nothing that is
 * missed then is anybody's fault. */
bool rbk_wait_is_over(void);

/* True on a fiber. */
bool rbk_wait_on_fiber(void);

/* Calls a function of the host's, on the host's stack. */
void rbk_wait_call(void (*function)(void *data), void *data);

#endif
