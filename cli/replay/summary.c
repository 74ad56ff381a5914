/* SPDX-License-Identifier: MIT */
/*
 * Adding up. Totals count requests; a limit counts for itself, so that a request which two limits
 * reject counts under both, and one line tells which limit is too tight.
 */
#include "summary.h"

#include <assert.h>
#include <stdlib.h>

/* Counters a limit. Up to so many keys that were hit, counts are exact. */
enum { COUNTERS = 4096 };

struct rbk_summary *rbk_summary_create(const struct rbk_limit_set *set, bool with_timelines)
{
    struct rbk_summary *summary =
        calloc(1, sizeof(*summary) + set->limits_len * sizeof(summary->limits[0]));

    if (!summary)
        return NULL;
    summary->name = set->name;
    summary->limits_len = set->limits_len;
    rbk_histogram_init(&summary->histogram, summary->bins, RBK_SUMMARY_BINS);
    rbk_delays_init(&summary->delays);
    for (size_t i = 0; i < set->limits_len; i++) {
        summary->limits[i].limit = set->limits[i];
        summary->limits[i].name = set->names[i];
        summary->limits[i].hits = rbk_hits_create(COUNTERS, with_timelines);
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

struct rbk_summary_limit *rbk_summary_limit(struct rbk_summary *summary, const char *name)
{
    for (size_t i = 0; i < summary->limits_len; i++)
        if (summary->limits[i].name == name)
            return &summary->limits[i];
    return NULL;
}

static enum redbucket_status limit_add(struct rbk_summary_limit *limit,
                                       const struct redbucket_request *request, size_t index,
                                       double time_s)
{
    const struct redbucket_key *key = &request->keys[index];
    const struct redbucket_verdict *verdict = &request->verdicts[index];
    const bool delayed = request->response.accepted && verdict->delay > 0;

    limit->requests++;
    limit->delayed += delayed;
    limit->rejected += !verdict->accepted;
    if (verdict->accepted && !delayed)
        return REDBUCKET_OK;
    return rbk_hits_add(limit->hits, (struct rbk_span){key->key, key->key_len},
                        verdict->accepted ? RBK_HISTOGRAM_DELAYED : RBK_HISTOGRAM_REJECTED, time_s);
}

static void response_add(struct rbk_summary *summary, const struct redbucket_response *response,
                         double time_s)
{
    enum rbk_histogram_kind kind = RBK_HISTOGRAM_REJECTED;

    if (response->accepted)
        kind = response->delay > 0 ? RBK_HISTOGRAM_DELAYED : RBK_HISTOGRAM_AT_ONCE;
    summary->accepted += response->accepted;
    summary->rejected += !response->accepted;
    summary->delayed += kind == RBK_HISTOGRAM_DELAYED;
    if (kind == RBK_HISTOGRAM_DELAYED)
        rbk_delays_add(&summary->delays, response->delay);
    rbk_histogram_add(&summary->histogram, time_s, kind);
}

enum redbucket_status rbk_summary_add(struct rbk_summary *summary,
                                      const struct redbucket_request *request, double time_s)
{
    enum redbucket_status status = REDBUCKET_OK;

    response_add(summary, &request->response, time_s);
    for (size_t i = 0; status == REDBUCKET_OK && i < request->keys_len; i++) {
        struct rbk_summary_limit *limit = rbk_summary_limit(summary, request->keys[i].limit);

        assert(limit != NULL); /* requests name the summary's limits, by the same pointers */
        status = limit_add(limit, request, i, time_s);
    }
    return status;
}
