/* SPDX-License-Identifier: MIT */
/*
 * One body of tests for every way in which a server can decide: Redis, Valkey and a Redis that
 * knows no effects of scripts; by script and by transaction; both codecs.
 *
 * Each kind of server is started once a program, and emptied before each case. Its time is
 * rbk_test_now, at first SERVED_NOW: programs link the test clock.
 */
#ifndef TEST_SERVED_H
#define TEST_SERVED_H

#include "redbucket/redbucket.h"
#include "server.h"
#include "test.h"

#define SERVED_NOW 1697696113.0

struct served {
    enum test_server_kind kind;
    const char *method;
    const char *codec;
    struct test_server *server;
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
};

/* Which ways a case is run by; both codecs and both methods unless it says otherwise. */
enum served_ways {
    SERVED_ALL = 0,
    SERVED_SCRIPT = 1,
    SERVED_TRANSACTION = 2,
    SERVED_STRUCT = 4,
    SERVED_JSON = 8,
};

struct served_case {
    const char *name;
    void (*body)(void **state);
    unsigned ways; /* enum served_ways, one or two together */
};

#define SERVED(name)            \
    {                           \
#name, name, SERVED_ALL \
    }
#define SERVED_BY(ways, name) \
    {                         \
#name, name, ways     \
    }

/* Runs every case by every such way that there is a server for; a kind that isn't there is one case
 * skipped. A case's *state is its struct served, with a store open and a limiter without limits.
 * Returns what main does. */
int served_run(const char *group, const struct served_case *cases, size_t len);

bool served_by_script(const struct served *served);
bool served_json(const struct served *served);

/* Opens another store by the same way; `query` is added to its URL. */
struct redbucket_store *served_open(const struct served *served, const char *query);

/* Opens the store anew under such a URL, with a new limiter. */
void served_again(struct served *served, const char *query);

/* Adds a limit with a zone of its own. */
void served_limit(struct served *served, const char *name, struct redbucket_limit limit);

/* Asks the server; the reply isn't an error, and is the caller's. */
__attribute__((sentinel)) redisReply *served_ask(const struct served *served, const char *word,
                                                 ...);

/* The same for a key and a value of any bytes: SET. */
void served_put(const struct served *served, const char *key, const void *value, size_t len);

/* What is stored under a key: a string, or NULL for nothing. */
redisReply *served_get(const struct served *served, const char *key);

/* A number that a command with one argument answers: TTL, EXISTS. */
long long served_number(const struct served *served, const char *command, const char *key);

/* What the codec makes of a state; returns its length. */
size_t served_encode(const struct served *served, double timestamp, double value,
                     unsigned char out[96]);

/* Decides one request of cost 1 under limit "a"; the status is asserted to be OK. */
struct redbucket_response served_request(struct served *served, const char *key);

#endif
