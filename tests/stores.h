/* SPDX-License-Identifier: MIT */
/*
 * The stores that one body of tests runs on, each opened under a URL of its own and gone
 * afterwards.
 */
#ifndef TEST_STORES_H
#define TEST_STORES_H

#include "redbucket/redbucket.h"

/* A kind of store; `query` is appended to what its URL needs anyway. */
struct test_store {
    const char *kind;
    bool shared;
};

extern const struct test_store test_stores[];
extern const size_t test_stores_len;

/* Writes a URL that nobody else uses; `query` is "" or "?size=64k" and the like. */
void test_store_url(const struct test_store *store, const char *query, char *url, size_t size);

/* Opens it, or fails the test. */
struct redbucket_store *test_store_open(const char *url);

/* Closes it and removes what it leaves behind. */
void test_store_drop(const char *url, struct redbucket_store *store);

/* Removes what a store of this URL leaves behind. */
void test_store_remove(const char *url);

/* A limiter with one limit "a", or fails the test. */
struct redbucket_limiter *test_limiter(struct redbucket_store *store,
                                       const struct redbucket_limit *limit);

/* One request of `cost` for `key` under limit "a" at `now`; the status is asserted to be OK. */
struct redbucket_response test_ask(struct redbucket_limiter *limiter, const char *key, double cost,
                                   double now);

#endif
