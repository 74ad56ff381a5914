/* SPDX-License-Identifier: MIT */
/*
 * Printing the library's metrics. The text is the library's in full; nothing is added to it here.
 */
#include "metrics.h"

#include "redbucket/metrics.h"

#include <stdlib.h>

/* A masked URL may be longer than the names for which the library promises room. */
#define URL_ROOM ((size_t)4 * CLI_URL_SIZE)
#define ROOM                                             \
    (REDBUCKET_METRICS_SIZE(1) + (size_t)16 * URL_ROOM + \
     REDBUCKET_METRICS_ZONES_SIZE(REDBUCKET_ZONES_MAX) + \
     (size_t)3 * REDBUCKET_ZONES_MAX * URL_ROOM)

static enum redbucket_status write_text(const struct cli_context *context,
                                        struct redbucket_store *store, char *room)
{
    struct redbucket_statistics statistics = {.size = sizeof(statistics)};
    struct redbucket_zone_statistics zones[REDBUCKET_ZONES_MAX];
    struct redbucket_text text = {room, ROOM, 0};
    char url[CLI_URL_SIZE];
    struct redbucket_metered metered = {
        rbk_cli_mask_url(context->store_url, url),
        &statistics,
        zones,
        0,
    };
    enum redbucket_status status = redbucket_store_statistics(store, &statistics);

    if (status == REDBUCKET_OK)
        status = redbucket_store_zones(store, zones, REDBUCKET_ZONES_MAX, &metered.zones_len);
    if (status == REDBUCKET_OK)
        status = redbucket_metrics(&metered, 1, &text);
    return status;
}

int rbk_metrics_print(const struct cli_context *context, struct redbucket_store *store)
{
    char *room = malloc(ROOM);
    enum redbucket_status status;
    int result = CLI_DONE;

    if (room == NULL)
        return rbk_cli_fail(CLI_STORE, "metrics", "out of memory");
    status = write_text(context, store, room);
    if (status == REDBUCKET_OK)
        fputs(room, stdout);
    else
        result = rbk_cli_fail_store("store", store, status, redbucket_status_text(status));
    free(room);
    return result;
}
