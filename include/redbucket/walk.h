/* SPDX-License-Identifier: MIT */
/*
 * Red Bucket: looking at the buckets of a store, one after the other.
 *
 * A walk goes in steps, so that it never holds up those who ask for permits, and whoever walks
 * says how fast: a step reads at most some hundred buckets of a table under its lock, or asks a
 * server for about as many. A walk sees every bucket that is there from its first step to its last.
 * What comes or goes meanwhile is seen or not, and what a server holds may be seen twice. Nothing
 * is changed.
 *
 * A walk is used by one thread at a time, beside any others that use the store, and ends before the
 * store is closed.
 */
#ifndef REDBUCKET_WALK_H
#define REDBUCKET_WALK_H

#include "redbucket/redbucket.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A bucket that a walk came by. All is borrowed for the call.
 *
 *   name       what it is called on a server; NULL in a table, which has zone and key as they are
 *   zone, key  what the name was made of, NULL when nobody can say: other zones and keys could
 *              have made it. A name of a limiter's zone is always told.
 *   guessed    the name could be one of several zones, and this is the shortest
 *   status     OK, and there is a state; or ERROR_STATE: what is there can't be read
 *   now        by the store's clock, in seconds, when it was read
 *   rate       of the slowest limit that has asked since it was last empty, and
 *   depth      the least burst + delay of those; a server knows neither, and both are 0
 */
struct redbucket_bucket {
    const char *name;
    size_t name_len;
    const char *zone;
    size_t zone_len;
    const char *key;
    size_t key_len;
    bool guessed;
    enum redbucket_status status;
    struct redbucket_state state;
    double now;
    double rate;
    double depth;
};

/* Is told of each bucket, holding no lock and no connection of ours. It may use the store. */
typedef void redbucket_visitor(void *data, const struct redbucket_bucket *bucket);

/*
 * What is wanted. Fields left 0 have their defaults.
 *
 *   size     sizeof(struct redbucket_walk_options), or 0
 *   limiter  whose zones are known, or NULL; it must live as long as the walk
 *   zone     only buckets of this zone, or NULL for all; copied
 *   zone_len its length, or 0 when it ends with a NUL
 */
struct redbucket_walk_options {
    size_t size;
    const struct redbucket_limiter *limiter;
    const char *zone;
    size_t zone_len;
};

struct redbucket_walk;

/* Begins a walk, or fails and leaves *walk alone: ERROR_ARGUMENT for a zone that is none or for
 * options of another version, ERROR_MEMORY. NULL options are all defaults. */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_walk_create(struct redbucket_store *store, const struct redbucket_walk_options *options,
                      struct redbucket_walk **walk);

/* NULL does nothing. */
REDBUCKET_API void redbucket_walk_destroy(struct redbucket_walk *walk);

/*
 * Goes on for a step, which takes at most as long as a request may, and tells `visit` of what it
 * met, which may be nothing. Sets *done when the walk has come to its end, or can't go on; after an
 * error, too: a walk leaves out a node of a cluster that failed, or a part of a table that somebody
 * holds, and can go on.
 */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_walk_step(struct redbucket_walk *walk, redbucket_visitor *visit, void *data, bool *done);

#ifdef __cplusplus
}
#endif

#endif
