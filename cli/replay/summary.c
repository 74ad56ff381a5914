/* SPDX-License-Identifier: MIT */
/*
 * Adding up. Totals count requests; a limit counts for itself, so that a request which two limits
 * reject counts under both, and one line tells which limit is too tight.
 */
#include "summary.h"

#include <math.h>
#include <stdlib.h>

/* Counters a limit. Up to so many keys that were hit, counts are exact. */
enum { COUNTERS = 4096 };

struct rbk_summary *rbk_summary_create(struct redbucket_named_limit *const *limits,
                                       size_t limits_len)
{
    struct rbk_summary *summary =
        calloc(1, sizeof(*summary) + limits_len * sizeof(summary->limits[0]));

    if (!summary)
        return NULL;
    summary->limits_len = limits_len;
    for (size_t i = 0; i < limits_len; i++) {
        summary->limits[i].limit = limits[i];
        summary->limits[i].hits = rbk_hits_create(COUNTERS);
        if (!summary->limits[i].hits) {
            rbk_summary_destroy(summary);
            return NULL;
        }
    }
    return summary;
}

void rbk_summary_destroy(struct rbk_summary *summary)
{
    if (!summary)
        return;
    for (size_t i = 0; i < summary->limits_len; i++)
        rbk_hits_destroy(summary->limits[i].hits);
    free(summary);
}

/* Names are the limits' own, so their address is enough to tell them apart. */
static struct rbk_summary_limit *limit_named(struct rbk_summary *summary, const char *name)
{
    struct rbk_summary_limit *limit = summary->limits;

    while (limit->limit->name != name)
        limit++;
    return limit;
}

static enum redbucket_status limit_add(struct rbk_summary_limit *limit,
                                       const struct redbucket_key *key, bool request_accepted,
                                       const struct redbucket_verdict *verdict)
{
    const bool delayed = request_accepted && verdict->delay > 0;

    limit->requests++;
    limit->delayed += delayed;
    limit->rejected += !verdict->accepted;
    if (verdict->accepted && !delayed)
        return REDBUCKET_OK;
    return rbk_hits_add(limit->hits, (struct rbk_span){key->key, key->key_len}, !verdict->accepted);
}

static void request_add(struct rbk_summary *summary, const struct rbk_step *step)
{
    enum rbk_histogram_kind kind = RBK_HISTOGRAM_REJECTED;

    if (step->accepted)
        kind = step->delay > 0 ? RBK_HISTOGRAM_DELAYED : RBK_HISTOGRAM_AT_ONCE;
    summary->accepted += step->accepted;
    summary->delayed += kind == RBK_HISTOGRAM_DELAYED;
    summary->rejected += !step->accepted;
    rbk_histogram_add(&summary->histogram, step->time_s, kind);
}

enum redbucket_status rbk_summary_add(struct rbk_summary *summary, const struct rbk_step *step,
                                      const struct redbucket_verdict *verdicts)
{
    summary->first_s = summary->timed ? fmin(summary->first_s, step->time_s) : step->time_s;
    summary->last_s = summary->timed ? fmax(summary->last_s, step->time_s) : step->time_s;
    summary->timed = true;
    if (step->operation != REDBUCKET_REQUEST) {
        summary->others++;
        return REDBUCKET_OK;
    }
    request_add(summary, step);
    for (size_t i = 0; i < step->keys_len; i++) {
        struct rbk_summary_limit *limit = limit_named(summary, step->keys[i].limit);
        const enum redbucket_status status =
            limit_add(limit, &step->keys[i], step->accepted, &verdicts[i]);

        if (status != REDBUCKET_OK)
            return status;
    }
    return REDBUCKET_OK;
}
