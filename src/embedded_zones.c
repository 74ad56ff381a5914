/* SPDX-License-Identifier: MIT */
/*
 * What a table has counted of each zone. Who enrolls a zone and who reads the list holds the lock
 * of shard 0, which guards the names; counts are taken shard by shard, as all statistics are.
 */
#include "embedded.h"

#include <string.h>

_Static_assert(RBK_TABLE_ZONES == RBK_ZONES_NAMED, "a table names as many zones as any store");

/* A lock that can't be had costs the limit its own counters, and nothing else. */
unsigned rbk_embedded_enroll(struct redbucket_store *store, const struct rbk_key *zone)
{
    struct rbk_embedded *embedded = (struct rbk_embedded *)store;
    unsigned index;

    if (rbk_embedded_lock(embedded, 0) != REDBUCKET_OK)
        return 0;
    index = rbk_table_zone(embedded->table, zone->zone, zone->zone_len);
    embedded->unlock(embedded, 0);
    return index;
}

/* Under the lock of shard 0. Returns how many there are. */
static size_t read_names(const struct rbk_table *table, struct redbucket_zone_statistics *zones)
{
    const unsigned char *zone;
    size_t len = 0;

    while (rbk_table_zone_name(table, (unsigned)len + 1, &zone, &zones[len].zone_len)) {
        memcpy(zones[len].zone, zone, zones[len].zone_len);
        zones[len].zone[zones[len].zone_len] = '\0';
        len++;
    }
    return len;
}

static void tell(struct redbucket_zone_statistics *zone, const struct rbk_zone_counts *counts)
{
    zone->accepted = counts->accepted;
    zone->delayed = counts->delayed;
    zone->rejected = counts->rejected;
}

enum redbucket_status rbk_embedded_zones(struct redbucket_store *store,
                                         struct redbucket_zone_statistics *zones, size_t *len)
{
    struct rbk_embedded *embedded = (struct rbk_embedded *)store;
    const unsigned shards = embedded->grow != NULL ? 1 : rbk_table_shards(embedded->table);
    struct rbk_zone_counts counts[RBK_TABLE_ZONES + 1] = {{0}};
    size_t named = 0;

    for (unsigned shard = 0; shard < shards; shard++) {
        enum redbucket_status status = rbk_embedded_lock(embedded, shard);

        if (status != REDBUCKET_OK)
            return status;
        if (shard == 0)
            named = read_names(embedded->table, zones);
        rbk_table_count_zones(embedded->table, shard, counts);
        embedded->unlock(embedded, shard);
    }
    for (size_t i = 0; i < named; i++)
        tell(&zones[i], &counts[i + 1]);
    zones[named].zone_len = 0;
    zones[named].zone[0] = '\0';
    tell(&zones[named], &counts[0]);
    *len = named + 1;
    return REDBUCKET_OK;
}
