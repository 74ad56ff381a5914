/* SPDX-License-Identifier: MIT */
/* A redbucket_async on a loop of libuv. */
#ifndef REDBUCKET_ADAPTERS_LIBUV_H
#define REDBUCKET_ADAPTERS_LIBUV_H

#include "hiredis.h"

#include <hiredis/adapters/libuv.h>

/* The loop dispatches it until it is destroyed, and has to run once more then, as it does to close
 * any handle. ERROR_MEMORY, ERROR_SYSTEM; ERROR_ARGUMENT when it is on a loop already. */
static inline enum redbucket_status redbucket_libuv_attach(struct redbucket_async *async,
                                                           uv_loop_t *uv_loop)
{
    struct redbucket_adapter *adapter = NULL;
    enum redbucket_status status = redbucket_adapter_create(async, &adapter);

    if (status != REDBUCKET_OK)
        return status;
    return redbucket_adapter_begin(adapter, redisLibuvAttach(&adapter->context, uv_loop));
}

#endif
