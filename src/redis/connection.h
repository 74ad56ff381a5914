/* SPDX-License-Identifier: MIT */
/*
 * Connections to a Redis or Valkey server, each used by one thread at a time. With its neighbours
 * (dial, exchange, outgoing, reader, resolve, stream, tls) the only place that knows hiredis,
 * OpenSSL and sockets.
 *
 * Sockets are non-blocking under one poll loop, and every wait ends at the caller's deadline, which
 * is set: resolving a name, connecting, the TLS handshake, writing and reading together. After any
 * failure a connection is good for nothing but closing, so that a late reply can never answer
 * another request. No signal is raised, and one that arrives disturbs nothing.
 */
#ifndef RBK_REDIS_CONNECTION_H
#define RBK_REDIS_CONNECTION_H

#include "deadline.h"
#include "redis/endpoint.h"
#include "wire/reply.h"

/*
 * What the connections to one place share: where that is, and a look-up of the host's name that may
 * be under way. Used from any thread, and after a fork in the child as well. Its connections may
 * outlive it.
 */
struct rbk_transport;

struct rbk_tls;

/* Copies the endpoint. `tls` is borrowed, for as long as there are connections; NULL: none.
 * ERROR_MEMORY, ERROR_SYSTEM, ERROR_UNSUPPORTED. Sends nothing and looks nothing up. */
enum redbucket_status rbk_transport_create(const struct rbk_endpoint *endpoint, struct rbk_tls *tls,
                                           struct rbk_transport **transport,
                                           struct redbucket_error *error);

/* Waits for nothing: a look-up that is late frees what it needs itself. NULL does nothing. */
void rbk_transport_destroy(struct rbk_transport *transport);

const struct rbk_endpoint *rbk_transport_endpoint(const struct rbk_transport *transport);

struct rbk_connection;

/*
 * Resolves, connects, does TLS. No command is sent. ERROR_UNAVAILABLE when nobody answers there,
 * ERROR_TIMEOUT at the deadline, ERROR_TLS when the server can't be verified or doesn't speak TLS,
 * ERROR_MEMORY, ERROR_SYSTEM (no descriptor or thread left). Messages begin with the endpoint's
 * `where`.
 *
 * *connection is set from before there is a descriptor, so that a child which is forked in the
 * middle finds its copy to abandon; on any failure it is NULL again.
 */
enum redbucket_status rbk_connection_open(struct rbk_transport *transport,
                                          const struct rbk_deadline *deadline,
                                          struct rbk_connection **connection,
                                          struct redbucket_error *error);

/* Closes the descriptor, and does nothing else: no shutdown, no TLS goodbye, so that a child can
 * close its copy of a parent's. NULL does nothing. */
void rbk_connection_close(struct rbk_connection *connection);

/* The same for a child's copy of a connection that another thread was using at the moment of the
 * fork: its memory may be in pieces, and is left behind. */
void rbk_connection_abandon(struct rbk_connection *connection);

/* Gives up the replies of the last call, whose memory an idle connection would keep for as long as
 * nobody has use for it. */
void rbk_connection_rest(struct rbk_connection *connection);

/* False when an idle connection was closed by the server, or has something to read that nobody
 * asked for, or has failed before. Does not wait. */
bool rbk_connection_good(struct rbk_connection *connection);

/*
 * Sends the commands and reads a reply to each, in one round trip. Replies, errors of the server
 * among them, live until the next call.
 *
 * ERROR_TIMEOUT at the deadline, ERROR_IO when the connection broke, ERROR_PROTOCOL for bytes that
 * are no replies or too many (each reply is bounded in bytes, elements and depth), ERROR_TLS when
 * TLS failed (a server of TLS 1.3 tells only now that it wants a certificate), ERROR_MEMORY: what
 * the server did is unknown. ERROR_UNAVAILABLE when the connection broke before a byte was sent. A
 * server that turns the connection away with an error and closes it (too many clients, protected
 * mode) makes ERROR_UNAVAILABLE or ERROR_AUTH, and did nothing either.
 */
enum redbucket_status rbk_connection_call(struct rbk_connection *connection,
                                          const struct rbk_command *commands, size_t commands_len,
                                          struct rbk_reply *replies,
                                          const struct rbk_deadline *deadline);

/*
 * A call on one connection beside calls on others. No connection may be in two of them. `status` is
 * set: it means what rbk_connection_call's return does, and is this call's alone.
 */
struct rbk_exchange {
    struct rbk_connection *connection;
    const struct rbk_command *commands;
    size_t len;
    struct rbk_reply *replies;
    enum redbucket_status status; /* out */
};

/*
 * Makes several calls at once, in the time of the slowest: all are on their way before any reply is
 * awaited, and replies are taken as they come. Up to 64 need no memory.
 */
void rbk_connections_call(struct rbk_exchange *exchanges, size_t len,
                          const struct rbk_deadline *deadline);

/* Why the last call failed, in a few words for people. */
const char *rbk_connection_failure(const struct rbk_connection *connection);

/*
 * Bytes that a reply to one command may have, and its elements and depth. The longest that anybody
 * asks for is CLUSTER SLOTS of a cluster whose 16384 slots have each a range of its own: with a
 * master and a replica, whose names stand in metadata, that is 17 elements and about 300 bytes
 * each. Whoever announces more makes us take 13 MB for elements before he is refused, and no more.
 */
#define RBK_REPLY_BYTES_MAX    (8u << 20)
#define RBK_REPLY_ELEMENTS_MAX 327680u /* 20 a slot */
#define RBK_REPLY_DEPTH_MAX    7u

#endif
