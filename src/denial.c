/* SPDX-License-Identifier: MIT */
/*
 * Entries in sets of a few places each, each under a version that is odd while somebody writes: a
 * reader that met a writer knows nothing, a writer that met another leaves it at that.
 *
 * Each bucket has an epoch, shared with others by chance, that moves on when something other than a
 * rejection has been done to it. An entry holds the epochs from before its request was sent.
 */
#include "denial.h"

#include "bucket_hash.h"
#include "front.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#define SETS       1024u
#define PLACES     4u
#define EPOCHS     4096u
#define CLAIMS_MAX 4u /* requests of more limits are always the server's to answer */

/* What is known of one of its buckets. Limits are part of it: with another limit, the same bucket
 * may let a request pass. */
struct bucket {
    _Atomic(uint64_t) epoch;
    _Atomic(double) rate;
    _Atomic(double) burst;
    _Atomic(double) delay;
    _Atomic(double) timestamp;
    _Atomic(double) value;
};

/* What is known of one request. All fields are relaxed, but for the version, which is odd while the
 * others are written. */
struct entry {
    atomic_uint version;
    _Atomic(uint64_t) signature;
    _Atomic(double) until; /* by the clock here, as the next */
    _Atomic(double) received;
    _Atomic(double) now; /* the server's, when it rejected */
    _Atomic(double) cost;
    struct bucket buckets[CLAIMS_MAX];
};

struct denial {
    struct rbk_front front;
    double time;
    rbk_clock *clock;
    uint64_t secret[2];
    atomic_ullong denied;
    _Atomic(uint32_t) epochs[EPOCHS];
    struct entry entries[SETS][PLACES];
};

/* What a request is known by. */
struct sought {
    uint64_t signature;
    uint32_t epochs[CLAIMS_MAX];
};

static struct denial *denial_of(struct redbucket_store *store)
{
    return (struct denial *)store;
}

/* ---- Hashes ------------------------------------------------------------------------------------
 */

static _Atomic(uint32_t) *epoch_of(struct denial *denial, uint64_t bucket)
{
    return &denial->epochs[bucket % EPOCHS];
}

/* Each bucket's hash is keyed, so that mixing them needs no care but for their order. */
static void seek(struct denial *denial, const struct rbk_request *request, struct sought *sought)
{
    sought->signature = request->len;
    for (size_t i = 0; i < request->len; i++) {
        uint64_t bucket = rbk_bucket_hash(denial->secret, &request->keys[i]);

        sought->epochs[i] = atomic_load(epoch_of(denial, bucket));
        sought->signature = (sought->signature << 7 | sought->signature >> 57) + bucket;
    }
}

/* ---- Entries -----------------------------------------------------------------------------------
 */

static double get(const _Atomic(double) *field)
{
    return atomic_load_explicit(field, memory_order_relaxed);
}

static void set(_Atomic(double) *field, double number)
{
    atomic_store_explicit(field, number, memory_order_relaxed);
}

/* Whoever reads takes the version first, and believes what he has read when it is the same, and
 * even, in the end. */
static unsigned begin_reading(const struct entry *entry)
{
    return atomic_load_explicit(&entry->version, memory_order_acquire);
}

static bool end_reading(const struct entry *entry, unsigned version)
{
    atomic_thread_fence(memory_order_acquire);
    return version % 2 == 0 &&
           atomic_load_explicit(&entry->version, memory_order_relaxed) == version;
}

/* False while somebody else writes. */
static bool begin_writing(struct entry *entry)
{
    unsigned version = atomic_load_explicit(&entry->version, memory_order_relaxed);

    if (version % 2 != 0 ||
        !atomic_compare_exchange_strong_explicit(&entry->version, &version, version + 1,
                                                 memory_order_acquire, memory_order_relaxed))
        return false;
    atomic_thread_fence(memory_order_release);
    return true;
}

static void end_writing(struct entry *entry)
{
    (void)atomic_fetch_add_explicit(&entry->version, 1, memory_order_release);
}

/* The entry of that signature, or NULL; whoever uses it looks at the rest. */
static struct entry *find(struct denial *denial, uint64_t signature)
{
    struct entry *places = denial->entries[signature % SETS];

    for (size_t i = 0; i < PLACES; i++) {
        if (atomic_load_explicit(&places[i].signature, memory_order_relaxed) == signature)
            return &places[i];
    }
    return NULL;
}

/* The one that is over first makes room. */
static struct entry *place_for(struct denial *denial, uint64_t signature)
{
    struct entry *places = denial->entries[signature % SETS];
    struct entry *found = find(denial, signature);
    double earliest = INFINITY;

    if (found != NULL)
        return found;
    for (size_t i = 0; i < PLACES; i++) {
        double until = get(&places[i].until);

        if (until < earliest) {
            earliest = until;
            found = &places[i];
        }
    }
    return found;
}

/* ---- Requests ----------------------------------------------------------------------------------
 */

static bool may_be_known(const struct rbk_request *request)
{
    return request->ask.operation == RBK_REQUEST && request->len > 0 && request->len <= CLAIMS_MAX;
}

static bool is_about(const struct entry *entry, const struct rbk_request *request,
                     const struct sought *sought)
{
    if (get(&entry->cost) != request->ask.cost)
        return false;
    for (size_t i = 0; i < request->len; i++) {
        const struct bucket *bucket = &entry->buckets[i];
        const struct rbk_limit *limit = &request->claims[i].limit;

        if (atomic_load_explicit(&bucket->epoch, memory_order_relaxed) != sought->epochs[i] ||
            get(&bucket->rate) != limit->rate || get(&bucket->burst) != limit->burst ||
            get(&bucket->delay) != limit->delay)
            return false;
    }
    return true;
}

/* Puts the states that are known into the request; false when they aren't, or are over. */
static bool recall(struct denial *denial, struct rbk_request *request, const struct sought *sought,
                   double here)
{
    const struct entry *entry = find(denial, sought->signature);
    unsigned version;
    double since;

    if (entry == NULL)
        return false;
    version = begin_reading(entry);
    if (!(here < get(&entry->until)) || !is_about(entry, request, sought))
        return false;
    /* Whoever waits for as long as this says has waited long enough. */
    since = here - get(&entry->received);
    request->ask.now = get(&entry->now) + (since > 0.0 ? since : 0.0);
    for (size_t i = 0; i < request->len; i++) {
        const struct bucket *bucket = &entry->buckets[i];

        request->claims[i].state =
            (struct rbk_state){true, get(&bucket->timestamp), get(&bucket->value)};
    }
    /* The signature may have been another's by the time that the rest was read. */
    return atomic_load_explicit(&entry->signature, memory_order_relaxed) == sought->signature &&
           end_reading(entry, version);
}

/* Answers a request that is known to be rejected still. */
static bool deny(struct denial *denial, struct rbk_request *request, const struct sought *sought,
                 double here)
{
    if (!recall(denial, request, sought, here))
        return false;
    rbk_decide(&request->ask, request->claims, request->len, &request->answer);
    if (request->answer.accepted)
        return false;
    request->status = REDBUCKET_OK;
    request->failed = RBK_NONE;
    request->here = true;
    if (!request->aside)
        (void)atomic_fetch_add_explicit(&denial->denied, 1, memory_order_relaxed);
    return true;
}

/* A bucket without a state is as good as one that was empty then. */
static void note(struct bucket *bucket, const struct rbk_claim *claim, double now, uint64_t epoch)
{
    const struct rbk_state *state = &claim->state;

    atomic_store_explicit(&bucket->epoch, epoch, memory_order_relaxed);
    set(&bucket->rate, claim->limit.rate);
    set(&bucket->burst, claim->limit.burst);
    set(&bucket->delay, claim->limit.delay);
    set(&bucket->timestamp, state->exists ? state->timestamp : now);
    set(&bucket->value, state->exists ? state->value : 0.0);
}

/* Keeps what a rejection says. */
static void learn(struct denial *denial, const struct rbk_request *request,
                  const struct sought *sought, double sent)
{
    struct entry *entry = place_for(denial, sought->signature);

    if (entry == NULL || !begin_writing(entry))
        return;
    atomic_store_explicit(&entry->signature, sought->signature, memory_order_relaxed);
    set(&entry->until, sent + fmin(request->answer.retry_after, denial->time));
    set(&entry->received, denial->clock());
    set(&entry->now, request->ask.now);
    set(&entry->cost, request->ask.cost);
    for (size_t i = 0; i < request->len; i++)
        note(&entry->buckets[i], &request->claims[i], request->ask.now, sought->epochs[i]);
    end_writing(entry);
}

/* Somebody here may be emptying these buckets. */
static void move_on(struct denial *denial, const struct rbk_request *request)
{
    for (size_t i = 0; i < request->len; i++)
        (void)atomic_fetch_add(epoch_of(denial, rbk_bucket_hash(denial->secret, &request->keys[i])),
                               1);
}

static bool changes_otherwise(const struct rbk_request *request)
{
    return request->ask.operation != RBK_REQUEST && request->ask.operation != RBK_PEEK;
}

/* ---- A batch -----------------------------------------------------------------------------------
 */

/* Requests of a batch that are few, and so on the stack. */
#define FEW 32u

/* What is sent of a batch, side by side, and where it was. */
struct sent {
    struct rbk_request *requests;
    struct sought *sought;
    size_t *origin;
    size_t len;
};

struct few {
    struct rbk_request requests[FEW];
    struct sought sought[FEW];
    size_t origin[FEW];
};

/* In the memory of a few, or in *memory, which is to be freed; false without that. */
static bool make_room(struct sent *sent, struct few *few, size_t len, void **memory)
{
    unsigned char *made = NULL;

    *memory = NULL;
    *sent = (struct sent){few->requests, few->sought, few->origin, 0};
    if (len <= FEW)
        return true;
    made = malloc(len * (sizeof *sent->requests + sizeof *sent->sought + sizeof *sent->origin));
    *memory = made;
    if (made == NULL)
        return false;
    sent->requests = (struct rbk_request *)(void *)made;
    sent->sought = (struct sought *)(sent->requests + len);
    sent->origin = (size_t *)(sent->sought + len);
    return true;
}

/* Answers what is known; the rest is to be sent. What changes a bucket otherwise moves its epoch on
 * now, for the requests behind it, and when it is done, for those that others have sent meanwhile.
 */
static void sort_out(struct denial *denial, struct rbk_request *requests, size_t len, double here,
                     struct sent *sent)
{
    for (size_t i = 0; i < len; i++) {
        struct sought *sought = &sent->sought[sent->len];

        if (changes_otherwise(&requests[i]))
            move_on(denial, &requests[i]);
        if (may_be_known(&requests[i])) {
            seek(denial, &requests[i], sought);
            if (deny(denial, &requests[i], sought, here))
                continue;
        }
        sent->requests[sent->len] = requests[i];
        sent->origin[sent->len++] = i;
    }
}

/* In a cluster, a request over several slots that wasn't accepted may have taken and given back. */
static bool gave_back(const struct denial *denial, const struct rbk_request *request)
{
    return denial->front.inner->ops->in_steps && request->len > 1 &&
           (request->status != REDBUCKET_OK || !request->answer.accepted);
}

/* By another limit than what is known of the bucket, it may have drained faster. */
static bool takes(const struct rbk_request *request)
{
    return request->ask.operation == RBK_REQUEST && request->status == REDBUCKET_OK &&
           request->answer.accepted;
}

static void hand_back(struct denial *denial, const struct sent *sent, struct rbk_request *requests,
                      double here)
{
    for (size_t i = 0; i < sent->len; i++) {
        const struct rbk_request *decided = &sent->requests[i];

        if (decided != requests)
            requests[sent->origin[i]] = *decided;
        if (changes_otherwise(decided) || takes(decided) || gave_back(denial, decided))
            move_on(denial, decided);
        else if (may_be_known(decided) && decided->status == REDBUCKET_OK &&
                 !decided->answer.accepted)
            learn(denial, decided, &sent->sought[i], here);
    }
}

/* Nothing is copied when there is one. */
static void decide_one(struct denial *denial, struct rbk_request *request, struct rbk_batch *batch)
{
    struct redbucket_store *inner = denial->front.inner;
    double here = denial->clock();
    struct sent sent;
    struct sought sought = {.signature = 0};
    size_t origin = 0;

    if (may_be_known(request)) {
        seek(denial, request, &sought);
        if (deny(denial, request, &sought, here))
            return;
    } else if (changes_otherwise(request)) {
        move_on(denial, request);
    }
    inner->ops->decide(inner, request, 1, batch);
    sent = (struct sent){request, &sought, &origin, 1};
    hand_back(denial, &sent, request, here);
}

static void decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                   struct rbk_batch *batch)
{
    struct denial *denial = denial_of(store);
    struct redbucket_store *inner = denial->front.inner;
    double here;
    struct sent sent;
    struct few few;
    void *memory;

    if (len == 1) {
        decide_one(denial, requests, batch);
        return;
    }
    here = denial->clock();
    if (!make_room(&sent, &few, len, &memory)) {
        rbk_requests_fail(requests, len, REDBUCKET_ERROR_MEMORY);
        return;
    }
    sort_out(denial, requests, len, here, &sent);
    if (sent.len > 0) {
        inner->ops->decide(inner, sent.requests, sent.len, batch);
        hand_back(denial, &sent, requests, here);
    }
    free(memory);
}

static enum redbucket_status statistics(struct redbucket_store *store,
                                        struct redbucket_statistics *out)
{
    struct denial *denial = denial_of(store);
    struct redbucket_store *inner = denial->front.inner;
    enum redbucket_status status = inner->ops->statistics(inner, out);

    out->denied = atomic_load_explicit(&denial->denied, memory_order_relaxed);
    out->rejected += out->denied;
    return status;
}

static void close_denial(struct redbucket_store *store)
{
    struct denial *denial = denial_of(store);

    redbucket_store_close(denial->front.inner);
    free(denial);
}

enum redbucket_status rbk_denial_create(struct redbucket_store *inner, double time,
                                        rbk_clock *clock, struct redbucket_store **store,
                                        struct redbucket_error *error)
{
    struct denial *denial = calloc(1, sizeof *denial);

    if (denial == NULL)
        return rbk_fail(error, REDBUCKET_ERROR_MEMORY, -1, "store: out of memory");
    if (getrandom(denial->secret, sizeof denial->secret, 0) != sizeof denial->secret) {
        free(denial);
        return rbk_fail(error, REDBUCKET_ERROR_SYSTEM, -1, "store: no random numbers");
    }
    rbk_front_init(&denial->front, inner);
    denial->front.ops.decide = decide;
    denial->front.ops.statistics = statistics;
    denial->front.ops.close = close_denial;
    denial->time = time;
    denial->clock = clock;
    *store = &denial->front.store;
    return REDBUCKET_OK;
}
