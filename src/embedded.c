/* SPDX-License-Identifier: MIT */
/*
 * Deciding on a table under its shards' locks. Shards are at most 64, so a set of them is a word,
 * and going through its bits from the lowest is going in the order of the locks.
 */
#include "embedded.h"

#include "interrupt.h"
#include "wait.h"

#include <string.h>
#include <sys/random.h>

_Static_assert(RBK_TABLE_CLAIMS >= REDBUCKET_KEYS_MAX, "a request's claims are applied together");
_Static_assert(RBK_TABLE_SHARDS_MAX <= 64, "a set of shards is a word");

/* Seconds between two tries of a fiber to get locks. */
#define PAUSE 0.001

/* What happened under the locks, to be told once they are free. */
enum {
    MET_TORN = 1,
    MET_FULL = 2,
};

double rbk_embedded_now(void)
{
    struct timespec now = {0, 0}; /* a clock that fails stands still */

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

bool rbk_embedded_secret(uint64_t secret[2])
{
    size_t want = 2 * sizeof secret[0];

    return getrandom(secret, want, 0) == (ssize_t)want;
}

static struct rbk_embedded *embedded_of(struct redbucket_store *store)
{
    return (struct rbk_embedded *)store;
}

static void unlock_all(struct rbk_embedded *embedded, uint64_t shards)
{
    for (; shards != 0; shards &= shards - 1)
        embedded->unlock(embedded, (unsigned)__builtin_ctzll(shards));
}

static enum redbucket_status try_to_lock_all(struct rbk_embedded *embedded, uint64_t shards,
                                             double *waited, unsigned *met)
{
    uint64_t locked = 0;

    for (uint64_t rest = shards; rest != 0; rest &= rest - 1) {
        unsigned shard = (unsigned)__builtin_ctzll(rest);
        enum redbucket_status status = embedded->lock(embedded, shard, waited);

        if (status != REDBUCKET_OK) {
            unlock_all(embedded, locked);
            return status;
        }
        locked |= (uint64_t)1 << shard;
        if (rbk_table_torn(embedded->table, shard)) {
            rbk_table_recover(embedded->table, shard);
            *met |= MET_TORN;
        }
    }
    return REDBUCKET_OK;
}

static enum redbucket_status lock_all(struct rbk_embedded *embedded, uint64_t shards,
                                      double *waited, unsigned *met)
{
    enum redbucket_status status = try_to_lock_all(embedded, shards, waited, met);

    while (status == REDBUCKET_ERROR_CONFLICT) {
        double before = rbk_monotonic_now();

        rbk_wait_pause(PAUSE);
        *waited += rbk_monotonic_now() - before;
        if (rbk_interrupted())
            return REDBUCKET_ERROR_TIMEOUT;
        status = try_to_lock_all(embedded, shards, waited, met);
    }
    return status;
}

/* Holding no lock. */
static void tell(struct rbk_embedded *embedded, unsigned met)
{
    if (met & MET_TORN)
        rbk_store_tell(&embedded->store, REDBUCKET_EVENT_RECOVERED,
                       "a process died while it changed a bucket; the change was undone");
    if (met & MET_FULL)
        rbk_store_tell(&embedded->store, REDBUCKET_EVENT_FULL,
                       "the table is full of buckets that keep somebody out");
}

enum redbucket_status rbk_embedded_lock(struct rbk_embedded *embedded, unsigned shard)
{
    double waited = 0.0;
    enum redbucket_status status;
    unsigned met;

    do { /* the host is told while the lock is free */
        met = 0;
        status = lock_all(embedded, (uint64_t)1 << shard, &waited, &met);
        if (status == REDBUCKET_OK && met != 0) {
            embedded->unlock(embedded, shard);
            tell(embedded, met);
        }
    } while (status == REDBUCKET_OK && met != 0);
    return status;
}

static enum redbucket_status fail_at(struct rbk_request *request, size_t index,
                                     enum redbucket_status status)
{
    request->failed = index;
    return status;
}

/* Reads, decides and writes, all locks held. */
static enum redbucket_status decide_locked(struct rbk_table *table, struct rbk_touch *touches,
                                           struct rbk_request *request)
{
    bool changes = false;
    size_t failed = 0;

    for (size_t i = 0; i < request->len; i++) {
        struct rbk_claim *claim = &request->claims[i];

        rbk_table_find(table, &touches[i], &claim->state);
        /* Forgetting is how a state that can't be read is got rid of. */
        if (!rbk_state_readable(&claim->state) && request->ask.operation != RBK_RESET)
            return fail_at(request, i, REDBUCKET_ERROR_STATE);
    }
    rbk_decide(&request->ask, request->claims, request->len, &request->answer);
    for (size_t i = 0; i < request->len; i++)
        changes = changes || request->claims[i].change != RBK_KEEP;
    if (changes && !rbk_table_apply(table, touches, request->claims,
                                    &(struct rbk_apply){request->len, request->ask.now}, &failed))
        return fail_at(request, failed, REDBUCKET_ERROR_FULL);
    return REDBUCKET_OK;
}

static uint64_t place_all(const struct rbk_table *table, const struct rbk_request *request,
                          struct rbk_touch *touches)
{
    uint64_t shards = 0;

    for (size_t i = 0; i < request->len; i++) {
        rbk_table_place(table, &request->keys[i], &touches[i].place);
        shards |= (uint64_t)1 << touches[i].place.shard;
    }
    return shards;
}

/* A growing table has one shard, and its places are only good under the lock. */
static uint64_t shards_of(const struct rbk_embedded *embedded, const struct rbk_request *request,
                          struct rbk_touch *touches)
{
    return embedded->grow != NULL ? 1 : place_all(embedded->table, request, touches);
}

static void decide_growing(struct rbk_embedded *embedded, struct rbk_touch *touches,
                           struct rbk_request *request)
{
    do {
        (void)place_all(embedded->table, request, touches);
        request->status = decide_locked(embedded->table, touches, request);
    } while (request->status == REDBUCKET_ERROR_FULL && embedded->grow(embedded, request->ask.now));
}

static void tally(struct rbk_table *table, const struct rbk_touch *touches,
                  const struct rbk_request *request)
{
    if (request->len == 0)
        return;
    if (request->status == REDBUCKET_ERROR_FULL)
        rbk_table_tally_full(table, touches[request->failed].place.shard);
    else if (request->status == REDBUCKET_OK && request->ask.operation == RBK_REQUEST)
        rbk_table_tally(table, touches, request->claims, request->len, &request->answer);
}

static void decide_one(struct rbk_embedded *embedded, struct rbk_request *request,
                       struct rbk_batch *batch)
{
    struct rbk_touch touches[REDBUCKET_KEYS_MAX];
    uint64_t shards = shards_of(embedded, request, touches);
    unsigned met = 0;

    request->failed = RBK_NONE;
    request->status = lock_all(embedded, shards, &batch->waited, &met);
    if (request->status != REDBUCKET_OK) {
        tell(embedded, met);
        return;
    }
    request->ask.now = batch->now != NULL ? *batch->now : rbk_embedded_now();
    if (embedded->grow != NULL)
        decide_growing(embedded, touches, request);
    else
        request->status = decide_locked(embedded->table, touches, request);
    tally(embedded->table, touches, request);
    if (request->status == REDBUCKET_ERROR_FULL)
        met |= MET_FULL;
    unlock_all(embedded, shards);
    tell(embedded, met);
}

void rbk_embedded_decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                         struct rbk_batch *batch)
{
    for (size_t i = 0; i < len; i++)
        decide_one(embedded_of(store), &requests[i], batch);
}

enum redbucket_status rbk_embedded_read(struct redbucket_store *store, const struct rbk_key *key,
                                        struct rbk_state *state)
{
    struct rbk_embedded *embedded = embedded_of(store);
    double waited = 0.0;
    struct rbk_request request = {.keys = key, .len = 1};
    struct rbk_state found;
    struct rbk_touch touch;
    unsigned met = 0;

    uint64_t shards = shards_of(embedded, &request, &touch);
    enum redbucket_status status = lock_all(embedded, shards, &waited, &met);

    if (status == REDBUCKET_OK) {
        (void)place_all(embedded->table, &request, &touch);
        rbk_table_find(embedded->table, &touch, &found);
        unlock_all(embedded, shards);
        if (rbk_state_readable(&found))
            *state = found;
        else
            status = REDBUCKET_ERROR_STATE;
    }
    tell(embedded, met);
    return status;
}

enum redbucket_status rbk_embedded_statistics(struct redbucket_store *store,
                                              struct redbucket_statistics *statistics)
{
    struct rbk_embedded *embedded = embedded_of(store);
    double waited = 0.0;
    struct rbk_table_counts counts = {0};
    unsigned shards_len = embedded->grow != NULL ? 1 : rbk_table_shards(embedded->table);
    enum redbucket_status status = REDBUCKET_OK;
    unsigned met = 0;

    for (unsigned shard = 0; shard < shards_len; shard++) {
        uint64_t shards = (uint64_t)1 << shard;

        status = lock_all(embedded, shards, &waited, &met);
        if (status != REDBUCKET_OK)
            break;
        rbk_table_count(embedded->table, shard, &counts);
        unlock_all(embedded, shards);
    }
    tell(embedded, met);
    if (status != REDBUCKET_OK)
        return status;
    statistics->accepted = counts.accepted;
    statistics->delayed = counts.delayed;
    statistics->rejected = counts.rejected;
    statistics->evicted = counts.evicted;
    statistics->full = counts.full;
    statistics->recovered = counts.recovered;
    statistics->buckets = counts.buckets;
    statistics->capacity = counts.capacity;
    statistics->bytes = counts.bytes;
    return REDBUCKET_OK;
}

/* A growing table may be changed for another under its lock, which isn't held here; from its first
 * size on it has room for the longest key. */
size_t rbk_embedded_key_max(const struct redbucket_store *store)
{
    const struct rbk_embedded *embedded = (const struct rbk_embedded *)store;

    return embedded->grow != NULL ? RBK_TABLE_KEY_MAX : rbk_table_key_max(embedded->table);
}
