/* SPDX-License-Identifier: MIT */
/*
 * Deciding by script: one round trip for a batch, of several calls when it is a long one, and one
 * more when the server doesn't know the script, once.
 */
#include "redis/errand.h"
#include "redis/method.h"

#include <stdio.h>
#include <string.h>

/* Room for an error's words and what is said around them. */
#define EXPLAINED_SIZE 320

/* Who named one server has to know that there are others. */
static void explain(struct rbk_use *use, const char *text, char out[EXPLAINED_SIZE])
{
    bool lost = use->pool->options->kind != RBK_KIND_CLUSTER && rbk_server_is_node(text);
    char words[RBK_SERVER_WORDS_SIZE];

    rbk_server_words_without(text, use->pool->options->password, words);
    (void)snprintf(out, EXPLAINED_SIZE, "%s%s%s",
                   lost ? "this server is a node of a cluster: use redis+cluster:// (" : "", words,
                   lost ? ")" : "");
}

enum redbucket_status rbk_method_refused(struct rbk_use *use, const struct rbk_reply *reply)
{
    enum redbucket_status status = rbk_server_error(reply->text, &use->usable);
    char words[EXPLAINED_SIZE];

    explain(use, reply->text, words);
    rbk_pool_note(use->pool, status, words);
    return status;
}

void rbk_method_lost(struct rbk_use *use, enum redbucket_status status)
{
    char words[RBK_SERVER_WORDS_SIZE];

    rbk_server_words_without(rbk_connection_failure(use->peer->connection),
                             use->pool->options->password, words);
    rbk_pool_note(use->pool, status, words);
}

enum redbucket_status rbk_method_call(struct rbk_use *use, const struct rbk_command *commands,
                                      size_t len, struct rbk_reply *replies)
{
    struct rbk_connection *connection = use->peer->connection;
    enum redbucket_status status =
        rbk_connection_call(connection, commands, len, replies, use->deadline);

    use->usable = status == REDBUCKET_OK;
    if (status != REDBUCKET_OK)
        rbk_method_lost(use, status);
    return status;
}

/* What one reply means to its errand, to the use of the connection, and to `*worst`: of several,
 * the status by which the connection is lost. False when the errand has to be sent again. */
static bool settle(struct rbk_use *use, struct rbk_errand *errand, const struct rbk_reply *reply,
                   enum redbucket_status *worst)
{
    bool usable = use->usable;
    enum redbucket_status status;

    switch (rbk_errand_settle(errand, reply)) {
    case RBK_SETTLED:
        return true;
    case RBK_FORGOTTEN:
        return false;
    case RBK_REFUSED:
        status = rbk_method_refused(use, reply);
        rbk_errand_fail(errand, status);
        break;
    case RBK_NONSENSE:
    default:
        status = REDBUCKET_ERROR_PROTOCOL;
        use->usable = false;
        rbk_pool_note(use->pool, status, "the server's answer to the script makes no sense");
        break;
    }
    if (*worst == REDBUCKET_OK || !use->usable)
        *worst = status;
    use->usable = use->usable && usable;
    return true;
}

/* One round trip for all of them. Those whose script the server has forgotten are moved to the
 * front: *len is how many are left to be sent again. */
static enum redbucket_status send_all(struct rbk_use *use, struct rbk_errand *errands, size_t *len)
{
    struct rbk_command commands[RBK_CALLS_MAX];
    struct rbk_reply replies[RBK_CALLS_MAX];
    enum redbucket_status status;
    size_t left = 0;

    for (size_t i = 0; i < *len; i++)
        commands[i] = rbk_errand_command(&errands[i]);
    status = rbk_method_call(use, commands, *len, replies);
    if (status != REDBUCKET_OK) {
        for (size_t i = 0; i < *len; i++)
            rbk_errand_fail(&errands[i], status);
        return status;
    }
    for (size_t i = 0; i < *len; i++) {
        /* Behind an answer that is none, who knows what the next one answers? */
        if (status == REDBUCKET_ERROR_PROTOCOL && !use->usable)
            rbk_errand_fail(&errands[i], status);
        else if (!settle(use, &errands[i], &replies[i], &status))
            errands[left++] = errands[i];
    }
    *len = left;
    return status;
}

/* Cuts the requests into calls. Returns how many calls there are; requests that name no limit may
 * be all of one, which then is none. */
static size_t cut(struct rbk_use *use, struct rbk_request *requests, size_t len,
                  struct rbk_errand errands[RBK_CALLS_MAX])
{
    size_t made = 0;
    size_t claims;

    for (size_t done = 0; done < len;) {
        size_t some = rbk_errand_fit(requests + done, len - done, &claims);

        errands[made] = (struct rbk_errand){.requests = requests + done, .len = some};
        errands[made].call = rbk_peer_call(use->pool, use->peer, made);
        done += some;
        if (claims == 0)
            continue;
        if (errands[made].call == NULL)
            rbk_errand_fail(&errands[made], REDBUCKET_ERROR_MEMORY);
        else if (rbk_errand_pack(&errands[made]))
            made++;
    }
    return made;
}

size_t rbk_script_fit(const struct rbk_request *requests, size_t len, size_t *claims)
{
    size_t done = 0;
    size_t some;

    *claims = 0;
    for (int i = 0; i < RBK_CALLS_MAX && done < len; i++) {
        done += rbk_errand_fit(requests + done, len - done, &some);
        *claims += some;
    }
    return done;
}

enum redbucket_status rbk_script_decide(struct rbk_use *use, struct rbk_request *requests,
                                        size_t len)
{
    struct rbk_errand errands[RBK_CALLS_MAX];
    enum redbucket_status status = REDBUCKET_OK;
    size_t left = cut(use, requests, len, errands);

    use->usable = true;
    while (left > 0 && use->usable) {
        enum redbucket_status sent = send_all(use, errands, &left);

        status = sent != REDBUCKET_OK ? sent : status;
    }
    for (size_t i = 0; i < left; i++)
        rbk_errand_fail(&errands[i], status);
    return status;
}

/* A peek shows the state as it is, and what the limit would say of it is nobody's concern. */
static enum redbucket_status script_read(struct rbk_use *use, const struct rbk_key *key,
                                         struct rbk_state *state)
{
    struct rbk_claim claim = {.limit = {.rate = 1.0}};
    struct rbk_request peek = {
        .ask = {.operation = RBK_PEEK, .cost = 1.0}, .keys = key, .claims = &claim, .len = 1};
    enum redbucket_status status = rbk_script_decide(use, &peek, 1);

    if (status == REDBUCKET_OK)
        status = peek.status;
    if (status == REDBUCKET_OK)
        *state = claim.state;
    return status;
}

enum redbucket_status rbk_method_read(struct rbk_use *use, const struct rbk_key *key,
                                      struct rbk_state *state)
{
    return use->peer->by_transaction ? rbk_transaction_read(use, key, state)
                                     : script_read(use, key, state);
}
