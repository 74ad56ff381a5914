/* SPDX-License-Identifier: MIT */
/*
 * A connection as a store makes it, for tests of what happens on it.
 */
#ifndef TEST_CALLER_H
#define TEST_CALLER_H

#include "actor.h"
#include "redis/connection.h"
#include "redis/options.h"
#include "redis/tls.h"

struct test_caller {
    struct rbk_redis_options options;
    struct rbk_tls *tls;
    struct rbk_transport *transport;
    struct rbk_connection *connection;
    struct redbucket_error error; /* of the last attempt to open */
    struct rbk_reply replies[8];
};

/* Time enough for what should happen, and short for what shouldn't. */
#define LONG_S  30.0
#define SHORT_S 0.15

/* Reads the URL and makes the transport; no connection yet. */
void test_caller_init(struct test_caller *caller, const char *url);

/* The same for a peer, with an optional query ("?..."). */
void test_caller_of(struct test_caller *caller, const struct test_actor *peer);

/* Connects within so many seconds. */
enum redbucket_status test_caller_open(struct test_caller *caller, double seconds);

/* Of a peer, connected. */
void test_caller_start(struct test_caller *caller, const struct test_actor *peer);

/* Sends a command of one word, `len` times; replies are the caller's. */
enum redbucket_status test_caller_say(struct test_caller *caller, const char *word, size_t len,
                                      double seconds);

void test_caller_fini(struct test_caller *caller);

/* Fails the test unless `seconds` have passed since `begin`, and not many more, on a busy machine.
 */
void test_took(double begin, double seconds);

#endif
