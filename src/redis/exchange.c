/* SPDX-License-Identifier: MIT */
/*
 * Calls: all commands out and all replies in, whichever of the two goes on at the moment, so that a
 * server that stops reading until its replies are taken stops nobody.
 *
 * Calls on several connections go on side by side: every one is on its way before anything is
 * waited for, one poll waits for all, and each wakes for no more than a chunk at a time, so that
 * neither a silent server nor a talkative one keeps the others waiting. What one of them runs into
 * is its own.
 */
#include "redis/connection_inside.h"
#include "redis/server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

/* So many are waited for without memory of their own. */
#define POLLED 64

static enum redbucket_status fail(struct rbk_connection *connection, enum redbucket_status status,
                                  const char *failure)
{
    (void)snprintf(connection->stream.failure, sizeof connection->stream.failure, "%s", failure);
    return status;
}

/* A server that turns somebody away says why, and hangs up. */
static enum redbucket_status ended(struct rbk_connection *connection)
{
    const struct rbk_progress *progress = &connection->progress;
    char words[RBK_SERVER_WORDS_SIZE];
    bool usable = true;
    enum redbucket_status status = REDBUCKET_ERROR_SERVER;

    if (progress->got == 1 && progress->replies[0].type == RBK_REPLY_ERROR)
        status = rbk_server_error(progress->replies[0].text, &usable);
    if (!usable && (status == REDBUCKET_ERROR_UNAVAILABLE || status == REDBUCKET_ERROR_AUTH)) {
        rbk_server_words(progress->replies[0].text, words);
        return fail(connection, status, words);
    }
    if (connection->stream.ended)
        return fail(connection, REDBUCKET_ERROR_IO, "closed by the server");
    return REDBUCKET_ERROR_IO;
}

static enum redbucket_status take_replies(struct rbk_connection *connection)
{
    struct rbk_progress *progress = &connection->progress;
    enum redbucket_status status = REDBUCKET_OK;
    bool complete = true;

    while (status == REDBUCKET_OK && complete && progress->got < progress->wanted) {
        status = rbk_reader_next(connection->reader, &progress->replies[progress->got], &complete);
        progress->got += complete;
    }
    if (status == REDBUCKET_ERROR_PROTOCOL)
        return fail(connection, status, rbk_reader_failure(connection->reader));
    return status;
}

/* TLS itself did, and not the socket. */
static enum redbucket_status failed_inside(enum rbk_moved moved)
{
    return moved == RBK_MOVED_SHORT ? REDBUCKET_ERROR_MEMORY : REDBUCKET_ERROR_TLS;
}

static enum redbucket_status read_some(struct rbk_connection *connection)
{
    do {
        size_t done = 0;
        enum rbk_moved moved =
            rbk_stream_read(&connection->stream, connection->chunk, RBK_CHUNK, &done);

        connection->progress.empty = moved == RBK_MOVED_LATER;
        if (connection->progress.empty)
            return REDBUCKET_OK;
        if (moved == RBK_MOVED_TLS || moved == RBK_MOVED_SHORT)
            return failed_inside(moved);
        if (moved != RBK_MOVED)
            return ended(connection);
        enum redbucket_status status = rbk_reader_feed(connection->reader, connection->chunk, done);

        if (status == REDBUCKET_OK)
            status = take_replies(connection);
        if (status != REDBUCKET_OK)
            return status;
    } while (rbk_stream_holds(&connection->stream));
    return REDBUCKET_OK;
}

/* Nobody waits for a server that takes nothing: what it says is there already. */
static enum redbucket_status hear_out(struct rbk_connection *connection)
{
    const struct rbk_progress *progress = &connection->progress;
    enum redbucket_status status = REDBUCKET_OK;

    while (status == REDBUCKET_OK && progress->got < progress->wanted && !progress->empty)
        status = read_some(connection);
    return status == REDBUCKET_OK ? ended(connection) : status;
}

/* Writes as much as goes. By itself only TLS fails here: a socket that takes nothing may have said
 * why. */
static enum redbucket_status write_some(struct rbk_connection *connection)
{
    const struct rbk_outgoing *outgoing = &connection->outgoing;
    struct rbk_progress *progress = &connection->progress;

    while (progress->written < outgoing->len) {
        size_t done = 0;
        enum rbk_moved moved =
            rbk_stream_write(&connection->stream, outgoing->bytes + progress->written,
                             outgoing->len - progress->written, &done);

        if (moved == RBK_MOVED_LATER)
            return REDBUCKET_OK;
        if (moved == RBK_MOVED_TLS || moved == RBK_MOVED_SHORT)
            return failed_inside(moved);
        if (moved != RBK_MOVED)
            return hear_out(connection);
        progress->written += done;
    }
    return REDBUCKET_OK;
}

static bool goes_on(const struct rbk_exchange *exchange)
{
    const struct rbk_progress *progress = &exchange->connection->progress;

    return exchange->status == REDBUCKET_OK && progress->got < progress->wanted;
}

static enum redbucket_status prepare(const struct rbk_exchange *exchange)
{
    struct rbk_connection *connection = exchange->connection;

    if (connection->broken)
        return fail(connection, REDBUCKET_ERROR_UNAVAILABLE, "failed before");
    connection->progress =
        (struct rbk_progress){.replies = exchange->replies, .wanted = exchange->len};
    connection->stream.sent = false;
    connection->stream.events = 0;
    rbk_reader_reset(connection->reader);
    return rbk_outgoing_set(&connection->outgoing, exchange->commands, exchange->len);
}

static void begin(struct rbk_exchange *exchange)
{
    exchange->status = prepare(exchange);
    if (goes_on(exchange))
        exchange->status = write_some(exchange->connection);
}

static void go_on(struct rbk_exchange *exchange)
{
    exchange->status = read_some(exchange->connection);
    if (goes_on(exchange))
        exchange->status = write_some(exchange->connection);
}

/* `number` is why nothing more can be waited for. */
static void give_up(struct rbk_exchange *exchange, int number)
{
    struct rbk_connection *connection = exchange->connection;

    exchange->status = REDBUCKET_ERROR_IO;
    if (number == ETIMEDOUT)
        exchange->status = fail(connection, REDBUCKET_ERROR_TIMEOUT, "no answer in time");
    else
        rbk_stream_blame(&connection->stream, number);
}

static void end(struct rbk_exchange *exchange)
{
    struct rbk_connection *connection = exchange->connection;

    if (exchange->status == REDBUCKET_OK &&
        (connection->progress.written < connection->outgoing.len ||
         !rbk_reader_empty(connection->reader)))
        exchange->status = fail(connection, REDBUCKET_ERROR_PROTOCOL, "an answer to no question");
    if (exchange->status == REDBUCKET_ERROR_MEMORY)
        (void)fail(connection, exchange->status, "out of memory");
    if (exchange->status == REDBUCKET_ERROR_IO && !connection->stream.sent)
        exchange->status = REDBUCKET_ERROR_UNAVAILABLE;
    rbk_outgoing_clear(&connection->outgoing);
    connection->broken = exchange->status != REDBUCKET_OK;
}

/* Says what poll has to wait for; false when that is nothing any more, and the exchange is over.
 * Something to read is always of interest; so is what the last try that was too early waits for. */
static bool watch(struct rbk_exchange *exchange, struct pollfd *polled)
{
    const struct rbk_stream *stream = &exchange->connection->stream;

    if (!goes_on(exchange)) {
        polled->fd = -1;
        end(exchange);
        return false;
    }
    polled->fd = stream->fd;
    polled->events = (short)(POLLIN | stream->events);
    return true;
}

/* Ends all of them before a byte is sent. */
static void refuse(struct rbk_exchange *exchanges, size_t len, enum redbucket_status status,
                   const char *why)
{
    for (size_t i = 0; i < len; i++) {
        exchanges[i].connection->stream.sent = false;
        exchanges[i].status = fail(exchanges[i].connection, status, why);
        end(&exchanges[i]);
    }
}

static void drive(struct rbk_exchange *exchanges, struct pollfd *polled, size_t len,
                  const struct rbk_deadline *deadline)
{
    size_t going = 0;
    bool late = false;

    /* What nobody waits for the answer to is better not said. */
    if (rbk_deadline_left(deadline) <= 0.0) {
        refuse(exchanges, len, REDBUCKET_ERROR_TIMEOUT, "no time was left");
        return;
    }
    for (size_t i = 0; i < len; i++) {
        begin(&exchanges[i]);
        going += watch(&exchanges[i], &polled[i]);
    }
    while (going > 0) {
        int number = rbk_stream_poll(polled, len, deadline, &late);

        for (size_t i = 0; i < len; i++) {
            if (polled[i].fd < 0 || (number == 0 && polled[i].revents == 0))
                continue;
            if (number == 0)
                go_on(&exchanges[i]);
            else
                give_up(&exchanges[i], number);
            going -= !watch(&exchanges[i], &polled[i]);
        }
    }
}

void rbk_connections_call(struct rbk_exchange *exchanges, size_t len,
                          const struct rbk_deadline *deadline)
{
    struct pollfd some[POLLED];
    struct pollfd *many = NULL;

    if (len > POLLED)
        many = calloc(len, sizeof many[0]);
    if (len <= POLLED || many != NULL) {
        drive(exchanges, many == NULL ? some : many, len, deadline);
        free(many);
        return;
    }
    refuse(exchanges, len, REDBUCKET_ERROR_MEMORY, "out of memory");
}

enum redbucket_status rbk_connection_call(struct rbk_connection *connection,
                                          const struct rbk_command *commands, size_t commands_len,
                                          struct rbk_reply *replies,
                                          const struct rbk_deadline *deadline)
{
    struct rbk_exchange exchange = {connection, commands, commands_len, replies, REDBUCKET_OK};
    struct pollfd polled;

    drive(&exchange, &polled, 1, deadline);
    return exchange.status;
}
