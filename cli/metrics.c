/* SPDX-License-Identifier: MIT */
/*
 * Printing the library's metrics. The text is the library's in full; nothing is added to it here.
 */
#include "metrics.h"

#include "redbucket/metrics.h"

/* A masked URL may be longer than the names for which the library promises room. */
#define ROOM (REDBUCKET_METRICS_SIZE(1) + (size_t)64 * CLI_URL_SIZE)

int rbk_metrics_print(const struct cli_context *context, struct redbucket_store *store)
{
    struct redbucket_statistics statistics = {.size = sizeof(statistics)};
    char url[CLI_URL_SIZE];
    char room[ROOM];
    struct redbucket_text text = {room, sizeof(room), 0};
    const struct redbucket_metered metered = {rbk_cli_mask_url(context->store_url, url),
                                              &statistics};
    enum redbucket_status status = redbucket_store_statistics(store, &statistics);

    if (status == REDBUCKET_OK)
        status = redbucket_metrics(&metered, 1, &text);
    if (status != REDBUCKET_OK)
        return rbk_cli_fail_store("store", store, status, redbucket_status_text(status));
    fputs(room, stdout);
    return CLI_DONE;
}
