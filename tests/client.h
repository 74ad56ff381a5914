/* SPDX-License-Identifier: MIT */
/*
 * A plain client of a Redis server, for tests to set things up and to look at what was stored. It
 * blocks, but never for more than half a minute unless told otherwise; a reply is hiredis' own,
 * freed by freeReplyObject.
 */
#ifndef TEST_CLIENT_H
#define TEST_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

struct test_client;

/* NULL when nobody listens there. */
struct test_client *test_client_open(const char *socket_path);
struct test_client *test_client_connect(int port);

/* From now on it waits no longer than this for the other side. */
void test_client_patience(struct test_client *client, double seconds);

/* NULL does nothing. */
void test_client_close(struct test_client *client);

/* Sends one command, whose words may hold any bytes. */
bool test_client_send(struct test_client *client, int argc, const char **argv,
                      const size_t *lengths);

/* The next reply; NULL when the connection ended or no reply came. */
redisReply *test_client_receive(struct test_client *client);

/* One command and its reply. */
redisReply *test_client_call(struct test_client *client, int argc, const char **argv,
                             const size_t *lengths);

/* The same with words of text, a NULL behind the last. */
__attribute__((sentinel)) redisReply *test_client_ask(struct test_client *client, const char *word,
                                                      ...);

#endif
