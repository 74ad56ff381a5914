/* SPDX-License-Identifier: MIT */
/*
 * Where tickets wait for a trip, and the trips that there are.
 *
 * A lane is for those that one call decides in the time of one (store.h); in a cluster, for a node.
 * Each has its own queue and so many trips at a time, so that nobody waits for a node that he
 * doesn't ask. The last lane is for those that nobody is to be brought together with: they only
 * share trips when there are more of them than trips.
 */
#ifndef RBK_ASYNC_LANE_H
#define RBK_ASYNC_LANE_H

#include "async_ticket.h"
#include "async_trip.h"

/* Trips at a time, of all lanes. */
#define RBK_TRIPS_MAX 16u

struct rbk_lane {
    struct rbk_tickets queue;
    unsigned trips;        /* under way */
    bool waiting;          /* in the list of those in which tickets are queued */
    struct rbk_lane *next; /* in that list */
};

struct rbk_lanes {
    struct redbucket_limiter *limiter;
    struct rbk_reactor *reactor;
    double timeout;
    struct rbk_lane *lanes;
    size_t len;             /* without the last */
    unsigned together_most; /* trips of a lane */
    unsigned alone_most;    /* of the last */
    struct rbk_trip *trips[RBK_TRIPS_MAX];
    unsigned trips_len;
    struct rbk_lane *first; /* of those that wait, in turns */
    struct rbk_lane *last;
};

/* False without memory; then, too, it is ended by rbk_lanes_fini. */
bool rbk_lanes_init(struct rbk_lanes *lanes, struct redbucket_limiter *limiter,
                    struct rbk_reactor *reactor);

/* No trip is under way, or this is a child of a fork. */
void rbk_lanes_fini(struct rbk_lanes *lanes);

/* `number` is the lane's, or RBK_NONE. */
void rbk_lanes_queue(struct rbk_lanes *lanes, size_t number, struct rbk_ticket *ticket);

/* Has all trips go on that can, and puts whoever has an answer into the list. */
void rbk_lanes_go_on(struct rbk_lanes *lanes, const struct timespec *now,
                     struct rbk_tickets *answered);

/* Sends trips away, each lane's at most as many as it may have at a time, so that an embedded store
 * doesn't keep the loop for as long as there are requests. */
void rbk_lanes_depart(struct rbk_lanes *lanes, struct rbk_tickets *answered);

/* Whether that would send any. */
bool rbk_lanes_can_depart(const struct rbk_lanes *lanes);

/* Sees to it that the descriptor is readable when a trip is to go on. */
void rbk_lanes_arm(const struct rbk_lanes *lanes);

#endif
