/* SPDX-License-Identifier: MIT */
/* A redbucket_async on a main context of GLib. */
#ifndef REDBUCKET_ADAPTERS_GLIB_H
#define REDBUCKET_ADAPTERS_GLIB_H

#include "hiredis.h"

#include <hiredis/adapters/glib.h>

static inline void redbucket_glib_release(struct redbucket_adapter *adapter)
{
    GSource *source = (GSource *)adapter->data;

    g_source_destroy(source);
    g_source_unref(source);
}

/* The context (NULL for the default one) dispatches it until it is destroyed. ERROR_MEMORY;
 * ERROR_ARGUMENT when it is on a loop already. */
static inline enum redbucket_status redbucket_glib_attach(struct redbucket_async *async,
                                                          GMainContext *main_context)
{
    struct redbucket_adapter *adapter = NULL;
    enum redbucket_status status = redbucket_adapter_create(async, &adapter);

    if (status != REDBUCKET_OK)
        return status;
    adapter->data = redis_source_new(&adapter->context);
    adapter->release = redbucket_glib_release;
    (void)g_source_attach((GSource *)adapter->data, main_context);
    return redbucket_adapter_begin(adapter, REDIS_OK);
}

#endif
