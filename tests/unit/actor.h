/* SPDX-License-Identifier: MIT */
/*
 * A server that does as a test says: it listens, and a thread of its own does the same with one
 * connection after the other.
 */
#ifndef TEST_ACTOR_H
#define TEST_ACTOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* What to do with a connection, which blocks; it is closed afterwards. */
typedef void test_actor_act(int fd, void *data);

struct test_actor {
    int listener;
    int port;            /* of 127.0.0.1, or 0 */
    char path[64];       /* of a Unix socket, or "" */
    char directory[32];  /* where that is */
    atomic_int accepted; /* connections so far */
    atomic_int closed;   /* how many of them are closed again */
    test_actor_act *act;
    void *data;
    pthread_t thread;
};

/* On a free port, or on a Unix socket; `act` may be NULL: then nobody accepts. */
void test_actor_start(struct test_actor *peer, test_actor_act *act, void *data);
void test_actor_start_unix(struct test_actor *peer, test_actor_act *act, void *data);

/* When the connections are closed. */
void test_actor_stop(struct test_actor *peer);

/* Reads exactly so many bytes, or ends the connection's act early: false. */
int test_actor_read(int fd, void *bytes, size_t len);

/* Reads and forgets until the other side closes. */
void test_actor_drain(int fd);

/* Has the close that follows reset the connection, as a crash would; writing to it raises SIGPIPE.
 */
void test_actor_reset(int fd);

/* Writes all of it; false when the other side is gone. */
int test_actor_write(int fd, const void *bytes, size_t len);

#endif
