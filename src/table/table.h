/* SPDX-License-Identifier: MIT */
/*
 * The embedded table: a bounded set of buckets in bytes that the caller supplies.
 *
 * It is cut into shards. A key belongs to one of them, and the caller holds that shard's lock for
 * every call that touches it; the table itself knows no lock, no clock and no allocator. Within its
 * shard a key may lie in either of two pages, 138 places, chosen by a hash under a secret of the
 * table's own. Two choices keep pages even, so that a large table is nearly full before any page
 * overflows.
 *
 * Invariant: whatever the bytes hold, no call reads or writes outside them or fails to end.
 * Whatever instruction a process dies at, rbk_table_recover leaves every bucket with its state from
 * before or after the change that was under way, and no slot is lost.
 */
#ifndef RBK_TABLE_TABLE_H
#define RBK_TABLE_TABLE_H

#include "model/decide.h"
#include "model/key.h"

#include <stddef.h>
#include <stdint.h>

struct rbk_table_header;
struct rbk_shard;
struct rbk_page;
struct rbk_bucket;

/* The most claims that are applied together. */
#define RBK_TABLE_CLAIMS 64u

/* The longest key, where the shard is large enough for it; see rbk_table_key_max. */
#define RBK_TABLE_KEY_MAX 131072u

#define RBK_TABLE_SHARDS_MAX 64u

/* So many zones are counted by themselves, and all others together. */
#define RBK_TABLE_ZONES 64u

/* What a zone's limit has decided; see struct redbucket_zone_statistics. */
struct rbk_zone_counts {
    uint64_t accepted;
    uint64_t delayed;
    uint64_t rejected;
};

/* One process's view of a table. `growing`: give up nothing, not even empty buckets. */
struct rbk_table {
    struct rbk_table_header *header;
    struct rbk_shard *shards;
    struct rbk_page *pages;
    uint64_t secret[2];
    uint32_t shard_mask;
    uint32_t shard_pages;
    bool growing;
};

/* How `size` bytes are cut up. */
struct rbk_table_plan {
    uint32_t shards;
    uint32_t shard_pages;
};

/* False when the bytes are too few (below rbk_table_size_min) or too many for slot numbers. */
bool rbk_table_plan(size_t size, unsigned shards_max, struct rbk_table_plan *plan);

size_t rbk_table_size_min(void);

/* Makes a table of zeroed, 8-byte-aligned bytes. */
void rbk_table_format(void *bytes, size_t size, const struct rbk_table_plan *plan,
                      const uint64_t secret[2]);

/* Sets up a view of bytes that may be anything; false when they aren't a table of this format and
 * of just this size. */
bool rbk_table_attach(struct rbk_table *table, void *bytes, size_t size);

/* The longest key that fits with a zone of any length. */
size_t rbk_table_key_max(const struct rbk_table *table);

/* Buckets with short texts that fit. */
uint64_t rbk_table_capacity(const struct rbk_table *table);

static inline unsigned rbk_table_shards(const struct rbk_table *table)
{
    return table->shard_mask + 1u;
}

/* A zone and key, and where in this table they may lie. */
struct rbk_place {
    const unsigned char *zone;
    const unsigned char *key;
    uint32_t zone_len;
    uint32_t key_len;
    uint64_t text[3]; /* both, one behind the other, when they fit */
    uint32_t shard;
    uint32_t page[2];
    unsigned char tag;
};

/* Borrows zone and key. The key is at most rbk_table_key_max long. */
void rbk_table_place(const struct rbk_table *table, const struct rbk_key *key,
                     struct rbk_place *place);

/* Where one claim's bucket lies: rbk_table_find sets `slot` and `bucket`, rbk_table_apply gives a
 * fresh one. */
struct rbk_touch {
    struct rbk_place place;
    struct rbk_bucket *bucket;
    uint32_t slot;
    bool fresh;
};

/* Finds the bucket and reads its state into *state (as stored, readable or not). */
void rbk_table_find(const struct rbk_table *table, struct rbk_touch *touch,
                    struct rbk_state *state);

struct rbk_apply {
    size_t len; /* of touches and claims */
    double now;
};

/*
 * Stores what rbk_decide settled for all the claims, or, when there is no room for one of them,
 * changes nothing and returns false with its index in *failed. touches[i] belongs to claims[i].
 */
bool rbk_table_apply(struct rbk_table *table, struct rbk_touch *touches, struct rbk_claim *claims,
                     const struct rbk_apply *apply, size_t *failed);

/* Undoes what a process that died holding the shard's lock had begun. */
void rbk_table_recover(struct rbk_table *table, unsigned shard);

/* True when a change was under way in the shard. */
bool rbk_table_torn(const struct rbk_table *table, unsigned shard);

struct rbk_table_counts {
    uint64_t accepted;
    uint64_t delayed;
    uint64_t rejected;
    uint64_t evicted;
    uint64_t full;
    uint64_t recovered;
    uint64_t buckets;
    uint64_t capacity;
    uint64_t bytes; /* of the whole table */
};

/* Adds the shard's counts to *counts. Buckets are counted where they lie. */
void rbk_table_count(const struct rbk_table *table, unsigned shard,
                     struct rbk_table_counts *counts);

/* Counts a request's answer, in the shard of its first key, and what each of its claims had to do
 * with it, in its own shard. touches[i] belongs to claims[i]; there is one at least. */
void rbk_table_tally(struct rbk_table *table, const struct rbk_touch *touches,
                     const struct rbk_claim *claims, size_t len, const struct rbk_answer *answer);

/* Counts a request that found the table full. */
void rbk_table_tally_full(struct rbk_table *table, unsigned shard);

/* The index of a zone's counters, which are new ones where it has none yet: from 1 to
 * RBK_TABLE_ZONES, or 0, which is all others together, when no more can be had. */
unsigned rbk_table_zone(struct rbk_table *table, const unsigned char *zone, size_t zone_len);

/* The name of the counters with that index, or false when there are none. */
bool rbk_table_zone_name(const struct rbk_table *table, unsigned index, const unsigned char **zone,
                         size_t *zone_len);

/* Adds the shard's counts of each zone to counts[its index]. */
void rbk_table_count_zones(const struct rbk_table *table, unsigned shard,
                           struct rbk_zone_counts counts[RBK_TABLE_ZONES + 1]);

/* Slots in use by buckets that have not been empty since before `drained_before`. */
uint64_t rbk_table_live(const struct rbk_table *table, double drained_before);

/*
 * Copies into `to`, which is empty and growing, every bucket that has not been empty since before
 * `drained_before`. False when one didn't fit. `from` must not change meanwhile.
 */
bool rbk_table_copy(struct rbk_table *to, const struct rbk_table *from, double drained_before);

/* Lets `to` go on from the counts of `from`, and from its zones; each has one shard. */
void rbk_table_take_counts(struct rbk_table *to, const struct rbk_table *from);

#endif
