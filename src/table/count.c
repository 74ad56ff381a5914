/* SPDX-License-Identifier: MIT */
/*
 * What a shard has counted. Counters live in the table, so that all who share it add to the same
 * ones; they are plain numbers, changed under the shard's lock, and after what they count: who is
 * killed in between has one change counted less, and nobody who comes after counts it again.
 */
#include "table/layout.h"
#include "table/table.h"

#include <string.h>

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

static struct rbk_zone_counts *counts_of(struct rbk_table *table, const struct rbk_touch *touch,
                                         const struct rbk_claim *claim)
{
    return &table->shards[touch->place.shard].zones[claim->zone_index];
}

static void tally_accepted(struct rbk_table *table, const struct rbk_touch *touches,
                           const struct rbk_claim *claims, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct rbk_zone_counts *counts = counts_of(table, &touches[i], &claims[i]);

        counts->accepted++;
        if (claims[i].verdict.delay > 0.0)
            counts->delayed++;
    }
}

/* A limit that had room for what another one rejected has decided nothing. */
static void tally_rejected(struct rbk_table *table, const struct rbk_touch *touches,
                           const struct rbk_claim *claims, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!claims[i].verdict.accepted)
            counts_of(table, &touches[i], &claims[i])->rejected++;
    }
}

void rbk_table_tally(struct rbk_table *table, const struct rbk_touch *touches,
                     const struct rbk_claim *claims, size_t len, const struct rbk_answer *answer)
{
    struct rbk_shard *first = &table->shards[touches[0].place.shard];

    if (!answer->accepted) {
        first->rejected++;
        tally_rejected(table, touches, claims, len);
        return;
    }
    first->accepted++;
    if (answer->delay > 0.0)
        first->delayed++;
    tally_accepted(table, touches, claims, len);
}

void rbk_table_tally_full(struct rbk_table *table, unsigned shard)
{
    table->shards[shard].full++;
}

void rbk_table_count_zones(const struct rbk_table *table, unsigned shard,
                           struct rbk_zone_counts counts[RBK_TABLE_ZONES + 1])
{
    const struct rbk_zone_counts *from = table->shards[shard].zones;

    for (size_t i = 0; i <= RBK_TABLE_ZONES; i++) {
        counts[i].accepted += from[i].accepted;
        counts[i].delayed += from[i].delayed;
        counts[i].rejected += from[i].rejected;
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
    memcpy(shard->zones, from->shards[0].zones, sizeof shard->zones);
    memcpy(to->header->names, from->header->names, sizeof to->header->names);
    to->header->names_len = from->header->names_len;
}
