/* SPDX-License-Identifier: MIT */
/*
 * A table over bytes of a test's own, and requests decided on it as a store would, without locks:
 * with every byte at hand, and time as an argument.
 */
#ifndef TEST_TABLES_H
#define TEST_TABLES_H

#include "table/layout.h"
#include "table/table.h"

/* Most claims that a test's request has. */
#define TEST_CLAIMS 8

struct test_table {
    struct rbk_table table;
    unsigned char *bytes;
    unsigned char *copy; /* for test_table_same */
    size_t size;
};

enum test_outcome {
    TEST_ACCEPTED,
    TEST_REJECTED,
    TEST_FULL,
};

/* Makes a table of at most `shards_max` shards, its secret made from `seed`. */
void test_table_make(struct test_table *table, size_t size, unsigned shards_max, uint64_t seed);
void test_table_free(struct test_table *table);

/* Bytes of a table with one shard and so many pages. */
size_t test_table_size(uint32_t pages);

/* A key of zone "z". */
struct rbk_key test_key(const void *bytes, size_t len);

/* A key made of a number; the text belongs to the function until its sixteenth next call. */
struct rbk_key test_numbered(uint64_t number);

/* One key's request; the other operations by test_table_apply. */
enum test_outcome test_table_ask(struct test_table *table, const struct rbk_key *key,
                                 const struct rbk_limit *limit, double now);

/* One request of some keys, all under one limit. */
enum test_outcome test_table_apply(struct test_table *table, const struct rbk_key *keys, size_t len,
                                   const struct rbk_limit *limit, const struct rbk_ask *ask);

/* The bucket as stored. */
struct rbk_state test_table_read(const struct test_table *table, const struct rbk_key *key);

/* All shards together. */
struct rbk_table_counts test_table_counts(const struct test_table *table);

/* Keeps the bytes as they are now, and compares with what was kept. */
void test_table_keep(struct test_table *table);
bool test_table_same(const struct test_table *table);

/* Fails the test when the table's bytes make no sense, or any slot isn't accounted for. */
void test_table_audit(const struct test_table *table);

#endif
