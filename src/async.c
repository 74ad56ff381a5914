/* SPDX-License-Identifier: MIT */
/*
 * Requests on an event loop: what waits, what is under way, and whose callback is due.
 *
 * A ticket is queued, then on a trip, then answered, then called. A trip takes what is queued when
 * it begins; while all trips are under way the queue fills, and the next takes all of that: so the
 * load makes the batches. A ticket whose time is over leaves the queue, or its trip, and is
 * answered by the failure policy, where there is one.
 *
 * Invariant: callbacks are called only while nothing here is in the middle of a change; whatever
 * they do is done when they return.
 */
#include "async_lane.h"
#include "error.h"
#include "fork_page.h"
#include "guard.h"
#include "limiter.h"
#include "moment.h"

#include <errno.h>
#include <stdlib.h>

/* So many whose time is over are dealt with at a time, and in one turn; the rest in the next. */
#define LATE_TOGETHER 32
#define LATE_MOST     1024

/* In memory that a child finds cleared. */
struct live {
    bool here;
};

struct redbucket_async {
    struct redbucket_limiter *limiter;
    double timeout; /* of the store; 0: it never waits */
    struct live *live;
    struct rbk_reactor reactor;
    struct rbk_lanes lanes;
    struct rbk_tickets aging; /* in a lane or on its trips */
    struct rbk_tickets answered;
    struct rbk_tickets calling; /* answered before this turn's callbacks began */
    struct rbk_ticket_book book;
    struct redbucket_request late[LATE_TOGETHER]; /* what is decided of them */
    bool busy; /* in dispatch, which frees it when it was destroyed meanwhile */
    bool destroyed;
    void (*detach)(void *data);
    void *detach_data;
};

/* ---- Made and freed ---------------------------------------------------------------------------
 */

static void free_all(struct redbucket_async *async)
{
    rbk_lanes_fini(&async->lanes);
    rbk_reactor_fini(&async->reactor);
    rbk_fork_page_unmap(async->live, sizeof *async->live);
    free(async->book.slots);
    free(async);
}

enum redbucket_status redbucket_async_create(struct redbucket_limiter *limiter,
                                             struct redbucket_async **async,
                                             struct redbucket_error *error)
{
    struct redbucket_async *made;
    enum redbucket_status status;

    if (!rbk_fiber_supported())
        return rbk_fail(error, REDBUCKET_ERROR_UNSUPPORTED, -1,
                        "asynchronous form: this system has no ucontext");
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return rbk_fail_system(error, ENOMEM, "asynchronous form");
    made->limiter = limiter;
    made->timeout = limiter->store->timeout;
    made->aging.place = RBK_BY_AGE;
    status = rbk_reactor_init(&made->reactor, error);
    if (status == REDBUCKET_OK)
        status = rbk_fork_page_map(sizeof *made->live, (void **)&made->live, error);
    if (status == REDBUCKET_OK)
        made->reactor.here = &made->live->here;
    if (status == REDBUCKET_OK && !rbk_lanes_init(&made->lanes, limiter, &made->reactor))
        status = rbk_fail_system(error, ENOMEM, "asynchronous form");
    if (status != REDBUCKET_OK) {
        free_all(made);
        return status;
    }
    made->live->here = true;
    *async = made;
    return REDBUCKET_OK;
}

int redbucket_async_descriptor(const struct redbucket_async *async)
{
    return async->reactor.epoll;
}

size_t redbucket_async_outstanding(const struct redbucket_async *async)
{
    return async->live->here ? async->book.len : 0;
}

bool redbucket_async_attach(struct redbucket_async *async, void (*detach)(void *data), void *data)
{
    if (async->detach != NULL && detach != NULL)
        return false;
    async->detach = detach;
    async->detach_data = data;
    return true;
}

/* ---- Asked and given up -----------------------------------------------------------------------
 */

enum redbucket_status redbucket_async_request(struct redbucket_async *async,
                                              const struct redbucket_request *request,
                                              redbucket_answered *callback, void *data,
                                              uint64_t *id)
{
    struct rbk_ticket *ticket;
    enum redbucket_status status;
    size_t lane;

    if (!async->live->here)
        return REDBUCKET_ERROR_UNSUPPORTED;
    if (async->destroyed)
        return REDBUCKET_CANCELLED;
    status = rbk_request_check(async->limiter, request, &lane);
    if (status != REDBUCKET_OK)
        return status;
    ticket = rbk_ticket_create(request);
    if (ticket == NULL)
        return REDBUCKET_ERROR_MEMORY;
    status = rbk_ticket_enter(&async->book, ticket);
    if (status != REDBUCKET_OK) {
        rbk_ticket_drop(ticket);
        return status;
    }
    ticket->callback = callback;
    ticket->data = data;
    if (async->timeout > 0.0)
        rbk_deadline_start(&ticket->deadline, async->timeout);
    rbk_tickets_add(&async->aging, ticket);
    rbk_lanes_queue(&async->lanes, lane, ticket);
    if (!async->busy)
        rbk_reactor_raise(&async->reactor);
    if (id != NULL)
        *id = ticket->id;
    return REDBUCKET_OK;
}

/* Takes a ticket from wherever its answer would have come from. */
static void withdraw(struct rbk_ticket *ticket)
{
    if (ticket->trip != NULL)
        rbk_trip_leave(ticket);
    rbk_tickets_remove(ticket, RBK_IN_LINE);
    rbk_tickets_remove(ticket, RBK_BY_AGE);
}

static void cancel(struct redbucket_async *async, struct rbk_ticket *ticket)
{
    withdraw(ticket);
    ticket->request.status = REDBUCKET_CANCELLED;
    rbk_tickets_add(&async->answered, ticket);
}

static bool has_answer(const struct redbucket_async *async, const struct rbk_ticket *ticket)
{
    const struct rbk_tickets *line = ticket->links[RBK_IN_LINE].list;

    return line == &async->answered || line == &async->calling;
}

bool redbucket_async_cancel(struct redbucket_async *async, uint64_t id)
{
    struct rbk_ticket *ticket = async->live->here ? rbk_ticket_find(&async->book, id) : NULL;

    if (ticket == NULL || has_answer(async, ticket))
        return false;
    cancel(async, ticket);
    rbk_reactor_raise(&async->reactor);
    return true;
}

/* ---- One turn ---------------------------------------------------------------------------------
 */

static void look(struct redbucket_async *async, const struct timespec *now)
{
    void *owners[64];
    size_t len = rbk_reactor_look(&async->reactor, owners, sizeof owners / sizeof owners[0]);

    for (size_t i = 0; i < len; i++)
        ((struct rbk_trip *)owners[i])->ready = true;
    rbk_lanes_go_on(&async->lanes, now, &async->answered);
}

/* The oldest, when its time is over: all have the same. */
static struct rbk_ticket *find_expired(const struct redbucket_async *async,
                                       const struct timespec *now)
{
    struct rbk_ticket *ticket = async->aging.first;

    return ticket != NULL && ticket->deadline.set &&
                   !rbk_moment_is_before(now, &ticket->deadline.at)
               ? ticket
               : NULL;
}

/* Answers some of those whose time is over; returns how many. They stand with the answered from the
 * beginning, since a listener of the store's that is told of it may give requests up. */
static size_t expire_some(struct redbucket_async *async, const struct timespec *now)
{
    struct redbucket_request *requests = async->late;
    struct rbk_ticket *tickets[LATE_TOGETHER];
    size_t len = 0;

    while (len < LATE_TOGETHER && (tickets[len] = find_expired(async, now)) != NULL) {
        withdraw(tickets[len]);
        rbk_tickets_add(&async->answered, tickets[len]);
        requests[len] = tickets[len]->request;
        len++;
    }
    rbk_decide_late(async->limiter, requests, len);
    for (size_t i = 0; i < len; i++)
        tickets[i]->request = requests[i];
    return len;
}

static void expire(struct redbucket_async *async, const struct timespec *now)
{
    for (size_t done = 0; done < LATE_MOST && find_expired(async, now) != NULL;)
        done += expire_some(async, now);
}

static void call_back(struct redbucket_async *async, struct rbk_tickets *list)
{
    struct rbk_ticket *ticket;

    while (async->live->here && (ticket = rbk_tickets_take(list)) != NULL) {
        rbk_ticket_strike(&async->book, ticket);
        ticket->callback(ticket->data, &ticket->request);
        rbk_ticket_drop(ticket);
    }
}

/* Those that are answered by what callbacks do have theirs in the next turn. */
static void call_answered(struct redbucket_async *async)
{
    struct rbk_ticket *ticket;

    while ((ticket = rbk_tickets_take(&async->answered)) != NULL)
        rbk_tickets_add(&async->calling, ticket);
    call_back(async, &async->calling);
}

/* Sees to it that there is a next turn when it is needed. */
static void prepare_next(struct redbucket_async *async)
{
    rbk_lanes_arm(&async->lanes);
    if (async->aging.first != NULL && async->aging.first->deadline.set)
        rbk_reactor_arm(&async->reactor, &async->aging.first->deadline.at);
    if (async->answered.first != NULL || rbk_lanes_can_depart(&async->lanes))
        rbk_reactor_raise(&async->reactor);
}

static void turn(struct redbucket_async *async)
{
    struct timespec now = {0, 0};

    async->busy = true;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    look(async, &now);
    expire(async, &now);
    rbk_lanes_depart(&async->lanes, &async->answered);
    call_answered(async);
    if (!async->destroyed && async->live->here) {
        rbk_lanes_depart(&async->lanes, &async->answered);
        prepare_next(async);
    }
    async->busy = false;
    if (async->destroyed)
        free_all(async);
}

/* A thread that is cancelled in here would be so on a fiber. */
void redbucket_async_dispatch(struct redbucket_async *async)
{
    if (async->busy || !async->live->here)
        return;
    int before = rbk_guard_begin();

    turn(async);
    rbk_guard_end(before);
}

/* ---- Destroyed --------------------------------------------------------------------------------
 */

static void drop_all(struct rbk_tickets *list)
{
    struct rbk_ticket *ticket;

    while ((ticket = rbk_tickets_take(list)) != NULL)
        rbk_ticket_drop(ticket);
}

/* In a child: its parent goes on, and what stands on its fibers' stacks is left behind. */
static void abandon_trip(struct rbk_trip *trip)
{
    for (size_t seat = 0; seat < trip->len; seat++) {
        struct rbk_ticket *ticket = trip->seats[seat];

        ticket->aboard--;
        if (ticket->trip == trip || ticket->called)
            rbk_ticket_drop(ticket);
    }
    trip->len = 0;
}

static void abandon(struct redbucket_async *async)
{
    struct rbk_lanes *lanes = &async->lanes;

    for (unsigned i = 0; i < lanes->trips_len; i++)
        abandon_trip(lanes->trips[i]);
    for (size_t i = 0; i <= lanes->len; i++)
        drop_all(&lanes->lanes[i].queue);
    drop_all(&async->answered);
    drop_all(&async->calling);
}

static void end_trip(struct redbucket_async *async, struct rbk_trip *trip)
{
    rbk_trip_cut_short(trip);
    rbk_trip_land(trip, &async->answered);
}

/* Ends whatever is under way, and has everybody called. */
static void finish(struct redbucket_async *async)
{
    if (async->detach != NULL)
        async->detach(async->detach_data);
    while (async->aging.first != NULL)
        cancel(async, async->aging.first);
    for (unsigned i = 0; i < async->lanes.trips_len; i++)
        end_trip(async, async->lanes.trips[i]);
    call_back(async, &async->calling);
    call_back(async, &async->answered);
}

void redbucket_async_destroy(struct redbucket_async *async)
{
    if (async == NULL || async->destroyed)
        return;
    bool busy = async->busy;
    int before = rbk_guard_begin();

    async->destroyed = true;
    async->busy = true;
    if (async->live->here)
        finish(async);
    else
        abandon(async);
    if (busy)
        rbk_reactor_fini(&async->reactor);
    else
        free_all(async);
    rbk_guard_end(before);
}
