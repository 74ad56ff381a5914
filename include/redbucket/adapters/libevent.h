/* SPDX-License-Identifier: MIT */
/* A redbucket_async on an event_base of libevent. */
#ifndef REDBUCKET_ADAPTERS_LIBEVENT_H
#define REDBUCKET_ADAPTERS_LIBEVENT_H

#include "hiredis.h"

#include <hiredis/adapters/libevent.h>

/* The base dispatches it until it is destroyed, before the base is freed. ERROR_MEMORY,
 * ERROR_SYSTEM; ERROR_ARGUMENT when it is on a loop already. */
static inline enum redbucket_status redbucket_libevent_attach(struct redbucket_async *async,
                                                              struct event_base *base)
{
    struct redbucket_adapter *adapter = NULL;
    enum redbucket_status status = redbucket_adapter_create(async, &adapter);

    if (status != REDBUCKET_OK)
        return status;
    return redbucket_adapter_begin(adapter, redisLibeventAttach(&adapter->context, base));
}

#endif
