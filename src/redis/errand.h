/* SPDX-License-Identifier: MIT */
/*
 * One call of the script on its way: some requests that are decided together, and what the server
 * said to them. Whoever has a connection sends its command and brings the reply.
 *
 * Invariant: once it is packed, nothing is done to a request but by a reply that makes sense from
 * its first byte to its last, or by whoever says that there is none.
 */
#ifndef RBK_REDIS_ERRAND_H
#define RBK_REDIS_ERRAND_H

#include "store.h"
#include "wire/call.h"

struct rbk_errand {
    struct rbk_call *call;        /* borrowed, in use until the reply has been taken */
    struct rbk_request *requests; /* borrowed, no more than fit one call */
    size_t len;
    bool with_text; /* the server doesn't know the script */
};

/* How many of the requests, from the first on, fit one call; and how many claims these have. */
size_t rbk_errand_fit(const struct rbk_request *requests, size_t len, size_t *claims);

/* False without memory: the requests have that status, and there is nothing to send. */
bool rbk_errand_pack(struct rbk_errand *errand);

struct rbk_command rbk_errand_command(const struct rbk_errand *errand);

enum rbk_settled {
    RBK_SETTLED,   /* each request has its status, and its answer where that is OK */
    RBK_FORGOTTEN, /* nothing ran: the server doesn't know the script, `with_text` is set */
    RBK_REFUSED,   /* the reply is another error */
    RBK_NONSENSE,  /* it is no answer to this call: all requests are ERROR_PROTOCOL */
};

enum rbk_settled rbk_errand_settle(struct rbk_errand *errand, const struct rbk_reply *reply);

/* Gives all requests a status that is no answer. */
void rbk_errand_fail(struct rbk_errand *errand, enum redbucket_status status);

/* Answers those that name no limit: they need no server, and have an answer whatever became of the
 * others. */
void rbk_requests_decide_here(struct rbk_request *requests, size_t len);

#endif
