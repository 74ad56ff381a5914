/* SPDX-License-Identifier: MIT */
/*
 * One descriptor for an event loop to watch, that stands for many: those that fibers wait for, a
 * timer, and a flag to be raised by hand. It is readable as long as there is something to do.
 */
#ifndef RBK_REACTOR_H
#define RBK_REACTOR_H

#include "redbucket/redbucket.h"

#include <poll.h>
#include <time.h>

/* The first three are -1, or a descriptor. */
struct rbk_reactor {
    int epoll;
    int timer;
    int flag;
    bool raised;
    struct timespec armed; /* when the timer rings; 0 when it doesn't */
    const bool *here;      /* false in a child of a fork, where all is its parent's; its owner's */
};

/* ERROR_SYSTEM, ERROR_MEMORY; then, too, it is ended by rbk_reactor_fini. */
enum redbucket_status rbk_reactor_init(struct rbk_reactor *reactor, struct redbucket_error *error);
void rbk_reactor_fini(struct rbk_reactor *reactor);

/* Has the descriptor be readable until the next look. */
void rbk_reactor_raise(struct rbk_reactor *reactor);

/* Has it be readable at that time by CLOCK_MONOTONIC, perhaps also before. */
void rbk_reactor_arm(struct rbk_reactor *reactor, const struct timespec *at);

/* Has it be readable while one of these is. False when not all can be watched. */
bool rbk_reactor_watch(struct rbk_reactor *reactor, const struct pollfd *polled, size_t len,
                       void *owner);
void rbk_reactor_forget(struct rbk_reactor *reactor, const struct pollfd *polled, size_t len);

/* Who has something to do: up to `size` owners, some of them more than once. Lowers the flag. */
size_t rbk_reactor_look(struct rbk_reactor *reactor, void **owners, size_t size);

#endif
