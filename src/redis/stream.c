/* SPDX-License-Identifier: MIT */
/*
 * Plain sockets, and which of the two it is.
 */
#include "redis/stream.h"

#include "error.h"
#include "interrupt.h"
#include "redis/tls.h"
#include "wait.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void rbk_stream_blame(struct rbk_stream *stream, int number)
{
    char text[RBK_STREAM_FAILURE_SIZE];

    (void)snprintf(stream->failure, sizeof stream->failure, "%s",
                   rbk_errno_text(number, text, sizeof text));
}

static enum rbk_moved settle(struct rbk_stream *stream, short events)
{
    int number = rbk_wait_errno();

    if (number == EAGAIN || number == EWOULDBLOCK) {
        stream->events = events;
        return RBK_MOVED_LATER;
    }
    rbk_stream_blame(stream, number);
    return RBK_MOVED_NEVER;
}

enum rbk_moved rbk_stream_write(struct rbk_stream *stream, const void *bytes, size_t len,
                                size_t *done)
{
    ssize_t moved;

    if (stream->tls != NULL)
        return rbk_tls_write(stream, bytes, len, done);
    do
        moved = send(stream->fd, bytes, len, MSG_NOSIGNAL);
    while (moved < 0 && rbk_wait_errno() == EINTR);
    if (moved < 0)
        return settle(stream, POLLOUT);
    stream->sent = true;
    *done = (size_t)moved;
    return RBK_MOVED;
}

static ssize_t receive(int fd, void *bytes, size_t size, int flags)
{
    ssize_t moved;

    do
        moved = recv(fd, bytes, size, flags);
    while (moved < 0 && rbk_wait_errno() == EINTR);
    return moved;
}

enum rbk_moved rbk_stream_read(struct rbk_stream *stream, void *bytes, size_t size, size_t *done)
{
    ssize_t moved;

    if (stream->tls != NULL)
        return rbk_tls_read(stream, bytes, size, done);
    moved = receive(stream->fd, bytes, size, 0);
    if (moved < 0)
        return settle(stream, POLLIN);
    if (moved == 0) {
        stream->ended = true;
        return RBK_MOVED_END;
    }
    *done = (size_t)moved;
    return RBK_MOVED;
}

bool rbk_stream_holds(const struct rbk_stream *stream)
{
    return stream->tls != NULL && rbk_tls_holds(stream);
}

bool rbk_stream_idle(struct rbk_stream *stream)
{
    char byte;
    size_t done;
    ssize_t there;

    if (rbk_stream_holds(stream))
        return false;
    there = receive(stream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (there < 0)
        return rbk_wait_errno() == EAGAIN;
    /* With TLS, what is there may be the server's tickets, which are nobody's answer. */
    return there > 0 && stream->tls != NULL &&
           rbk_stream_read(stream, &byte, 1, &done) == RBK_MOVED_LATER;
}

int rbk_stream_poll(struct pollfd *polled, size_t len, const struct rbk_deadline *deadline,
                    bool *late)
{
    while (!*late) {
        int left_ms = rbk_deadline_left_ms(deadline);
        int ready = rbk_wait_poll(polled, len, left_ms);
        int number = ready < 0 ? rbk_wait_errno() : 0;

        *late = left_ms == 0;
        if (ready > 0)
            return 0;
        /* It has waited that long, whatever the clock says next. */
        if (ready == 0 && !rbk_wait_on_fiber())
            return ETIMEDOUT;
        if (ready < 0 && number != EINTR && number != EAGAIN)
            return number;
        if (number == EINTR && rbk_interrupted())
            return ECANCELED;
    }
    return ETIMEDOUT;
}

int rbk_stream_wait(struct rbk_stream *stream, short events, const struct rbk_deadline *deadline)
{
    struct pollfd one = {.fd = stream->fd, .events = events};

    return rbk_stream_poll(&one, 1, deadline, &stream->late);
}

void rbk_stream_close(struct rbk_stream *stream)
{
    int fd = stream->fd;

    rbk_tls_free(stream);
    /* A child that is forked in between must not close whatever has the number by then. */
    stream->fd = -1;
    if (fd >= 0)
        (void)close(fd);
}
