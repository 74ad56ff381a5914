/* SPDX-License-Identifier: MIT */
/*
 * Commands and replies of a Redis server, as bytes in memory, apart from whoever carries them.
 */
#ifndef RBK_WIRE_REPLY_H
#define RBK_WIRE_REPLY_H

#include <stddef.h>

enum rbk_reply_type {
    RBK_REPLY_NIL,
    RBK_REPLY_INTEGER,
    RBK_REPLY_STATUS, /* +OK */
    RBK_REPLY_STRING,
    RBK_REPLY_ERROR, /* its text in `text` */
    RBK_REPLY_ARRAY,
};

/* A reply, which lives as long as whoever read it says. `text` has a NUL behind its `len` bytes. */
struct rbk_reply {
    enum rbk_reply_type type;
    long long integer;
    const char *text;
    size_t len; /* of the text, or how many elements */
    const struct rbk_reply *elements;
};

struct rbk_argument {
    const void *bytes;
    size_t len;
};

struct rbk_command {
    const struct rbk_argument *arguments;
    size_t len;
};

#endif
