/* SPDX-License-Identifier: MIT */
/*
 * A limiter: named limits on a store. Immutable from the first request on.
 */
#ifndef RBK_LIMITER_H
#define RBK_LIMITER_H

#include "store.h"

#include <string.h>

/* The length of a text that ends with a NUL when none is given. */
static inline size_t rbk_given_len(const char *text, size_t len)
{
    return len != 0 ? len : strlen(text);
}

/* One limit, with copies of its texts. */
struct rbk_named {
    char *name;
    size_t name_len;
    unsigned char *zone;
    size_t zone_len;
    struct rbk_limit limit;
    double expiry;                   /* in whole seconds */
    struct rbk_lease_terms terms;    /* 0 permits for none */
    unsigned zone_index;             /* of its zone's counters in the store */
    struct redbucket_limit as_given; /* its zone is the copy */
};

struct redbucket_limiter {
    struct redbucket_store *store;
    size_t key_max;             /* the store's, which no request has to ask it for */
    struct rbk_named **limits;  /* in the order added */
    struct rbk_named **by_name; /* the same, by length and then bytes of the name */
    size_t len;
};

/* NULL when there is none of that name. */
const struct rbk_named *rbk_limiter_find(const struct redbucket_limiter *limiter, const char *name,
                                         size_t name_len);

/* What is wrong with a request before anybody has to be asked, or OK; then *lane is its lane in the
 * store, or RBK_NONE. */
enum redbucket_status rbk_request_check(const struct redbucket_limiter *limiter,
                                        const struct redbucket_request *request, size_t *lane);

/* As redbucket_decide, for a caller who has waited for so many seconds already. While it lasts he
 * may set a request's `gone`: nobody waits for its answer any more, so a failure policy has none
 * for it. */
void rbk_decide_waited(struct redbucket_limiter *limiter, struct redbucket_request *requests,
                       size_t requests_len, double waited, const bool *gone);

/* For a caller whose time is over: ERROR_TIMEOUT, or what a failure policy says to that. Waits for
 * nobody. */
void rbk_decide_late(struct redbucket_limiter *limiter, struct redbucket_request *requests,
                     size_t requests_len);

#endif
