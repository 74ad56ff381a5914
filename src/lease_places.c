/* SPDX-License-Identifier: MIT */
/*
 * Places, and the life of a lease in one: taken, held, used up or over.
 */
#include "lease_places.h"

#include <math.h>
#include <string.h>

/* A lease that nobody has used for this part of its time, or this long, is given back. */
#define IDLE_PART 0.25
#define IDLE_MAX  1.0 /* seconds */

/* Seconds between looks at all leases, of which there may be many. */
#define REST_TIME 0.01

/* ---- Texts -------------------------------------------------------------------------------------
 */

static bool fits(const struct rbk_key *key)
{
    return key->zone_len <= RBK_LEASE_PLACES_TEXT &&
           key->key_len <= RBK_LEASE_PLACES_TEXT - key->zone_len;
}

bool rbk_lease_text_set(struct rbk_lease_text *text, const struct rbk_key *key)
{
    if (!fits(key))
        return false;
    text->zone_len = (unsigned)key->zone_len;
    text->key_len = (unsigned)key->key_len;
    memcpy(text->bytes, key->zone, key->zone_len);
    if (key->key_len > 0)
        memcpy(text->bytes + key->zone_len, key->key, key->key_len);
    return true;
}

struct rbk_key rbk_lease_text_key(const struct rbk_lease_text *text)
{
    return (struct rbk_key){.zone = text->bytes,
                            .zone_len = text->zone_len,
                            .key = text->bytes + text->zone_len,
                            .key_len = text->key_len};
}

/* ---- Finding -----------------------------------------------------------------------------------
 */

static unsigned set_of(uint64_t bucket)
{
    return (unsigned)(bucket % RBK_LEASE_PLACES_SETS);
}

/* Which of the set's places is the bucket's; RBK_LEASE_PLACES_WAYS for none. */
static unsigned way_of(struct rbk_lease_place_set *set, uint64_t bucket)
{
    unsigned way = 0;

    while (way < RBK_LEASE_PLACES_WAYS &&
           atomic_load_explicit(&set->buckets[way], memory_order_relaxed) != bucket)
        way++;
    return way;
}

struct rbk_purse *rbk_lease_places_find(struct rbk_lease_places *places, uint64_t bucket)
{
    struct rbk_lease_place_set *set = &places->sets[set_of(bucket)];
    unsigned way = way_of(set, bucket);

    return way < RBK_LEASE_PLACES_WAYS ? &set->places[way].purse : NULL;
}

/* Locks the set of a bucket that has a place; NULL, and no lock, when it has none. */
static struct rbk_lease_place *lock(struct rbk_lease_places *places, uint64_t bucket)
{
    struct rbk_lease_place_set *set = &places->sets[set_of(bucket)];
    unsigned way;

    (void)pthread_mutex_lock(&set->mutex);
    way = way_of(set, bucket);
    if (way < RBK_LEASE_PLACES_WAYS)
        return &set->places[way];
    (void)pthread_mutex_unlock(&set->mutex);
    return NULL;
}

static void unlock(struct rbk_lease_places *places, uint64_t bucket)
{
    (void)pthread_mutex_unlock(&places->sets[set_of(bucket)].mutex);
}

static unsigned index_of(const struct rbk_lease_places *places, const struct rbk_lease_place *place,
                         unsigned set)
{
    return set * RBK_LEASE_PLACES_WAYS + (unsigned)(place - places->sets[set].places);
}

/* ---- Which places hold something ---------------------------------------------------------------
 */

static void hold(struct rbk_lease_places *places, unsigned index)
{
    uint64_t bit = (uint64_t)1 << index % 64;

    if ((atomic_fetch_or(&places->held[index / 64], bit) & bit) == 0)
        (void)atomic_fetch_add(&places->holding, 1);
}

static void let_go(struct rbk_lease_places *places, unsigned index)
{
    uint64_t bit = (uint64_t)1 << index % 64;

    if ((atomic_fetch_and(&places->held[index / 64], ~bit) & bit) != 0)
        (void)atomic_fetch_sub(&places->holding, 1);
}

static bool is_held(const struct rbk_lease_places *places, unsigned index)
{
    return (atomic_load(&places->held[index / 64]) >> index % 64 & 1) != 0;
}

static void be_due_by(struct rbk_lease_places *places, double when)
{
    double due = atomic_load(&places->due);

    while (when < due && !atomic_compare_exchange_weak(&places->due, &due, when))
        ;
}

/* ---- Leases, under the lock --------------------------------------------------------------------
 */

static double idle_time(const struct rbk_lease_place *place)
{
    double part = place->time * IDLE_PART;

    return part < IDLE_MAX ? part : IDLE_MAX;
}

/* What can't have drained yet is worth giving back, if it is as much as a cost can be. */
static bool is_worth(const struct rbk_note *note, double permits, double now)
{
    double gone = now > note->received ? now - note->received : 0.0;

    return permits - gone * note->limit.rate >= RBK_COST_MIN && permits >= RBK_COST_MIN;
}

/* Ends the lease of a place. True when something was left that is worth giving back. */
static bool end_lease(struct rbk_lease_places *places, struct rbk_lease_place *place,
                      unsigned index, double now, struct rbk_leftover *leftover)
{
    leftover->permits = rbk_purse_permits(rbk_purse_empty(&place->purse));
    let_go(places, index);
    rbk_purse_note(&place->purse, &leftover->note);
    leftover->expiry = place->expiry;
    leftover->text = place->text;
    if (!is_worth(&leftover->note, leftover->permits, now))
        leftover->permits = 0.0;
    return leftover->permits > 0.0;
}

/* A lease that can't serve a request of `cost` has been used up, or its time is over: the pace is
 * told, and what is left of it ends. */
static void settle(struct rbk_lease_places *places, struct rbk_lease_place *place, unsigned index,
                   const struct rbk_lack *lack, struct rbk_leftover *leftover)
{
    double left = rbk_purse_permits(rbk_purse_now(&place->purse));
    struct rbk_note note;

    rbk_purse_note(&place->purse, &note);
    if (place->taken > 0.0 && !(lack->now < note.until))
        rbk_pace_outlived(&place->pace, place->taken - left, place->cost);
    else if (place->taken > 0.0 && left * 2.0 <= place->taken)
        rbk_pace_used_up(&place->pace, place->taken);
    if (place->taken > 0.0 || left > 0.0)
        (void)end_lease(places, place, index, lack->now, leftover);
    place->taken = 0.0;
}

static bool can_serve(const struct rbk_lease_place *place, const struct rbk_lack *lack)
{
    struct rbk_note note;

    rbk_purse_note(&place->purse, &note);
    return lack->now < note.until && rbk_purse_now(&place->purse) >= rbk_purse_parts(lack->cost);
}

/* ---- Making room, under the lock ---------------------------------------------------------------
 */

static bool is_free(const struct rbk_lease_places *places, const struct rbk_lease_place *place,
                    unsigned index, double now)
{
    bool hot = place->pace.next > 0.0;

    return place->ticket == 0 && !is_held(places, index) &&
           (!hot || rbk_pace_is_stale(&place->pace, now, place->time));
}

/* The place that is worth least: one that nobody asks for, or the one asked for least. Each
 * newcomer takes one from what that has counted, and gets it when nothing is left. */
static struct rbk_lease_place *make_room(struct rbk_lease_places *places, unsigned set, double now)
{
    struct rbk_lease_place *least = NULL;

    for (unsigned way = 0; way < RBK_LEASE_PLACES_WAYS; way++) {
        struct rbk_lease_place *place = &places->sets[set].places[way];

        if (!is_free(places, place, set * RBK_LEASE_PLACES_WAYS + way, now))
            continue;
        if (place->pace.asked == 0 || rbk_pace_is_stale(&place->pace, now, place->time))
            return place;
        if (least == NULL || place->pace.asked < least->pace.asked)
            least = place;
    }
    if (least == NULL || --least->pace.asked > 0)
        return NULL;
    return least;
}

static struct rbk_lease_place *place_for(struct rbk_lease_places *places,
                                         const struct rbk_lack *lack)
{
    unsigned number = set_of(lack->bucket);
    struct rbk_lease_place_set *set = &places->sets[number];
    unsigned way = way_of(set, lack->bucket);
    struct rbk_lease_place *place;

    if (way < RBK_LEASE_PLACES_WAYS)
        return &set->places[way];
    place = make_room(places, number, lack->now);
    if (place == NULL)
        return NULL;
    place->pace = (struct rbk_pace){.since = lack->now};
    place->taken = 0.0;
    atomic_store_explicit(&set->buckets[place - set->places], lack->bucket, memory_order_relaxed);
    return place;
}

/* ---- Taking ahead ------------------------------------------------------------------------------
 */

/* True when the bucket is hot. */
static bool ask_place(struct rbk_lease_places *places, const struct rbk_lack *lack, double *amount,
                      struct rbk_leftover *leftover)
{
    const struct rbk_lease_terms *terms = lack->claim->lease;
    struct rbk_lease_place *place = place_for(places, lack);

    if (place == NULL)
        return false;
    place->time = terms->time;
    rbk_pace_count(&place->pace, lack->now, terms->time);
    if (place->ticket != 0 || can_serve(place, lack))
        return true;
    settle(places, place, index_of(places, place, set_of(lack->bucket)), lack, leftover);
    *amount = rbk_pace_amount(&place->pace, &lack->claim->limit, terms, lack->cost, lack->now);
    return *amount > 0.0;
}

bool rbk_lease_places_visit(struct rbk_lease_places *places, const struct rbk_lack *lack,
                            double *amount, struct rbk_leftover *leftover)
{
    struct rbk_lease_place_set *set = &places->sets[set_of(lack->bucket)];
    bool hot;

    *amount = 0.0;
    leftover->permits = 0.0;
    if (!fits(lack->key))
        return false;
    if (pthread_mutex_trylock(&set->mutex) != 0)
        return false;
    hot = ask_place(places, lack, amount, leftover);
    (void)pthread_mutex_unlock(&set->mutex);
    return hot;
}

bool rbk_lease_places_begin(struct rbk_lease_places *places, uint64_t bucket, unsigned ticket)
{
    struct rbk_lease_place *place = lock(places, bucket);
    bool begins;

    if (place == NULL)
        return false;
    /* Since the visit another may have taken permits ahead, or put back what it couldn't use. */
    begins = place->ticket == 0 && rbk_purse_close(&place->purse);
    if (begins) {
        place->ticket = ticket;
        place->recalled = false;
    }
    unlock(places, bucket);
    return begins;
}

/* Whoever has the ticket is alone in filling: the purse is as empty as it was closed. */
static void fill(struct rbk_lease_places *places, struct rbk_lease_place *place, unsigned index,
                 const struct rbk_grant *grant)
{
    struct rbk_note note = grant->note;
    double check = note.received + idle_time(place);

    if (place->recalled)
        note.until = note.received;
    if (!rbk_lease_text_set(&place->text, grant->key))
        return;
    place->taken = grant->permits;
    place->cost = grant->cost;
    place->expiry = grant->expiry;
    place->seen = rbk_purse_parts_of(grant->permits);
    place->seen_at = note.received;
    rbk_purse_fill(&place->purse, &note, place->seen);
    hold(places, index);
    be_due_by(places, note.until < check ? note.until : check);
}

void rbk_lease_places_end(struct rbk_lease_places *places, uint64_t bucket, unsigned ticket,
                          const struct rbk_grant *grant)
{
    struct rbk_lease_place *place = lock(places, bucket);

    /* A child that was forked meanwhile has no part in it. */
    if (place == NULL)
        return;
    if (place->ticket == ticket) {
        if (grant != NULL)
            fill(places, place, index_of(places, place, set_of(bucket)), grant);
        place->ticket = 0;
    }
    unlock(places, bucket);
}

void rbk_lease_places_learn(struct rbk_lease_places *places, uint64_t bucket,
                            const struct rbk_limit *limit, double level, double now)
{
    struct rbk_lease_place_set *set = &places->sets[set_of(bucket)];
    unsigned way;

    if (pthread_mutex_trylock(&set->mutex) != 0)
        return;
    way = way_of(set, bucket);
    if (way < RBK_LEASE_PLACES_WAYS)
        rbk_pace_learn(&set->places[way].pace, limit, level, now);
    (void)pthread_mutex_unlock(&set->mutex);
}

/* ---- Giving back -------------------------------------------------------------------------------
 */

bool rbk_lease_places_recall(struct rbk_lease_places *places, uint64_t bucket, bool all,
                             struct rbk_leftover *leftover)
{
    struct rbk_purse *purse = rbk_lease_places_find(places, bucket);
    struct rbk_lease_place *place = purse == NULL ? NULL : lock(places, bucket);
    bool left = false;

    if (place == NULL)
        return false;
    if (rbk_purse_now(&place->purse) > 0)
        left =
            end_lease(places, place, index_of(places, place, set_of(bucket)), -INFINITY, leftover);
    place->taken = 0.0;
    if (all && place->ticket != 0)
        place->recalled = true;
    unlock(places, bucket);
    return left;
}

bool rbk_lease_places_are_due(struct rbk_lease_places *places, double now)
{
    return atomic_load_explicit(&places->holding, memory_order_relaxed) > 0 &&
           now >= atomic_load_explicit(&places->due, memory_order_relaxed) &&
           now >= atomic_load_explicit(&places->rest, memory_order_relaxed);
}

/* Looks at a lease: true when it ends here, and something of it is left. */
static bool look_at(struct rbk_lease_places *places, struct rbk_lease_place *place, unsigned index,
                    double now, struct rbk_leftover *leftover)
{
    uint64_t left = rbk_purse_now(&place->purse);
    double used = place->taken - rbk_purse_permits(left);
    struct rbk_note note;
    double check;

    rbk_purse_note(&place->purse, &note);
    /* Who puts back what was spent of it puts it where somebody looks: no more into this one. */
    if (left == 0)
        return end_lease(places, place, index, now, leftover);
    if (!(now < note.until) || (left == place->seen && now - place->seen_at >= idle_time(place))) {
        if (place->taken > 0.0)
            rbk_pace_outlived(&place->pace, used, place->cost);
        place->taken = 0.0;
        return end_lease(places, place, index, now, leftover);
    }
    if (left != place->seen) {
        place->seen = left;
        place->seen_at = now;
    }
    check = place->seen_at + idle_time(place);
    be_due_by(places, note.until < check ? note.until : check);
    return false;
}

static bool look(struct rbk_lease_places *places, unsigned index, double now, bool all,
                 struct rbk_leftover *leftover)
{
    struct rbk_lease_place_set *set = &places->sets[index / RBK_LEASE_PLACES_WAYS];
    struct rbk_lease_place *place = &set->places[index % RBK_LEASE_PLACES_WAYS];
    bool left;

    if (pthread_mutex_trylock(&set->mutex) != 0) {
        be_due_by(places, now);
        return false;
    }
    left = all ? end_lease(places, place, index, now, leftover)
               : look_at(places, place, index, now, leftover);
    (void)pthread_mutex_unlock(&set->mutex);
    return left;
}

bool rbk_lease_places_next(struct rbk_lease_places *places, double now, bool all, unsigned *cursor,
                           struct rbk_leftover *leftover)
{
    if (*cursor == 0) {
        atomic_store(&places->due, INFINITY);
        atomic_store(&places->rest, now + REST_TIME);
    }
    while (*cursor < RBK_LEASE_PLACES_ALL) {
        unsigned index = *cursor;

        if (index % 64 == 0 && atomic_load(&places->held[index / 64]) == 0) {
            *cursor += 64;
            continue;
        }
        *cursor += 1;
        if (is_held(places, index) && look(places, index, now, all, leftover))
            return true;
    }
    return false;
}

void rbk_lease_places_come_again(struct rbk_lease_places *places, double now)
{
    be_due_by(places, now);
    atomic_store(&places->rest, now);
}

void rbk_lease_places_count(struct rbk_lease_places *places, uint64_t *leased, uint64_t *delayed)
{
    *leased = 0;
    *delayed = 0;
    for (unsigned i = 0; i < RBK_LEASE_PLACES_ALL; i++) {
        struct rbk_purse *purse =
            &places->sets[i / RBK_LEASE_PLACES_WAYS].places[i % RBK_LEASE_PLACES_WAYS].purse;

        *leased += atomic_load_explicit(&purse->leased, memory_order_relaxed);
        *delayed += atomic_load_explicit(&purse->delayed, memory_order_relaxed);
    }
}
