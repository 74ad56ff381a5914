/* SPDX-License-Identifier: MIT */
/*
 * A store whose calls last for as long as a test wants, and threads that ask it through a gatherer.
 *
 * Threads are let go one after the other by what the store shows, never by time. The first letter
 * of a key says what is to happen to its request, and in which lane it is.
 */
#ifndef TEST_GATED_H
#define TEST_GATED_H

#include "gather.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

#define GATED_LONG  60.0
#define GATED_LANES 3
#define GATED_CALLS 64
#define GATED_ARRAY 40

/*
 * The calls of one lane, each of which waits for its number to be opened. What goes straight
 * through is in the last.
 */
struct gated_lane {
    atomic_uint begun;
    atomic_uint open; /* calls below this number may end */
    atomic_uint lens[GATED_CALLS];
};

/*
 * A bucket whose key begins with
 *   f   can't be read
 *   x   fails the whole call
 *   b   is in lane 1, all others in lane 0
 *   s   is in no lane
 */
struct gated {
    struct redbucket_store store;
    struct gated_lane lanes[GATED_LANES];
    atomic_uint asked; /* requests */
    bool closed;
    bool one_by_one; /* nothing is in a lane */
};

extern struct gated gated;

/* A gatherer before it; `together` of 0 stands for many. */
struct redbucket_store *gated_make(double timeout, unsigned flights, size_t together);

void gated_open(unsigned lane, unsigned number);
void gated_await_begun(unsigned lane, unsigned calls);

struct gated_caller {
    pthread_t thread;
    struct redbucket_store *store;
    struct rbk_request *requests; /* in memory of their own, so that a late write shows */
    size_t len;
    char kind;
    char last; /* the kind of the last request, when it is another */
    unsigned char number;
    double waited;
    atomic_bool entered;
    atomic_bool left;
};

/* Asks, and checks that each request has what became of it and of no other. */
void gated_ask(struct gated_caller *caller, struct rbk_batch *batch);

/* The same in a thread. */
void gated_start(struct gated_caller *caller, struct redbucket_store *store, char kind,
                 unsigned number);
void gated_start_array(struct gated_caller *caller);
enum redbucket_status gated_join(struct gated_caller *caller);

/* Until the callers are in a queue: they have entered, and don't run. */
void gated_await_queued(const struct gated_caller *callers, size_t len);

#endif
