/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include <redbucket/adapters/poll.h>

static struct redbucket_adapter *adapter;
static void (*ticked)(void);

static void open_loop(void)
{
    adapter = NULL;
    ticked = NULL;
}

static enum redbucket_status attach(struct redbucket_async *async)
{
    return redbucket_poll_attach(async, &adapter);
}

static void tick(void (*function)(void))
{
    ticked = function;
}

static void turn(void)
{
    (void)redbucket_poll_tick(adapter, 0.001);
    if (ticked != NULL)
        ticked();
}

static bool close_loop(void)
{
    return true;
}

const struct loop loop = {"poll", open_loop, attach, tick, turn, close_loop};
