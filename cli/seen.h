/* SPDX-License-Identifier: MIT */
/*
 * What a bucket comes to under the limits that are configured.
 */
#ifndef RBK_CLI_SEEN_H
#define RBK_CLI_SEEN_H

#include "cli.h"
#include "redbucket/walk.h"

/*
 * A bucket in numbers of now.
 *
 *   limit     the limit of its zone, or NULL
 *   readable  there is a state
 *   rate      of its limit, or what the store knows of it; 0 when nobody does
 *   known     a rate is known, and with it `level` and `reset_after`; else level is at most that
 *   level     requests that have not drained
 *   reset_after  seconds until it is empty
 *   most      burst + 1 + delay, 0 when nobody knows
 */
struct cli_seen {
    const struct redbucket_named_limit *limit;
    bool readable;
    double rate;
    bool known;
    double level;
    double reset_after;
    double most;
};

struct cli_seen rbk_seen(const struct cli_context *context, const struct redbucket_bucket *bucket);

#endif
