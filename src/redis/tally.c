/* SPDX-License-Identifier: MIT */
/*
 * Counting requests that name a limit; peeks and what nobody can refuse count only when they fail.
 * What a front asks for itself is nobody's request.
 */
#include "redis/tally.h"

static void count(atomic_ullong *counter)
{
    (void)atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void rbk_tally_add(struct rbk_tally *tally, const struct rbk_request *requests, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const struct rbk_answer *answer = &requests[i].answer;

        if (requests[i].aside)
            continue;
        if (requests[i].status != REDBUCKET_OK) {
            count(&tally->failed);
        } else if (requests[i].ask.operation == RBK_REQUEST && requests[i].len > 0) {
            count(answer->accepted ? &tally->accepted : &tally->rejected);
            if (answer->accepted && answer->delay > 0.0)
                count(&tally->delayed);
        }
    }
}

void rbk_tally_read(const struct rbk_tally *tally, struct redbucket_statistics *out)
{
    out->accepted = atomic_load_explicit(&tally->accepted, memory_order_relaxed);
    out->delayed = atomic_load_explicit(&tally->delayed, memory_order_relaxed);
    out->rejected = atomic_load_explicit(&tally->rejected, memory_order_relaxed);
    out->failed = atomic_load_explicit(&tally->failed, memory_order_relaxed);
}
