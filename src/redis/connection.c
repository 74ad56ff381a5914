/* SPDX-License-Identifier: MIT */
/*
 * Calls: all commands out and all replies in, whichever of the two goes on at the moment, so that a
 * server that stops reading until its replies are taken stops nobody.
 *
 * Invariant: a connection that isn't broken has nothing half sent and nothing half read.
 */
#include "redis/connection.h"

#include "error.h"
#include "redis/dial.h"
#include "redis/outgoing.h"
#include "redis/reader.h"
#include "redis/resolve.h"
#include "redis/server.h"
#include "redis/stream.h"
#include "redis/tls.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK ((size_t)16 << 10)

struct rbk_transport {
    struct rbk_endpoint endpoint;
    struct rbk_tls *tls;           /* or NULL */
    struct rbk_resolver *resolver; /* or NULL, for a Unix socket */
};

struct rbk_connection {
    struct rbk_stream stream; /* stays where it is: TLS points to it */
    struct rbk_reader *reader;
    struct rbk_outgoing outgoing;
    bool broken;
    unsigned char chunk[CHUNK];
};

/* A call under way. */
struct call {
    struct rbk_reply *replies;
    size_t wanted;
    size_t got;
    size_t written;
    bool deaf;  /* the server takes no more bytes; it may have said why */
    bool empty; /* there was nothing to read last */
};

enum redbucket_status rbk_transport_create(const struct rbk_endpoint *endpoint, struct rbk_tls *tls,
                                           struct rbk_transport **transport,
                                           struct redbucket_error *error)
{
    struct rbk_transport *made = calloc(1, sizeof *made);
    enum redbucket_status status = REDBUCKET_OK;

    if (made == NULL)
        return rbk_fail_system(error, ENOMEM, endpoint->where);
    made->endpoint = *endpoint;
    made->tls = tls;
    if (endpoint->port != 0)
        status = rbk_resolver_create(getaddrinfo, made->endpoint.name, endpoint->port,
                                     &made->resolver, error);
    if (status != REDBUCKET_OK) {
        rbk_transport_destroy(made);
        return status;
    }
    *transport = made;
    return REDBUCKET_OK;
}

void rbk_transport_destroy(struct rbk_transport *transport)
{
    if (transport == NULL)
        return;
    rbk_resolver_destroy(transport->resolver);
    free(transport);
}

const struct rbk_endpoint *rbk_transport_endpoint(const struct rbk_transport *transport)
{
    return &transport->endpoint;
}

static enum redbucket_status find(struct rbk_transport *transport,
                                  const struct rbk_deadline *deadline,
                                  struct rbk_addresses *addresses, struct redbucket_error *error)
{
    const char *reason = "the path is too long";
    enum redbucket_status status = REDBUCKET_OK;

    if (transport->endpoint.port != 0) {
        status = rbk_resolve(transport->resolver, deadline, addresses, &reason);
    } else {
        addresses->len = 1;
        if (!rbk_address_of_path(transport->endpoint.name, &addresses->at[0]))
            status = REDBUCKET_ERROR_URL;
    }
    if (status != REDBUCKET_OK)
        rbk_error_set(error, status, -1, "%s: %s", transport->endpoint.where, reason);
    return status;
}

static enum redbucket_status reach(struct rbk_transport *transport,
                                   const struct rbk_deadline *deadline, struct rbk_stream *stream,
                                   struct redbucket_error *error)
{
    struct rbk_addresses addresses;
    enum redbucket_status status = find(transport, deadline, &addresses, error);

    if (status != REDBUCKET_OK)
        return status;
    status = rbk_dial(&addresses, deadline, stream);
    if (status == REDBUCKET_OK && transport->tls != NULL)
        status = rbk_tls_start(transport->tls, transport->endpoint.name, stream, deadline);
    if (status != REDBUCKET_OK)
        rbk_error_set(error, status, -1, "%s: %s", transport->endpoint.where, stream->failure);
    return status;
}

enum redbucket_status rbk_connection_open(struct rbk_transport *transport,
                                          const struct rbk_deadline *deadline,
                                          struct rbk_connection **connection,
                                          struct redbucket_error *error)
{
    struct rbk_connection *made = calloc(1, sizeof *made);
    enum redbucket_status status;

    if (made == NULL)
        return rbk_fail_system(error, ENOMEM, transport->endpoint.where);
    made->stream.fd = -1;
    made->reader = rbk_reader_create();
    if (made->reader == NULL)
        status = rbk_fail_system(error, ENOMEM, transport->endpoint.where);
    else
        status = reach(transport, deadline, &made->stream, error);
    if (status != REDBUCKET_OK) {
        rbk_connection_close(made);
        return status;
    }
    *connection = made;
    return REDBUCKET_OK;
}

void rbk_connection_close(struct rbk_connection *connection)
{
    if (connection == NULL)
        return;
    rbk_stream_close(&connection->stream);
    rbk_reader_destroy(connection->reader);
    rbk_outgoing_free(&connection->outgoing);
    free(connection);
}

void rbk_connection_abandon(struct rbk_connection *connection)
{
    if (connection != NULL)
        (void)close(connection->stream.fd);
}

bool rbk_connection_good(struct rbk_connection *connection)
{
    return !connection->broken && rbk_stream_idle(&connection->stream);
}

const char *rbk_connection_failure(const struct rbk_connection *connection)
{
    return connection->stream.failure;
}

static enum redbucket_status fail(struct rbk_connection *connection, enum redbucket_status status,
                                  const char *failure)
{
    (void)snprintf(connection->stream.failure, sizeof connection->stream.failure, "%s", failure);
    return status;
}

/* Writes as much as goes. Only TLS fails here: a socket that takes nothing may have said why. */
static enum redbucket_status write_some(struct rbk_connection *connection, struct call *call)
{
    const struct rbk_outgoing *outgoing = &connection->outgoing;

    while (!call->deaf && call->written < outgoing->len) {
        size_t done = 0;
        enum rbk_moved moved =
            rbk_stream_write(&connection->stream, outgoing->bytes + call->written,
                             outgoing->len - call->written, &done);

        if (moved == RBK_MOVED_LATER)
            return REDBUCKET_OK;
        if (moved == RBK_MOVED_TLS)
            return REDBUCKET_ERROR_TLS;
        call->deaf = moved != RBK_MOVED;
        call->written += done;
    }
    return REDBUCKET_OK;
}

/* A server that turns somebody away says why, and hangs up. */
static enum redbucket_status ended(struct rbk_connection *connection, const struct call *call)
{
    char words[RBK_SERVER_WORDS_SIZE];
    bool usable = true;
    enum redbucket_status status = REDBUCKET_ERROR_SERVER;

    if (call->got == 1 && call->replies[0].type == RBK_REPLY_ERROR)
        status = rbk_server_error(call->replies[0].text, &usable);
    if (!usable && (status == REDBUCKET_ERROR_UNAVAILABLE || status == REDBUCKET_ERROR_AUTH)) {
        rbk_server_words(call->replies[0].text, words);
        return fail(connection, status, words);
    }
    if (connection->stream.ended)
        return fail(connection, REDBUCKET_ERROR_IO, "closed by the server");
    return REDBUCKET_ERROR_IO;
}

static enum redbucket_status take_replies(struct rbk_connection *connection, struct call *call)
{
    enum redbucket_status status = REDBUCKET_OK;
    bool complete = true;

    while (status == REDBUCKET_OK && complete && call->got < call->wanted) {
        status = rbk_reader_next(connection->reader, &call->replies[call->got], &complete);
        call->got += complete;
    }
    if (status == REDBUCKET_ERROR_PROTOCOL)
        return fail(connection, status, rbk_reader_failure(connection->reader));
    return status;
}

static enum redbucket_status read_some(struct rbk_connection *connection, struct call *call)
{
    do {
        size_t done = 0;
        enum rbk_moved moved =
            rbk_stream_read(&connection->stream, connection->chunk, CHUNK, &done);

        call->empty = moved == RBK_MOVED_LATER;
        if (call->empty)
            return REDBUCKET_OK;
        if (moved == RBK_MOVED_TLS)
            return REDBUCKET_ERROR_TLS;
        if (moved != RBK_MOVED)
            return ended(connection, call);
        enum redbucket_status status = rbk_reader_feed(connection->reader, connection->chunk, done);

        if (status == REDBUCKET_OK)
            status = take_replies(connection, call);
        if (status != REDBUCKET_OK)
            return status;
    } while (rbk_stream_holds(&connection->stream));
    return REDBUCKET_OK;
}

/* Something to read is always of interest; so is what the last try that was too early waits for. */
static enum redbucket_status await(struct rbk_connection *connection,
                                   const struct rbk_deadline *deadline)
{
    struct rbk_stream *stream = &connection->stream;
    int number = rbk_stream_wait(stream, (short)(POLLIN | stream->events), deadline);

    if (number == 0)
        return REDBUCKET_OK;
    if (number == ETIMEDOUT)
        return fail(connection, REDBUCKET_ERROR_TIMEOUT, "no answer in time");
    rbk_stream_blame(stream, number);
    return REDBUCKET_ERROR_IO;
}

/* Nobody waits for a server that takes nothing: what it says is there already. */
static enum redbucket_status hear_out(struct rbk_connection *connection, struct call *call)
{
    enum redbucket_status status = REDBUCKET_OK;

    while (status == REDBUCKET_OK && call->got < call->wanted && !call->empty)
        status = read_some(connection, call);
    return status == REDBUCKET_OK ? ended(connection, call) : status;
}

static enum redbucket_status exchange(struct rbk_connection *connection, struct call *call,
                                      const struct rbk_deadline *deadline)
{
    enum redbucket_status status = REDBUCKET_OK;

    while (status == REDBUCKET_OK && call->got < call->wanted) {
        status = write_some(connection, call);
        if (call->deaf)
            return hear_out(connection, call);
        if (status == REDBUCKET_OK)
            status = await(connection, deadline);
        if (status == REDBUCKET_OK)
            status = read_some(connection, call);
    }
    if (status != REDBUCKET_OK)
        return status;
    if (call->written < connection->outgoing.len || !rbk_reader_empty(connection->reader))
        return fail(connection, REDBUCKET_ERROR_PROTOCOL, "an answer to no question");
    return REDBUCKET_OK;
}

enum redbucket_status rbk_connection_call(struct rbk_connection *connection,
                                          const struct rbk_command *commands, size_t commands_len,
                                          struct rbk_reply *replies,
                                          const struct rbk_deadline *deadline)
{
    struct call call = {.replies = replies, .wanted = commands_len};
    enum redbucket_status status;

    if (connection->broken)
        return fail(connection, REDBUCKET_ERROR_UNAVAILABLE, "failed before");
    connection->stream.sent = false;
    connection->stream.late = false;
    connection->stream.events = 0;
    rbk_reader_reset(connection->reader);
    status = rbk_outgoing_set(&connection->outgoing, commands, commands_len);
    if (status == REDBUCKET_OK)
        status = exchange(connection, &call, deadline);
    if (status == REDBUCKET_ERROR_MEMORY)
        (void)fail(connection, status, "out of memory");
    rbk_outgoing_clear(&connection->outgoing);
    connection->broken = status != REDBUCKET_OK;
    return status == REDBUCKET_ERROR_IO && !connection->stream.sent ? REDBUCKET_ERROR_UNAVAILABLE
                                                                    : status;
}
