/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include <redbucket/adapters/glib.h>

static GMainContext *context;
static GSource *ticker;
static void (*ticked)(void);

static void open_loop(void)
{
    context = g_main_context_new();
    ticker = NULL;
}

static enum redbucket_status attach(struct redbucket_async *async)
{
    return redbucket_glib_attach(async, context);
}

static gboolean on_tick(gpointer data)
{
    (void)data;
    ticked();
    return G_SOURCE_CONTINUE;
}

static void tick(void (*function)(void))
{
    ticked = function;
    ticker = g_timeout_source_new(1);
    g_source_set_callback(ticker, on_tick, NULL, NULL);
    (void)g_source_attach(ticker, context);
}

static void turn(void)
{
    (void)g_main_context_iteration(context, TRUE);
}

/* Sources have numbers, from 1 on. */
static bool close_loop(void)
{
    bool empty = true;

    if (ticker != NULL) {
        g_source_destroy(ticker);
        g_source_unref(ticker);
    }
    for (guint id = 1; id < 100; id++)
        empty = empty && g_main_context_find_source_by_id(context, id) == NULL;
    g_main_context_unref(context);
    return empty;
}

const struct loop loop = {"GLib", open_loop, attach, tick, turn, close_loop};
