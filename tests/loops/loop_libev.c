/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include <redbucket/adapters/libev.h>

static struct ev_loop *the_loop;
static ev_timer ticker;
static void (*ticked)(void);

static void open_loop(void)
{
    the_loop = ev_loop_new(EVFLAG_AUTO);
    ticker.active = 0;
}

static enum redbucket_status attach(struct redbucket_async *async)
{
    return redbucket_libev_attach(async, the_loop);
}

static void on_tick(struct ev_loop *on, ev_timer *timer, int events)
{
    (void)on;
    (void)timer;
    (void)events;
    ticked();
}

static void tick(void (*function)(void))
{
    ticked = function;
    ev_timer_init(&ticker, on_tick, 0.001, 0.001);
    ev_timer_start(the_loop, &ticker);
}

static void turn(void)
{
    (void)ev_run(the_loop, EVRUN_ONCE);
}

static bool close_loop(void)
{
    if (ticker.active)
        ev_timer_stop(the_loop, &ticker);
    /* Whether anything is still being watched. */
    bool empty = !ev_run(the_loop, EVRUN_NOWAIT);

    ev_loop_destroy(the_loop);
    return empty;
}

const struct loop loop = {"libev", open_loop, attach, tick, turn, close_loop};
