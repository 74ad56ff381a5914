/* SPDX-License-Identifier: MIT */
/*
 * The smallest burst at each of many rates, for one limit, by trying several at once again and
 * again.
 *
 * Invariant, for each rate: `enough` touches no more than is allowed, `too_few` touches more, or is
 * NO_BURST; and fewer requests are touched the larger the burst, as long as all costs are the same.
 */
#ifndef RBK_REPLAY_SUGGEST_SEARCH_H
#define RBK_REPLAY_SUGGEST_SEARCH_H

#include "suggest.h"

#include <stdbool.h>

/* How many rates there are. */
#define RBK_SEARCH_RATES 45

/* Of too_few, when nothing is too few. */
#define RBK_SEARCH_NO_BURST (-1)

struct rbk_searched_rate {
    const char *text;
    double rate;
    int64_t too_few;
    int64_t enough;
    uint64_t touched_too_few;
    uint64_t touched_enough;
};

/*
 *   limit    which of the spool's, and its name
 *   allowed  how many requests it may touch
 */
struct rbk_search {
    struct rbk_spool *spool;
    size_t limit;
    const char *name;
    uint64_t allowed;
    struct rbk_progress *progress;
    unsigned passes;
    struct rbk_searched_rate rates[RBK_SEARCH_RATES];
};

/* Finds the rate that is to be suggested, its burst and those of the rates around it. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_search_run(struct rbk_search *search, size_t *best);

/* Whether a rate is one of those around another: the next one on either side, the third and the
 * sixth, and that rate itself. */
bool rbk_search_is_around(size_t rate, size_t other);

/* How many requests of one key get in within the window, at most. */
double rbk_search_a_window(double rate, double burst);

#endif
