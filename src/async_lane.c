/* SPDX-License-Identifier: MIT */
/*
 * Sending trips away.
 */
#include "async_lane.h"

#include "limiter.h"

#include <stdlib.h>

/* Trips of a lane at a time: the store decides one while the answers of the other are dealt with.
 */
#define TOGETHER_MOST 2u

/* So many queued tickets make two trips where two can go: less would only make calls smaller. */
#define WORTH_TWO 64u

/* Of those that go alone, each takes its own time and a connection. */
#define ALONE_MOST 8u

static unsigned at_most(unsigned connections, unsigned most)
{
    return connections != 0 && connections < most ? connections : most;
}

bool rbk_lanes_init(struct rbk_lanes *lanes, struct redbucket_limiter *limiter,
                    struct rbk_reactor *reactor)
{
    const struct redbucket_store *store = limiter->store;

    *lanes = (struct rbk_lanes){.limiter = limiter, .reactor = reactor, .timeout = store->timeout};
    lanes->len = store->ops->lane != NULL ? store->ops->lanes : 1;
    lanes->together_most = at_most(store->connections, TOGETHER_MOST);
    lanes->alone_most = at_most(store->connections, ALONE_MOST);
    lanes->lanes = calloc(lanes->len + 1, sizeof lanes->lanes[0]);
    if (lanes->lanes == NULL)
        return false;
    /* The others are made when there is use for them. */
    lanes->trips[0] = rbk_trip_create(limiter, reactor);
    lanes->trips_len = lanes->trips[0] != NULL;
    return lanes->trips[0] != NULL;
}

void rbk_lanes_fini(struct rbk_lanes *lanes)
{
    for (unsigned i = 0; i < lanes->trips_len; i++)
        rbk_trip_destroy(lanes->trips[i]);
    free(lanes->lanes);
}

/* ---- Queues -----------------------------------------------------------------------------------
 */

static bool is_last(const struct rbk_lanes *lanes, const struct rbk_lane *lane)
{
    return lane == &lanes->lanes[lanes->len];
}

static unsigned trips_most(const struct rbk_lanes *lanes, const struct rbk_lane *lane)
{
    return is_last(lanes, lane) ? lanes->alone_most : lanes->together_most;
}

static void wait_in_turn(struct rbk_lanes *lanes, struct rbk_lane *lane)
{
    if (lane->waiting || lane->queue.first == NULL)
        return;
    lane->waiting = true;
    lane->next = NULL;
    if (lanes->first != NULL)
        lanes->last->next = lane;
    else
        lanes->first = lane;
    lanes->last = lane;
}

/* NULL when none waits. */
static struct rbk_lane *next_in_turn(struct rbk_lanes *lanes)
{
    struct rbk_lane *lane = lanes->first;

    if (lane != NULL) {
        lanes->first = lane->next;
        lane->waiting = false;
    }
    return lane;
}

void rbk_lanes_queue(struct rbk_lanes *lanes, size_t number, struct rbk_ticket *ticket)
{
    struct rbk_lane *lane = &lanes->lanes[number < lanes->len ? number : lanes->len];

    rbk_tickets_add(&lane->queue, ticket);
    wait_in_turn(lanes, lane);
}

/* ---- Trips ------------------------------------------------------------------------------------
 */

static void land(struct rbk_trip *trip, struct rbk_tickets *answered)
{
    if (rbk_trip_under_way(trip))
        return;
    trip->lane->trips--;
    rbk_trip_land(trip, answered);
}

void rbk_lanes_go_on(struct rbk_lanes *lanes, const struct timespec *now,
                     struct rbk_tickets *answered)
{
    for (unsigned i = 0; i < lanes->trips_len; i++) {
        if (!rbk_trip_can_go_on(lanes->trips[i], now))
            continue;
        rbk_trip_go_on(lanes->trips[i]);
        land(lanes->trips[i], answered);
    }
}

/* NULL when all are under way, and no more may be, or there is no memory for one; and in a child
 * that a listener of the store's has forked. */
static struct rbk_trip *find_trip(struct rbk_lanes *lanes)
{
    struct rbk_trip *made;

    if (!*lanes->reactor->here)
        return NULL;
    for (unsigned i = 0; i < lanes->trips_len; i++) {
        if (!rbk_trip_under_way(lanes->trips[i]))
            return lanes->trips[i];
    }
    if (lanes->trips_len == RBK_TRIPS_MAX)
        return NULL;
    made = rbk_trip_create(lanes->limiter, lanes->reactor);
    if (made != NULL)
        lanes->trips[lanes->trips_len++] = made;
    return made;
}

/* How many of those that are queued go on one of so many trips. */
static size_t share(const struct rbk_lanes *lanes, const struct rbk_lane *lane, unsigned trips)
{
    size_t len = lane->queue.len;
    size_t some = (len + trips - 1) / trips;

    if (len < WORTH_TWO && !is_last(lanes, lane))
        some = len;
    return some < RBK_TRIP_SEATS ? some : RBK_TRIP_SEATS;
}

static void set_out(struct rbk_lanes *lanes, struct rbk_lane *lane, struct rbk_trip *trip,
                    size_t some)
{
    while (trip->len < some)
        rbk_trip_board(trip, rbk_tickets_take(&lane->queue));
    trip->lane = lane;
    lane->trips++;
    rbk_trip_begin(trip, lanes->timeout);
}

static void depart_from(struct rbk_lanes *lanes, struct rbk_lane *lane,
                        struct rbk_tickets *answered)
{
    for (unsigned left = trips_most(lanes, lane) - lane->trips;
         left > 0 && lane->queue.first != NULL; left--) {
        struct rbk_trip *trip = find_trip(lanes);

        if (trip == NULL)
            break;
        set_out(lanes, lane, trip, share(lanes, lane, left));
        land(trip, answered);
    }
}

void rbk_lanes_depart(struct rbk_lanes *lanes, struct rbk_tickets *answered)
{
    const struct rbk_lane *end = lanes->last;
    struct rbk_lane *lane;

    while ((lane = next_in_turn(lanes)) != NULL) {
        depart_from(lanes, lane, answered);
        wait_in_turn(lanes, lane);
        if (lane == end)
            break;
    }
}

static bool has_idle(const struct rbk_lanes *lanes)
{
    for (unsigned i = 0; i < lanes->trips_len; i++) {
        if (!rbk_trip_under_way(lanes->trips[i]))
            return true;
    }
    return false;
}

/* Where no trip is idle, one that comes back is the next to go. */
bool rbk_lanes_can_depart(const struct rbk_lanes *lanes)
{
    if (!has_idle(lanes))
        return false;
    for (const struct rbk_lane *lane = lanes->first; lane != NULL; lane = lane->next) {
        if (lane->queue.first != NULL && lane->trips < trips_most(lanes, lane))
            return true;
    }
    return false;
}

void rbk_lanes_arm(const struct rbk_lanes *lanes)
{
    for (unsigned i = 0; i < lanes->trips_len; i++) {
        if (rbk_trip_under_way(lanes->trips[i]))
            rbk_reactor_arm(lanes->reactor, &lanes->trips[i]->due);
    }
}
