/* SPDX-License-Identifier: MIT */
/*
 * A server made of an input's bytes, in the place of sockets, names and time.
 *
 * fake_server.c defines what src/redis/stream.c, dial.c, resolve.c and src/wait.c, deadline.c do,
 * so that a program which links it before the library speaks to it over no socket, and waits for
 * nothing: time is moved by whoever would have waited. All above these is the library's own.
 *
 * Each command that comes takes a record of the input, which says what it is answered (fake_reply.c
 * has their list); once there are none, a good server's answers follow for a while, and then no one
 * is there any more.
 */
#ifndef FUZZ_FAKE_SERVER_H
#define FUZZ_FAKE_SERVER_H

#include "model/bucket.h"
#include "wire/reply.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_PASSWORD "ZQXJKVWB"

/* Arguments of one command; all that a call of the script has fit. */
#define FAKE_ARGUMENTS_MAX 200u

/* Commands of one transaction: one for each key that a request may have. */
#define FAKE_QUEUED_MAX 64u

struct fake_bytes {
    unsigned char *bytes;
    size_t len;
    size_t size;
};

struct fake_connection {
    bool open;
    bool closing;                 /* says what is left to say, and hangs up */
    size_t queued;                /* commands behind MULTI */
    bool counts[FAKE_QUEUED_MAX]; /* which of them are answered with a number */
    bool in_multi;
    struct fake_bytes heard;
    struct fake_bytes said;
    size_t taken; /* of what was said */
};

/* What the input says, and what was made of it.
 *
 *   codec_json  how states are stored
 *   in_cluster  what it says of itself
 *   keeps       it has states by the script, and a clock that is `skew` ahead of ours; otherwise
 *               each bucket is a new one, and time stands still there
 *   refusals    connections that it will refuse first
 *   honest      nothing but what a good server says was said so far
 *   made_up     something was said to be so that isn't: other than saying too little, or no
 *   accepted    requests that it has said yes to
 *   stalled     seconds that went by while nobody waited
 */
struct fake {
    const uint8_t *at;
    size_t left;
    size_t piece; /* bytes that one read gives at most */
    size_t good_left;
    size_t refusals;
    bool codec_json;
    bool in_cluster;
    bool keeps;
    bool honest;
    bool made_up;
    size_t accepted;
    double now;
    double skew;
    double stalled;
};

extern struct fake rbk_fake;

/* Begins with an input; ends all connections of the last one. */
void rbk_fake_begin(const uint8_t *data, size_t size, size_t piece);

uint8_t rbk_fake_byte(void);
size_t rbk_fake_bytes(size_t len, const uint8_t **bytes);

/* Connections that nobody has closed. */
size_t rbk_fake_open(void);

void rbk_fake_append(struct fake_bytes *to, const void *bytes, size_t len);

/* Answers one command. */
void rbk_fake_reply(struct fake_connection *connection, const struct rbk_command *command);

/* The server's clock, and what it keeps under a name: the same place each time, until all of it is
 * forgotten. */
double rbk_fake_clock(void);
struct rbk_state *rbk_fake_kept(const void *name, size_t len);
void rbk_fake_forget(void);

/* Answers a call of the script as the script would, on buckets which all have this state, or the
 * states that are kept where it is NULL. */
void rbk_fake_script(struct fake_bytes *out, const struct rbk_command *command,
                     const uint8_t *state);

#endif
