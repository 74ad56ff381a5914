/* SPDX-License-Identifier: MIT */
/*
 * The model's level, from a state as stored: max(value - max(now - timestamp, 0) * rate, 0).
 */
#include "seen.h"

#include <string.h>

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

struct cli_seen rbk_seen(const struct cli_context *context, const struct redbucket_bucket *bucket)
{
    struct cli_seen seen = {
        .limit = limit_of(context, bucket),
        .readable = bucket->status == REDBUCKET_OK,
        .level = bucket->state.value > 0.0 ? bucket->state.value : 0.0,
    };
    const double age = bucket->now - bucket->state.timestamp;

    seen.rate = seen.limit != NULL ? seen.limit->limit.rate : bucket->rate;
    if (seen.limit != NULL)
        seen.most = seen.limit->limit.burst + 1.0 + seen.limit->limit.delay;
    else if (bucket->rate > 0.0)
        seen.most = bucket->depth + 1.0;
    seen.known = seen.readable && seen.rate > 0.0;
    if (!seen.known)
        return seen;
    if (age > 0.0)
        seen.level = seen.level > age * seen.rate ? seen.level - age * seen.rate : 0.0;
    seen.reset_after = seen.level / seen.rate;
    return seen;
}
