/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include <redbucket/adapters/libuv.h>

static uv_loop_t the_loop;
static uv_timer_t ticker;
static bool ticking;
static void (*ticked)(void);

static void open_loop(void)
{
    (void)uv_loop_init(&the_loop);
    ticking = false;
}

static enum redbucket_status attach(struct redbucket_async *async)
{
    return redbucket_libuv_attach(async, &the_loop);
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
    ticked();
}

static void tick(void (*function)(void))
{
    ticked = function;
    ticking = true;
    (void)uv_timer_init(&the_loop, &ticker);
    (void)uv_timer_start(&ticker, on_tick, 1, 1);
}

static void turn(void)
{
    (void)uv_run(&the_loop, UV_RUN_ONCE);
}

static bool close_loop(void)
{
    if (ticking)
        uv_close((uv_handle_t *)&ticker, NULL);
    (void)uv_run(&the_loop, UV_RUN_NOWAIT);
    return uv_loop_close(&the_loop) == 0;
}

const struct loop loop = {"libuv", open_loop, attach, tick, turn, close_loop};
