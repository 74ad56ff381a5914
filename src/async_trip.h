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

struct rbk_trip {
    struct redbucket_limiter *limiter;
    struct rbk_reactor *reactor;
    struct rbk_fiber *fiber;
    double waited; /* seconds of their time that had gone when it began */
    size_t len;
    size_t first; /* no ticket sits before */
    bool ready;   /* one of the descriptors that it waits for is */
    struct timespec due;
    struct rbk_ticket *seats[RBK_TRIP_SEATS];
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

/* The one that has been on it for longest, or NULL. */
struct rbk_ticket *rbk_trip_oldest(struct rbk_trip *trip);

/* Begins, or goes on once it is `ready` or `due`; until it has to wait, or is over. */
void rbk_trip_begin(struct rbk_trip *trip, double waited);
void rbk_trip_go_on(struct rbk_trip *trip);
bool rbk_trip_under_way(const struct rbk_trip *trip);

/* Ends it, answers or not. */
void rbk_trip_cut_short(struct rbk_trip *trip);

/* Once it is over: gives those who are still there their answers, and puts them into the list. */
void rbk_trip_land(struct rbk_trip *trip, struct rbk_tickets *answered);

#endif
