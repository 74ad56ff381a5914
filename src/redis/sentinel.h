/* SPDX-License-Identifier: MIT */
/*
 * Asking a sentinel where the master of a service is.
 */
#ifndef RBK_REDIS_SENTINEL_H
#define RBK_REDIS_SENTINEL_H

#include "redis/connection.h"
#include "redis/options.h"

/*
 * Asks one sentinel, on a connection of its own, which is closed again. A master whose name is
 * empty: it knows no such service. Its answer may be out of date.
 *
 * Fails as a connection does; ERROR_AUTH when it wants another password, ERROR_UNSUPPORTED when it
 * is no sentinel, ERROR_PROTOCOL for an answer that is no place. Messages begin with the sentinel's
 * `where`.
 */
enum redbucket_status rbk_sentinel_ask(const struct rbk_redis_options *options,
                                       struct rbk_transport *sentinel,
                                       const struct rbk_deadline *deadline,
                                       struct rbk_endpoint *master, struct redbucket_error *error);

#endif
