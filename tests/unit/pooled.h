/* SPDX-License-Identifier: MIT */
/*
 * A pool of imagined connections, and what its host hears of it.
 */
#ifndef TEST_POOLED_H
#define TEST_POOLED_H

#include "redis/pool.h"

/*
 *   soon       in a minute
 *   events     "down " and "back ", one behind the other
 *   reason     of the last event
 *   meanwhile  is given back by whoever hears of the next event, while he does
 */
struct pooled {
    struct rbk_redis_options options;
    struct redbucket_store host;
    struct rbk_pool pool;
    struct rbk_deadline soon;
    char events[256];
    char reason[256];
    struct rbk_peer *meanwhile;
};

extern struct pooled pooled;

/* Opens the pool of such a store; the server is good. */
void pooled_begin(const char *url);

/* Closes the pool, and expects that nothing opened was left open. */
void pooled_end(void);

/* Takes a connection, which is there, and gives it back after good use. */
struct rbk_peer *pooled_take(void);
void pooled_give(struct rbk_peer *peer);

#endif
