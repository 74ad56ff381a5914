/* SPDX-License-Identifier: MIT */
/*
 * Requests on an event loop: what waits, what is under way, and whose callback is due.
 *
 * A ticket is queued, then on a trip, then answered, then called. A trip takes what is queued when
 * it begins; while all trips are under way the queue fills, and the next takes all of that: so the
 * load makes the batches. A ticket whose time is over leaves the queue, or its trip, and is decided
 * with no time left, which is how a failure policy gets to answer it.
 *
 * Invariant: callbacks are called only while nothing here is in the middle of a change; whatever
 * they do is done when they return.
 */
#include "async_ticket.h"
#include "async_trip.h"
#include "error.h"
#include "fork_page.h"
#include "limiter.h"

#include <stdlib.h>

/* Trips at a time: one is decided by the server while the answers of the other are dealt with. */
#define TRIPS 2u

/* So many queued tickets make two trips where two can go: less would only make calls smaller. */
#define WORTH_TWO 64u

/* Trips of those whose time is over in one turn; the rest goes in the next. */
#define LATE_TRIPS 4

/* In memory that a child finds cleared. */
struct live {
    bool here;
};

struct redbucket_async {
    struct redbucket_limiter *limiter;
    double timeout; /* of the store; 0: it never waits */
    struct live *live;
    struct rbk_reactor reactor;
    struct rbk_trip *trips[TRIPS];
    unsigned trips_len;
    struct rbk_trip *late; /* the trip of those whose time is over */
    struct rbk_tickets queue;
    struct rbk_tickets expired;
    struct rbk_tickets answered;
    struct rbk_tickets calling; /* answered before this turn's callbacks began */
    struct rbk_ticket_book book;
    bool busy; /* in dispatch, which frees it when it was destroyed meanwhile */
    bool destroyed;
    void (*detach)(void *data);
    void *detach_data;
};

/* ---- Made and freed ---------------------------------------------------------------------------
 */

static bool make_trips(struct redbucket_async *async)
{
    unsigned most = async->limiter->store->connections;

    async->trips_len = most != 0 && most < TRIPS ? most : TRIPS;
    for (unsigned i = 0; i < async->trips_len; i++) {
        async->trips[i] = rbk_trip_create(async->limiter, &async->reactor);
        if (async->trips[i] == NULL)
            return false;
    }
    async->late = rbk_trip_create(async->limiter, &async->reactor);
    return async->late != NULL;
}

static void free_all(struct redbucket_async *async)
{
    for (unsigned i = 0; i < TRIPS; i++)
        rbk_trip_destroy(async->trips[i]);
    rbk_trip_destroy(async->late);
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
        return rbk_fail(error, REDBUCKET_ERROR_MEMORY, -1, "asynchronous form: out of memory");
    made->limiter = limiter;
    made->timeout = limiter->store->timeout;
    status = rbk_reactor_init(&made->reactor, error);
    if (status == REDBUCKET_OK)
        status = rbk_fork_page_map(sizeof *made->live, (void **)&made->live, error);
    if (status == REDBUCKET_OK && !make_trips(made))
        status = rbk_fail(error, REDBUCKET_ERROR_MEMORY, -1, "asynchronous form: out of memory");
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

    if (!async->live->here)
        return REDBUCKET_ERROR_UNSUPPORTED;
    if (async->destroyed)
        return REDBUCKET_CANCELLED;
    status = rbk_request_check(async->limiter, request);
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
    rbk_tickets_add(&async->queue, ticket);
    if (!async->busy)
        rbk_reactor_raise(&async->reactor);
    if (id != NULL)
        *id = ticket->id;
    return REDBUCKET_OK;
}

static void cancel(struct redbucket_async *async, struct rbk_ticket *ticket)
{
    if (ticket->trip != NULL)
        rbk_trip_leave(ticket);
    else
        rbk_tickets_remove(ticket);
    ticket->request.status = REDBUCKET_CANCELLED;
    rbk_tickets_add(&async->answered, ticket);
}

bool redbucket_async_cancel(struct redbucket_async *async, uint64_t id)
{
    struct rbk_ticket *ticket = async->live->here ? rbk_ticket_find(&async->book, id) : NULL;

    if (ticket == NULL || ticket->list == &async->answered || ticket->list == &async->calling)
        return false;
    cancel(async, ticket);
    rbk_reactor_raise(&async->reactor);
    return true;
}

/* ---- One turn ---------------------------------------------------------------------------------
 */

static bool has_come(const struct timespec *at, const struct timespec *now)
{
    return at->tv_sec != now->tv_sec ? at->tv_sec < now->tv_sec : at->tv_nsec <= now->tv_nsec;
}

/* Has trips go on that can. */
static void go_on(struct redbucket_async *async, struct rbk_trip *trip, const struct timespec *now)
{
    if (!rbk_trip_under_way(trip) || (!trip->ready && !has_come(&trip->due, now)))
        return;
    rbk_trip_go_on(trip);
    if (!rbk_trip_under_way(trip))
        rbk_trip_land(trip, &async->answered);
}

static void look(struct redbucket_async *async, const struct timespec *now)
{
    void *owners[64];
    size_t len = rbk_reactor_look(&async->reactor, owners, sizeof owners / sizeof owners[0]);

    for (size_t i = 0; i < len; i++)
        ((struct rbk_trip *)owners[i])->ready = true;
    for (unsigned i = 0; i < async->trips_len; i++)
        go_on(async, async->trips[i], now);
    go_on(async, async->late, now);
}

/* Collects those whose time is over. */
static void expire(struct redbucket_async *async, const struct timespec *now)
{
    struct rbk_ticket *ticket;

    for (unsigned i = 0; i < async->trips_len; i++) {
        while ((ticket = rbk_trip_oldest(async->trips[i])) != NULL && ticket->deadline.set &&
               has_come(&ticket->deadline.at, now)) {
            rbk_trip_leave(ticket);
            rbk_tickets_add(&async->expired, ticket);
        }
    }
    while ((ticket = async->queue.first) != NULL && ticket->deadline.set &&
           has_come(&ticket->deadline.at, now)) {
        rbk_tickets_remove(ticket);
        rbk_tickets_add(&async->expired, ticket);
    }
}

/* Takes up to so many of a list on a trip, whose time is counted by the one that has the most left.
 */
static void set_out(struct redbucket_async *async, struct rbk_trip *trip, struct rbk_tickets *list,
                    size_t most)
{
    struct rbk_ticket *ticket = NULL;
    double waited = 0.0;

    while (trip->len < most && list->first != NULL) {
        ticket = rbk_tickets_take(list);
        rbk_trip_board(trip, ticket);
    }
    if (ticket->deadline.set)
        waited = async->timeout - rbk_deadline_left(&ticket->deadline);
    rbk_trip_begin(trip, waited);
    if (!rbk_trip_under_way(trip))
        rbk_trip_land(trip, &async->answered);
}

/* Nothing that they ask for takes time, since they have none. */
static void answer_late(struct redbucket_async *async)
{
    for (int i = 0; i < LATE_TRIPS && async->expired.first != NULL; i++) {
        if (rbk_trip_under_way(async->late))
            return;
        set_out(async, async->late, &async->expired, RBK_TRIP_SEATS);
    }
}

/* Each trip at most once, or an embedded store would keep the loop for as long as there are
 * requests. */
static void depart(struct redbucket_async *async)
{
    unsigned idle = 0;

    for (unsigned i = 0; i < async->trips_len; i++)
        idle += !rbk_trip_under_way(async->trips[i]);
    for (unsigned i = 0; i < async->trips_len && async->queue.first != NULL; i++) {
        size_t most = RBK_TRIP_SEATS;

        if (rbk_trip_under_way(async->trips[i]))
            continue;
        if (async->queue.len >= WORTH_TWO && (async->queue.len + idle - 1) / idle < most)
            most = (async->queue.len + idle - 1) / idle;
        set_out(async, async->trips[i], &async->queue, most);
        idle--;
    }
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

static void arm_for(struct redbucket_async *async, const struct rbk_ticket *ticket)
{
    if (ticket != NULL && ticket->deadline.set)
        rbk_reactor_arm(&async->reactor, &ticket->deadline.at);
}

static void arm(struct redbucket_async *async, struct rbk_trip *trip)
{
    if (!rbk_trip_under_way(trip))
        return;
    rbk_reactor_arm(&async->reactor, &trip->due);
    if (trip != async->late)
        arm_for(async, rbk_trip_oldest(trip));
}

static bool can_depart(const struct redbucket_async *async)
{
    for (unsigned i = 0; i < async->trips_len; i++) {
        if (!rbk_trip_under_way(async->trips[i]))
            return true;
    }
    return false;
}

/* Sees to it that there is a next turn when it is needed. */
static void prepare_next(struct redbucket_async *async)
{
    for (unsigned i = 0; i < async->trips_len; i++)
        arm(async, async->trips[i]);
    arm(async, async->late);
    arm_for(async, async->queue.first);
    if (async->answered.first != NULL || (async->queue.first != NULL && can_depart(async)) ||
        (async->expired.first != NULL && !rbk_trip_under_way(async->late)))
        rbk_reactor_raise(&async->reactor);
}

void redbucket_async_dispatch(struct redbucket_async *async)
{
    struct timespec now;

    if (async->busy || !async->live->here)
        return;
    async->busy = true;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    look(async, &now);
    expire(async, &now);
    answer_late(async);
    depart(async);
    call_answered(async);
    if (!async->destroyed && async->live->here) {
        depart(async);
        prepare_next(async);
    }
    async->busy = false;
    if (async->destroyed)
        free_all(async);
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
    for (unsigned i = 0; i < async->trips_len; i++)
        abandon_trip(async->trips[i]);
    abandon_trip(async->late);
    drop_all(&async->queue);
    drop_all(&async->expired);
    drop_all(&async->answered);
    drop_all(&async->calling);
}

static void end_trip(struct redbucket_async *async, struct rbk_trip *trip)
{
    struct rbk_ticket *ticket;

    while ((ticket = rbk_trip_oldest(trip)) != NULL)
        cancel(async, ticket);
    rbk_trip_cut_short(trip);
    rbk_trip_land(trip, &async->answered);
}

/* Ends whatever is under way, and has everybody called. */
static void finish(struct redbucket_async *async)
{
    if (async->detach != NULL)
        async->detach(async->detach_data);
    for (unsigned i = 0; i < async->trips_len; i++)
        end_trip(async, async->trips[i]);
    end_trip(async, async->late);
    while (async->expired.first != NULL)
        cancel(async, async->expired.first);
    while (async->queue.first != NULL)
        cancel(async, async->queue.first);
    call_back(async, &async->calling);
    call_back(async, &async->answered);
}

void redbucket_async_destroy(struct redbucket_async *async)
{
    if (async == NULL || async->destroyed)
        return;
    bool busy = async->busy;

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
}
