/* SPDX-License-Identifier: MIT */
/*
 * Carrying tickets to the store and back.
 */
#include "async_trip.h"

#include "limiter.h"
#include "moment.h"

#include <stdlib.h>

/* Seconds after which a trip looks for itself when its descriptors can't be watched. */
#define LOOK_TIME 0.001

struct rbk_trip *rbk_trip_create(struct redbucket_limiter *limiter, struct rbk_reactor *reactor)
{
    struct rbk_trip *trip = malloc(sizeof *trip);

    if (trip == NULL)
        return NULL;
    trip->limiter = limiter;
    trip->reactor = reactor;
    trip->lane = NULL;
    trip->len = 0;
    trip->ready = false;
    trip->fiber = rbk_fiber_create();
    if (trip->fiber == NULL) {
        free(trip);
        return NULL;
    }
    return trip;
}

void rbk_trip_destroy(struct rbk_trip *trip)
{
    if (trip == NULL)
        return;
    rbk_fiber_destroy(trip->fiber);
    free(trip);
}

void rbk_trip_board(struct rbk_trip *trip, struct rbk_ticket *ticket)
{
    ticket->trip = trip;
    ticket->seat = trip->len;
    ticket->aboard++;
    trip->seats[trip->len] = ticket;
    trip->gone[trip->len] = false;
    trip->requests[trip->len++] = ticket->request;
}

void rbk_trip_leave(struct rbk_ticket *ticket)
{
    ticket->trip->requests[ticket->seat].verdicts = NULL;
    ticket->trip->gone[ticket->seat] = true;
    ticket->trip = NULL;
}

/* ---- Under way --------------------------------------------------------------------------------
 */

static void decide(void *data)
{
    struct rbk_trip *trip = data;

    rbk_decide_waited(trip->limiter, trip->requests, trip->len, trip->waited, trip->gone);
}

/* What it has to tell the host is told at once. The host may fork then, and the child comes back
 * here: what is under way is its parent's alone. */
static void call_outside(struct rbk_trip *trip)
{
    const struct rbk_wait *wait = rbk_fiber_wait(trip->fiber);

    while (rbk_fiber_busy(trip->fiber) && wait->call != NULL) {
        wait->call(wait->data);
        if (!*trip->reactor->here)
            return;
        rbk_fiber_resume(trip->fiber);
    }
}

static void look_soon(struct rbk_trip *trip)
{
    trip->due = rbk_moment_in(LOOK_TIME);
}

static void stay(struct rbk_trip *trip)
{
    const struct rbk_wait *wait = rbk_fiber_wait(trip->fiber);

    call_outside(trip);
    if (!rbk_fiber_busy(trip->fiber) || !*trip->reactor->here)
        return;
    trip->ready = false;
    trip->due = wait->until;
    if (!rbk_reactor_watch(trip->reactor, wait->polled, wait->polled_len, trip))
        look_soon(trip);
}

void rbk_trip_begin(struct rbk_trip *trip, double timeout)
{
    const struct rbk_deadline *last = &trip->seats[trip->len - 1]->deadline;

    trip->waited = last->set ? timeout - rbk_deadline_left(last) : 0.0;
    rbk_fiber_begin(trip->fiber, decide, trip);
    stay(trip);
}

void rbk_trip_go_on(struct rbk_trip *trip)
{
    const struct rbk_wait *wait = rbk_fiber_wait(trip->fiber);

    rbk_reactor_forget(trip->reactor, wait->polled, wait->polled_len);
    rbk_fiber_resume(trip->fiber);
    stay(trip);
}

bool rbk_trip_under_way(const struct rbk_trip *trip)
{
    return rbk_fiber_busy(trip->fiber);
}

bool rbk_trip_can_go_on(const struct rbk_trip *trip, const struct timespec *now)
{
    return *trip->reactor->here && rbk_trip_under_way(trip) &&
           (trip->ready || !rbk_moment_is_before(now, &trip->due));
}

void rbk_trip_cut_short(struct rbk_trip *trip)
{
    rbk_fiber_hurry(trip->fiber);
    while (rbk_fiber_busy(trip->fiber) && *trip->reactor->here)
        rbk_trip_go_on(trip);
}

/* ---- Over -------------------------------------------------------------------------------------
 */

static void alight(struct rbk_trip *trip, size_t seat, struct rbk_tickets *answered)
{
    const struct redbucket_request *decided = &trip->requests[seat];
    struct rbk_ticket *ticket = trip->seats[seat];

    ticket->aboard--;
    if (ticket->trip == trip) {
        ticket->trip = NULL;
        rbk_tickets_remove(ticket, RBK_BY_AGE);
        ticket->request.status = decided->status;
        ticket->request.failed = decided->failed;
        ticket->request.response = decided->response;
        rbk_tickets_add(answered, ticket);
    } else if (ticket->called) {
        rbk_ticket_drop(ticket);
    }
}

void rbk_trip_land(struct rbk_trip *trip, struct rbk_tickets *answered)
{
    for (size_t seat = 0; seat < trip->len; seat++)
        alight(trip, seat, answered);
    trip->len = 0;
}
