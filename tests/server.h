/* SPDX-License-Identifier: MIT */
/*
 * Servers that a test starts for itself: each in a temporary folder of its own, on a Unix socket
 * and on a free port of the loopback address, and gone with the test however that ends. A call that
 * fails tells why on standard error, in comments of TAP.
 *
 * All of it is for one thread, which lives as long as the servers that it started: they are killed
 * when it ends. A child after fork leaves its parent's servers alone.
 *
 * The programs: $REDIS_SERVER, $VALKEY_SERVER, $OLD_REDIS_SERVER; else redis-server and
 * valkey-server on the path; else what scripts/servers has brought.
 */
#ifndef TEST_SERVER_H
#define TEST_SERVER_H

#include "client.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum test_server_kind {
    TEST_REDIS,
    TEST_VALKEY,
    TEST_OLD_REDIS, /* of before 3.2, which can't decide by a script */
};

#define TEST_SERVER_KINDS 3

/* "redis", "valkey", "old-redis". */
const char *test_server_name(enum test_server_kind kind);

/* Whether there is such a server to start; a test of a missing one is skipped. Redis itself is
 * always said to be there: without it, tests fail. */
bool test_server_have(enum test_server_kind kind);

/* The same for one that speaks TLS, which came with Redis 6 and can be left out of a program. */
bool test_server_have_tls(enum test_server_kind kind);

/*
 *   config    further lines of configuration, which override what is set by itself, or NULL
 *   password  what everyone must give, or NULL
 *   tls       a port that speaks TLS beside the plain one. The folder then has what
 *             tests/certificates makes; client certificates are not asked for unless `config` says
 *             "tls-auth-clients yes"
 *   node      it becomes a node of a cluster, which takes two ports
 *   sentinel  it is a sentinel, for which `config` has what to watch
 *
 * Nothing is written to disk unless `config` says so; DEBUG is allowed.
 */
struct test_server_options {
    enum test_server_kind kind;
    const char *config;
    const char *password;
    bool tls;
    bool node;
    bool sentinel;
};

/*
 *   version    major * 10000 + minor * 100 + patch
 *   pid        0 while it is down
 *   tls_port   0 without TLS
 *   directory  its data, log and certificates
 */
struct test_server {
    enum test_server_kind kind;
    unsigned version;
    pid_t pid;
    int port;
    int tls_port;
    char directory[64];
    char socket[96];
    char password[64];
    bool sentinel;
    struct test_client *client;
    struct test_server *next;
};

/* Returns when it answers; NULL when it doesn't. */
struct test_server *test_server_start(const struct test_server_options *options);

/* Ends it, by force where it doesn't end by itself, and removes its folder. NULL does nothing. */
void test_server_stop(struct test_server *server);

/* Ends it as the machine's end would, by SIGKILL; its folder stays. */
void test_server_kill(struct test_server *server);

/* Has it end by itself, so that what it keeps on disk is whole; its folder stays. */
void test_server_end(struct test_server *server);

/* Starts it again after kill or end, in the same folder, on the same socket and ports. */
bool test_server_again(struct test_server *server);

enum test_server_way { TEST_BY_SOCKET, TEST_BY_PORT, TEST_BY_TLS };

/* Writes the URL of a store on it: with the password, with `ca` for TLS, then `query` ("" or
 * "codec=json&timeout=50ms"). */
void test_server_url(const struct test_server *server, enum test_server_way way, const char *query,
                     char *url, size_t size);

/* One command on a connection of the test's own, words of text with a NULL behind the last; the
 * reply is freed by freeReplyObject. NULL when there was none. */
__attribute__((sentinel)) redisReply *test_server_ask(struct test_server *server, const char *word,
                                                      ...);

/* The same for words of any bytes. */
redisReply *test_server_call(struct test_server *server, int argc, const char **argv,
                             const size_t *lengths);

/* Whether a command was answered by anything but an error. */
__attribute__((sentinel)) bool test_server_do(struct test_server *server, const char *word, ...);

/* A number out of what INFO says ("connected_clients"), or -1. */
long long test_server_info(struct test_server *server, const char *name);

/* How often it has run a command ("evalsha") since it was started, or since CONFIG RESETSTAT. */
long long test_server_calls(struct test_server *server, const char *command);

#endif
