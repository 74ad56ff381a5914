/* SPDX-License-Identifier: MIT */
/*
 * What is held here of one bucket: permits taken ahead, to be spent by any thread without a lock.
 *
 * One word says how many are left and which lease they are of. Whoever spends first reads what
 * there is to know of the lease, then changes the word; that succeeds only when the word, and so
 * the lease, is still the one that was read. A lease is emptied by changing the word to nothing of
 * the next lease. So each permit is spent once or taken back once, and never both.
 *
 * Permits are counted in parts of 1/16384, what is spent rounded up and what is put in rounded
 * down: rounding loses, and invents nothing.
 */
#ifndef RBK_LEASE_PURSE_H
#define RBK_LEASE_PURSE_H

#include "model/bucket.h"

#include <stdatomic.h>
#include <stddef.h>

/* More than a purse can count are never asked for. */
#define RBK_PURSE_MOST 1e9

/*
 * What there is to know of a lease. Times are those of the clock here but for `taken_at`, which is
 * the store's.
 *
 *   bucket    the hash of its bucket, which isn't 0
 *   until     when its permits are worth nothing any more
 *   received  a moment when the store had taken them for sure
 *   top       the level of the bucket at `taken_at` with all of them taken
 */
struct rbk_note {
    uint64_t bucket;
    double until;
    double received;
    double taken_at;
    double top;
    struct rbk_limit limit;
};

#define RBK_NOTE_WORDS (sizeof(struct rbk_note) / sizeof(uint64_t))

/* All zeros: nothing is held. */
struct rbk_purse {
    _Atomic(uint64_t) word; /* acquire to read the note by, release once there is one */
    atomic_ullong leased;   /* requests served from here first; relaxed: counts */
    atomic_ullong delayed;  /* of which had to wait */
    _Atomic(double) clear;  /* when what was spent will have drained; relaxed: it tells of itself */
    _Alignas(64) _Atomic(uint64_t) note[RBK_NOTE_WORDS]; /* a line that is only read */
};

/* What a request wants, and when. */
struct rbk_want {
    uint64_t bucket;
    const struct rbk_limit *limit; /* another limit than the lease's is not served */
    uint64_t parts;
    double now;
};

/* What it got: the lease, and what the word was before and is afterwards. */
struct rbk_permit {
    struct rbk_note note;
    uint64_t before;
    uint64_t after;
};

/* Parts that a cost takes, UINT64_MAX for one that no purse can hold; and that a number of permits
 * makes, which is at most RBK_PURSE_MOST. */
uint64_t rbk_purse_parts(double cost);
uint64_t rbk_purse_parts_of(double permits);
double rbk_purse_permits(uint64_t parts);

/* Parts left, by a word or now. */
uint64_t rbk_purse_left(uint64_t word);
uint64_t rbk_purse_now(const struct rbk_purse *purse);

/* False when it holds too little, nothing for this request, or only what was worth something once.
 * `look` changes nothing. */
bool rbk_purse_spend(struct rbk_purse *purse, const struct rbk_want *want,
                     struct rbk_permit *permit);
bool rbk_purse_look(struct rbk_purse *purse, const struct rbk_want *want,
                    struct rbk_permit *permit);

/*
 * Where a limit delays, what is spent at once has to wait for what was spent before, though its
 * permits may have drained long since: the level that a bucket would have which only this process
 * fills, and only now. Adds a cost to it, unless it only `looks`; returns the level before.
 */
double rbk_purse_queue(struct rbk_purse *purse, double rate, double cost, double now, bool looks);

/* Puts back what was spent of a lease; false when that is over, and the permits are the caller's to
 * give back to the store. */
bool rbk_purse_restore(struct rbk_purse *purse, const struct rbk_permit *permit);

/* The rest is for one thread at a time. */

/* Ends the lease: parts that were left of it. */
uint64_t rbk_purse_empty(struct rbk_purse *purse);

/* Ends one of which nothing is left, so that nothing is put back into it any more; false when there
 * is something. */
bool rbk_purse_close(struct rbk_purse *purse);

/* Begins one of so many parts, for a bucket that is at `top` with them. The purse is empty. */
void rbk_purse_fill(struct rbk_purse *purse, const struct rbk_note *note, uint64_t parts);

void rbk_purse_note(const struct rbk_purse *purse, struct rbk_note *note);

#endif
