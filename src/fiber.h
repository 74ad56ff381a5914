/* SPDX-License-Identifier: MIT */
/*
 * Functions that can be left in their middle and gone back to: each runs on a stack of its own.
 *
 * Below whoever runs fibers, the library's code doesn't know whether it is on one; it says what it
 * waits for by wait.h, and that is where the two meet. A fiber is left only there, and holds no
 * lock then. One thread at a time runs it, most often the same from its beginning to its end;
 * another goes on with it when the one before has left it to that. So nothing of a thread's own is
 * kept across a wait, neither a value nor, as compilers do with errno's, an address: see
 * rbk_wait_errno.
 */
#ifndef RBK_FIBER_H
#define RBK_FIBER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct rbk_fiber;

typedef void rbk_fiber_function(void *data);

/*
 * What a fiber that was left waits for.
 *
 *   call    a function to be called at once, with `data`, on the stack of whoever runs the fiber;
 *           NULL when there is none, and then
 *   until   the time, by CLOCK_MONOTONIC, at which it goes on at the latest
 *   polled  descriptors that make it go on earlier; looking again for no reason does no harm
 */
struct rbk_wait {
    rbk_fiber_function *call;
    void *data;
    struct timespec until;
    const struct pollfd *polled;
    size_t polled_len;
};

/* False where the system has no means to it. */
bool rbk_fiber_supported(void);

/* NULL without memory. */
struct rbk_fiber *rbk_fiber_create(void);

/* One that has ended; or, in a child of a fork, any: what it had is left behind. */
void rbk_fiber_destroy(struct rbk_fiber *fiber);

/* Runs a function on it, until it waits or returns. The one before has to have returned. */
void rbk_fiber_begin(struct rbk_fiber *fiber, rbk_fiber_function *function, void *data);

/* Runs it on. */
void rbk_fiber_resume(struct rbk_fiber *fiber);

/* True from the beginning until the function has returned. */
bool rbk_fiber_busy(const struct rbk_fiber *fiber);

/* What it waits for, once it was left. */
const struct rbk_wait *rbk_fiber_wait(const struct rbk_fiber *fiber);

/* From now on no wait on it lasts, and all deadlines have passed, so that it ends soon. */
void rbk_fiber_hurry(struct rbk_fiber *fiber);
bool rbk_fiber_hurried(const struct rbk_fiber *fiber);

/* The one that this is, or NULL. */
struct rbk_fiber *rbk_fiber_current(void);

/* Leaves it until it is resumed. */
void rbk_fiber_leave(struct rbk_fiber *fiber, const struct rbk_wait *wait);

#endif
