/* SPDX-License-Identifier: MIT */
/*
 * Linux's epoll, whose own descriptor can be watched like any other.
 *
 * A timer that rings too early costs one look too many, setting it anew costs a system call each
 * time: so it is only set when it would ring too late.
 */
#include "reactor.h"

#include "error.h"
#include "moment.h"

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

_Static_assert(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT, "poll's events are epoll's");

/* Descriptors looked at in one turn; the others are still there in the next. */
#define EVENTS 64

static bool add(const struct rbk_reactor *reactor, int fd, unsigned events, void *owner)
{
    struct epoll_event event = {.events = events, .data.ptr = owner};

    return epoll_ctl(reactor->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

enum redbucket_status rbk_reactor_init(struct rbk_reactor *reactor, struct redbucket_error *error)
{
    *reactor = (struct rbk_reactor){.epoll = -1, .timer = -1, .flag = -1};
    reactor->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (reactor->epoll >= 0)
        reactor->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (reactor->timer >= 0)
        reactor->flag = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (reactor->flag < 0 || !add(reactor, reactor->timer, EPOLLIN, &reactor->timer) ||
        !add(reactor, reactor->flag, EPOLLIN, &reactor->flag))
        return rbk_fail_system(error, errno, "asynchronous form");
    return REDBUCKET_OK;
}

static void shut(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

void rbk_reactor_fini(struct rbk_reactor *reactor)
{
    shut(&reactor->epoll);
    shut(&reactor->timer);
    shut(&reactor->flag);
}

void rbk_reactor_raise(struct rbk_reactor *reactor)
{
    uint64_t one = 1;

    if (!reactor->raised)
        reactor->raised = write(reactor->flag, &one, sizeof one) == sizeof one;
}

void rbk_reactor_arm(struct rbk_reactor *reactor, const struct timespec *at)
{
    struct itimerspec when = {.it_value = *at};
    bool armed = reactor->armed.tv_sec != 0 || reactor->armed.tv_nsec != 0;

    if (armed && !rbk_moment_is_before(at, &reactor->armed))
        return;
    if (timerfd_settime(reactor->timer, TFD_TIMER_ABSTIME, &when, NULL) == 0)
        reactor->armed = *at;
}

bool rbk_reactor_watch(struct rbk_reactor *reactor, const struct pollfd *polled, size_t len,
                       void *owner)
{
    bool all = true;

    for (size_t i = 0; i < len; i++) {
        if (polled[i].fd >= 0)
            all = add(reactor, polled[i].fd, (unsigned short)polled[i].events, owner) && all;
    }
    return all;
}

void rbk_reactor_forget(struct rbk_reactor *reactor, const struct pollfd *polled, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (polled[i].fd >= 0)
            (void)epoll_ctl(reactor->epoll, EPOLL_CTL_DEL, polled[i].fd, NULL);
    }
}

/* True when the event was one of the reactor's own. */
static bool take(struct rbk_reactor *reactor, const void *owner)
{
    uint64_t count;

    if (owner == &reactor->timer) {
        (void)!read(reactor->timer, &count, sizeof count);
        reactor->armed = (struct timespec){0, 0};
        return true;
    }
    if (owner == &reactor->flag) {
        (void)!read(reactor->flag, &count, sizeof count);
        reactor->raised = false;
        return true;
    }
    return false;
}

size_t rbk_reactor_look(struct rbk_reactor *reactor, void **owners, size_t size)
{
    struct epoll_event events[EVENTS];
    int most = size < EVENTS ? (int)size : EVENTS;
    int len = epoll_wait(reactor->epoll, events, most, 0);
    size_t found = 0;

    for (int i = 0; i < len; i++) {
        if (!take(reactor, events[i].data.ptr))
            owners[found++] = events[i].data.ptr;
    }
    return found;
}
