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
} host;

void redbucket_thread_interrupt(redbucket_interrupt *ask, void *data)
{
    host.ask = ask;
    host.data = data;
}

bool rbk_interrupted(void)
{
    return host.ask != NULL && host.ask(host.data);
}
