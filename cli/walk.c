/* SPDX-License-Identifier: MIT */
/*
 * Pacing: between two steps there is a pause, however long the first one took, so that a slow
 * server gets no less rest than a fast one.
 */
#include "walk.h"

#include "ask.h"

#include <string.h>

int rbk_walk_check_zone(const char *zone)
{
    if (zone == NULL || (zone[0] != '\0' && strlen(zone) <= REDBUCKET_ZONE_MAX))
        return CLI_DONE;
    return rbk_cli_fail(CLI_USAGE, "--zone", "\"%.60s\": expected 1 to %d bytes", zone,
                        REDBUCKET_ZONE_MAX);
}

uint64_t rbk_walk_pace(const struct cli_context *context)
{
    const bool embedded = strncmp(context->store_url, "memory:", strlen("memory:")) == 0 ||
                          strncmp(context->store_url, "shm:", strlen("shm:")) == 0;

    return embedded ? 0 : CLI_PACE_DEFAULT;
}

static int step(const struct cli_walk_plan *plan, struct redbucket_walk *walk,
                redbucket_visitor *visit, void *data, bool *done)
{
    const enum redbucket_status status = redbucket_walk_step(walk, visit, data, done);

    if (status == REDBUCKET_OK)
        return CLI_DONE;
    return rbk_cli_fail_store("store", plan->store, status, redbucket_status_text(status));
}

int rbk_walk_all(const struct cli_walk_plan *plan, redbucket_visitor *visit, void *data,
                 const bool *enough)
{
    const struct redbucket_walk_options options = {
        .size = sizeof(options), .limiter = plan->limiter, .zone = plan->zone};
    struct redbucket_walk *walk;
    enum redbucket_status status = redbucket_walk_create(plan->store, &options, &walk);
    int result = CLI_DONE;
    bool done = false;

    if (status != REDBUCKET_OK)
        return rbk_cli_fail(rbk_cli_exit_of(status), "--zone", "\"%.60s\": expected 1 to %d bytes",
                            plan->zone != NULL ? plan->zone : "", REDBUCKET_ZONE_MAX);
    while (!done && !*enough) {
        const int went = step(plan, walk, visit, data, &done);

        result = went != CLI_DONE ? went : result;
        if (plan->pace > 0 && !done && !*enough)
            rbk_sleep(1.0 / (double)plan->pace);
    }
    redbucket_walk_destroy(walk);
    return result;
}
