/* SPDX-License-Identifier: MIT */
/* A redbucket_async for a program without an event loop, which turns its own. */
#ifndef REDBUCKET_ADAPTERS_POLL_H
#define REDBUCKET_ADAPTERS_POLL_H

#include "hiredis.h"

#if HIREDIS_MAJOR == 1 && HIREDIS_MINOR < 1
#error "hiredis has an adapter for poll from 1.1 on"
#endif

#include <hiredis/adapters/poll.h>

/* *adapter is what to tick, until the redbucket_async is destroyed. ERROR_MEMORY; ERROR_ARGUMENT
 * when it is on a loop already. */
static inline enum redbucket_status redbucket_poll_attach(struct redbucket_async *async,
                                                          struct redbucket_adapter **adapter)
{
    struct redbucket_adapter *made = NULL;
    enum redbucket_status status = redbucket_adapter_create(async, &made);

    if (status != REDBUCKET_OK)
        return status;
    status = redbucket_adapter_begin(made, redisPollAttach(&made->context));
    if (status == REDBUCKET_OK)
        *adapter = made;
    return status;
}

/* One turn: waits for so many seconds at most, less than 0 for as long as it takes, and dispatches.
 * Returns what redisPollTick does: not 0 when there was something to do. */
static inline int redbucket_poll_tick(struct redbucket_adapter *adapter, double timeout)
{
    return redisPollTick(&adapter->context, timeout);
}

#endif
