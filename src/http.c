/* SPDX-License-Identifier: MIT */
/*
 * The texts of one answer: header fields and problem bodies. What the numbers mean is decided in
 * http_field.c; here is how they are written.
 *
 * Invariant: nothing from outside reaches a text but names of limits, and those by
 * rbk_http_put_name alone.
 */
#include "redbucket/http.h"

#include "http_field.h"

#include <string.h>

#define TYPES "https://iana.org/assignments/http-problem-types#"

static enum redbucket_status find_limits(const struct redbucket_limiter *limiter,
                                         const struct redbucket_request *request,
                                         struct rbk_http_answer *answer)
{
    for (size_t i = 0; i < request->keys_len; i++) {
        const struct redbucket_key *key = &request->keys[i];

        if (key->limit == NULL)
            return REDBUCKET_ERROR_ARGUMENT;
        answer->limits[i] =
            rbk_limiter_find(limiter, key->limit, rbk_given_len(key->limit, key->limit_len));
        if (answer->limits[i] == NULL)
            return REDBUCKET_ERROR_UNKNOWN_LIMIT;
    }
    return REDBUCKET_OK;
}

/* A request that was refused before it was asked has no answer to tell of. */
static bool was_asked(const struct redbucket_request *request)
{
    return request->status != REDBUCKET_ERROR_ARGUMENT &&
           request->status != REDBUCKET_ERROR_UNKNOWN_LIMIT &&
           request->status != REDBUCKET_ERROR_DUPLICATE && request->status != REDBUCKET_ERROR_KEY &&
           request->keys_len <= REDBUCKET_KEYS_MAX;
}

static enum redbucket_status take_answer(const struct redbucket_limiter *limiter,
                                         const struct redbucket_request *request,
                                         struct rbk_http_answer *answer)
{
    answer->request = request;
    if (!was_asked(request))
        return REDBUCKET_ERROR_ARGUMENT;
    if (request->status == REDBUCKET_OK && request->keys_len > 0 && request->verdicts == NULL)
        return REDBUCKET_ERROR_ARGUMENT;
    return find_limits(limiter, request, answer);
}

static bool levels_known(const struct rbk_http_answer *answer)
{
    return answer->request->status == REDBUCKET_OK && !answer->request->response.degraded &&
           answer->request->keys_len > 0;
}

static void put_parameter(struct rbk_room *room, const char *name, uint64_t number)
{
    rbk_room_string(room, name);
    rbk_room_integer(room, number);
}

static void put_ratelimit(struct rbk_room *room, const struct rbk_http_answer *answer)
{
    for (size_t i = 0; i < answer->request->keys_len; i++) {
        const uint64_t reset = rbk_http_reset(answer, i);

        if (i > 0)
            rbk_room_string(room, ", ");
        rbk_http_put_name(room, answer->limits[i]);
        put_parameter(room, ";r=", rbk_http_remaining(&answer->request->verdicts[i]));
        if (reset > 0)
            put_parameter(room, ";t=", reset);
    }
}

static void put_policy(struct rbk_room *room, const struct rbk_http_answer *answer)
{
    for (size_t i = 0; i < answer->request->keys_len; i++) {
        const struct rbk_http_policy policy = rbk_http_policy(&answer->limits[i]->limit);

        if (i > 0)
            rbk_room_string(room, ", ");
        rbk_http_put_name(room, answer->limits[i]);
        put_parameter(room, ";q=", policy.quota);
        put_parameter(room, ";w=", policy.window);
    }
}

/* The limit that a client has to mind, for fields that can tell of only one. */
static size_t tightest(const struct redbucket_request *request)
{
    size_t found = 0;

    if (!request->response.accepted && request->response.decided < request->keys_len)
        return request->response.decided;
    for (size_t i = 1; i < request->keys_len; i++) {
        if (request->verdicts[i].remaining < request->verdicts[found].remaining)
            found = i;
    }
    return found;
}

static void put_old(struct rbk_room *room, const struct rbk_http_answer *answer,
                    enum redbucket_http_field field)
{
    const size_t index = tightest(answer->request);

    if (field == REDBUCKET_HTTP_X_LIMIT)
        rbk_room_integer(room, rbk_http_at_once(&answer->limits[index]->limit));
    else if (field == REDBUCKET_HTTP_X_REMAINING)
        rbk_room_integer(room, rbk_http_remaining(&answer->request->verdicts[index]));
    else
        rbk_room_integer(room, rbk_http_reset(answer, index));
}

/* Whether the field has a value. */
static bool applies(const struct rbk_http_answer *answer, enum redbucket_http_field field)
{
    if (field == REDBUCKET_HTTP_RETRY_AFTER)
        return rbk_http_retry_after(answer->request) > 0;
    if (field == REDBUCKET_HTTP_RATELIMIT_POLICY)
        return answer->request->keys_len > 0;
    return levels_known(answer);
}

static void put_value(struct rbk_room *room, const struct rbk_http_answer *answer,
                      enum redbucket_http_field field)
{
    if (field == REDBUCKET_HTTP_RETRY_AFTER)
        rbk_room_integer(room, rbk_http_retry_after(answer->request));
    else if (field == REDBUCKET_HTTP_RATELIMIT)
        put_ratelimit(room, answer);
    else if (field == REDBUCKET_HTTP_RATELIMIT_POLICY)
        put_policy(room, answer);
    else
        put_old(room, answer, field);
}

static const struct {
    enum redbucket_http_field field;
    const char *name;
} names[] = {
    {REDBUCKET_HTTP_RETRY_AFTER, "Retry-After"},
    {REDBUCKET_HTTP_RATELIMIT, "RateLimit"},
    {REDBUCKET_HTTP_RATELIMIT_POLICY, "RateLimit-Policy"},
    {REDBUCKET_HTTP_X_LIMIT, "X-RateLimit-Limit"},
    {REDBUCKET_HTTP_X_REMAINING, "X-RateLimit-Remaining"},
    {REDBUCKET_HTTP_X_RESET, "X-RateLimit-Reset"},
};

#define NAMES_LEN (sizeof names / sizeof names[0])

static size_t find_name(enum redbucket_http_field field)
{
    size_t at = 0;

    while (at < NAMES_LEN && names[at].field != field)
        at++;
    return at;
}

const char *redbucket_http_name(enum redbucket_http_field field)
{
    const size_t at = find_name(field);

    return at < NAMES_LEN ? names[at].name : "unknown";
}

enum redbucket_status redbucket_http_value(const struct redbucket_limiter *limiter,
                                           const struct redbucket_request *request,
                                           enum redbucket_http_field field,
                                           struct redbucket_text *text)
{
    struct rbk_room room = rbk_room_begin(text);
    struct rbk_http_answer answer;
    enum redbucket_status status = take_answer(limiter, request, &answer);

    if (find_name(field) == NAMES_LEN)
        return REDBUCKET_ERROR_ARGUMENT;
    if (status != REDBUCKET_OK)
        return status;
    rbk_room_string(&room, "");
    if (applies(&answer, field))
        put_value(&room, &answer, field);
    return rbk_room_end(&room);
}

enum redbucket_status redbucket_http_fields(const struct redbucket_limiter *limiter,
                                            const struct redbucket_request *request,
                                            unsigned fields, struct redbucket_text *text)
{
    struct rbk_room room = rbk_room_begin(text);
    struct rbk_http_answer answer;
    enum redbucket_status status = take_answer(limiter, request, &answer);

    if ((fields & ~(unsigned)REDBUCKET_HTTP_ALL) != 0)
        return REDBUCKET_ERROR_ARGUMENT;
    if (status != REDBUCKET_OK)
        return status;
    rbk_room_string(&room, "");
    for (size_t i = 0; i < NAMES_LEN; i++) {
        if ((fields & names[i].field) == 0 || !applies(&answer, names[i].field))
            continue;
        rbk_room_string(&room, names[i].name);
        rbk_room_string(&room, ": ");
        put_value(&room, &answer, names[i].field);
        rbk_room_string(&room, "\r\n");
    }
    return rbk_room_end(&room);
}

int redbucket_http_status(const struct redbucket_request *request)
{
    if (!was_asked(request))
        return 500;
    if (request->status != REDBUCKET_OK)
        return 503;
    if (request->response.accepted)
        return 200;
    return request->response.degraded ? 503 : 429;
}

static void put_violated(struct rbk_room *room, const struct rbk_http_answer *answer)
{
    const char *before = "";

    rbk_room_string(room, ",\"violated-policies\":[");
    for (size_t i = 0; i < answer->request->keys_len; i++) {
        if (answer->request->verdicts[i].accepted)
            continue;
        rbk_room_string(room, before);
        rbk_http_put_name(room, answer->limits[i]);
        before = ",";
    }
    rbk_room_string(room, "]");
}

static void put_detail(struct rbk_room *room, const struct redbucket_request *request)
{
    const uint64_t seconds = rbk_http_retry_after(request);

    rbk_room_string(room, ",\"detail\":\"");
    if (seconds == 0) {
        rbk_room_string(room, "A request that costs this much is never accepted.");
    } else {
        rbk_room_string(room, "Try again in ");
        rbk_room_integer(room, seconds);
        rbk_room_string(room, seconds == 1 ? " second." : " seconds.");
    }
    rbk_room_string(room, "\"");
}

static void put_problem(struct rbk_room *room, const struct rbk_http_answer *answer)
{
    const struct redbucket_request *request = answer->request;
    const char *type = TYPES "quota-exceeded";
    const char *title = "Quota Exceeded";

    if (request->status != REDBUCKET_OK) {
        type = "about:blank";
        title = "Service Unavailable";
    } else if (request->response.degraded) {
        type = TYPES "temporary-reduced-capacity";
        title = "Temporary Reduced Capacity";
    }
    rbk_room_string(room, "{\"type\":\"");
    rbk_room_string(room, type);
    rbk_room_string(room, "\",\"title\":\"");
    rbk_room_string(room, title);
    rbk_room_string(room, "\",\"status\":");
    rbk_room_integer(room, (uint64_t)redbucket_http_status(request));
    put_detail(room, request);
    if (request->status == REDBUCKET_OK)
        put_violated(room, answer);
    rbk_room_string(room, "}");
}

enum redbucket_status redbucket_http_problem(const struct redbucket_limiter *limiter,
                                             const struct redbucket_request *request,
                                             struct redbucket_text *text)
{
    struct rbk_room room = rbk_room_begin(text);
    struct rbk_http_answer answer;
    enum redbucket_status status = take_answer(limiter, request, &answer);

    if (status != REDBUCKET_OK)
        return status;
    if (request->status == REDBUCKET_OK && request->response.accepted)
        return REDBUCKET_ERROR_ARGUMENT;
    put_problem(&room, &answer);
    return rbk_room_end(&room);
}
