/* SPDX-License-Identifier: MIT */
/*
 * What the adapters of this folder have in common: a redbucket_async on any loop that hiredis has
 * an adapter for.
 *
 * Those adapters know event loops, and of a redisAsyncContext no more than its descriptor and whom
 * to call when that is readable. So one is made that has the descriptor of a redbucket_async, and
 * whose reading is dispatching. It is made here and not in the library, so that it is one of the
 * hiredis that the program is compiled and linked with, from 1.0 on, whichever the library has.
 *
 * All is for C and C++. A program links its event loop and hiredis beside redbucket.
 */
#ifndef REDBUCKET_ADAPTERS_HIREDIS_H
#define REDBUCKET_ADAPTERS_HIREDIS_H

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "../async.h"

#if HIREDIS_MAJOR < 1
#error "redbucket's adapters take hiredis 1.0 or later"
#endif

struct redbucket_adapter {
    redisAsyncContext context;
    redisContextFuncs functions;
    struct redbucket_async *async;

    /* What else is to be done once the loop has been left; or NULL. */
    void (*release)(struct redbucket_adapter *adapter);
    void *data;
};

static inline void redbucket_adapter_read(redisAsyncContext *context)
{
    redbucket_async_dispatch(((struct redbucket_adapter *)context)->async);
}

static inline void redbucket_adapter_ignore(redisAsyncContext *context)
{
    (void)context;
}

/* Takes it from its loop. Called by redbucket_async_destroy, or when attaching has failed. */
static inline void redbucket_adapter_detach(void *data)
{
    struct redbucket_adapter *adapter = (struct redbucket_adapter *)data;

    if (adapter->context.ev.cleanup != NULL && adapter->context.ev.data != NULL)
        adapter->context.ev.cleanup(adapter->context.ev.data);
    if (adapter->release != NULL)
        adapter->release(adapter);
    free(adapter);
}

/* Makes one that no loop has so far. ERROR_ARGUMENT when the redbucket_async has one already,
 * ERROR_MEMORY. */
static inline enum redbucket_status redbucket_adapter_create(struct redbucket_async *async,
                                                             struct redbucket_adapter **made)
{
    struct redbucket_adapter *adapter =
        (struct redbucket_adapter *)calloc(1, sizeof(struct redbucket_adapter));

    if (adapter == NULL)
        return REDBUCKET_ERROR_MEMORY;
    if (!redbucket_async_attach(async, redbucket_adapter_detach, adapter)) {
        free(adapter);
        return REDBUCKET_ERROR_ARGUMENT;
    }
    adapter->async = async;
    adapter->functions.async_read = redbucket_adapter_read;
    adapter->functions.async_write = redbucket_adapter_ignore;
    adapter->context.c.funcs = &adapter->functions;
    adapter->context.c.fd = redbucket_async_descriptor(async);
    adapter->context.c.flags = REDIS_CONNECTED;
    *made = adapter;
    return REDBUCKET_OK;
}

/* After the loop's own attaching: `attached` is what that returned. From now on the loop reads,
 * until redbucket_async_destroy. ERROR_SYSTEM when the loop won't have it. */
static inline enum redbucket_status redbucket_adapter_begin(struct redbucket_adapter *adapter,
                                                            int attached)
{
    if (attached != REDIS_OK) {
        (void)redbucket_async_attach(adapter->async, NULL, NULL);
        redbucket_adapter_detach(adapter);
        return REDBUCKET_ERROR_SYSTEM;
    }
    adapter->context.ev.addRead(adapter->context.ev.data);
    return REDBUCKET_OK;
}

#endif
