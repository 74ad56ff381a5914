/* SPDX-License-Identifier: MIT */
/*
 * The asker on a limiter of the slow store, as most tests of the asynchronous form begin.
 */
#ifndef SLOW_ASKER_H
#define SLOW_ASKER_H

#include "asker.h"
#include "slow_store.h"

extern struct redbucket_limiter *slow_limiter;

/* Opens the store with so many connections, and the asker on it. */
void slow_asker_open(unsigned connections);

/* The asker alone, on `slow_limiter`, once the store is as it is to be. */
void slow_asker_begin(void);

/* A teardown of cmocka's: closes both. */
int slow_asker_close(void **state);

void slow_asker_dispatch(void);

/* Two calls of one request each, and some that wait; `asked` has room for two more than these. */
void slow_asker_fill(struct asked *asked, size_t waiting);

#endif
