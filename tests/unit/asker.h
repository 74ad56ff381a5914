/* SPDX-License-Identifier: MIT */
/*
 * Somebody who asks on an event loop that the test turns by hand, and notes which callback came
 * with what.
 */
#ifndef ASKER_H
#define ASKER_H

#include "redbucket/async.h"

/*
 *   called   how often
 *   status, remaining   what the last one said
 *   order    the how-manieth callback of all that was
 *   then     called in the callback, with the request's own data, or NULL
 */
struct asked {
    int called;
    enum redbucket_status status;
    int64_t remaining;
    bool degraded;
    int order;
    uint64_t id;
    void (*then)(struct asked *asked);
};

extern struct redbucket_async *asker;
extern int asker_called; /* callbacks of all */

/* Asks for `cost` of a key under limit "a". */
void asker_ask(struct asked *asked, const char *key, double cost);

/* The same for each of some, with costs 1, 2, ... */
void asker_ask_all(struct asked *asked, size_t len, const char *key);

/* How many of some have been called with this status; fails the test when one was called twice. */
size_t asker_count(const struct asked *asked, size_t len, enum redbucket_status status);

/* Whether the loop would have it dispatch now. */
bool asker_readable(void);

#endif
