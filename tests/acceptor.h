/* SPDX-License-Identifier: MIT */
/*
 * What plays a server's part in tests: accepts connections on a Unix socket in a temporary folder,
 * or on a free port of the loopback address, and serves each in a thread of its own.
 *
 * Start it before forking. A child has none of its threads, and must not use it.
 */
#ifndef TEST_ACCEPTOR_H
#define TEST_ACCEPTOR_H

#include <stdbool.h>
#include <stddef.h>

struct test_acceptor;

/* Serves one connection, in a thread of its own, until it ends; the descriptor is closed for it.
 * True to have it closed as by a crash, where TCP tells that (RST); false for an ordinary end. */
typedef bool test_serve(void *data, int fd);

/* NULL when it can't listen. */
struct test_acceptor *test_acceptor_start(bool by_port, test_serve *serve, void *data);

/* Ends all connections and waits for their threads. NULL does nothing. */
void test_acceptor_stop(struct test_acceptor *acceptor);

/* Ends all connections there are now; their threads see the end of file. */
void test_acceptor_cut(struct test_acceptor *acceptor);

/* How many connections it has accepted. */
size_t test_acceptor_count(struct test_acceptor *acceptor);

/* How many there are now. */
size_t test_acceptor_open(struct test_acceptor *acceptor);

/* The port, or 0 on a Unix socket; the socket's path, or "". */
int test_acceptor_port(const struct test_acceptor *acceptor);
const char *test_acceptor_path(const struct test_acceptor *acceptor);

/* Writes all of it; false when the other side is gone. */
bool test_send_all(int fd, const void *bytes, size_t len);

#endif
