/* SPDX-License-Identifier: MIT */
/*
 * Making room: which slot a new bucket or link gets. Private to src/table.
 *
 * The rule of a full table: of the buckets in the two pages of the new key, the one that drains
 * soonest and keeps nobody out (a unit request would be accepted now) makes room; where all of them
 * keep somebody out, there is none. Choosing changes nothing; taking comes later.
 */
#ifndef RBK_TABLE_ROOM_H
#define RBK_TABLE_ROOM_H

#include "table/layout.h"
#include "table/table.h"

/* Who needs room, and beside whom: slots that the claims of the request have are kept out of every
 * choice. */
struct rbk_room {
    struct rbk_table *table;
    const struct rbk_touch *touches;
    size_t len;
    double now;
    const struct rbk_place *place;
    uint32_t cursor; /* pages looked at for links; begins at 0 for each place */
    uint32_t spare;  /* a free chain to take links from first; begins as RBK_NO_SLOT */
};

/* True when the bucket has drained by `now`, for every limit that has used it. */
bool rbk_bucket_drained(const struct rbk_bucket *bucket, double now);

/* A free slot in the place's pages, or one whose bucket may make room, or RBK_NO_SLOT. */
uint32_t rbk_room_find(const struct rbk_room *room);

/* True when the shard has so many slots for links that are free or may make room. */
bool rbk_room_for_links(const struct rbk_room *room, uint32_t shard, uint32_t links);

/* The next slot for a link, freed if need be, or RBK_NO_SLOT; `data` is a struct rbk_room. */
uint32_t rbk_room_take_link(void *data);

/* Forgets the bucket in `slot`, with its chain. */
void rbk_bucket_forget(struct rbk_table *table, uint32_t slot);

/* The same for one that makes room: counted unless it has drained. */
void rbk_bucket_give_up(struct rbk_table *table, uint32_t slot, double now);

/* Enters something to undo into a shard's journal. */
struct rbk_journal_entry *rbk_journal_add(struct rbk_table *table, uint32_t shard,
                                          struct rbk_journal_entry entry);

#endif
