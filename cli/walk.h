/* SPDX-License-Identifier: MIT */
/*
 * Going through the buckets of a command's store at a pace that nobody notices, and what a bucket
 * comes to under the limits that are configured.
 */
#ifndef RBK_CLI_WALK_H
#define RBK_CLI_WALK_H

#include "cli.h"
#include "redbucket/walk.h"

/* Steps a second, for stores on a server, when nothing else is said. */
#define CLI_PACE_DEFAULT 100

/* How to go. `zone` NULL is all of them; `pace` 0 is as fast as it goes. */
struct cli_walk_plan {
    const struct cli_context *context;
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    const char *zone;
    uint64_t pace;
};

/* The default for the store of the context. */
uint64_t rbk_walk_pace(const struct cli_context *context);

/*
 * Goes through everything, or until *enough becomes true. Where a part of a cluster can't be
 * asked, says so, goes on, and returns CLI_STORE in the end.
 */
int rbk_walk_all(const struct cli_walk_plan *plan, redbucket_visitor *visit, void *data,
                 const bool *enough);

/*
 * A bucket in numbers of now.
 *
 *   limit     the limit of its zone, or NULL
 *   readable  there is a state
 *   known     a rate is known, and with it `level` and `reset_after`; else level is at most that
 *   level     requests that have not drained
 *   reset_after  seconds until it is empty
 *   most      burst + 1 + delay, 0 when nobody knows
 */
struct cli_seen {
    const struct redbucket_named_limit *limit;
    bool readable;
    bool known;
    double level;
    double reset_after;
    double most;
};

struct cli_seen rbk_walk_see(const struct cli_context *context,
                             const struct redbucket_bucket *bucket);

#endif
