/* SPDX-License-Identifier: MIT */
#include "inside.h"

#include "embedded.h"
#include "limiter.h"
#include "table/slots.h"
#include "test.h"

#include <stdlib.h>

static struct rbk_table *table_of(struct redbucket_store *store)
{
    return ((struct rbk_embedded *)store)->table;
}

static size_t buckets_size(const struct rbk_table *table)
{
    return (size_t)rbk_table_shards(table) * table->shard_pages * sizeof(struct rbk_page);
}

static struct rbk_bucket *find(struct redbucket_limiter *limiter, const char *limit,
                               const char *key)
{
    const struct rbk_table *table = table_of(limiter->store);
    const struct rbk_named *of = rbk_limiter_find(limiter, limit, strlen(limit));
    struct rbk_key named = {of->zone, of->zone_len, (const unsigned char *)key, strlen(key)};
    struct rbk_touch touch;
    struct rbk_state state;

    rbk_table_place(table, &named, &touch.place);
    rbk_table_find(table, &touch, &state);
    return state.exists ? rbk_bucket_of(table, touch.slot) : NULL;
}

void test_put_state(struct redbucket_limiter *limiter, const char *limit, const char *key,
                    double timestamp, double value)
{
    struct redbucket_key named = {.limit = limit, .key = key};
    struct redbucket_request request = {
        .operation = REDBUCKET_CHARGE, .keys = &named, .keys_len = 1, .cost = 1};
    struct rbk_bucket *bucket = find(limiter, limit, key);

    if (bucket == NULL) {
        assert_int_equal(redbucket_decide_at(limiter, &request, 1, 0), REDBUCKET_OK);
        bucket = find(limiter, limit, key);
    }
    assert_non_null(bucket);
    bucket->timestamp = timestamp;
    bucket->value = value;
}

void *test_copy_buckets(struct redbucket_store *store)
{
    size_t size = buckets_size(table_of(store));
    void *copy = malloc(size);

    assert_non_null(copy);
    memcpy(copy, table_of(store)->pages, size);
    return copy;
}

bool test_same_buckets(struct redbucket_store *store, const void *copy)
{
    return memcmp(copy, table_of(store)->pages, buckets_size(table_of(store))) == 0;
}

void test_tear(struct redbucket_store *store)
{
    struct rbk_table *table = table_of(store);

    for (unsigned shard = 0; shard < rbk_table_shards(table); shard++) {
        table->shards[shard].journal[0] =
            (struct rbk_journal_entry){.slot = RBK_NO_SLOT, .kind = RBK_JOURNAL_STATE};
        table->shards[shard].journal_len = 1;
    }
}
