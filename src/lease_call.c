/* SPDX-License-Identifier: MIT */
/*
 * The steps. A permit that was taken ahead counts from when this began, which is before its request
 * was sent.
 */
#include "lease_call.h"

/* ---- Asking ------------------------------------------------------------------------------------
 */

/* What a visit to each of a request's places has shown. */
struct wish {
    double permits[RBK_LEASE_CLAIMS]; /* to take ahead of each */
    bool hot;                         /* all of them are */
};

/* What was left of leases that are over goes first, since this very request may need it. */
static void visit(struct rbk_lease_call *call, const struct rbk_request *request,
                  const struct rbk_sought *sought, struct wish *wish)
{
    wish->hot = true;
    for (size_t i = 0; i < request->len; i++) {
        struct rbk_lack lack = {.bucket = sought->buckets[i],
                                .key = &request->keys[i],
                                .claim = &request->claims[i],
                                .cost = request->ask.cost,
                                .now = call->here};
        struct rbk_leftover leftover;

        if (!rbk_lease_trip_has_room(&call->trip)) {
            wish->hot = false;
            return;
        }
        if (!rbk_lease_places_visit(call->leases->places, &lack, &wish->permits[i], &leftover))
            wish->hot = false;
        if (leftover.permits > 0.0)
            rbk_lease_trip_give_back(&call->trip, &leftover);
    }
}

/* A child goes on from where its parent was: what comes of the parent's turns is not for it. */
static unsigned next_ticket(struct rbk_leases *leases)
{
    unsigned ticket;

    do
        ticket = atomic_fetch_add_explicit(&leases->tickets, 1, memory_order_relaxed) + 1;
    while (ticket == 0);
    return ticket;
}

static void take_ahead(struct rbk_lease_call *call, const struct rbk_request *request,
                       const struct rbk_sought *sought, const struct wish *wish)
{
    for (size_t i = 0; i < request->len && rbk_lease_trip_has_room(&call->trip); i++) {
        uint64_t parts = rbk_purse_parts_of(wish->permits[i]);
        struct rbk_turn turn = {.bucket = sought->buckets[i], .permits = rbk_purse_permits(parts)};

        if (parts == 0 || parts < rbk_purse_parts(request->ask.cost))
            continue;
        turn.ticket = next_ticket(call->leases);
        if (rbk_lease_places_begin(call->leases->places, turn.bucket, turn.ticket))
            rbk_lease_trip_take_ahead(&call->trip, request, i, &turn);
    }
}

static void seek(const struct rbk_lease_call *call, const struct rbk_request *request,
                 struct rbk_sought *sought)
{
    for (size_t i = 0; i < request->len; i++)
        sought->buckets[i] = rbk_lease_bucket(call->leases->secret, &request->keys[i]);
}

static void serve_or_ask(struct rbk_lease_call *call, size_t at)
{
    struct rbk_request *request = &call->requests[at];
    struct rbk_sought sought = {{0}};
    struct wish wish = {.hot = false};

    seek(call, request, &sought);
    if (rbk_lease_serve(call->leases->places, request, &sought, call->here, &call->trip))
        return;
    if (request->ask.operation == RBK_REQUEST)
        visit(call, request, &sought, &wish);
    rbk_lease_trip_add(&call->trip, request, at);
    if (wish.hot)
        take_ahead(call, request, &sought, &wish);
}

/* Gives back what is held of those of a request's buckets that leases are for; `all` has what
 * others are just taking given back as well, when it comes, and ends leases also where the trip has
 * no room for what is left of them, which is lost then. True when there was something. */
static bool recall(struct rbk_lease_call *call, const struct rbk_request *request, bool all)
{
    bool any = false;

    for (size_t i = 0; i < request->len; i++) {
        struct rbk_leftover leftover;
        uint64_t bucket;

        if (!all && !rbk_lease_trip_has_room(&call->trip))
            break;
        if (request->claims[i].lease == NULL || (!all && request->claims[i].verdict.accepted))
            continue;
        bucket = rbk_lease_bucket(call->leases->secret, &request->keys[i]);
        if (!rbk_lease_places_recall(call->leases->places, bucket, all, &leftover))
            continue;
        if (rbk_lease_trip_has_room(&call->trip))
            rbk_lease_trip_give_back(&call->trip, &leftover);
        any = true;
    }
    return any;
}

static void ask(struct rbk_lease_call *call)
{
    for (size_t i = 0; i < call->len; i++) {
        const struct rbk_request *request = &call->requests[i];
        enum rbk_operation operation = request->ask.operation;

        if (rbk_lease_may_serve(request)) {
            serve_or_ask(call, i);
            continue;
        }
        /* What is charged, or forgotten, is so at once for those who ask here. */
        if (request->leases > 0 && (operation == RBK_CHARGE || operation == RBK_RESET))
            (void)recall(call, request, true);
        rbk_lease_trip_add(&call->trip, request, i);
    }
}

/* ---- What came of it ---------------------------------------------------------------------------
 */

/* The state is as the request has left it, or as it was when it was rejected. */
static double level_of(const struct rbk_request *request, const struct rbk_claim *claim)
{
    return rbk_level(&claim->limit, &claim->state, request->ask.now);
}

static void learn(struct rbk_lease_call *call, const struct rbk_request *request)
{
    for (size_t i = 0; i < request->len; i++) {
        uint64_t bucket = rbk_lease_bucket(call->leases->secret, &request->keys[i]);
        const struct rbk_claim *claim = &request->claims[i];

        rbk_lease_places_learn(call->leases->places, bucket, &claim->limit,
                               level_of(request, claim), call->here);
    }
}

/* Who was accepted by the store is in the queue as well. */
static void queue_up(struct rbk_lease_call *call, const struct rbk_request *request)
{
    for (size_t i = 0; i < request->len; i++) {
        const struct rbk_limit *limit = &request->claims[i].limit;
        uint64_t bucket = rbk_lease_bucket(call->leases->secret, &request->keys[i]);
        struct rbk_purse *purse =
            limit->delay > 0.0 ? rbk_lease_places_find(call->leases->places, bucket) : NULL;

        if (purse != NULL)
            (void)rbk_purse_queue(purse, limit->rate, request->ask.cost, call->here, false);
    }
}

/* An answer of the store's to a caller that leases may serve. */
static void learn_of(struct rbk_lease_call *call, const struct rbk_request *request)
{
    if (request->status != REDBUCKET_OK || request->here || !rbk_lease_may_serve(request))
        return;
    learn(call, request);
    if (request->ask.operation == RBK_REQUEST && request->answer.accepted)
        queue_up(call, request);
}

/* While the store's clock is behind the bucket's, which is after it was set back, nothing drains:
 * what is received now is then counted as received when it is level. */
static void end_turn(struct rbk_lease_call *call, const struct rbk_request *request,
                     const struct rbk_extra *extra, double received)
{
    const struct rbk_claim *claim = &extra->claim;
    double ahead = claim->state.timestamp - request->ask.now;
    struct rbk_grant grant = {
        .note = {.bucket = extra->bucket,
                 .until = call->here + claim->lease->time,
                 .received = received + (ahead > 0.0 ? ahead : 0.0),
                 .taken_at = request->ask.now,
                 .top = claim->state.value,
                 .limit = claim->limit},
        .key = &extra->key,
        .expiry = claim->expiry,
        .permits = request->ask.cost,
        .cost = extra->cost,
    };
    bool granted = request->status == REDBUCKET_OK && request->answer.accepted;

    if (request->status == REDBUCKET_OK)
        learn(call, request);
    rbk_lease_places_end(call->leases->places, extra->bucket, extra->ticket,
                         granted ? &grant : NULL);
}

static void hand_back(struct rbk_lease_call *call)
{
    struct rbk_lease_trip *trip = &call->trip;
    double received = trip->extras_len > 0 ? call->leases->clock() : call->here;

    for (size_t i = 0; i < trip->len; i++) {
        const struct rbk_request *decided = &trip->requests[i];
        const struct rbk_extra *extra = rbk_lease_trip_extra(trip, i);

        if (extra == NULL) {
            call->requests[trip->origin[i]] = *decided;
            learn_of(call, decided);
        } else if (extra->ticket != 0) {
            end_turn(call, decided, extra, received);
        }
    }
}

/* ---- Once more ---------------------------------------------------------------------------------
 */

static void rescue(struct rbk_lease_call *call)
{
    struct rbk_leases *leases = call->leases;

    for (size_t i = 0; i < call->len; i++) {
        struct rbk_request *request = &call->requests[i];

        if (request->leases == 0 || request->ask.operation != RBK_REQUEST ||
            request->status != REDBUCKET_OK || request->answer.accepted ||
            !recall(call, request, false))
            continue;
        (void)atomic_fetch_add_explicit(&leases->rescued, 1, memory_order_relaxed);
        if (request->here)
            (void)atomic_fetch_add_explicit(&leases->undenied, 1, memory_order_relaxed);
        request->here = false;
        rbk_lease_trip_add(&call->trip, request, i);
    }
}

bool rbk_lease_collect(struct rbk_leases *leases, double here, bool all,
                       struct rbk_lease_trip *trip)
{
    struct rbk_leftover leftover;
    unsigned cursor = 0;
    size_t before = trip->extras_len;

    while (rbk_lease_trip_has_room(trip) &&
           rbk_lease_places_next(leases->places, here, all, &cursor, &leftover))
        rbk_lease_trip_give_back(trip, &leftover);
    if (!rbk_lease_trip_has_room(trip))
        rbk_lease_places_come_again(leases->places, here);
    return trip->extras_len > before;
}

static bool are_due(const struct rbk_lease_call *call)
{
    return rbk_lease_places_are_due(call->leases->places, call->here) &&
           rbk_lease_trip_has_room(&call->trip);
}

/* A part of the time for a call is enough for what nobody waits for. */
static bool sweep(struct rbk_lease_call *call)
{
    if (!are_due(call))
        return false;
    return rbk_lease_collect(call->leases, call->here, false, &call->trip);
}

bool rbk_lease_call_begin(struct rbk_lease_call *call)
{
    call->stage = RBK_LEASE_ASK;
    if (!rbk_lease_trip_init(&call->trip, call->len)) {
        call->stage = RBK_LEASE_DONE;
        rbk_requests_fail(call->requests, call->len, REDBUCKET_ERROR_MEMORY);
        return false;
    }
    call->here = call->leases->clock();
    ask(call);
    if (call->trip.len > 0 && call->leases->one_server && are_due(call))
        (void)rbk_lease_collect(call->leases, call->here, false, &call->trip);
    return call->trip.len > 0;
}

bool rbk_lease_call_next(struct rbk_lease_call *call)
{
    if (call->stage < RBK_LEASE_SWEEP)
        hand_back(call);
    rbk_lease_trip_clear(&call->trip);
    call->stage++;
    if (call->stage == RBK_LEASE_RESCUE) {
        rescue(call);
        if (call->trip.len > 0)
            return true;
        call->stage++;
    }
    if (call->stage == RBK_LEASE_SWEEP && !call->leases->one_server)
        return sweep(call);
    return false;
}

void rbk_lease_call_fini(struct rbk_lease_call *call)
{
    rbk_lease_trip_fini(&call->trip);
}
