/* SPDX-License-Identifier: MIT */
/*
 * What the cases need: one body for every embedded store, a store of its own for each, and steps
 * that say in a line what is asked and what has to come of it.
 */
#ifndef TEST_CASES_H
#define TEST_CASES_H

#include "redbucket/redbucket.h"
#include "stores.h"
#include "test.h"

struct test_case {
    const struct test_store *kind;
    char url[256];
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
};

struct case_entry {
    const char *name;
    void (*body)(void **state);
};

#define CASE(name)  \
    {               \
#name, name \
    }

/* Runs every case on every embedded store: memory and shm of this size, and growing memory. Returns
 * what main does. A case's *state is its struct test_case. */
int cases_run(const char *group, const char *size, const struct case_entry *cases, size_t len);

/* Some keys, as two arguments: KEYS({"a", "k"}, {"b", "k"}). */
#define KEYS(...)                                \
    (const struct redbucket_key[]){__VA_ARGS__}, \
        sizeof((const struct redbucket_key[]){__VA_ARGS__}) / sizeof(struct redbucket_key)

/* The key that most cases are about. */
#define K KEYS({"a", "k"})

/* Adds a limit with a zone of its own. */
void add_limit(struct test_case *test, const char *name, struct redbucket_limit limit);

/* Asks for a permit of cost 1 at `t`; it must be accepted with this delay. */
void accepts(struct test_case *test, double t, const struct redbucket_key *keys, size_t len,
             double delay);

/* The same `count` times for key k of limit a, at once. */
void accepts_so_many(struct test_case *test, unsigned count, double t);

/* It must be rejected with this retry time, never less and hardly more. */
void rejects(struct test_case *test, double t, const struct redbucket_key *keys, size_t len,
             double retry_after);

/* It must fail with this status. */
void fails(struct test_case *test, double t, const struct redbucket_key *keys, size_t len,
           enum redbucket_status status);

/* What is stored for a key. */
struct redbucket_state state_of(struct test_case *test, const char *limit, const char *key);

#endif
