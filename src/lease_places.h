/* SPDX-License-Identifier: MIT */
/*
 * Where leases are kept: a table of a fixed size, of buckets that are hot or may become so.
 *
 * A place is found without a lock. What isn't for spending (how hot a bucket is, whose turn it is
 * to take permits ahead, which bucket has the place) is guarded by the lock of its set, which
 * nobody holds for longer than a few lines of arithmetic. Who only counts doesn't wait for it.
 *
 * A bucket that holds permits, that somebody is taking permits for, or that is hot keeps its place
 * whoever else comes. Of the others the one that was asked for least makes room, once newcomers
 * have worn down what it has counted: a crowd of keys that come once can't drive out one that comes
 * often.
 *
 * All of it is memory that a child of a fork finds cleared: it holds nothing of its parent's.
 */
#ifndef RBK_LEASE_PLACES_H
#define RBK_LEASE_PLACES_H

#include "lease_pace.h"
#include "lease_purse.h"
#include "model/decide.h"
#include "model/key.h"

#include <pthread.h>

#define RBK_LEASE_PLACES_SETS 256u
#define RBK_LEASE_PLACES_WAYS 8u
#define RBK_LEASE_PLACES_ALL  (RBK_LEASE_PLACES_SETS * RBK_LEASE_PLACES_WAYS)

/* Zone and key together; of longer ones nothing is taken ahead. */
#define RBK_LEASE_PLACES_TEXT 192u

/* A bucket, as text for the time when no caller has it at hand. */
struct rbk_lease_text {
    unsigned zone_len;
    unsigned key_len;
    unsigned char bytes[RBK_LEASE_PLACES_TEXT];
};

/* All but the purse is guarded by the lock of the set. */
struct rbk_lease_place {
    struct rbk_purse purse;
    struct rbk_pace pace;
    double time;     /* that leases last */
    unsigned ticket; /* of whoever is taking permits ahead, or 0 */
    bool recalled;   /* what comes of it is over at once */
    double taken;    /* with the lease that is or was held; 0 when what became of it is known */
    double cost;     /* of the request that took it */
    double expiry;
    uint64_t seen; /* parts left when it was last looked at: */
    double seen_at;
    struct rbk_lease_text text;
};

struct rbk_lease_place_set {
    pthread_mutex_t mutex;
    _Alignas(64) _Atomic(uint64_t) buckets[RBK_LEASE_PLACES_WAYS]; /* hashes, 0 for none; written
                                                                under the lock */
    _Alignas(64) struct rbk_lease_place places[RBK_LEASE_PLACES_WAYS];
};

struct rbk_lease_places {
    _Atomic(uint64_t)
        held[RBK_LEASE_PLACES_ALL / 64]; /* a bit for each place that may hold permits */
    atomic_uint holding;                 /* how many bits are set */
    _Atomic(double) due;  /* not before then is there one to look at, if any is held */
    _Atomic(double) rest; /* nor is any looked at before this */
    struct rbk_lease_place_set sets[RBK_LEASE_PLACES_SETS];
};

/* Permits that were taken ahead and are not used. */
struct rbk_leftover {
    struct rbk_note note;
    double permits;
    double expiry;
    struct rbk_lease_text text;
};

/* A request for one bucket that nothing is held for. */
struct rbk_lack {
    uint64_t bucket;
    const struct rbk_key *key;
    const struct rbk_claim *claim;
    double cost;
    double now;
};

/* What was granted. */
struct rbk_grant {
    struct rbk_note note;
    const struct rbk_key *key;
    double expiry;
    double permits;
    double cost;
};

/* The purse of a bucket, or NULL. */
struct rbk_purse *rbk_lease_places_find(struct rbk_lease_places *places, uint64_t bucket);

/*
 * Counts the request. True when the bucket is hot; then *amount is how many permits to take ahead,
 * or 0 when that is somebody else's turn or some are held by now. False also when it isn't known
 * soon. What was left of a lease that is over is in *leftover, 0 permits for none.
 */
bool rbk_lease_places_visit(struct rbk_lease_places *places, const struct rbk_lack *lack,
                            double *amount, struct rbk_leftover *leftover);

/* Whoever's turn it is takes permits ahead, known by a ticket, which isn't 0 and no other's, and
 * says what came of it: a grant, or NULL. False when it is somebody else's turn, or when some are
 * held by now. */
bool rbk_lease_places_begin(struct rbk_lease_places *places, uint64_t bucket, unsigned ticket);
void rbk_lease_places_end(struct rbk_lease_places *places, uint64_t bucket, unsigned ticket,
                          const struct rbk_grant *grant);

/* Ends the lease of a bucket, and the one that is being taken for it as well if `all`. True when
 * there was something left of it. */
bool rbk_lease_places_recall(struct rbk_lease_places *places, uint64_t bucket, bool all,
                             struct rbk_leftover *leftover);

/* The store has said how full a bucket is. */
void rbk_lease_places_learn(struct rbk_lease_places *places, uint64_t bucket,
                            const struct rbk_limit *limit, double level, double now);

/* True when there may be leases whose time has come, or that nobody uses. */
bool rbk_lease_places_are_due(struct rbk_lease_places *places, double now);

/* Looks through all leases: *cursor is 0 at first. True for each that ends with something left that
 * is worth giving back; `all` ends them all. */
bool rbk_lease_places_next(struct rbk_lease_places *places, double now, bool all, unsigned *cursor,
                           struct rbk_leftover *leftover);

/* There is more to look at than could be looked at. */
void rbk_lease_places_come_again(struct rbk_lease_places *places, double now);

/* Requests served from here. */
void rbk_lease_places_count(struct rbk_lease_places *places, uint64_t *leased, uint64_t *delayed);

/* Keeps the text of a bucket; false when it is too long. */
bool rbk_lease_text_set(struct rbk_lease_text *text, const struct rbk_key *key);
struct rbk_key rbk_lease_text_key(const struct rbk_lease_text *text);

#endif
