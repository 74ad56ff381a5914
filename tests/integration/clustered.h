/* SPDX-License-Identifier: MIT */
/*
 * One body of tests for every way in which a cluster can decide: Redis and Valkey, both codecs,
 * buckets brought together in one slot by a hash tag and buckets in slots all over.
 *
 * Each kind of cluster is started once a program, and emptied before each case.
 */
#ifndef TEST_CLUSTERED_H
#define TEST_CLUSTERED_H

#include "cluster.h"
#include "redbucket/redbucket.h"
#include "test.h"

/* All buckets in one slot; those of one key in one slot. */
#define CLUSTERED_TOGETHER "redbucket:{{t}}:{zone}:{key}"
#define CLUSTERED_BY_KEY   "redbucket:{zone}:{{{key}}}"

struct clustered {
    enum test_server_kind kind;
    const char *codec;
    const char *key_format;
    struct test_cluster *cluster;
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
};

/* Which ways a case is run by; all of them unless it says otherwise. */
enum clustered_ways {
    CLUSTERED_ALL = 0,
    CLUSTERED_STRUCT = 1,
    CLUSTERED_TAGGED = 2,   /* CLUSTERED_TOGETHER alone */
    CLUSTERED_UNTAGGED = 4, /* the default alone */
    CLUSTERED_REDIS = 8,
    CLUSTERED_VALKEY = 16,
};

struct clustered_case {
    const char *name;
    void (*body)(void **state);
    unsigned ways; /* enum clustered_ways, some together */
};

#define CLUSTERED(ways, name) \
    {                         \
#name, name, ways     \
    }

/* Runs every case by every such way that there is a server for. A case's *state is its struct
 * clustered, with a store open and a limiter without limits. Returns what main does. */
int clustered_run(const char *group, const struct clustered_case *cases, size_t len);

/* Forgets every bucket. */
void clustered_flush(const struct clustered *clustered);

/* Opens another store by the same way; `query` is added to its URL. */
struct redbucket_store *clustered_open(const struct clustered *clustered, const char *query);

/* Opens the store anew, with a new limiter. */
void clustered_again(struct clustered *clustered, const char *query);

/* Adds a limit with a zone of its own. */
void clustered_limit(struct clustered *clustered, const char *name, struct redbucket_limit limit);

/* The name of a bucket; returns its length. */
size_t clustered_name(const struct clustered *clustered, const char *zone, const void *key,
                      size_t key_len, unsigned char *out, size_t size);

/* The index of the node that serves a bucket, and its slot in *slot, which may be NULL. */
size_t clustered_node(const struct clustered *clustered, const char *zone, const char *key,
                      unsigned *slot);

/* A key of the default format whose bucket in a zone is served by a node: "PREFIX-N". */
void clustered_key_at(const struct clustered *clustered, const char *zone, size_t node,
                      const char *prefix, char out[48]);

/* Asks whoever serves a bucket: a word, the bucket's name, and words of text, a NULL behind the
 * last. The reply isn't an error, and is the caller's. */
__attribute__((sentinel)) redisReply *clustered_ask(const struct clustered *clustered,
                                                    const char *zone, const char *key,
                                                    const char *word, ...);

/* Does a command on every master. */
__attribute__((sentinel)) void clustered_everywhere(const struct clustered *clustered,
                                                    const char *word, ...);

/* One request of cost 1 for the same key under each limit of a list set off by spaces. */
enum redbucket_status clustered_request(struct clustered *clustered, const char *limits,
                                        const char *key, struct redbucket_response *response);

/* The value stored for a key, 0 when there is none. */
double clustered_value(struct clustered *clustered, const char *limit, const char *key);

#endif
