/* SPDX-License-Identifier: MIT */
/*
 * What a limit and its verdict come to in whole requests and whole seconds, and names as strings of
 * structured fields (RFC 9651).
 *
 * Invariant: no number has more than 15 digits, and nothing of a name gets out but printable ASCII.
 */
#ifndef RBK_HTTP_FIELD_H
#define RBK_HTTP_FIELD_H

#include "limiter.h"
#include "text/room.h"

/* The largest integer of a structured field. */
#define RBK_HTTP_INTEGER_MAX 999999999999999u

/* A request as the texts see it: its limits looked up, and who rejects. */
struct rbk_http_answer {
    const struct redbucket_request *request;
    const struct rbk_named *limits[REDBUCKET_KEYS_MAX];
};

/* How many requests pass at once. */
uint64_t rbk_http_at_once(const struct rbk_limit *limit);

/* The quota and the seconds of its window. */
struct rbk_http_policy {
    uint64_t quota;
    uint64_t window;
};

struct rbk_http_policy rbk_http_policy(const struct rbk_limit *limit);

uint64_t rbk_http_remaining(const struct redbucket_verdict *verdict);

/* Seconds until something comes back, of the limit of that index; 0 when nothing is missing, or
 * nothing ever will do. */
uint64_t rbk_http_reset(const struct rbk_http_answer *answer, size_t index);

/* Seconds to wait before trying again, 0 when that is no use. */
uint64_t rbk_http_retry_after(const struct redbucket_request *request);

/* The name with its quotes, fit for a structured field and for JSON alike. */
void rbk_http_put_name(struct rbk_room *room, const struct rbk_named *named);

#endif
