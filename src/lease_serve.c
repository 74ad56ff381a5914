/* SPDX-License-Identifier: MIT */
/*
 * A lease is a bucket of its own here, which was as full at `received` as with all permits taken
 * that are spent by now, and drains from then on, later than the store's. Where delays matter, what
 * is spent queues up behind what was spent before.
 */
#include "lease_serve.h"

#include "bucket_hash.h"

#include <math.h>

/* What was spent for one request. */
struct spent {
    struct rbk_purse *purses[RBK_LEASE_CLAIMS];
    struct rbk_permit permits[RBK_LEASE_CLAIMS];
    size_t len;
};

uint64_t rbk_lease_bucket(const uint64_t secret[2], const struct rbk_key *key)
{
    uint64_t bucket = rbk_bucket_hash(secret, key);

    return bucket == 0 ? 1 : bucket;
}

bool rbk_lease_may_serve(const struct rbk_request *request)
{
    return request->leases == request->len && request->len <= RBK_LEASE_CLAIMS &&
           request->len > 0 &&
           (request->ask.operation == RBK_REQUEST || request->ask.operation == RBK_PEEK);
}

/* ---- Spending ----------------------------------------------------------------------------------
 */

/* What can't be put back, since its lease is over meanwhile, goes to the store. */
static void undo(const struct rbk_request *request, const struct spent *spent,
                 struct rbk_lease_trip *trip)
{
    for (size_t i = 0; i < spent->len; i++) {
        const struct rbk_permit *permit = &spent->permits[i];
        struct rbk_leftover leftover = {.note = permit->note,
                                        .permits =
                                            rbk_purse_permits(permit->before - permit->after),
                                        .expiry = request->claims[i].expiry};

        if (!rbk_purse_restore(spent->purses[i], permit) && rbk_lease_trip_has_room(trip) &&
            rbk_lease_text_set(&leftover.text, &request->keys[i]))
            rbk_lease_trip_give_back(trip, &leftover);
    }
}

static bool spend(struct rbk_lease_places *places, const struct rbk_request *request,
                  const struct rbk_sought *sought, double here, struct spent *spent)
{
    bool looks = request->ask.operation == RBK_PEEK;
    struct rbk_want want = {.parts = rbk_purse_parts(request->ask.cost), .now = here};

    for (spent->len = 0; spent->len < request->len; spent->len++) {
        struct rbk_purse *purse = rbk_lease_places_find(places, sought->buckets[spent->len]);
        struct rbk_permit *permit = &spent->permits[spent->len];

        want.bucket = sought->buckets[spent->len];
        want.limit = &request->claims[spent->len].limit;
        if (purse == NULL ||
            !(looks ? rbk_purse_look(purse, &want, permit) : rbk_purse_spend(purse, &want, permit)))
            return false;
        spent->purses[spent->len] = purse;
    }
    return true;
}

/* ---- Answering ---------------------------------------------------------------------------------
 */

/* How full the bucket is for who spends now. Without a delay to work out, what was spent of the
 * lease is enough to know. */
static double level_for(struct rbk_purse *purse, const struct rbk_permit *permit, double here,
                        bool looks)
{
    const struct rbk_note *note = &permit->note;
    double before = rbk_purse_permits(rbk_purse_left(permit->before));
    double after = rbk_purse_permits(rbk_purse_left(permit->after));
    struct rbk_state spent = {true, note->received, note->top - before};

    if (note->limit.delay > 0.0)
        return rbk_purse_queue(purse, note->limit.rate, before - after, here, looks);
    return rbk_level(&note->limit, &spent, here);
}

static void tell(struct rbk_claim *claim, const struct rbk_permit *permit, double level,
                 double here)
{
    const struct rbk_note *note = &permit->note;
    double before = rbk_purse_permits(rbk_purse_left(permit->before));
    double after = rbk_purse_permits(rbk_purse_left(permit->after));
    struct rbk_state spent = {true, here, level};
    struct rbk_state whole = {true, note->received, note->top};
    struct rbk_verdict *verdict = &claim->verdict;
    struct rbk_judgement judgement;
    double level_after = level + (before - after);
    int64_t at_once = rbk_remaining(&claim->limit, level_after);

    rbk_judge(&claim->limit, &spent, before - after, here, &judgement);
    claim->level = judgement.level;
    claim->change = RBK_KEEP;
    /* What the model would reject here has its permit: it waits for as long as is left. */
    *verdict = (struct rbk_verdict){
        .accepted = true,
        .delay = judgement.accepted ? judgement.delay : -judgement.room / claim->limit.rate,
        .reset_after =
            fmax(rbk_level(&claim->limit, &whole, here), level_after) / claim->limit.rate,
        .remaining = at_once < (int64_t)after ? at_once : (int64_t)after,
    };
}

static void answer(struct rbk_request *request, const struct spent *spent, double here)
{
    bool looks = request->ask.operation == RBK_PEEK;

    request->ask.now = INFINITY;
    for (size_t i = 0; i < request->len; i++) {
        const struct rbk_permit *permit = &spent->permits[i];

        tell(&request->claims[i], permit, level_for(spent->purses[i], permit, here, looks), here);
        request->ask.now = fmin(request->ask.now, permit->note.taken_at);
    }
    rbk_decide_together(&request->ask, request->claims, request->len, &request->answer);
    request->status = REDBUCKET_OK;
    request->failed = RBK_NONE;
    request->here = true;
}

bool rbk_lease_serve(struct rbk_lease_places *places, struct rbk_request *request,
                     const struct rbk_sought *sought, double here, struct rbk_lease_trip *trip)
{
    struct spent spent;

    if (!spend(places, request, sought, here, &spent)) {
        if (request->ask.operation == RBK_REQUEST && spent.len > 0)
            undo(request, &spent, trip);
        return false;
    }
    answer(request, &spent, here);
    if (request->ask.operation == RBK_REQUEST) {
        (void)atomic_fetch_add_explicit(&spent.purses[0]->leased, 1, memory_order_relaxed);
        if (request->answer.delay > 0.0)
            (void)atomic_fetch_add_explicit(&spent.purses[0]->delayed, 1, memory_order_relaxed);
    }
    return true;
}
