/* SPDX-License-Identifier: MIT */
/*
 * A store whose calls last until the test ends them, or until their time is over by a clock that
 * stands still unless the test moves it. A call waits as the library's own do, for a descriptor.
 */
#ifndef SLOW_STORE_H
#define SLOW_STORE_H

#include "store.h"

#define SLOW_CALLS   64
#define SLOW_TIMEOUT 1.0

/*
 *   len      of the call's requests
 *   waited   seconds that they had waited before
 *   pipe     from which the call waits to read, when it waits
 *   ended    the call has returned
 *   first    the first key of the first request
 */
struct slow_call {
    size_t len;
    double waited;
    int pipe[2];
    bool ended;
    char first[16];
};

/*
 *   at_once      calls wait for nothing
 *   same_pipe    all calls wait for the first pipe
 *   tells        a call tells of an event when it begins
 */
struct slow_store {
    struct redbucket_store store;
    struct slow_call calls[SLOW_CALLS];
    unsigned begun;
    double now;
    bool at_once;
    bool same_pipe;
    bool tells;
};

extern struct slow_store slow;

/* Opens it, for so many calls at a time (0: any number), and a limiter on it, or on a store in
 * front of it unless that is NULL, with a limit "a". */
struct redbucket_limiter *slow_open(unsigned connections);
/* From now on keys have lanes, by their first byte: a digit, or none. */
void slow_divide(void);
void slow_close(struct redbucket_limiter *limiter);

/* Ends a call, from the next time on that its fiber is run. */
void slow_end(unsigned call);

#endif
