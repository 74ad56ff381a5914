/* SPDX-License-Identifier: MIT */
/*
 * Going through slots in the order of their numbers. A bucket whose text makes no sense is passed
 * over: damaged bytes have no name to be told by.
 */
#include "table/walk.h"

#include "table/slots.h"

static uint64_t shard_slots(const struct rbk_table *table)
{
    return (uint64_t)table->shard_pages * RBK_PAGE_SLOTS;
}

unsigned rbk_table_walk_shard(const struct rbk_table *table, uint64_t slot)
{
    const uint64_t shard = slot / shard_slots(table);

    return shard < table->shard_mask ? (unsigned)shard : table->shard_mask;
}

uint64_t rbk_table_walk_end(const struct rbk_table *table, unsigned shard)
{
    return (shard + (uint64_t)1) * shard_slots(table);
}

static void see(const struct rbk_table *table, uint32_t slot, struct rbk_table_piece *piece)
{
    const struct rbk_bucket *bucket = rbk_bucket_of(table, slot);
    struct rbk_key key;

    if (!rbk_slot_text(table, slot, piece->text + piece->text_len, &key))
        return;
    piece->seen[piece->len++] = (struct rbk_table_seen){
        .state = {true, bucket->timestamp, bucket->value},
        .rate = bucket->rate,
        .depth = bucket->depth,
        .begin = (uint32_t)piece->text_len,
        .zone_len = (uint32_t)key.zone_len,
        .key_len = (uint32_t)key.key_len,
    };
    piece->text_len += key.zone_len + key.key_len;
}

uint64_t rbk_table_walk(const struct rbk_table *table, uint64_t slot, struct rbk_table_piece *piece)
{
    const uint64_t shard_end = (slot / shard_slots(table) + 1) * shard_slots(table);
    uint64_t end = slot + piece->most;

    if (slot >= rbk_table_capacity(table))
        return slot;
    if (end > shard_end)
        end = shard_end;
    while (slot < end && piece->text_len + UINT8_MAX + RBK_TABLE_KEY_MAX <= RBK_TABLE_WALK_TEXT) {
        if (*rbk_tag_of(table, (uint32_t)slot) >= RBK_TAG_BUCKET)
            see(table, (uint32_t)slot, piece);
        slot++;
    }
    return slot;
}
