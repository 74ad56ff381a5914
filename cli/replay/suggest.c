/* SPDX-License-Identifier: MIT */
/*
 * From a share to limits: how many requests may be touched, a search for each limit, and then all
 * of them together as the library decides them, which is what is told.
 *
 * Why an equal part for each limit is enough: what one limit rejects is one request less for the
 * others, and with one request less no limit rejects more. So together they touch at most the sum
 * of what each touches alone.
 */
#include "suggest.h"

#include "suggest_search.h"

#include <math.h>
#include <stdlib.h>

/* The most requests that may be touched so that at least this share of all is not. */
static uint64_t allowed_of(uint64_t requests, double share)
{
    uint64_t allowed = (uint64_t)((double)requests * (1 - share));

    while (allowed < requests && (double)(requests - allowed - 1) >= (double)requests * share)
        allowed++;
    while (allowed > 0 && (double)(requests - allowed) < (double)requests * share)
        allowed--;
    return allowed;
}

static enum redbucket_status limit_make(struct rbk_suggestion *suggestion)
{
    const struct rbk_suggested_rate *rate = &suggestion->rates[suggestion->chosen];
    char text[REDBUCKET_LIMIT_TEXT_SIZE];

    snprintf(text, sizeof(text), "%s:%s,burst=%llu", suggestion->name, rate->text,
             (unsigned long long)rate->burst);
    return redbucket_limit_parse(text, &suggestion->limit, NULL);
}

/* The best rate and those around it out of a search. */
static void rates_take(struct rbk_suggestion *suggestion, const struct rbk_search *search,
                       size_t best)
{
    for (size_t i = 0; i < RBK_SEARCH_RATES; i++) {
        const struct rbk_searched_rate *rate = &search->rates[i];

        if (!rbk_search_is_around(i, best))
            continue;
        if (i == best)
            suggestion->chosen = suggestion->rates_len;
        suggestion->rates[suggestion->rates_len++] = (struct rbk_suggested_rate){
            .text = rate->text,
            .rate = rate->rate,
            .burst = (uint64_t)rate->enough,
            .touched = rate->touched_enough,
            .touched_one_less = rate->touched_too_few,
            .a_window = rbk_search_a_window(rate->rate, (double)rate->enough),
        };
    }
}

static enum redbucket_status suggest_one(struct rbk_search *search,
                                         struct rbk_suggestion *suggestion)
{
    enum redbucket_status status;
    size_t best;

    if (suggestion->requests == 0)
        return REDBUCKET_OK;
    status = rbk_search_run(search, &best);
    if (status != REDBUCKET_OK)
        return status;
    rates_take(suggestion, search, best);
    return limit_make(suggestion);
}

static enum redbucket_status limiter_make(const struct rbk_suggestions *suggestions,
                                          struct redbucket_store *store,
                                          struct redbucket_limiter **limiter)
{
    enum redbucket_status status = redbucket_limiter_create(store, limiter, NULL);

    for (size_t i = 0; status == REDBUCKET_OK && i < suggestions->len; i++)
        if (suggestions->suggestions[i].rates_len > 0)
            status = redbucket_limiter_add(*limiter, suggestions->suggestions[i].name,
                                           &suggestions->suggestions[i].limit.limit, NULL);
    return status;
}

/* Replays all requests; keys are the bytes of their hashes. */
static enum redbucket_status decide_all(struct rbk_suggestions *suggestions,
                                        struct rbk_spool *spool, struct redbucket_limiter *limiter)
{
    struct redbucket_key keys[REDBUCKET_KEYS_MAX];
    struct redbucket_request request = {.operation = REDBUCKET_REQUEST, .keys = keys};
    const struct rbk_spool_record *record;

    suggestions->touched = 0;
    rbk_spool_rewind(spool);
    while ((record = rbk_spool_next(spool))) {
        enum redbucket_status status;

        request.keys_len = 0;
        request.cost = record->cost;
        for (size_t i = 0; i < suggestions->len; i++)
            if (record->hashes[i] != 0)
                keys[request.keys_len++] = (struct redbucket_key){
                    .limit = suggestions->suggestions[i].name,
                    .key = (const char *)&record->hashes[i],
                    .key_len = sizeof(record->hashes[i]),
                };
        status = redbucket_decide_at(limiter, &request, 1, record->time_s);
        if (status != REDBUCKET_OK)
            return status;
        suggestions->touched += !request.response.accepted || request.response.delay > 0;
    }
    return rbk_spool_failed(spool) ? REDBUCKET_ERROR_SYSTEM : REDBUCKET_OK;
}

static enum redbucket_status verify(struct rbk_suggestions *suggestions, struct rbk_spool *spool)
{
    struct redbucket_limiter *limiter = NULL;
    struct redbucket_store *store = NULL;
    enum redbucket_status status = redbucket_store_open("memory:?grow=yes", &store, NULL);

    if (status == REDBUCKET_OK)
        status = limiter_make(suggestions, store, &limiter);
    if (status == REDBUCKET_OK)
        status = decide_all(suggestions, spool, limiter);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    return status;
}

/* Requests of different costs may be touched more often by a larger burst, so that the search
 * misses: then bursts grow until it holds. */
static enum redbucket_status widen(struct rbk_suggestions *suggestions)
{
    for (size_t i = 0; i < suggestions->len; i++) {
        struct rbk_suggestion *suggestion = &suggestions->suggestions[i];
        struct rbk_suggested_rate *rate = &suggestion->rates[suggestion->chosen];
        enum redbucket_status status;

        if (suggestion->rates_len == 0)
            continue;
        rate->burst += rate->burst / 16 + 1;
        rate->a_window = rbk_search_a_window(rate->rate, (double)rate->burst);
        status = limit_make(suggestion);
        if (status != REDBUCKET_OK)
            return status;
    }
    return REDBUCKET_OK;
}

enum redbucket_status rbk_suggest(struct rbk_spool *spool, const struct rbk_summary *summary,
                                  double share, struct rbk_progress *progress,
                                  struct rbk_suggestions *suggestions)
{
    const uint64_t requests = rbk_spool_len(spool);
    enum redbucket_status status = REDBUCKET_OK;

    *suggestions = (struct rbk_suggestions){
        .share = share, .requests = requests, .allowed = allowed_of(requests, share)};
    suggestions->suggestions = calloc(summary->limits_len, sizeof(struct rbk_suggestion));
    if (!suggestions->suggestions)
        return REDBUCKET_ERROR_MEMORY;
    suggestions->len = summary->limits_len;
    suggestions->allowed_each = suggestions->allowed / summary->limits_len;
    for (size_t i = 0; status == REDBUCKET_OK && i < suggestions->len; i++) {
        struct rbk_search search = {.spool = spool,
                                    .limit = i,
                                    .name = summary->limits[i].name,
                                    .allowed = suggestions->allowed_each,
                                    .progress = progress};

        suggestions->suggestions[i].name = summary->limits[i].name;
        suggestions->suggestions[i].requests = summary->limits[i].requests;
        status = suggest_one(&search, &suggestions->suggestions[i]);
    }
    if (status == REDBUCKET_OK)
        status = verify(suggestions, spool);
    while (status == REDBUCKET_OK && suggestions->touched > suggestions->allowed) {
        status = widen(suggestions);
        if (status == REDBUCKET_OK)
            status = verify(suggestions, spool);
    }
    return status;
}

void rbk_suggestions_fini(struct rbk_suggestions *suggestions)
{
    free(suggestions->suggestions);
    suggestions->suggestions = NULL;
    suggestions->len = 0;
}
