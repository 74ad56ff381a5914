/* SPDX-License-Identifier: MIT */
/*
 * Hosts that have to look after signals themselves, as interpreters do: their handlers only take
 * notice, and somebody has to come back for the rest. By itself a signal ends no wait.
 *
 * Kept for each thread, since only some threads of such a host may look.
 */
#include "interrupt.h"

#include "redbucket/interrupt.h"

static _Thread_local struct {
    redbucket_interrupt *ask;
    void *data;
    unsigned calls; /* under way, one inside the other */
    bool over;
} host;

void redbucket_thread_interrupt(redbucket_interrupt *ask, void *data)
{
    host.ask = ask;
    host.data = data;
}

bool rbk_interrupted(void)
{
    bool over = host.over || (host.ask != NULL && host.ask(host.data));

    host.over = over && host.calls > 0;
    return over;
}

bool rbk_interrupt_wanted(void)
{
    return host.ask != NULL;
}

void rbk_interrupt_begin(void)
{
    if (host.calls++ == 0)
        host.over = false;
}

void rbk_interrupt_end(void)
{
    if (--host.calls == 0)
        host.over = false;
}

bool rbk_interrupt_is_over(void)
{
    return host.over;
}
