/* SPDX-License-Identifier: MIT */
/*
 * Going through the buckets of a command's store at a pace that nobody notices.
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

/* Refuses what can be no zone's name; NULL is none. CLI_DONE or CLI_USAGE. */
int rbk_walk_check_zone(const char *zone);

/* The default for the store of the context. */
uint64_t rbk_walk_pace(const struct cli_context *context);

/*
 * Goes through everything, or until *enough becomes true. Where a part of a cluster can't be
 * asked, says so, goes on, and returns CLI_STORE in the end.
 */
int rbk_walk_all(const struct cli_walk_plan *plan, redbucket_visitor *visit, void *data,
                 const bool *enough);

#endif
