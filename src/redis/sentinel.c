/* SPDX-License-Identifier: MIT */
/*
 * One round trip to a sentinel: who asks, the question, and that we want to hear when the answer
 * changes. Both are handled in one go, so that no change comes in between. What comes back is data
 * from outside: a place is taken only when it can be one.
 */
#include "redis/sentinel.h"

#include "error.h"
#include "redis/server.h"

#include <string.h>

#define COMMANDS_MAX 3

static struct rbk_argument word(const char *text)
{
    return (struct rbk_argument){text, strlen(text)};
}

/* The command that says who asks; of no words when nobody in particular does. */
static struct rbk_command greeting(const struct rbk_redis_options *options,
                                   struct rbk_argument words[3])
{
    size_t len = 0;

    if (options->sentinel_password == NULL)
        return (struct rbk_command){words, 0};
    words[len++] = word("AUTH");
    if (options->sentinel_user != NULL)
        words[len++] = word(options->sentinel_user);
    words[len++] = word(options->sentinel_password);
    return (struct rbk_command){words, len};
}

/* A string without a NUL in it. */
static bool is_text(const struct rbk_reply *reply)
{
    return reply->type == RBK_REPLY_STRING && strlen(reply->text) == reply->len;
}

/* Takes an array of a host and a port, or nil. */
static bool read_place(const struct rbk_reply *reply, struct rbk_endpoint *master)
{
    unsigned port;

    *master = (struct rbk_endpoint){.port = 0};
    if (reply->type == RBK_REPLY_NIL)
        return true;
    return reply->type == RBK_REPLY_ARRAY && reply->len == 2 && is_text(&reply->elements[0]) &&
           is_text(&reply->elements[1]) &&
           rbk_url_number(reply->elements[1].text, 1, 65535, &port) &&
           rbk_endpoint_set_host(master, reply->elements[0].text, port);
}

struct inquiry {
    const struct rbk_redis_options *options;
    struct rbk_connection *connection;
    const char *where;
    bool heard; /* out: that it will say when the answer changes */
};

static enum redbucket_status refused(const struct inquiry *inquiry, const struct rbk_reply *reply,
                                     const char *command, struct redbucket_error *error)
{
    char words[RBK_SERVER_WORDS_SIZE];
    bool usable;

    rbk_server_words_without(reply->text, inquiry->options->sentinel_password, words);
    return rbk_fail(error, rbk_server_error(reply->text, &usable), -1, "%s: %s: %s", inquiry->where,
                    command, words);
}

static enum redbucket_status inquire(struct inquiry *inquiry, const struct rbk_deadline *deadline,
                                     struct rbk_endpoint *master, struct redbucket_error *error)
{
    const struct rbk_argument request[] = {word("SUBSCRIBE"), word("+switch-master")};
    const struct rbk_argument question[] = {word("SENTINEL"), word("get-master-addr-by-name"),
                                            word(inquiry->options->service)};
    struct rbk_argument words[3];
    struct rbk_command commands[COMMANDS_MAX] = {greeting(inquiry->options, words)};
    struct rbk_reply replies[COMMANDS_MAX];
    size_t len = commands[0].len > 0;
    enum redbucket_status status;

    commands[len++] = (struct rbk_command){question, 3};
    commands[len] = (struct rbk_command){request, 2};
    status = rbk_connection_call(inquiry->connection, commands, len + 1, replies, deadline);
    if (status != REDBUCKET_OK) {
        char said[RBK_SERVER_WORDS_SIZE];

        /* One that hangs up may have said why before. */
        rbk_server_words_without(rbk_connection_failure(inquiry->connection),
                                 inquiry->options->sentinel_password, said);
        return rbk_fail(error, status, -1, "%s: %s", inquiry->where, said);
    }
    for (size_t i = 0; i < len; i++) {
        if (replies[i].type == RBK_REPLY_ERROR)
            return refused(inquiry, &replies[i], commands[i].arguments[0].bytes, error);
    }
    if (!read_place(&replies[len - 1], master))
        return rbk_fail(error, REDBUCKET_ERROR_PROTOCOL, -1,
                        "%s: its answer is not where a master can be", inquiry->where);
    inquiry->heard = replies[len].type == RBK_REPLY_ARRAY;
    return REDBUCKET_OK;
}

void rbk_sentinel_hang_up(struct rbk_connection **watch)
{
    struct rbk_connection *connection = *watch;

    *watch = NULL;
    rbk_connection_close(connection);
}

enum redbucket_status rbk_sentinel_ask(const struct rbk_redis_options *options,
                                       struct rbk_transport *sentinel,
                                       const struct rbk_deadline *deadline,
                                       struct rbk_sentinel_answer *answer,
                                       struct redbucket_error *error)
{
    struct inquiry inquiry = {.options = options, .where = rbk_transport_endpoint(sentinel)->where};
    enum redbucket_status status = rbk_connection_open(sentinel, deadline, answer->watch, error);

    inquiry.connection = *answer->watch;
    if (status == REDBUCKET_OK)
        status = inquire(&inquiry, deadline, &answer->master, error);
    if (!inquiry.heard)
        rbk_sentinel_hang_up(answer->watch);
    return status;
}
