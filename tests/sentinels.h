/* SPDX-License-Identifier: MIT */
/*
 * A master with a replica, and three sentinels that watch it under the name TEST_SERVICE, all of
 * them processes of the test's own. The sentinels take a master that is silent for a second for
 * dead.
 */
#ifndef TEST_SENTINELS_H
#define TEST_SENTINELS_H

#include "server.h"

#define TEST_SERVICE       "mymaster"
#define TEST_SENTINELS_LEN 3

/*
 *   password           of master and replica, or NULL
 *   sentinel_password  of the sentinels, or NULL
 *   tls                everybody speaks TLS with everybody
 *   config             further lines of configuration of master and replica, or NULL
 */
struct test_sentinels_options {
    enum test_server_kind kind;
    const char *password;
    const char *sentinel_password;
    const char *config;
    bool tls;
};

/*
 *   data       at first the master and its replica
 *   sentinels  in the order of the URL
 */
struct test_sentinels {
    struct test_server *data[2];
    struct test_server *sentinels[TEST_SENTINELS_LEN];
    bool tls;
};

/* Returns when the replica follows and each sentinel knows it and the other sentinels; false, and
 * everything is stopped again, when that doesn't come to be. */
bool test_sentinels_start(struct test_sentinels *all, const struct test_sentinels_options *options);

void test_sentinels_stop(struct test_sentinels *all);

/* Writes the URL of a store that asks the sentinels, with passwords, then `query`. */
void test_sentinels_url(const struct test_sentinels *all, const char *query, char *url,
                        size_t size);

/* Whether the replica that there was at first is connected to its master. */
bool test_sentinels_follow(struct test_sentinels *all);

/* The port that clients of this server are told. */
int test_sentinels_port(const struct test_sentinels *all, const struct test_server *server);

/* The port that sentinel `i` names as the master's; 0 when it doesn't answer. */
int test_sentinels_named(struct test_sentinels *all, size_t i);

/* 1 when server `i` says of itself that it is the master, 0 when not, -1 when it can't be told. */
int test_sentinels_role(struct test_sentinels *all, size_t i);

#endif
