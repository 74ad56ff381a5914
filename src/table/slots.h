/* SPDX-License-Identifier: MIT */
/*
 * Slots by number, the texts they hold and the chains behind them. Private to src/table.
 *
 * A slot's number counts through all pages. Numbers read from the table are only ever used through
 * rbk_slot_valid, so that damaged bytes lead nowhere.
 */
#ifndef RBK_TABLE_SLOTS_H
#define RBK_TABLE_SLOTS_H

#include "table/layout.h"
#include "table/table.h"

#include <stdatomic.h>

/* Keeps the compiler from moving a store across. A process that is killed has executed its stores
 * in program order, and the lock hands them over, so nothing stronger is needed. */
static inline void rbk_order(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

/* Reads a number once: who writes to the table without its locks may change it between a check and
 * a second look. */
static inline uint32_t rbk_read32(const uint32_t *number)
{
    return *(const volatile uint32_t *)number;
}

static inline bool rbk_slot_valid(const struct rbk_table *table, uint32_t slot)
{
    return slot < rbk_table_capacity(table);
}

static inline struct rbk_page *rbk_page_of(const struct rbk_table *table, uint32_t slot)
{
    return &table->pages[slot / RBK_PAGE_SLOTS];
}

static inline unsigned char *rbk_tag_of(const struct rbk_table *table, uint32_t slot)
{
    return &rbk_page_of(table, slot)->tag[slot % RBK_PAGE_SLOTS];
}

static inline struct rbk_bucket *rbk_bucket_of(const struct rbk_table *table, uint32_t slot)
{
    return &rbk_page_of(table, slot)->slot[slot % RBK_PAGE_SLOTS].bucket;
}

static inline struct rbk_link *rbk_link_of(const struct rbk_table *table, uint32_t slot)
{
    return &rbk_page_of(table, slot)->slot[slot % RBK_PAGE_SLOTS].link;
}

static inline uint32_t rbk_shard_of(const struct rbk_table *table, uint32_t slot)
{
    return slot / (table->shard_pages * RBK_PAGE_SLOTS);
}

/* True when the slot's text is continued in a chain. */
bool rbk_slot_far(const struct rbk_table *table, uint32_t slot);

/* Links that a text of this length needs; 0 when it fits its bucket. */
uint32_t rbk_links_for(size_t text_len);

/* Links that the bucket in `slot` claims to have. */
uint32_t rbk_slot_links(const struct rbk_table *table, uint32_t slot);

/* True when the bucket in `slot` is of this zone and key. */
bool rbk_slot_is(const struct rbk_table *table, uint32_t slot, const struct rbk_place *place);

/* Writes zone and key behind one another to `text`, which has room for a zone and the longest key.
 * False when the bytes contradict themselves. */
bool rbk_slot_text(const struct rbk_table *table, uint32_t slot, unsigned char *text,
                   struct rbk_key *key);

/* Frees the links of a chain, at most `links`, as far as it makes sense. */
void rbk_chain_free(struct rbk_table *table, uint32_t chain, uint32_t links);

/*
 * Takes slots for the place's text beyond what its bucket holds and writes it there, back to front;
 * `take` supplies one slot after the other. Each is entered in the journal entry, whose chain it
 * leads, before it is taken. False when `take` had none.
 */
bool rbk_chain_build(struct rbk_table *table, const struct rbk_place *place,
                     struct rbk_journal_entry *entry, uint32_t (*take)(void *), void *data);

/* Writes the zone and key of a bucket that nobody can see yet. */
void rbk_bucket_name(struct rbk_table *table, uint32_t slot, const struct rbk_place *place,
                     uint32_t chain);

#endif
