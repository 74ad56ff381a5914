/* SPDX-License-Identifier: MIT */
#include "tables.h"

#include "audit.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

void test_table_make(struct test_table *table, size_t size, unsigned shards_max, uint64_t seed)
{
    const uint64_t secret[2] = {seed * 0x9e3779b97f4a7c15u, ~seed * 0xc2b2ae3d27d4eb4fu};
    struct rbk_table_plan plan;

    table->size = size;
    table->bytes = calloc(1, size);
    table->copy = NULL;
    assert_non_null(table->bytes);
    assert_true(rbk_table_plan(size, shards_max, &plan));
    rbk_table_format(table->bytes, size, &plan, secret);
    assert_true(rbk_table_attach(&table->table, table->bytes, size));
}

void test_table_free(struct test_table *table)
{
    free(table->bytes);
    free(table->copy);
}

size_t test_table_size(uint32_t pages)
{
    return rbk_table_size_min() + ((size_t)pages - 2) * RBK_PAGE_SIZE;
}

struct rbk_key test_key(const void *bytes, size_t len)
{
    return (struct rbk_key){(const unsigned char *)"z", 1, bytes, len};
}

struct rbk_key test_numbered(uint64_t number)
{
    static char texts[16][24];
    static unsigned turn;
    char *text = texts[turn++ % 16];
    int len = snprintf(text, sizeof texts[0], "%llu", (unsigned long long)number);

    return test_key(text, (size_t)len);
}

enum test_outcome test_table_apply(struct test_table *table, const struct rbk_key *keys, size_t len,
                                   const struct rbk_limit *limit, const struct rbk_ask *ask)
{
    struct rbk_claim claims[TEST_CLAIMS];
    struct rbk_touch touches[TEST_CLAIMS];
    struct rbk_answer answer;
    bool changes = false;
    size_t failed;

    assert_true(len <= TEST_CLAIMS);
    for (size_t i = 0; i < len; i++) {
        claims[i].limit = *limit;
        rbk_table_place(&table->table, &keys[i], &touches[i].place);
        rbk_table_find(&table->table, &touches[i], &claims[i].state);
    }
    rbk_decide(ask, claims, len, &answer);
    for (size_t i = 0; i < len; i++)
        changes = changes || claims[i].change != RBK_KEEP;
    if (changes && !rbk_table_apply(&table->table, touches, claims,
                                    &(struct rbk_apply){len, ask->now}, &failed))
        return TEST_FULL;
    return answer.accepted ? TEST_ACCEPTED : TEST_REJECTED;
}

enum test_outcome test_table_ask(struct test_table *table, const struct rbk_key *key,
                                 const struct rbk_limit *limit, double now)
{
    return test_table_apply(table, key, 1, limit,
                            &(struct rbk_ask){.operation = RBK_REQUEST, .cost = 1.0, .now = now});
}

struct rbk_state test_table_read(const struct test_table *table, const struct rbk_key *key)
{
    struct rbk_touch touch;
    struct rbk_state state;

    rbk_table_place(&table->table, key, &touch.place);
    rbk_table_find(&table->table, &touch, &state);
    return state;
}

struct rbk_table_counts test_table_counts(const struct test_table *table)
{
    struct rbk_table_counts counts = {0};

    for (unsigned shard = 0; shard < rbk_table_shards(&table->table); shard++)
        rbk_table_count(&table->table, shard, &counts);
    return counts;
}

void test_table_keep(struct test_table *table)
{
    if (table->copy == NULL)
        table->copy = malloc(table->size);
    assert_non_null(table->copy);
    memcpy(table->copy, table->bytes, table->size);
}

bool test_table_same(const struct test_table *table)
{
    return memcmp(table->copy, table->bytes, table->size) == 0;
}

void test_table_audit(const struct test_table *table)
{
    struct test_audit audit;
    const char *fault = test_audit(&table->table, &audit);

    if (fault != NULL)
        fail_msg("%s", fault);
    assert_int_equal(audit.free + audit.links + audit.buckets, rbk_table_capacity(&table->table));
    assert_int_equal(audit.buckets, test_table_counts(table).buckets);
    assert_int_equal(test_table_counts(table).recovered, 0);
}
