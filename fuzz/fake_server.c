/* SPDX-License-Identifier: MIT */
/*
 * Connections to the fake server, by the names of what carries them otherwise. A descriptor is an
 * index into a table; what is written is cut into commands at once, and must be such.
 */
#include "fake_server.h"

#include "bell.h"
#include "deadline.h"
#include "moment.h"
#include "redis/dial.h"
#include "redis/resolve.h"
#include "redis/stream.h"
#include "wait.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS 256
#define GOOD_MAX    300u

struct fake rbk_fake;
static struct fake_connection connections[CONNECTIONS];

static void hang_up(struct fake_connection *connection)
{
    free(connection->heard.bytes);
    free(connection->said.bytes);
    *connection = (struct fake_connection){.open = false};
}

void rbk_fake_begin(const uint8_t *data, size_t size, size_t piece)
{
    for (size_t i = 0; i < CONNECTIONS; i++)
        hang_up(&connections[i]);
    rbk_fake_forget();
    rbk_fake = (struct fake){.at = data,
                             .left = size,
                             .piece = piece,
                             .good_left = GOOD_MAX,
                             .honest = true,
                             .now = 1000.0};
}

size_t rbk_fake_open(void)
{
    size_t open = 0;

    for (size_t i = 0; i < CONNECTIONS; i++)
        open += connections[i].open;
    return open;
}

uint8_t rbk_fake_byte(void)
{
    const uint8_t *byte;

    return rbk_fake_bytes(1, &byte) == 1 ? *byte : 0;
}

size_t rbk_fake_bytes(size_t len, const uint8_t **bytes)
{
    if (len > rbk_fake.left)
        len = rbk_fake.left;
    *bytes = rbk_fake.at;
    rbk_fake.at += len;
    rbk_fake.left -= len;
    return len;
}

void rbk_fake_append(struct fake_bytes *to, const void *bytes, size_t len)
{
    if (to->len + len > to->size) {
        to->size = (to->len + len) * 2;
        to->bytes = realloc(to->bytes, to->size);
        if (to->bytes == NULL)
            abort();
    }
    if (len > 0)
        memcpy(to->bytes + to->len, bytes, len);
    to->len += len;
}

/* ---- Commands ------------------------------------------------------------------------------- */

/* Takes a line of `mark` and a number; false when it isn't there in full. What is there and isn't
 * that has no business to be sent. */
static bool take_number(const struct fake_bytes *heard, size_t *at, char mark, size_t *number)
{
    const unsigned char *end = memchr(heard->bytes + *at, '\n', heard->len - *at);

    if (end == NULL)
        return false;
    if (heard->bytes[*at] != mark || end[-1] != '\r')
        abort();
    *number = 0;
    for (const unsigned char *digit = heard->bytes + *at + 1; digit < end - 1; digit++) {
        if (*digit < '0' || *digit > '9')
            abort();
        *number = *number * 10 + (size_t)(*digit - '0');
    }
    *at = (size_t)(end - heard->bytes) + 1;
    return true;
}

/* Takes one command, if it is there in full; returns how many bytes it has. */
static size_t take_command(const struct fake_bytes *heard, struct rbk_argument *arguments,
                           size_t *arguments_len)
{
    size_t at = 0;

    if (heard->len == 0 || !take_number(heard, &at, '*', arguments_len))
        return 0;
    if (*arguments_len == 0 || *arguments_len > FAKE_ARGUMENTS_MAX)
        abort();
    for (size_t i = 0; i < *arguments_len; i++) {
        size_t len;

        if (at == heard->len || !take_number(heard, &at, '$', &len) || heard->len - at < len + 2)
            return 0;
        arguments[i] = (struct rbk_argument){heard->bytes + at, len};
        at += len + 2;
    }
    return at;
}

static void listen_to(struct fake_connection *connection)
{
    struct fake_bytes *heard = &connection->heard;
    struct rbk_argument arguments[FAKE_ARGUMENTS_MAX];
    struct rbk_command command = {.arguments = arguments};
    size_t len;

    while (!connection->closing && (len = take_command(heard, arguments, &command.len)) > 0) {
        rbk_fake_reply(connection, &command);
        memmove(heard->bytes, heard->bytes + len, heard->len - len);
        heard->len -= len;
    }
}

/* ---- In the place of stream.c and dial.c ---------------------------------------------------- */

enum redbucket_status rbk_dial(const struct rbk_addresses *addresses,
                               const struct rbk_deadline *deadline, struct rbk_stream *stream)
{
    (void)addresses;
    (void)deadline;
    bool refused = rbk_fake.good_left == 0 || rbk_fake.refusals > 0;

    rbk_fake.refusals -= rbk_fake.refusals > 0;
    for (int i = 0; i < CONNECTIONS && !refused; i++) {
        if (connections[i].open)
            continue;
        connections[i].open = true;
        stream->fd = i;
        return REDBUCKET_OK;
    }
    (void)snprintf(stream->failure, sizeof stream->failure, "nobody is there");
    return REDBUCKET_ERROR_UNAVAILABLE;
}

bool rbk_address_of_path(const char *path, struct rbk_address *address)
{
    (void)address;
    return path[0] != '\0';
}

enum rbk_moved rbk_stream_write(struct rbk_stream *stream, const void *bytes, size_t len,
                                size_t *done)
{
    struct fake_connection *connection = &connections[stream->fd];

    if (connection->closing) {
        rbk_stream_blame(stream, EPIPE);
        return RBK_MOVED_NEVER;
    }
    rbk_fake_append(&connection->heard, bytes, len);
    stream->sent = true;
    *done = len;
    listen_to(connection);
    return RBK_MOVED;
}

static size_t left_to_say(const struct fake_connection *connection)
{
    return connection->said.len - connection->taken;
}

enum rbk_moved rbk_stream_read(struct rbk_stream *stream, void *bytes, size_t size, size_t *done)
{
    struct fake_connection *connection = &connections[stream->fd];
    size_t len = left_to_say(connection);

    if (len == 0 && connection->closing) {
        stream->ended = true;
        return RBK_MOVED_END;
    }
    if (len == 0) {
        stream->events = POLLIN;
        return RBK_MOVED_LATER;
    }
    if (len > size)
        len = size;
    if (len > rbk_fake.piece)
        len = rbk_fake.piece;
    memcpy(bytes, connection->said.bytes + connection->taken, len);
    connection->taken += len;
    *done = len;
    return RBK_MOVED;
}

bool rbk_stream_idle(struct rbk_stream *stream)
{
    const struct fake_connection *connection = &connections[stream->fd];

    return !connection->closing && left_to_say(connection) == 0;
}

bool rbk_stream_holds(const struct rbk_stream *stream)
{
    (void)stream;
    return false;
}

/* Who would wait has no time any more. */
int rbk_stream_poll(struct pollfd *polled, size_t len, const struct rbk_deadline *deadline,
                    bool *late)
{
    bool ready = false;

    (void)late;
    for (size_t i = 0; i < len; i++) {
        polled[i].revents = 0;
        if (polled[i].fd < 0)
            continue;
        if (left_to_say(&connections[polled[i].fd]) > 0 || connections[polled[i].fd].closing)
            polled[i].revents = POLLIN;
        ready = ready || polled[i].revents != 0;
    }
    if (!ready)
        rbk_fake.now += rbk_deadline_left(deadline);
    return ready ? 0 : ETIMEDOUT;
}

int rbk_stream_wait(struct rbk_stream *stream, short events, const struct rbk_deadline *deadline)
{
    (void)stream;
    (void)events;
    (void)deadline;
    return 0;
}

void rbk_stream_blame(struct rbk_stream *stream, int number)
{
    (void)snprintf(stream->failure, sizeof stream->failure, "error %d", number);
}

void rbk_stream_close(struct rbk_stream *stream)
{
    if (stream->fd >= 0)
        hang_up(&connections[stream->fd]);
    stream->fd = -1;
}

/* ---- In the place of resolve.c -------------------------------------------------------------- */

enum redbucket_status rbk_resolver_create(rbk_lookup *lookup, const char *host, unsigned port,
                                          struct rbk_resolver **resolver,
                                          struct redbucket_error *error)
{
    (void)lookup;
    (void)host;
    (void)port;
    (void)error;
    *resolver = NULL;
    return REDBUCKET_OK;
}

void rbk_resolver_destroy(struct rbk_resolver *resolver)
{
    (void)resolver;
}

enum redbucket_status rbk_resolve(struct rbk_resolver *resolver,
                                  const struct rbk_deadline *deadline,
                                  struct rbk_addresses *addresses, const char **reason)
{
    (void)resolver;
    (void)deadline;
    (void)reason;
    addresses->len = 1;
    return REDBUCKET_OK;
}

/* ---- In the place of deadline.c, bell.c and wait.c --------------------------------------------
 */

double rbk_monotonic_now(void)
{
    return rbk_fake.now;
}

void rbk_deadline_start(struct rbk_deadline *deadline, double seconds)
{
    deadline->at = rbk_moment_after((struct timespec){.tv_sec = 0}, rbk_fake.now + seconds);
    deadline->set = true;
}

/* A little goes by with every look, so that whatever goes on until a deadline ends. */
double rbk_deadline_left(const struct rbk_deadline *deadline)
{
    double left = (double)deadline->at.tv_sec + (double)deadline->at.tv_nsec * 1e-9 - rbk_fake.now;

    rbk_fake.now += 1e-6;
    return left > 0.0 ? left : 0.0;
}

int rbk_deadline_left_ms(const struct rbk_deadline *deadline)
{
    double left = ceil(rbk_deadline_left(deadline) * 1e3);

    return left < INT_MAX ? (int)left : INT_MAX;
}

void rbk_bell_ring(struct rbk_bell *bell)
{
    (void)bell;
}

void rbk_bell_ring_all(struct rbk_bell *bell)
{
    (void)bell;
}

bool rbk_bell_await(struct rbk_bell *bell, pthread_mutex_t *mutex,
                    const struct rbk_deadline *deadline)
{
    (void)bell;
    (void)mutex;
    rbk_fake.now += rbk_deadline_left(deadline);
    return false;
}

int rbk_wait_poll(struct pollfd *polled, size_t len, int timeout_ms)
{
    (void)polled;
    (void)len;
    (void)timeout_ms;
    return 0;
}

void rbk_wait_pause(double seconds)
{
    rbk_fake.now += seconds;
}

bool rbk_wait_unlocked(pthread_mutex_t *mutex)
{
    (void)mutex;
    return false;
}

int rbk_wait_errno(void)
{
    return errno;
}

void rbk_wait_errno_clear(void)
{
    errno = 0;
}

bool rbk_wait_is_over(void)
{
    return false;
}

bool rbk_wait_on_fiber(void)
{
    return false;
}

void rbk_wait_call(void (*function)(void *data), void *data)
{
    function(data);
}
