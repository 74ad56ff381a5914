/* SPDX-License-Identifier: MIT */
/*
 * Asking a sentinel where the master of a service is.
 */
#ifndef RBK_REDIS_SENTINEL_H
#define RBK_REDIS_SENTINEL_H

#include "redis/connection.h"
#include "redis/options.h"

/*
 *   master  where it is, as far as the sentinel knows, which may be out of date; its name is empty
 *           when the sentinel knows no such service
 *   watch   where the connection is put as soon as there is one, so that a child which is forked in
 *           the middle finds it. It is left open when the sentinel will say something on it as soon
 *           as any master of its has moved, and is the caller's to close then; else it is NULL
 * again
 */
struct rbk_sentinel_answer {
    struct rbk_endpoint master;
    struct rbk_connection **watch;
};

/*
 * Asks one sentinel, on a connection of its own. Only `answer->watch` need be set.
 *
 * Fails as a connection does; ERROR_AUTH when it wants another password, ERROR_UNSUPPORTED when it
 * is no sentinel, ERROR_PROTOCOL for an answer that is no place. Messages begin with the sentinel's
 * `where`.
 */
enum redbucket_status rbk_sentinel_ask(const struct rbk_redis_options *options,
                                       struct rbk_transport *sentinel,
                                       const struct rbk_deadline *deadline,
                                       struct rbk_sentinel_answer *answer,
                                       struct redbucket_error *error);

/* Takes the connection, if there is one, from its place before closing it. */
void rbk_sentinel_hang_up(struct rbk_connection **watch);

#endif
