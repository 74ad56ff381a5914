/* SPDX-License-Identifier: MIT */
/*
 * Packing requests into a call, and handing out what it brought. EVAL teaches a server the script,
 * so that SCRIPT LOAD, which proxies and access lists refuse, is never needed.
 */
#include "redis/errand.h"

#include "redis/server.h"

size_t rbk_errand_fit(const struct rbk_request *requests, size_t len, size_t *claims)
{
    size_t some = 0;

    *claims = 0;
    while (some < len && some < RBK_CALL_REQUESTS &&
           *claims + requests[some].len <= RBK_CALL_CLAIMS)
        *claims += requests[some++].len;
    return some;
}

void rbk_requests_decide_here(struct rbk_request *requests, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (requests[i].len > 0)
            continue;
        requests[i].status = REDBUCKET_OK;
        requests[i].ask.now = 0.0;
        rbk_decide(&requests[i].ask, NULL, 0, &requests[i].answer);
    }
}

void rbk_errand_fail(struct rbk_errand *errand, enum redbucket_status status)
{
    rbk_requests_fail(errand->requests, errand->len, status);
}

bool rbk_errand_pack(struct rbk_errand *errand)
{
    rbk_call_clear(errand->call);
    for (size_t i = 0; i < errand->len; i++) {
        const struct rbk_request *request = &errand->requests[i];

        if (!rbk_call_add(errand->call, &request->ask, request->keys, request->claims,
                          request->len)) {
            rbk_errand_fail(errand, REDBUCKET_ERROR_MEMORY);
            return false;
        }
    }
    return true;
}

struct rbk_command rbk_errand_command(const struct rbk_errand *errand)
{
    return rbk_call_command(errand->call, errand->with_text);
}

static enum redbucket_status status_of(enum rbk_outcome outcome)
{
    switch (outcome) {
    case RBK_OUTCOME_DECIDED:
        return REDBUCKET_OK;
    case RBK_OUTCOME_STATE:
        return REDBUCKET_ERROR_STATE;
    case RBK_OUTCOME_NONSENSE:
        break;
    }
    return REDBUCKET_ERROR_PROTOCOL;
}

static bool read_answers(struct rbk_errand *errand, const struct rbk_reply *reply)
{
    struct rbk_call_reader reader;

    if (!rbk_call_read_begin(&reader, errand->call, reply))
        return false;
    for (size_t i = 0; i < errand->len; i++) {
        struct rbk_request *request = &errand->requests[i];

        request->failed = RBK_NONE;
        request->status = status_of(
            rbk_call_read(&reader, &request->ask, request->claims, request->len, &request->answer));
        if (request->status == REDBUCKET_ERROR_STATE)
            request->failed = reader.failed;
        if (request->status == REDBUCKET_ERROR_PROTOCOL)
            return false;
    }
    return rbk_call_read_end(&reader);
}

enum rbk_settled rbk_errand_settle(struct rbk_errand *errand, const struct rbk_reply *reply)
{
    if (reply->type == RBK_REPLY_ERROR) {
        /* One that was sent the text and forgot it in the moment between has run nothing either. */
        if (!rbk_server_forgot_script(reply->text) || errand->with_text)
            return RBK_REFUSED;
        errand->with_text = true;
        return RBK_FORGOTTEN;
    }
    if (read_answers(errand, reply))
        return RBK_SETTLED;
    rbk_errand_fail(errand, REDBUCKET_ERROR_PROTOCOL);
    return RBK_NONSENSE;
}
