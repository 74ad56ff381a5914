/* SPDX-License-Identifier: MIT */
/*
 * Deciding by script: one round trip for a batch, and one more when the server doesn't know the
 * script, once. EVAL teaches it, so that SCRIPT LOAD, which proxies and access lists refuse, is
 * never needed.
 */
#include "redis/method.h"

#include <stdio.h>
#include <string.h>

void rbk_method_fail(struct rbk_request *requests, size_t len, enum redbucket_status status)
{
    for (size_t i = 0; i < len; i++) {
        requests[i].status = status;
        requests[i].failed = RBK_NONE;
    }
}

/* Who named one server has to know that there are others. */
static void explain(struct rbk_use *use, const char *text, char out[2 * RBK_SERVER_WORDS_SIZE])
{
    bool lost = use->pool->options->kind != RBK_KIND_CLUSTER && rbk_server_is_node(text);
    char words[RBK_SERVER_WORDS_SIZE];

    rbk_server_words(text, words);
    (void)snprintf(out, 2 * RBK_SERVER_WORDS_SIZE, "%s%s%s",
                   lost ? "this server is a node of a cluster: use redis+cluster:// (" : "", words,
                   lost ? ")" : "");
}

enum redbucket_status rbk_method_refused(struct rbk_use *use, const struct rbk_reply *reply)
{
    enum redbucket_status status = rbk_server_error(reply->text, &use->usable);
    char words[2 * RBK_SERVER_WORDS_SIZE];

    explain(use, reply->text, words);
    rbk_pool_note(use->pool, status, words);
    return status;
}

enum redbucket_status rbk_method_call(struct rbk_use *use, const struct rbk_command *commands,
                                      size_t len, struct rbk_reply *replies)
{
    struct rbk_connection *connection = use->peer->connection;
    enum redbucket_status status =
        rbk_connection_call(connection, commands, len, replies, use->deadline);

    use->usable = status == REDBUCKET_OK;
    if (status != REDBUCKET_OK)
        rbk_pool_note(use->pool, status, rbk_connection_failure(connection));
    return status;
}

/* Sends the call, with the script's text when the server has forgotten it. *reply is of any type
 * but an error. */
static enum redbucket_status send_call(struct rbk_use *use, struct rbk_reply *reply)
{
    struct rbk_call *call = &use->peer->call;
    for (int with_text = 0; with_text < 2; with_text++) {
        struct rbk_command command = rbk_call_command(call, with_text != 0);
        enum redbucket_status status = rbk_method_call(use, &command, 1, reply);

        if (status != REDBUCKET_OK)
            return status;
        if (reply->type != RBK_REPLY_ERROR)
            return REDBUCKET_OK;
        if (!rbk_server_forgot_script(reply->text))
            return rbk_method_refused(use, reply);
    }
    /* It forgot the script in the moment between: nothing ran. */
    return rbk_method_refused(use, reply);
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

static bool read_call(const struct rbk_call *call, const struct rbk_reply *reply,
                      struct rbk_request *requests, size_t len)
{
    struct rbk_call_reader reader;

    if (!rbk_call_read_begin(&reader, call, reply))
        return false;
    for (size_t i = 0; i < len; i++) {
        struct rbk_request *request = &requests[i];

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

enum redbucket_status rbk_script_decide(struct rbk_use *use, struct rbk_request *requests,
                                        size_t len)
{
    struct rbk_call *call = &use->peer->call;
    enum redbucket_status status = REDBUCKET_OK;
    struct rbk_reply reply;

    rbk_call_clear(call);
    for (size_t i = 0; i < len; i++) {
        if (!rbk_call_add(call, &requests[i].ask, requests[i].keys, requests[i].claims,
                          requests[i].len))
            status = REDBUCKET_ERROR_MEMORY;
    }
    use->usable = true;
    if (status == REDBUCKET_OK)
        status = send_call(use, &reply);
    if (status == REDBUCKET_OK && !read_call(call, &reply, requests, len)) {
        status = REDBUCKET_ERROR_PROTOCOL;
        use->usable = false;
        rbk_pool_note(use->pool, status, "the server's answer to the script makes no sense");
    }
    if (status != REDBUCKET_OK)
        rbk_method_fail(requests, len, status);
    return status;
}

enum redbucket_status rbk_method_read(struct rbk_use *use, const struct rbk_key *key,
                                      struct rbk_state *state)
{
    struct rbk_call *call = &use->peer->call;
    struct rbk_claim none = {.expiry = 0.0};
    struct rbk_ask ask = {.operation = RBK_PEEK};
    struct rbk_argument arguments[2] = {{"GET", 3}};
    struct rbk_command command = {arguments, 2};
    struct rbk_reply reply;

    rbk_call_clear(call);
    if (!rbk_call_add(call, &ask, key, &none, 1))
        return REDBUCKET_ERROR_MEMORY;
    arguments[1] = (struct rbk_argument){call->names, call->names_len};
    enum redbucket_status status = rbk_method_call(use, &command, 1, &reply);

    if (status != REDBUCKET_OK)
        return status;
    if (reply.type == RBK_REPLY_ERROR)
        return rbk_method_refused(use, &reply);
    *state = (struct rbk_state){.exists = false};
    if (reply.type == RBK_REPLY_NIL)
        return REDBUCKET_OK;
    return reply.type == RBK_REPLY_STRING &&
                   rbk_state_decode(call->codec, (const unsigned char *)reply.text, reply.len,
                                    state)
               ? REDBUCKET_OK
               : REDBUCKET_ERROR_STATE;
}
