/* SPDX-License-Identifier: MIT */
#include "stores.h"

#include "test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct test_store test_stores[] = {
    {"memory", false},
    {"shm", true},
};
const size_t test_stores_len = sizeof test_stores / sizeof test_stores[0];

void test_store_url(const struct test_store *store, const char *query, char *url, size_t size)
{
    static atomic_uint serial;

    if (store->shared)
        (void)snprintf(url, size, "shm:redbucket-test-%ld-%u%s", (long)getpid(),
                       atomic_fetch_add(&serial, 1), query);
    else
        (void)snprintf(url, size, "memory:%s", query);
}

struct redbucket_store *test_store_open(const char *url)
{
    struct redbucket_store *store = NULL;
    struct redbucket_error error = {.message = ""};

    if (redbucket_store_open(url, &store, &error) != REDBUCKET_OK)
        fail_msg("%s: %s", url, error.message);
    return store;
}

void test_store_remove(const char *url)
{
    char path[512];
    size_t len = strcspn(url, "?");

    if (strncmp(url, "shm:", 4) != 0)
        return;
    (void)snprintf(path, sizeof path, "/dev/shm/%.*s", (int)(len - 4), url + 4);
    (void)unlink(path);
}

void test_store_drop(const char *url, struct redbucket_store *store)
{
    redbucket_store_close(store);
    test_store_remove(url);
}

struct redbucket_limiter *test_limiter(struct redbucket_store *store,
                                       const struct redbucket_limit *limit)
{
    struct redbucket_limiter *limiter = NULL;
    struct redbucket_error error = {.message = ""};

    if (redbucket_limiter_create(store, &limiter, &error) != REDBUCKET_OK ||
        redbucket_limiter_add(limiter, "a", limit, &error) != REDBUCKET_OK)
        fail_msg("%s", error.message);
    return limiter;
}

struct redbucket_response test_ask(struct redbucket_limiter *limiter, const char *key, double cost,
                                   double now)
{
    struct redbucket_key named = {.limit = "a", .key = key};
    struct redbucket_request request = {.keys = &named, .keys_len = 1, .cost = cost};

    assert_int_equal(redbucket_decide_at(limiter, &request, 1, now), REDBUCKET_OK);
    return request.response;
}
