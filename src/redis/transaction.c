/* SPDX-License-Identifier: MIT */
/*
 * Deciding by transaction, for servers before Redis 3.2: watch the buckets, read them and the time,
 * decide here, and write on condition that nobody has touched them meanwhile. When somebody has,
 * wait a random while and try again, until the deadline.
 *
 * MULTI goes out with what reads: nothing is written before the server has said that it watches and
 * will write all or nothing.
 */
#include "redis/errand.h"
#include "redis/look.h"
#include "wait.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLAIMS       REDBUCKET_KEYS_MAX
#define LIVE_LONGEST 1e10

/* The longest wait between two attempts, in seconds; it begins at a sixteenth of that. */
#define BACK_OFF 0.016

/* An attempt may take so many times as long as the one before it. */
#define VARIES 2.0

/* WATCH, a look at each bucket, TIME and MULTI. */
#define READ_COMMANDS  (3 + CLAIMS * RBK_LOOK_COMMANDS)
#define READ_ARGUMENTS (3 + CLAIMS + CLAIMS * RBK_LOOK_ARGUMENTS)

struct transaction {
    struct rbk_use *use;
    struct rbk_request *request;
    struct rbk_argument names[CLAIMS];
    struct rbk_argument arguments[READ_ARGUMENTS];
    struct rbk_command commands[READ_COMMANDS];
    struct rbk_reply replies[READ_COMMANDS];
    unsigned char states[CLAIMS][RBK_STATE_SIZE];
    char lives[CLAIMS][24];
    double needs; /* what another attempt may take, in seconds */
    size_t arguments_len;
    size_t commands_len;
};

static void begin_commands(struct transaction *transaction)
{
    transaction->arguments_len = 0;
    transaction->commands_len = 0;
}

static void begin_command(struct transaction *transaction, const char *name)
{
    struct rbk_command *command = &transaction->commands[transaction->commands_len++];

    command->arguments = &transaction->arguments[transaction->arguments_len];
    command->len = 1;
    transaction->arguments[transaction->arguments_len++] =
        (struct rbk_argument){name, strlen(name)};
}

static void add_argument(struct transaction *transaction, struct rbk_argument argument)
{
    transaction->commands[transaction->commands_len - 1].len++;
    transaction->arguments[transaction->arguments_len++] = argument;
}

static enum redbucket_status send_commands(struct transaction *transaction)
{
    struct rbk_use *use = transaction->use;
    enum redbucket_status status = rbk_method_call(use, transaction->commands,
                                                   transaction->commands_len, transaction->replies);

    for (size_t i = 0; status == REDBUCKET_OK && i < transaction->commands_len; i++) {
        if (rbk_look_refused(&transaction->replies[i]))
            status = rbk_method_refused(use, &transaction->replies[i]);
    }
    return status;
}

/* Ends the transaction that reading has begun, and the watch. Where that can't be, the connection
 * stays in the middle of it, and is not used again. */
static enum redbucket_status discard(struct transaction *transaction)
{
    begin_commands(transaction);
    begin_command(transaction, "DISCARD");
    enum redbucket_status status = send_commands(transaction);

    if (status != REDBUCKET_OK)
        transaction->use->usable = false;
    return status;
}

/* Digits alone, as TIME and nobody's locale has them. */
static bool read_digits(const struct rbk_reply *reply, double *number)
{
    *number = 0.0;
    if (reply->type != RBK_REPLY_STRING || reply->len == 0 || reply->len > 15)
        return false;
    for (size_t i = 0; i < reply->len; i++) {
        if (reply->text[i] < '0' || reply->text[i] > '9')
            return false;
        *number = *number * 10 + (reply->text[i] - '0');
    }
    return true;
}

static bool read_time(const struct rbk_reply *reply, double *now)
{
    double seconds, microseconds;

    if (reply->type != RBK_REPLY_ARRAY || reply->len != 2 ||
        !read_digits(&reply->elements[0], &seconds) ||
        !read_digits(&reply->elements[1], &microseconds))
        return false;
    *now = seconds + microseconds / 1e6;
#ifdef RBK_TEST_CLOCK
    *now = rbk_test_now;
#endif
    return true;
}

static enum redbucket_status nonsense(struct rbk_use *use)
{
    use->usable = false;
    rbk_pool_note(use->pool, REDBUCKET_ERROR_PROTOCOL,
                  "the server's answer to a transaction makes no sense");
    return REDBUCKET_ERROR_PROTOCOL;
}

/* Takes one state, by what the looks at it say. */
static enum redbucket_status read_state(struct transaction *transaction, size_t index)
{
    struct rbk_request *request = transaction->request;
    const struct rbk_reply *replies = &transaction->replies[1 + index * RBK_LOOK_COMMANDS];

    switch (
        rbk_look_read(transaction->use->peer->call.codec, replies, &request->claims[index].state)) {
    case RBK_LOOKED_NOTHING:
    case RBK_LOOKED_STATE:
        return REDBUCKET_OK;
    case RBK_LOOKED_BYTES:
        if (request->ask.operation == RBK_RESET)
            return REDBUCKET_OK;
        break;
    case RBK_LOOKED_OTHER:
        break;
    case RBK_LOOKED_NONSENSE:
        return nonsense(transaction->use);
    }
    request->failed = index;
    return REDBUCKET_ERROR_STATE;
}

static enum redbucket_status read_replies(struct transaction *transaction)
{
    struct rbk_request *request = transaction->request;
    const struct rbk_reply *end = &transaction->replies[transaction->commands_len];
    enum redbucket_status status = REDBUCKET_OK;

    if (transaction->replies[0].type != RBK_REPLY_STATUS || end[-1].type != RBK_REPLY_STATUS ||
        !read_time(&end[-2], &request->ask.now))
        return nonsense(transaction->use);
    for (size_t i = 0; status == REDBUCKET_OK && i < request->len; i++)
        status = read_state(transaction, i);
    return status;
}

static void add_look(struct transaction *transaction, struct rbk_argument name)
{
    rbk_look_commands(transaction->use->peer->call.codec, name,
                      &transaction->arguments[transaction->arguments_len],
                      &transaction->commands[transaction->commands_len]);
    transaction->arguments_len += RBK_LOOK_ARGUMENTS;
    transaction->commands_len += RBK_LOOK_COMMANDS;
}

/* What was begun has to be ended. Without MULTI, what is watched stays so. */
static void take_back(struct transaction *transaction)
{
    bool begun = transaction->replies[transaction->commands_len - 1].type != RBK_REPLY_ERROR;
    bool watched = transaction->replies[0].type != RBK_REPLY_ERROR;

    if (begun)
        (void)discard(transaction);
    else
        transaction->use->usable = !watched;
}

static enum redbucket_status watch_and_read(struct transaction *transaction)
{
    size_t len = transaction->request->len;

    begin_commands(transaction);
    begin_command(transaction, "WATCH");
    for (size_t i = 0; i < len; i++)
        add_argument(transaction, transaction->names[i]);
    for (size_t i = 0; i < len; i++)
        add_look(transaction, transaction->names[i]);
    begin_command(transaction, "TIME");
    begin_command(transaction, "MULTI");
    enum redbucket_status status = send_commands(transaction);

    if (status == REDBUCKET_OK)
        return read_replies(transaction);
    if (transaction->use->usable)
        take_back(transaction);
    return status;
}

/* The larger of the zone's expiry and ceil(value / rate) + 1. */
static void write_live(const struct rbk_claim *claim, char out[24])
{
    double live = ceil(claim->state.value / claim->limit.rate) + 1;

    if (live < claim->expiry)
        live = claim->expiry;
    if (live > LIVE_LONGEST)
        live = LIVE_LONGEST;
    (void)snprintf(out, 24, "%lld", (long long)live);
}

static void add_write(struct transaction *transaction, size_t index)
{
    const struct rbk_claim *claim = &transaction->request->claims[index];

    if (claim->change == RBK_FORGET) {
        begin_command(transaction, "DEL");
        add_argument(transaction, transaction->names[index]);
    } else if (claim->change == RBK_WRITE) {
        size_t len = rbk_state_encode(transaction->use->peer->call.codec, &claim->state,
                                      transaction->states[index]);

        write_live(claim, transaction->lives[index]);
        begin_command(transaction, "SETEX");
        add_argument(transaction, transaction->names[index]);
        add_argument(transaction, (struct rbk_argument){transaction->lives[index],
                                                        strlen(transaction->lives[index])});
        add_argument(transaction, (struct rbk_argument){transaction->states[index], len});
    }
}

/* What became of one command of a transaction: SETEX or DEL. */
static bool was_done(const struct rbk_command *command, const struct rbk_reply *reply)
{
    if (command->arguments[0].len == 3)
        return reply->type == RBK_REPLY_INTEGER;
    return reply->type == RBK_REPLY_STATUS && strcmp(reply->text, "OK") == 0;
}

/* An array in which one element is an error says that something was not written; one that is
 * neither an error nor what the command answers says nothing. */
static enum redbucket_status check_exec(struct transaction *transaction,
                                        const struct rbk_reply *exec)
{
    if (exec->type == RBK_REPLY_NIL)
        return REDBUCKET_ERROR_CONFLICT;
    if (exec->type != RBK_REPLY_ARRAY || exec->len != transaction->commands_len - 1)
        return nonsense(transaction->use);
    for (size_t i = 0; i < exec->len; i++) {
        if (exec->elements[i].type == RBK_REPLY_ERROR)
            return rbk_method_refused(transaction->use, &exec->elements[i]);
    }
    for (size_t i = 0; i < exec->len; i++) {
        if (!was_done(&transaction->commands[i], &exec->elements[i]))
            return nonsense(transaction->use);
    }
    return REDBUCKET_OK;
}

static enum redbucket_status write_all(struct transaction *transaction)
{
    begin_commands(transaction);
    for (size_t i = 0; i < transaction->request->len; i++)
        add_write(transaction, i);
    if (transaction->commands_len == 0)
        return discard(transaction);
    begin_command(transaction, "EXEC");
    enum redbucket_status status = send_commands(transaction);

    if (status != REDBUCKET_OK) {
        /* What was queued stays so. */
        transaction->use->usable = false;
        return status;
    }
    return check_exec(transaction, &transaction->replies[transaction->commands_len - 1]);
}

/* One attempt; CONFLICT when somebody else was faster. */
static enum redbucket_status attempt(struct transaction *transaction)
{
    struct rbk_request *request = transaction->request;
    enum redbucket_status status = watch_and_read(transaction);

    if (status == REDBUCKET_ERROR_STATE) {
        enum redbucket_status cleared = discard(transaction);

        return cleared == REDBUCKET_OK ? status : cleared;
    }
    if (status != REDBUCKET_OK)
        return status;
    rbk_decide(&request->ask, request->claims, request->len, &request->answer);
    return write_all(transaction);
}

/* False when the deadline might come before the end of another attempt: then nothing is begun of
 * which nobody would know how it ended. */
static bool back_off(struct rbk_use *use, unsigned attempts, double needs)
{
    double most = BACK_OFF / 16 * (double)(1u << (attempts < 4 ? attempts : 4));
    double wait = most * rbk_pool_random(use->pool) / UINT32_MAX;

    if (wait + needs >= rbk_deadline_left(use->deadline))
        return false;
    rbk_wait_pause(wait);
    /* A busy machine may have let it sleep for longer. */
    return rbk_deadline_left(use->deadline) > needs;
}

static enum redbucket_status decide_one(struct transaction *transaction)
{
    struct rbk_request *request = transaction->request;
    enum redbucket_status status = REDBUCKET_OK;
    unsigned attempts = 0;

    if (request->len == 0) {
        rbk_decide(&request->ask, request->claims, 0, &request->answer);
        return status;
    }
    do {
        double before = rbk_deadline_left(transaction->use->deadline);

        status = attempt(transaction);
        transaction->needs = VARIES * (before - rbk_deadline_left(transaction->use->deadline));
    } while (status == REDBUCKET_ERROR_CONFLICT &&
             back_off(transaction->use, attempts++, transaction->needs));
    if (status == REDBUCKET_ERROR_CONFLICT)
        rbk_pool_note(transaction->use->pool, status, redbucket_status_text(status));
    return status;
}

/* The names of the request's buckets, which live in the peer's call. */
static bool name_buckets(struct transaction *transaction)
{
    struct rbk_call *call = &transaction->use->peer->call;
    const struct rbk_request *request = transaction->request;
    size_t used = 0;

    rbk_call_clear(call);
    if (!rbk_call_add(call, &request->ask, request->keys, request->claims, request->len))
        return false;
    for (size_t i = 0; i < request->len; i++) {
        transaction->names[i] = (struct rbk_argument){call->names + used, call->name_len[i]};
        used += call->name_len[i];
    }
    return true;
}

/* As for another attempt: a request that would be cut off in its middle is not begun, and the
 * server is not to blame for the length of an array. */
static bool has_time(const struct transaction *transaction)
{
    if (rbk_deadline_left(transaction->use->deadline) > transaction->needs)
        return true;
    rbk_pool_note(transaction->use->pool, REDBUCKET_ERROR_TIMEOUT,
                  "no time was left to ask the server");
    return false;
}

/* Decides one after the other, until there is nobody to ask any more. Returns how the connection
 * fares, or that the server says it can't serve now. */
static enum redbucket_status decide_all(struct transaction *transaction,
                                        struct rbk_request *requests, size_t len)
{
    struct rbk_use *use = transaction->use;

    for (size_t i = 0; i < len; i++) {
        if (i > 0 && !has_time(transaction)) {
            rbk_requests_fail(&requests[i], len - i, REDBUCKET_ERROR_TIMEOUT);
            break;
        }
        transaction->request = &requests[i];
        requests[i].failed = RBK_NONE;
        requests[i].status =
            name_buckets(transaction) ? decide_one(transaction) : REDBUCKET_ERROR_MEMORY;
        if (!use->usable || requests[i].status == REDBUCKET_ERROR_UNAVAILABLE) {
            rbk_requests_fail(&requests[i], len - i, requests[i].status);
            return requests[i].status;
        }
    }
    return REDBUCKET_OK;
}

enum redbucket_status rbk_transaction_decide(struct rbk_use *use, struct rbk_request *requests,
                                             size_t len)
{
    struct transaction *transaction = calloc(1, sizeof *transaction);
    enum redbucket_status status = REDBUCKET_ERROR_MEMORY;

    use->usable = true;
    if (transaction == NULL) {
        rbk_requests_fail(requests, len, status);
        return status;
    }
    transaction->use = use;
    status = decide_all(transaction, requests, len);
    free(transaction);
    return status;
}

enum redbucket_status rbk_transaction_read(struct rbk_use *use, const struct rbk_key *key,
                                           struct rbk_state *state)
{
    struct rbk_call *call = &use->peer->call;
    struct rbk_claim none = {.expiry = 0.0};
    struct rbk_ask ask = {.operation = RBK_PEEK};
    struct rbk_argument arguments[RBK_LOOK_ARGUMENTS];
    struct rbk_command commands[RBK_LOOK_COMMANDS];
    struct rbk_reply replies[RBK_LOOK_COMMANDS];

    use->usable = true;
    rbk_call_clear(call);
    if (!rbk_call_add(call, &ask, key, &none, 1))
        return REDBUCKET_ERROR_MEMORY;
    rbk_look_commands(call->codec, (struct rbk_argument){call->names, call->names_len}, arguments,
                      commands);
    enum redbucket_status status = rbk_method_call(use, commands, RBK_LOOK_COMMANDS, replies);

    for (size_t i = 0; i < RBK_LOOK_COMMANDS && status == REDBUCKET_OK; i++) {
        if (rbk_look_refused(&replies[i]))
            status = rbk_method_refused(use, &replies[i]);
    }
    if (status != REDBUCKET_OK)
        return status;
    switch (rbk_look_read(call->codec, replies, state)) {
    case RBK_LOOKED_NOTHING:
    case RBK_LOOKED_STATE:
        return REDBUCKET_OK;
    case RBK_LOOKED_NONSENSE:
        return nonsense(use);
    default:
        return REDBUCKET_ERROR_STATE;
    }
}
