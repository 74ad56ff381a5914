/* SPDX-License-Identifier: MIT */
/*
 * The inside of a connection, for the two files that share it: connection.c, which opens and closes
 * it, and exchange.c, which speaks on it.
 */
#ifndef RBK_REDIS_CONNECTION_INSIDE_H
#define RBK_REDIS_CONNECTION_INSIDE_H

#include "redis/connection.h"
#include "redis/outgoing.h"
#include "redis/reader.h"
#include "redis/stream.h"

#define RBK_CHUNK ((size_t)16 << 10)

/* How far a call has come. It is kept here so that calls on many connections need no memory. */
struct rbk_progress {
    struct rbk_reply *replies;
    size_t wanted;
    size_t got;
    size_t written;
    bool empty; /* there was nothing to read last */
};

struct rbk_connection {
    struct rbk_stream stream; /* stays where it is: TLS points to it */
    struct rbk_reader *reader;
    struct rbk_outgoing outgoing;
    struct rbk_progress progress;
    bool broken;
    unsigned char chunk[RBK_CHUNK];
};

#endif
