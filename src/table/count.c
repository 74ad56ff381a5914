/* SPDX-License-Identifier: MIT */
/*
 * What a shard has counted. Counters live in the table, so that all who share it add to the same
 * ones; they are plain numbers, changed under the shard's lock.
 */
#include "table/layout.h"
#include "table/table.h"

static uint64_t count_buckets(const struct rbk_table *table, unsigned shard)
{
    const struct rbk_page *pages = &table->pages[(size_t)shard * table->shard_pages];
    uint64_t count = 0;

    for (uint32_t page = 0; page < table->shard_pages; page++) {
        for (uint32_t i = 0; i < RBK_PAGE_SLOTS; i++)
            count += pages[page].tag[i] >= RBK_TAG_BUCKET;
    }
    return count;
}

void rbk_table_count(const struct rbk_table *table, unsigned shard, struct rbk_table_counts *counts)
{
    const struct rbk_shard *from = &table->shards[shard];

    counts->accepted += from->accepted;
    counts->delayed += from->delayed;
    counts->rejected += from->rejected;
    counts->evicted += from->evicted;
    counts->full += from->full;
    counts->recovered += from->recovered;
    counts->buckets += count_buckets(table, shard);
    counts->capacity += (uint64_t)table->shard_pages * RBK_PAGE_SLOTS;
    counts->bytes = table->header->size;
}

void rbk_table_tally(struct rbk_table *table, unsigned shard, const struct rbk_answer *answer)
{
    struct rbk_shard *to = &table->shards[shard];

    if (answer == NULL) {
        to->full++;
    } else if (!answer->accepted) {
        to->rejected++;
    } else {
        to->accepted++;
        to->delayed += answer->delay > 0.0;
    }
}

void rbk_table_take_counts(struct rbk_table *to, const struct rbk_table *from)
{
    struct rbk_shard *shard = &to->shards[0];

    shard->accepted = from->shards[0].accepted;
    shard->delayed = from->shards[0].delayed;
    shard->rejected = from->shards[0].rejected;
    shard->evicted = from->shards[0].evicted;
    shard->full = from->shards[0].full;
    shard->recovered = from->shards[0].recovered;
}
