/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include <redbucket/adapters/libevent.h>

static struct event_base *base;
static struct event *ticker;
static void (*ticked)(void);

static void open_loop(void)
{
    base = event_base_new();
    ticker = NULL;
}

static enum redbucket_status attach(struct redbucket_async *async)
{
    return redbucket_libevent_attach(async, base);
}

static void on_tick(evutil_socket_t fd, short events, void *data)
{
    (void)fd;
    (void)events;
    (void)data;
    ticked();
}

static void tick(void (*function)(void))
{
    struct timeval often = {.tv_usec = 1000};

    ticked = function;
    ticker = event_new(base, -1, EV_PERSIST, on_tick, NULL);
    (void)event_add(ticker, &often);
}

static void turn(void)
{
    (void)event_base_loop(base, EVLOOP_ONCE);
}

static bool close_loop(void)
{
    if (ticker != NULL)
        event_free(ticker);
    /* 1: there is nothing to wait for. */
    bool empty = event_base_loop(base, EVLOOP_NONBLOCK) == 1;

    event_base_free(base);
    return empty;
}

const struct loop loop = {"libevent", open_loop, attach, tick, turn, close_loop};
