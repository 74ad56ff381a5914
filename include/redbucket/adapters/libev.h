/* SPDX-License-Identifier: MIT */
/* A redbucket_async on a loop of libev, one made with more than one loop in mind, as it is by
 * default. */
#ifndef REDBUCKET_ADAPTERS_LIBEV_H
#define REDBUCKET_ADAPTERS_LIBEV_H

#include "hiredis.h"

#include <hiredis/adapters/libev.h>

/* The loop dispatches it until it is destroyed, before the loop is. ERROR_MEMORY, ERROR_SYSTEM;
 * ERROR_ARGUMENT when it is on a loop already. */
static inline enum redbucket_status redbucket_libev_attach(struct redbucket_async *async,
                                                           struct ev_loop *ev_loop)
{
    struct redbucket_adapter *adapter = NULL;
    enum redbucket_status status = redbucket_adapter_create(async, &adapter);

    if (status != REDBUCKET_OK)
        return status;
    return redbucket_adapter_begin(adapter, redisLibevAttach(ev_loop, &adapter->context));
}

#endif
