/* SPDX-License-Identifier: MIT */
/*
 * Red Bucket: what a service that speaks HTTP tells its clients.
 *
 * Every function here writes the text that an answer comes to: Retry-After, the RateLimit and
 * RateLimit-Policy fields of draft-ietf-httpapi-ratelimit-headers-11, the older X-RateLimit-*, and
 * the problem body of RFC 9457. They take the request as redbucket_decide left it, together with
 * the limiter that decided it; `verdicts` must have been asked for. Nothing is asked of a store.
 *
 * What a limit's numbers come to is in docs/http.md. In short, with a limit's burst and rate:
 *
 *     at once   floor(burst) + 1
 *     w         whole seconds in which the rate gives that back, at least 1
 *     q         what the rate gives in w seconds, never less than passes at once
 *     r         the verdict's `remaining`
 *     t         whole seconds until something comes back: all of it while something is left, one
 *               request when nothing is, and the retry time of a limit that rejects
 *
 * Names of limits are data. They come out as strings of structured fields, bytes that such a
 * string can't hold as %XX, and "%" as %25. No key is ever shown.
 */
#ifndef REDBUCKET_HTTP_H
#define REDBUCKET_HTTP_H

#include "redbucket/redbucket.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 *   RETRY_AFTER          whole seconds, rounded up, at least 1; of a rejection, unless waiting is
 * no use, and of a request that failed because the store did RATELIMIT            what is left, of
 * each named limit RATELIMIT_POLICY     what each named limit allows X_LIMIT, X_REMAINING, X_RESET
 *                        X-RateLimit-Limit (what passes at once), X-RateLimit-Remaining and
 *                        X-RateLimit-Reset (t), of one limit: of those that reject the one with the
 *                        longest retry time, or else the one with the fewest remaining
 *
 * Of a degraded answer nobody knows what is left: RATELIMIT and X_REMAINING, X_RESET, X_LIMIT have
 * no value.
 */
enum redbucket_http_field {
    REDBUCKET_HTTP_RETRY_AFTER = 1,
    REDBUCKET_HTTP_RATELIMIT = 2,
    REDBUCKET_HTTP_RATELIMIT_POLICY = 4,
    REDBUCKET_HTTP_X_LIMIT = 8,
    REDBUCKET_HTTP_X_REMAINING = 16,
    REDBUCKET_HTTP_X_RESET = 32,
    REDBUCKET_HTTP_STANDARD = 7, /* the first three */
    REDBUCKET_HTTP_ALL = 63,
};

/* "Retry-After" and so on; "unknown" for what is no single field. Static text. */
REDBUCKET_API const char *redbucket_http_name(enum redbucket_http_field field);

/* Bytes that are enough for any one text here, of a request that names so many limits. */
#define REDBUCKET_HTTP_SIZE(limits) ((size_t)512 + (size_t)2048 * (limits))

/*
 * The value of one field, "" where it has none. OK, or ERROR_SPACE when it doesn't fit
 * into `text`, which then stays as it was; ERROR_UNKNOWN_LIMIT when the request's limits aren't the
 * limiter's; ERROR_ARGUMENT for a request that was refused unasked, or without verdicts, or a
 * `field` that is none. Safe from any thread.
 */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_http_value(const struct redbucket_limiter *limiter,
                     const struct redbucket_request *request, enum redbucket_http_field field,
                     struct redbucket_text *text);

/* Several fields, each "NAME: VALUE\r\n", those without a value left out. `fields` is any number of
 * redbucket_http_field added up. Otherwise like redbucket_http_value. */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_http_fields(const struct redbucket_limiter *limiter,
                      const struct redbucket_request *request, unsigned fields,
                      struct redbucket_text *text);

/*
 * The status that fits: 200 when accepted, 429 when rejected; 503 when the store failed, and when a
 * failure policy rejected; 500 when the request itself is wrong.
 */
REDBUCKET_API int redbucket_http_status(const struct redbucket_request *request);

#define REDBUCKET_HTTP_PROBLEM_TYPE "application/problem+json"

/*
 * The body for a request that wasn't accepted, as REDBUCKET_HTTP_PROBLEM_TYPE: of the draft's types
 * quota-exceeded, or temporary-reduced-capacity when a failure policy answered, with the limits
 * that rejected as "violated-policies"; about:blank when the store failed, whose message stays
 * here. ERROR_ARGUMENT for a request that was accepted. Otherwise like redbucket_http_value.
 */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_http_problem(const struct redbucket_limiter *limiter,
                       const struct redbucket_request *request, struct redbucket_text *text);

#ifdef __cplusplus
}
#endif

#endif
