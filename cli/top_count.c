/* SPDX-License-Identifier: MIT */
/*
 * A counter that is smaller than before belongs to a store that was made anew, and rates begin with
 * 0. Zones keep their order for as long as a store lives, so that the same place is the same zone.
 */
#include "top_count.h"

#include <string.h>

static double rate_of(uint64_t now, uint64_t before, double seconds)
{
    return now > before ? (double)(now - before) / seconds : 0.0;
}

static void rate_table(struct cli_top_table *table, const struct redbucket_statistics *before,
                       const struct cli_top_count *count)
{
    const struct redbucket_statistics *now = &count->statistics;
    const double seconds = count->seconds;

    table->accepted = rate_of(now->accepted, before->accepted, seconds);
    table->delayed = rate_of(now->delayed, before->delayed, seconds);
    table->rejected = rate_of(now->rejected, before->rejected, seconds);
    table->evicted = rate_of(now->evicted, before->evicted, seconds);
    table->full = rate_of(now->full, before->full, seconds);
}

/* What has counted nothing yet, for a zone that is new. */
static const struct redbucket_zone_statistics *find(const struct redbucket_zone_statistics *zones,
                                                    size_t len,
                                                    const struct redbucket_zone_statistics *wanted)
{
    static const struct redbucket_zone_statistics none;

    for (size_t i = 0; i < len; i++) {
        if (zones[i].zone_len == wanted->zone_len &&
            memcmp(zones[i].zone, wanted->zone, wanted->zone_len) == 0)
            return &zones[i];
    }
    return &none;
}

static void rate_zones(struct cli_top_count *count, const struct redbucket_zone_statistics *now,
                       size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const struct redbucket_zone_statistics *before =
            find(count->zones, count->zones_len, &now[i]);
        struct cli_top_rates *rates = &count->table.zones[i];

        memcpy(rates->zone, now[i].zone, sizeof(rates->zone));
        rates->zone_len = now[i].zone_len;
        rates->accepted = rate_of(now[i].accepted, before->accepted, count->seconds);
        rates->delayed = rate_of(now[i].delayed, before->delayed, count->seconds);
        rates->rejected = rate_of(now[i].rejected, before->rejected, count->seconds);
    }
    count->table.zones_len = len;
}

void rbk_top_count(struct cli_top_count *count, struct redbucket_store *store, double now)
{
    const struct redbucket_statistics before = count->statistics;
    struct redbucket_statistics statistics = {.size = sizeof(statistics)};
    struct redbucket_zone_statistics zones[REDBUCKET_ZONES_MAX];
    size_t len = 0;

    if (redbucket_store_statistics(store, &statistics) != REDBUCKET_OK ||
        redbucket_store_zones(store, zones, REDBUCKET_ZONES_MAX, &len) != REDBUCKET_OK)
        return;
    count->statistics = statistics;
    count->seconds = before.size != 0 ? now - count->counted : 0.0;
    count->counted = now;
    count->table = (struct cli_top_table){
        .known = statistics.capacity > 0,
        .rated = count->seconds > 0.0,
        .buckets = statistics.buckets,
        .capacity = statistics.capacity,
    };
    if (count->table.known && count->table.rated) {
        rate_table(&count->table, &before, count);
        rate_zones(count, zones, len);
    }
    memcpy(count->zones, zones, len * sizeof(zones[0]));
    count->zones_len = len;
}

const struct cli_top_rates *rbk_top_rates(const struct cli_top_table *table, const char *zone,
                                          size_t zone_len)
{
    for (size_t i = 0; i < table->zones_len; i++) {
        if (table->zones[i].zone_len == zone_len &&
            memcmp(table->zones[i].zone, zone, zone_len) == 0)
            return &table->zones[i];
    }
    return NULL;
}
