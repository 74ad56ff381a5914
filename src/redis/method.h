/* SPDX-License-Identifier: MIT */
/*
 * The two ways to decide on a server: by script, a whole batch in one call, or, on servers older
 * than the script needs, by WATCH, MULTI and EXEC, one request at a time.
 *
 * Both set `status` of every request. What they return is how the connection fares: OK when it may
 * be used on, or why not; the requests without an answer then have that status too.
 */
#ifndef RBK_REDIS_METHOD_H
#define RBK_REDIS_METHOD_H

#include "redis/pool.h"

struct rbk_use {
    struct rbk_pool *pool;
    struct rbk_peer *peer;
    const struct rbk_deadline *deadline;
    bool usable; /* out: the connection may be used on */
};

/* How many of the requests, from the first on, go in one round trip by script; and how many claims
 * these have. */
size_t rbk_script_fit(const struct rbk_request *requests, size_t len, size_t *claims);

/* No more requests than fit one round trip. */
enum redbucket_status rbk_script_decide(struct rbk_use *use, struct rbk_request *requests,
                                        size_t len);

enum redbucket_status rbk_transaction_decide(struct rbk_use *use, struct rbk_request *requests,
                                             size_t len);

enum redbucket_status rbk_transaction_read(struct rbk_use *use, const struct rbk_key *key,
                                           struct rbk_state *state);

/* Reads one bucket's state, by either method. ERROR_STATE leaves the connection good. */
enum redbucket_status rbk_method_read(struct rbk_use *use, const struct rbk_key *key,
                                      struct rbk_state *state);

/* Sends commands and reads their replies; notes what went wrong, and sets `use->usable`. */
enum redbucket_status rbk_method_call(struct rbk_use *use, const struct rbk_command *commands,
                                      size_t len, struct rbk_reply *replies);

/* Keeps why a call on the connection failed with this status. */
void rbk_method_lost(struct rbk_use *use, enum redbucket_status status);

/* An error reply's status; its words are kept, and `use->usable` is set. */
enum redbucket_status rbk_method_refused(struct rbk_use *use, const struct rbk_reply *reply);

#endif
