/* SPDX-License-Identifier: MIT */
/*
 * Connecting to one of some addresses before a deadline.
 */
#ifndef RBK_REDIS_DIAL_H
#define RBK_REDIS_DIAL_H

#include "redbucket/redbucket.h"
#include "redis/resolve.h"
#include "redis/stream.h"

/*
 * Tries one after the other, each for its share of the time that is left, so that one that doesn't
 * answer leaves some for the next; the first that connects becomes the stream's. ERROR_UNAVAILABLE,
 * ERROR_TIMEOUT, ERROR_SYSTEM (no descriptor left), ERROR_MEMORY, with the stream's `failure` set.
 */
enum redbucket_status rbk_dial(const struct rbk_addresses *addresses,
                               const struct rbk_deadline *deadline, struct rbk_stream *stream);

/* The address of a Unix socket; false when the path is too long. */
bool rbk_address_of_path(const char *path, struct rbk_address *address);

#endif
