/* SPDX-License-Identifier: MIT */
/*
 * The first round trip of every connection, new or replaced alike: a connection that forgot its
 * user or its database would count in another place.
 */
#include "redis/handshake.h"

#include <stdio.h>
#include <string.h>

#define COMMANDS_MAX 4

struct handshake {
    struct rbk_argument arguments[COMMANDS_MAX][3];
    struct rbk_command commands[COMMANDS_MAX];
    struct rbk_reply replies[COMMANDS_MAX];
    size_t len;
    size_t must; /* so many of them, the first, have to succeed */
    char db[16];
    const char *where;
};

static struct rbk_argument text(const char *string)
{
    return (struct rbk_argument){string, strlen(string)};
}

/* Adds a command of one to three words; returns its number. */
static size_t add(struct handshake *shake, const char *first, const char *second, const char *third)
{
    const char *const words[] = {first, second, third};
    size_t at = shake->len++;
    size_t len = 0;

    for (size_t i = 0; i < 3 && words[i] != NULL; i++)
        shake->arguments[at][len++] = text(words[i]);
    shake->commands[at] = (struct rbk_command){shake->arguments[at], len};
    return at;
}

static enum redbucket_status refused(const struct handshake *shake,
                                     const struct rbk_redis_options *options, size_t at,
                                     struct redbucket_error *error)
{
    const struct rbk_reply *reply = &shake->replies[at];
    const char *command = shake->arguments[at][0].bytes;
    char words[RBK_SERVER_WORDS_SIZE];
    bool usable;

    rbk_server_words_without(reply->text, options->password, words);
    return rbk_fail(error, rbk_server_error(reply->text, &usable), -1, "%s: %s: %s", shake->where,
                    command, words);
}

/* What a managed server refuses is left unknown. But one that can't answer now may be a replica, or
 * too old for the script. */
static bool not_ready(const struct rbk_reply *reply)
{
    bool usable;

    return reply->type == RBK_REPLY_ERROR &&
           (rbk_server_error(reply->text, &usable) == REDBUCKET_ERROR_UNAVAILABLE || !usable);
}

/* The first command that failed and must not. */
static enum redbucket_status check(const struct handshake *shake,
                                   const struct rbk_redis_options *options,
                                   struct redbucket_error *error)
{
    for (size_t i = 0; i < shake->len; i++) {
        const struct rbk_reply *reply = &shake->replies[i];

        if (i < shake->must ? reply->type == RBK_REPLY_ERROR : not_ready(reply))
            return refused(shake, options, i, error);
    }
    return REDBUCKET_OK;
}

static enum redbucket_status judge(const struct handshake *shake,
                                   const struct rbk_redis_options *options, struct rbk_peer *peer,
                                   struct redbucket_error *error)
{
    const unsigned *version = peer->server.version;
    bool old = version[0] > 0 && (version[0] < 3 || (version[0] == 3 && version[1] < 2)) &&
               peer->server.valkey[0] == 0;
    bool in_cluster = options->kind == RBK_KIND_CLUSTER;

    if (peer->server.sentinel)
        return rbk_fail(error, REDBUCKET_ERROR_UNSUPPORTED, -1,
                        "%s: a sentinel keeps no buckets, it is for a redis+sentinel:// URL",
                        shake->where);
    if (peer->server.replica && !in_cluster)
        return rbk_fail(error, REDBUCKET_ERROR_READONLY, -1,
                        "%s: the server is a replica, connect to its master", shake->where);
    if (peer->server.alone && in_cluster)
        return rbk_fail(error, REDBUCKET_ERROR_UNSUPPORTED, -1,
                        "%s: the server is in no cluster, it is for a redis:// URL", shake->where);
    if (old && in_cluster)
        return rbk_fail(error, REDBUCKET_ERROR_UNSUPPORTED, -1,
                        "%s: a cluster decides by script, from version 3.2 on", shake->where);
    peer->by_transaction =
        options->method == RBK_METHOD_TRANSACTION || (options->method == RBK_METHOD_AUTO && old);
    return REDBUCKET_OK;
}

/* Who asks, and in which database. */
static void add_greeting(struct handshake *shake, const struct rbk_redis_options *options)
{
    if (options->user != NULL)
        (void)add(shake, "AUTH", options->user, options->password);
    else if (options->password != NULL)
        (void)add(shake, "AUTH", options->password, NULL);
    if (options->db != 0) {
        (void)snprintf(shake->db, sizeof shake->db, "%u", options->db);
        (void)add(shake, "SELECT", shake->db, NULL);
    }
    shake->must = shake->len;
}

static enum redbucket_status introduce(struct handshake *shake,
                                       const struct rbk_redis_options *options,
                                       const struct rbk_deadline *deadline, struct rbk_peer *peer,
                                       struct redbucket_error *error)
{
    add_greeting(shake, options);
    size_t info = add(shake, "INFO", NULL, NULL);
    size_t role = add(shake, "ROLE", NULL, NULL);
    enum redbucket_status status = rbk_connection_call(peer->connection, shake->commands,
                                                       shake->len, shake->replies, deadline);

    if (status != REDBUCKET_OK) {
        char words[RBK_SERVER_WORDS_SIZE];

        /* A server that hangs up may have said why before. */
        rbk_server_words_without(rbk_connection_failure(peer->connection), options->password,
                                 words);
        return rbk_fail(error, status, -1, "%s: %s", shake->where, words);
    }
    status = check(shake, options, error);
    if (status != REDBUCKET_OK)
        return status;
    memset(&peer->server, 0, sizeof peer->server);
    rbk_server_read_info(&peer->server, &shake->replies[info]);
    rbk_server_read_role(&peer->server, &shake->replies[role]);
    return judge(shake, options, peer, error);
}

void rbk_hang_up(struct rbk_peer *peer)
{
    struct rbk_connection *connection = peer->connection;

    peer->connection = NULL;
    rbk_connection_close(connection);
}

enum redbucket_status rbk_handshake(const struct rbk_redis_options *options,
                                    struct rbk_transport *transport,
                                    const struct rbk_deadline *deadline, struct rbk_peer *peer,
                                    struct redbucket_error *error)
{
    struct handshake shake = {.where = rbk_transport_endpoint(transport)->where};
    enum redbucket_status status =
        rbk_connection_open(transport, deadline, &peer->connection, error);

    if (status == REDBUCKET_OK)
        status = introduce(&shake, options, deadline, peer, error);
    if (status != REDBUCKET_OK)
        rbk_hang_up(peer);
    return status;
}
