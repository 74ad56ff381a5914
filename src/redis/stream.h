/* SPDX-License-Identifier: MIT */
/*
 * Bytes to and from a server: a connected socket, with TLS around it or without.
 *
 * Nothing here waits but rbk_stream_wait and rbk_stream_poll, which end at the deadline. No signal
 * is raised.
 */
#ifndef RBK_REDIS_STREAM_H
#define RBK_REDIS_STREAM_H

#include "deadline.h"

#include <poll.h>
#include <stddef.h>

#define RBK_STREAM_FAILURE_SIZE 160

/*
 *   fd       owned by the stream; -1 when there is none
 *   tls      the TLS around it, or NULL; owned as well
 *   events   what poll has to wait for before a read or write that would have blocked
 *   sent     bytes went out to the socket since this was last cleared
 *   late     a wait was over only after the deadline, since this was last cleared
 *   ended    the other side has closed its end
 *   failure  what went wrong, for people
 */
struct rbk_stream {
    int fd;
    struct ssl_st *tls;
    short events;
    bool sent;
    bool late;
    bool ended;
    char failure[RBK_STREAM_FAILURE_SIZE];
};

enum rbk_moved {
    RBK_MOVED,       /* some bytes, at least one */
    RBK_MOVED_LATER, /* none for now: see `events` */
    RBK_MOVED_END,   /* none any more: closed by the other side */
    RBK_MOVED_NEVER, /* failed: see `failure` */
    RBK_MOVED_TLS,   /* TLS failed: see `failure` */
    RBK_MOVED_SHORT, /* no memory for TLS */
};

enum rbk_moved rbk_stream_write(struct rbk_stream *stream, const void *bytes, size_t len,
                                size_t *done);
enum rbk_moved rbk_stream_read(struct rbk_stream *stream, void *bytes, size_t size, size_t *done);

/* True when nothing was said since the last read and the other side hasn't closed. */
bool rbk_stream_idle(struct rbk_stream *stream);

/* True when bytes can be read that poll doesn't know of. */
bool rbk_stream_holds(const struct rbk_stream *stream);

/*
 * Waits for poll's `events`. 0, ETIMEDOUT, ECANCELED when the host waits no longer, or what poll
 * says. What is there already when the deadline has passed (this thread may have slept) may be
 * taken, but once: drops that keep coming would keep a caller for ever.
 */
int rbk_stream_wait(struct rbk_stream *stream, short events, const struct rbk_deadline *deadline);

/* The same for any number of sockets, until something is to be done for one of them. `late` is
 * false at first, and kept from wait to wait. */
int rbk_stream_poll(struct pollfd *polled, size_t len, const struct rbk_deadline *deadline,
                    bool *late);

/* Sets `failure` to the system's words for an error. */
void rbk_stream_blame(struct rbk_stream *stream, int number);

/* Frees TLS, without a goodbye, and closes the descriptor. */
void rbk_stream_close(struct rbk_stream *stream);

#endif
