/* SPDX-License-Identifier: MIT */
/*
 * Pacing: between two steps there is a pause, however long the first one took, so that a slow
 * server gets no less rest than a fast one.
 */
#include "walk.h"

#include "ask.h"

#include <string.h>

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

static const struct redbucket_named_limit *limit_of(const struct cli_context *context,
                                                    const struct redbucket_bucket *bucket)
{
    for (size_t i = 0; bucket->zone != NULL && i < context->limits_len; i++) {
        const char *zone = context->limits[i]->zone;

        if (strlen(zone) == bucket->zone_len && memcmp(zone, bucket->zone, bucket->zone_len) == 0)
            return context->limits[i];
    }
    return NULL;
}

struct cli_seen rbk_walk_see(const struct cli_context *context,
                             const struct redbucket_bucket *bucket)
{
    struct cli_seen seen = {
        .limit = limit_of(context, bucket),
        .readable = bucket->status == REDBUCKET_OK,
        .level = bucket->state.value > 0.0 ? bucket->state.value : 0.0,
    };
    const double rate = seen.limit != NULL ? seen.limit->limit.rate : bucket->rate;
    const double age = bucket->now - bucket->state.timestamp;

    if (seen.limit != NULL)
        seen.most = seen.limit->limit.burst + 1.0 + seen.limit->limit.delay;
    else if (bucket->rate > 0.0)
        seen.most = bucket->depth + 1.0;
    seen.known = seen.readable && rate > 0.0;
    if (!seen.known)
        return seen;
    if (age > 0.0)
        seen.level = seen.level > age * rate ? seen.level - age * rate : 0.0;
    seen.reset_after = seen.level / rate;
    return seen;
}
