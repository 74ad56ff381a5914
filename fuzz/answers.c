/* SPDX-License-Identifier: MIT */
/*
 * By what the public header says, and nothing that is inside: no number that isn't one, no wait
 * without an end but where none would do, no verdict against the whole.
 */
#include "answers.h"

#include <math.h>
#include <stdlib.h>

static void check_wait(double seconds, uint64_t us)
{
    if (!(seconds >= 0.0) || isinf(seconds) != (us == UINT64_MAX))
        abort();
}

static void check_verdict(const struct redbucket_verdict *verdict, bool accepted)
{
    if (!(verdict->delay >= 0.0 && verdict->retry_after >= 0.0 && verdict->reset_after >= 0.0) ||
        verdict->remaining < 0 || (accepted && !verdict->accepted))
        abort();
}

static void check_response(const struct redbucket_request *request)
{
    const struct redbucket_response *response = &request->response;

    check_wait(response->delay, response->delay_us);
    check_wait(response->retry_after, response->retry_after_us);
    check_wait(response->reset_after, response->reset_after_us);
    if (response->degraded || !isfinite(response->time) || isinf(response->delay) ||
        response->remaining < 0)
        abort();
    if (response->accepted ? response->retry_after > 0.0 : response->delay > 0.0)
        abort();
    if (response->decided != REDBUCKET_NONE && response->decided >= request->keys_len)
        abort();
    for (size_t i = 0; i < request->keys_len; i++)
        check_verdict(&request->verdicts[i], response->accepted);
}

void rbk_answers_check(const struct redbucket_request *request)
{
    if (request->status == REDBUCKET_OK)
        check_response(request);
    else if (request->failed != REDBUCKET_NONE && request->failed >= request->keys_len)
        abort();
}
