/* SPDX-License-Identifier: MIT */
/*
 * After a process died in the middle of a change: its journal is undone. The request that it had in
 * hand is then as if it had never been, or, where the last byte was already written, as if it had
 * been answered.
 */
#include "table/slots.h"

static void undo_state(struct rbk_table *table, const struct rbk_journal_entry *entry)
{
    struct rbk_bucket *bucket = rbk_bucket_of(table, entry->slot);

    bucket->timestamp = entry->was.state.timestamp;
    bucket->value = entry->was.state.value;
}

static void undo_chain(struct rbk_table *table, const struct rbk_journal_entry *entry)
{
    bool owned = *rbk_tag_of(table, entry->slot) >= RBK_TAG_BUCKET &&
                 rbk_slot_far(table, entry->slot) &&
                 rbk_bucket_of(table, entry->slot)->text.far.chain == entry->was.chain;

    if (!owned)
        rbk_chain_free(table, entry->was.chain, table->shard_pages * RBK_PAGE_SLOTS);
}

void rbk_table_recover(struct rbk_table *table, unsigned shard)
{
    struct rbk_shard *torn = &table->shards[shard];
    uint32_t len = rbk_read32(&torn->journal_len);

    if (len > RBK_JOURNAL_LEN)
        len = RBK_JOURNAL_LEN;

    /* Undoing is the same however often it is begun, so dying in here does no harm. */
    for (uint32_t i = len; i-- > 0;) {
        struct rbk_journal_entry entry = torn->journal[i];

        entry.slot = rbk_read32(&torn->journal[i].slot);
        if (!rbk_slot_valid(table, entry.slot) || rbk_shard_of(table, entry.slot) != shard)
            continue;
        if (entry.kind == RBK_JOURNAL_STATE)
            undo_state(table, &entry);
        else
            undo_chain(table, &entry);
    }
    rbk_order();
    torn->journal_len = 0;
    rbk_order();
    torn->recovered++;
}

bool rbk_table_torn(const struct rbk_table *table, unsigned shard)
{
    return table->shards[shard].journal_len != 0;
}
