/* SPDX-License-Identifier: MIT */
/*
 * The queues, one a lane, and whose turn it is. Everything shared is in memory that a child of a
 * fork finds cleared, which is a gatherer at rest.
 *
 * A member lives on its caller's stack. It is in the queue or on a flight, and leaves either under
 * the lock, when its time has come. It waits for its stage to change and not for the lock, which
 * whoever is served doesn't need: thirty that wake at once would only stand in line for it.
 */
#include "gather.h"

#include "deadline.h"
#include "flight.h"
#include "fork_page.h"
#include "front.h"
#include "futex.h"
#include "moment.h"
#include "wait.h"

#include <pthread.h>
#include <stdlib.h>

/* Longer arrays are batches already, as are those that come on a fiber. */
#define GATHERED_MAX 32u

/* Requests of one flight, where the store has no smaller number. */
#define FLIGHT_MAX 256u

enum stage {
    WAITING, /* in the queue */
    LEADING, /* in the queue, and to make the next call for those that wait */
    ABOARD,  /* on somebody's flight */
    SERVED,  /* the requests have what became of them */
};

struct member {
    struct rbk_request *requests;
    size_t len;
    struct rbk_deadline deadline;
    atomic_uint stage; /* written under the lock */
    struct member *next;
    struct member **seat; /* where the flight knows it, when it is aboard */
};

struct lane {
    pthread_mutex_t mutex;
    unsigned flights;
    struct member *first;
    struct member **end; /* NULL stands for &first */
};

struct gather {
    struct rbk_front front;
    double timeout;
    unsigned flights;  /* of a lane */
    size_t flight_max; /* requests of one flight, no more than FLIGHT_MAX */
    struct lane *lanes;
};

static struct gather *gather_of(struct redbucket_store *store)
{
    return (struct gather *)store;
}

static enum stage stage_of(const struct member *member)
{
    return (enum stage)atomic_load_explicit(&member->stage, memory_order_acquire);
}

static void set_stage(struct member *member, enum stage stage)
{
    atomic_store_explicit(&member->stage, stage, memory_order_release);
}

/* ---- The queue, under the lock ----------------------------------------------------------------
 */

static void enqueue(struct lane *lane, struct member *member)
{
    struct member **end = lane->end != NULL ? lane->end : &lane->first;

    *end = member;
    lane->end = &member->next;
}

static void dequeue(struct lane *lane, struct member *member)
{
    struct member **link = &lane->first;

    while (*link != member)
        link = &(*link)->next;
    *link = member->next;
    if (lane->end == &member->next)
        lane->end = link == &lane->first ? NULL : link;
}

/* A child that was forked during a call, by a listener of the store's, ends one that was never
 * counted in it. */
static void vacate(struct lane *lane)
{
    if (lane->flights > 0)
        lane->flights--;
}

/*
 * A flight has ended, or its leader has left before it began: its place goes to those that wait.
 * The one who makes the call is the one who has the most time, so that nobody's call ends before
 * his deadline. Returns him, to be woken without the lock, since he wants it at once; NULL for
 * nobody.
 */
static struct member *land(const struct gather *gather, struct lane *lane)
{
    struct member *leader = lane->first;
    size_t len = 0;

    if (leader == NULL) {
        vacate(lane);
        return NULL;
    }
    for (struct member *member = lane->first; member != NULL; member = member->next) {
        len += member->len;
        if (len > gather->flight_max)
            break;
        if (stage_of(member) == WAITING &&
            (stage_of(leader) != WAITING ||
             rbk_moment_is_before(&leader->deadline.at, &member->deadline.at)))
            leader = member;
    }
    if (stage_of(leader) != WAITING) {
        /* All who wait are to lead already. */
        vacate(lane);
        return NULL;
    }
    set_stage(leader, LEADING);
    return leader;
}

/* Takes the lock for a landing, and lets it go. Whoever leads may be gone already when he is woken:
 * only his word's place is used. */
static void land_and_wake(const struct gather *gather, struct lane *lane)
{
    (void)pthread_mutex_lock(&lane->mutex);
    struct member *leader = land(gather, lane);

    (void)pthread_mutex_unlock(&lane->mutex);
    if (leader != NULL)
        rbk_futex_wake(&leader->stage, 1);
}

/* Takes the leader and those who wait with it from the queue. */
static size_t take_crew(const struct gather *gather, struct lane *lane, struct member *leader,
                        struct member **crew)
{
    size_t requests = leader->len;
    size_t len = 0;
    struct member *next;

    dequeue(lane, leader);
    crew[len++] = leader;
    for (struct member *member = lane->first; member != NULL; member = next) {
        next = member->next;
        if (stage_of(member) != WAITING || requests + member->len > gather->flight_max)
            continue;
        requests += member->len;
        dequeue(lane, member);
        set_stage(member, ABOARD);
        member->seat = &crew[len];
        crew[len++] = member;
    }
    return len;
}

/* ---- A flight ----------------------------------------------------------------------------------
 */

static bool board(struct rbk_flight *flight, struct member *const *crew, size_t len)
{
    struct rbk_flight_size size = {.requests = 0};

    for (size_t i = 0; i < len; i++)
        rbk_flight_measure(&size, crew[i]->requests, crew[i]->len);
    if (!rbk_flight_init(flight, &size))
        return false;
    for (size_t i = 0; i < len; i++)
        rbk_flight_board(flight, crew[i]->requests, crew[i]->len);
    return true;
}

/* Gives those who are still there what became of their requests; `lens` is how many each had. Those
 * who are gone have no word to be woken by. Under the lock. */
static void serve(const struct rbk_request *decided, struct member *const *crew, const size_t *lens,
                  atomic_uint **words, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        words[i] = NULL;
        if (crew[i] != NULL) {
            if (decided != NULL)
                rbk_flight_leave(decided, crew[i]->requests, lens[i]);
            else
                rbk_requests_fail(crew[i]->requests, crew[i]->len, REDBUCKET_ERROR_MEMORY);
            words[i] = &crew[i]->stage;
            set_stage(crew[i], SERVED);
        }
        decided = decided == NULL ? NULL : decided + lens[i];
    }
}

static void call(struct gather *gather, const struct member *leader, struct rbk_request *requests,
                 size_t len)
{
    struct redbucket_store *inner = gather->front.inner;
    struct rbk_batch batch = {.waited = gather->timeout - rbk_deadline_left(&leader->deadline)};

    inner->ops->decide(inner, requests, len, &batch);
}

/* With others. Called with the lock, returns without. */
static void fly_together(struct gather *gather, struct lane *lane, struct member **crew, size_t len)
{
    struct member *leader = crew[0];
    atomic_uint *words[FLIGHT_MAX];
    size_t lens[FLIGHT_MAX];
    struct rbk_flight flight;
    bool good = board(&flight, crew, len);

    for (size_t i = 0; i < len; i++)
        lens[i] = crew[i]->len;
    (void)pthread_mutex_unlock(&lane->mutex);
    if (good)
        call(gather, leader, flight.requests, flight.len);
    land_and_wake(gather, lane);
    (void)pthread_mutex_lock(&lane->mutex);
    serve(good ? flight.requests : NULL, crew, lens, words, len);
    (void)pthread_mutex_unlock(&lane->mutex);
    for (size_t i = 1; i < len; i++) {
        if (words[i] != NULL)
            rbk_futex_wake(words[i], 1);
    }
    if (good)
        rbk_flight_fini(&flight);
}

/* Called with the lock, returns without. */
static void fly(struct gather *gather, struct lane *lane, struct member *leader)
{
    struct member *crew[FLIGHT_MAX];
    size_t len = take_crew(gather, lane, leader, crew);

    if (len > 1) {
        fly_together(gather, lane, crew, len);
        return;
    }
    (void)pthread_mutex_unlock(&lane->mutex);
    call(gather, leader, leader->requests, leader->len);
    land_and_wake(gather, lane);
}

/* ---- A caller ----------------------------------------------------------------------------------
 */

/* Time has come for a member that somebody else's call was to serve. Under the lock. */
static void leave(struct lane *lane, struct member *member)
{
    if (stage_of(member) == ABOARD)
        *member->seat = NULL;
    else
        dequeue(lane, member);
    rbk_requests_fail(member->requests, member->len, REDBUCKET_ERROR_TIMEOUT);
    set_stage(member, SERVED);
}

static bool is_waiting(enum stage stage)
{
    return stage == WAITING || stage == ABOARD;
}

/* Waits until the member leads or is served, or its time has come. */
static void wait_for_turn(struct lane *lane, struct member *member)
{
    enum stage stage = stage_of(member);

    while (is_waiting(stage)) {
        bool in_time = rbk_futex_await(&member->stage, stage, &member->deadline);

        if (!in_time) {
            (void)pthread_mutex_lock(&lane->mutex);
            if (is_waiting(stage_of(member)))
                leave(lane, member);
            (void)pthread_mutex_unlock(&lane->mutex);
        }
        stage = stage_of(member);
    }
}

/* Makes the call for those who wait, if there is still time to. */
static void lead(struct gather *gather, struct lane *lane, struct member *member)
{
    (void)pthread_mutex_lock(&lane->mutex);
    if (rbk_deadline_left(&member->deadline) > 0.0) {
        fly(gather, lane, member);
        return;
    }
    leave(lane, member);
    (void)pthread_mutex_unlock(&lane->mutex);
    land_and_wake(gather, lane);
}

/* Called with the lock, returns without. */
static void decide_gathered(struct gather *gather, struct lane *lane, struct rbk_request *requests,
                            size_t len, struct rbk_batch *batch)
{
    struct member member = {.requests = requests, .len = len, .stage = WAITING};
    double left = gather->timeout - batch->waited;

    rbk_deadline_start(&member.deadline, left > 0.0 ? left : 0.0);
    enqueue(lane, &member);
    (void)pthread_mutex_unlock(&lane->mutex);
    wait_for_turn(lane, &member);
    if (stage_of(&member) == LEADING)
        lead(gather, lane, &member);
    batch->waited = gather->timeout - rbk_deadline_left(&member.deadline);
}

/* The one lane of all requests; NULL for those that are not to be gathered. */
static struct lane *lane_of(const struct gather *gather, const struct rbk_request *requests,
                            size_t len)
{
    const struct redbucket_store *inner = gather->front.inner;
    size_t number;

    if (len == 0 || len > GATHERED_MAX || rbk_wait_on_fiber())
        return NULL;
    number = inner->ops->lane(inner, &requests[0]);
    for (size_t i = 1; i < len && number != RBK_NONE; i++) {
        if (inner->ops->lane(inner, &requests[i]) != number)
            number = RBK_NONE;
    }
    return number == RBK_NONE ? NULL : &gather->lanes[number];
}

static void decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                   struct rbk_batch *batch)
{
    struct gather *gather = gather_of(store);
    struct redbucket_store *inner = gather->front.inner;
    struct lane *lane = lane_of(gather, requests, len);

    if (lane == NULL) {
        inner->ops->decide(inner, requests, len, batch);
        return;
    }
    (void)pthread_mutex_lock(&lane->mutex);
    if (lane->flights >= gather->flights) {
        decide_gathered(gather, lane, requests, len, batch);
        return;
    }
    lane->flights++;
    (void)pthread_mutex_unlock(&lane->mutex);
    inner->ops->decide(inner, requests, len, batch);
    land_and_wake(gather, lane);
}

static void close_gather(struct redbucket_store *store)
{
    struct gather *gather = gather_of(store);

    redbucket_store_close(gather->front.inner);
    rbk_fork_page_unmap(gather->lanes, gather->front.ops.lanes * sizeof *gather->lanes);
    free(gather);
}

enum redbucket_status rbk_gather_create(struct redbucket_store *inner, double timeout,
                                        unsigned flights, struct redbucket_store **store,
                                        struct redbucket_error *error)
{
    struct gather *gather = calloc(1, sizeof *gather);
    enum redbucket_status status;

    if (gather == NULL)
        return rbk_fail(error, REDBUCKET_ERROR_MEMORY, -1, "store: out of memory");
    status = rbk_fork_page_map(inner->ops->lanes * sizeof *gather->lanes, (void **)&gather->lanes,
                               error);
    if (status != REDBUCKET_OK) {
        free(gather);
        return status;
    }
    rbk_front_init(&gather->front, inner);
    gather->front.ops.decide = decide;
    gather->front.ops.close = close_gather;
    gather->timeout = timeout;
    gather->flights = flights;
    gather->flight_max = inner->ops->together < FLIGHT_MAX ? inner->ops->together : FLIGHT_MAX;
    *store = &gather->front.store;
    return REDBUCKET_OK;
}
