/* SPDX-License-Identifier: MIT */
/*
 * Trips to the store: some tickets that are decided together, on a fiber.
 *
 * What the store works on is the trip's: a ticket that leaves its seat before the end has its
 * answer from elsewhere, and the trip goes on without writing to it.
 */
#ifndef RBK_ASYNC_TRIP_H
#define RBK_ASYNC_TRIP_H

#include "async_ticket.h"
#include "fiber.h"
#include "reactor.h"

/* As many as go in one round trip of a script. */
#define RBK_TRIP_SEATS 256u

struct rbk_lane;

struct rbk_trip {
    struct redbucket_limiter *limiter;
    struct rbk_reactor *reactor;
    struct rbk_fiber *fiber;
    struct rbk_lane *lane; /* that it was filled from, when it was */
    double waited;         /* seconds of their time that had gone when it began */
    size_t len;
    bool ready;          /* one of the descriptors that it waits for is */
    struct timespec due; /* when it looks for itself */
    struct rbk_ticket *seats[RBK_TRIP_SEATS];
    bool gone[RBK_TRIP_SEATS]; /* whoever sat there, and left */
    struct redbucket_request requests[RBK_TRIP_SEATS];
};

/* NULL without memory. */
struct rbk_trip *rbk_trip_create(struct redbucket_limiter *limiter, struct rbk_reactor *reactor);

/* One that isn't under way; or, in a child of a fork, any. NULL does nothing. */
void rbk_trip_destroy(struct rbk_trip *trip);

/* There are seats, and it isn't under way. */
void rbk_trip_board(struct rbk_trip *trip, struct rbk_ticket *ticket);

/* A ticket leaves before the end. */
void rbk_trip_leave(struct rbk_ticket *ticket);

/* Begins, until it has to wait or is over. Somebody is aboard; the time, of so many seconds from
 * the beginning, is that of the last to board, who has the most left. */
void rbk_trip_begin(struct rbk_trip *trip, double timeout);

/* Goes on, when it can. */
void rbk_trip_go_on(struct rbk_trip *trip);
bool rbk_trip_can_go_on(const struct rbk_trip *trip, const struct timespec *now);
bool rbk_trip_under_way(const struct rbk_trip *trip);

/* Ends it, answers or not. */
void rbk_trip_cut_short(struct rbk_trip *trip);

/* Once it is over: gives those who are still there their answers, and puts them into the list. */
void rbk_trip_land(struct rbk_trip *trip, struct rbk_tickets *answered);

#endif
