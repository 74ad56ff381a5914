/* SPDX-License-Identifier: MIT */
/*
 * What a table has counted, as rates between one frame of top and the next: of all requests, and by
 * zone. A store on a server counts nothing for all who use it, and there is nothing to tell then.
 */
#ifndef RBK_CLI_TOP_COUNT_H
#define RBK_CLI_TOP_COUNT_H

#include "cli.h"

/* A zone's requests a second; all others together have no name. */
struct cli_top_rates {
    char zone[REDBUCKET_ZONE_MAX + 1];
    size_t zone_len;
    double accepted;
    double delayed;
    double rejected;
};

/* What a table counted between two frames, a second; `known` false for stores on a server. */
struct cli_top_table {
    bool known;
    bool rated; /* there was a frame before */
    uint64_t buckets;
    uint64_t capacity;
    double accepted;
    double delayed;
    double rejected;
    double evicted;
    double full;
    struct cli_top_rates zones[REDBUCKET_ZONES_MAX];
    size_t zones_len;
};

/* Begins with zeros. */
struct cli_top_count {
    struct redbucket_statistics statistics;
    struct redbucket_zone_statistics zones[REDBUCKET_ZONES_MAX];
    size_t zones_len;
    double counted; /* when that was */
    double seconds; /* from the count before to that */
    struct cli_top_table table;
};

/* Counts once more, at the time `now`. A store that fails leaves everything as it was. */
void rbk_top_count(struct cli_top_count *count, struct redbucket_store *store, double now);

/* The zone's rates, or NULL when the table doesn't count it by itself; an empty name is all others
 * together. */
const struct cli_top_rates *rbk_top_rates(const struct cli_top_table *table, const char *zone,
                                          size_t zone_len);

#endif
