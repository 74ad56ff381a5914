/* SPDX-License-Identifier: MIT */
/*
 * Both ways of waiting, side by side.
 */
#include "wait.h"

#include "fiber.h"
#include "interrupt.h"
#include "moment.h"

#include <errno.h>
#include <time.h>

/* Seconds between two looks at what another thread has to do. Locks are held for less, and who
 * waits for a connection or a name waits long. */
#define MOMENT 0.001

static void leave_for(struct rbk_fiber *fiber, const struct pollfd *polled, size_t len,
                      double seconds)
{
    struct rbk_wait wait = {.polled = polled, .polled_len = len, .until = rbk_moment_in(seconds)};

    rbk_fiber_leave(fiber, &wait);
}

/* A signal takes no time from who waits for none. */
static int look(struct pollfd *polled, size_t len)
{
    int ready;

    do
        ready = poll(polled, (nfds_t)len, 0);
    while (ready < 0 && errno == EINTR);
    return ready;
}

int rbk_wait_poll(struct pollfd *polled, size_t len, int timeout_ms)
{
    struct rbk_fiber *fiber = rbk_fiber_current();

    if (fiber == NULL)
        return poll(polled, (nfds_t)len, timeout_ms);
    if (timeout_ms > 0 && !rbk_fiber_hurried(fiber))
        leave_for(fiber, polled, len, timeout_ms * 1e-3);
    return look(polled, len);
}

static void sleep_for(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds};

    pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
    while (nanosleep(&pause, &pause) != 0 && errno == EINTR && !rbk_interrupted())
        continue;
}

void rbk_wait_pause(double seconds)
{
    struct rbk_fiber *fiber = rbk_fiber_current();

    if (fiber == NULL)
        sleep_for(seconds);
    else if (!rbk_fiber_hurried(fiber))
        leave_for(fiber, NULL, 0, seconds);
}

bool rbk_wait_unlocked(pthread_mutex_t *mutex)
{
    if (rbk_fiber_current() == NULL)
        return false;
    (void)pthread_mutex_unlock(mutex);
    rbk_wait_pause(MOMENT);
    (void)pthread_mutex_lock(mutex);
    return true;
}

__attribute__((noinline)) int rbk_wait_errno(void)
{
    return errno;
}

__attribute__((noinline)) void rbk_wait_errno_clear(void)
{
    errno = 0;
}

bool rbk_wait_is_over(void)
{
    struct rbk_fiber *fiber = rbk_fiber_current();

    return fiber != NULL ? rbk_fiber_hurried(fiber) : rbk_interrupt_is_over();
}

bool rbk_wait_on_fiber(void)
{
    return rbk_fiber_current() != NULL;
}

void rbk_wait_call(void (*function)(void *data), void *data)
{
    struct rbk_fiber *fiber = rbk_fiber_current();

    if (fiber == NULL)
        function(data);
    else
        rbk_fiber_leave(fiber, &(struct rbk_wait){.call = function, .data = data});
}
