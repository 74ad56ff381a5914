/* SPDX-License-Identifier: MIT */
/*
 * Copying out what a run of slots holds.
 */
#ifndef RBK_TABLE_WALK_H
#define RBK_TABLE_WALK_H

#include "table/table.h"

/* Room for at least one text of any length, and for hundreds of ordinary ones. */
#define RBK_TABLE_WALK_TEXT (UINT8_MAX + RBK_TABLE_KEY_MAX + 65536u)

/* A bucket: zone and key lie one behind the other in the piece's text. */
struct rbk_table_seen {
    struct rbk_state state; /* as stored, readable or not */
    double rate;
    double depth;
    uint32_t begin;
    uint32_t zone_len;
    uint32_t key_len;
};

/* What was copied, in memory of the caller's: room for `most` buckets, and RBK_TABLE_WALK_TEXT
 * bytes of text. */
struct rbk_table_piece {
    struct rbk_table_seen *seen;
    size_t most;
    size_t len;
    unsigned char *text;
    size_t text_len;
};

/* The shard of a slot, whatever its number: the last one for those beyond the end. */
unsigned rbk_table_walk_shard(const struct rbk_table *table, uint64_t slot);

/* The slot behind the last of a shard. */
uint64_t rbk_table_walk_end(const struct rbk_table *table, unsigned shard);

/* Copies the buckets from `slot` on, at most `most` slots, none of another shard, and as far as
 * there is room. Returns the slot to go on with, beyond `slot` unless that is beyond the end. */
uint64_t rbk_table_walk(const struct rbk_table *table, uint64_t slot,
                        struct rbk_table_piece *piece);

#endif
