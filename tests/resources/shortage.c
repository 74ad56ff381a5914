/* SPDX-License-Identifier: MIT */
/*
 * The stores, and the servers that they are on: started when first asked for.
 */
#include "shortage.h"

#include "cluster.h"
#include "sentinels.h"
#include "server.h"
#include "stores.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

/* Places that are all tried, and how many are in all, when not every one is. */
#define FIRST 12
#define TRIED 60

static struct test_server *server;
static struct test_server *old_server;
static struct test_cluster *cluster;
static struct test_sentinels sentinels;
static bool have_sentinels;

static bool in_memory(const char *query, char *url, size_t size)
{
    (void)snprintf(url, size, "memory:%s", query);
    return true;
}

static bool in_shm(const char *query, char *url, size_t size)
{
    test_store_url(&test_stores[1], query, url, size);
    return true;
}

static bool start(void)
{
    if (server == NULL)
        server = test_server_start(
            &(struct test_server_options){.tls = test_server_have_tls(TEST_REDIS)});
    assert_non_null(server);
    return true;
}

static bool by_socket(const char *query, char *url, size_t size)
{
    start();
    test_server_url(server, TEST_BY_SOCKET, query, url, size);
    return true;
}

/* By a name, which is looked up. */
static bool by_name(const char *query, char *url, size_t size)
{
    start();
    (void)snprintf(url, size, "redis://localhost:%d?%s", server->port, query);
    return true;
}

static bool by_tls(const char *query, char *url, size_t size)
{
    start();
    if (server->tls_port == 0)
        return false;
    (void)snprintf(url, size, "rediss://127.0.0.1:%d?ca=%s/ca.pem&%s", server->tls_port,
                   server->directory, query);
    return true;
}

static bool on_old(const char *query, char *url, size_t size)
{
    if (!test_server_have(TEST_OLD_REDIS))
        return false;
    if (old_server == NULL)
        old_server = test_server_start(&(struct test_server_options){.kind = TEST_OLD_REDIS});
    assert_non_null(old_server);
    test_server_url(old_server, TEST_BY_SOCKET, query, url, size);
    return true;
}

static bool on_cluster(const char *query, char *url, size_t size)
{
    if (cluster == NULL)
        cluster = test_cluster_start(&(struct test_server_options){.kind = TEST_REDIS});
    assert_non_null(cluster);
    test_cluster_url(cluster, TEST_BY_PORT, query, url, size);
    return true;
}

static bool by_sentinels(const char *query, char *url, size_t size)
{
    if (!have_sentinels)
        have_sentinels = test_sentinels_start(&sentinels, &(struct test_sentinels_options){0});
    assert_true(have_sentinels);
    test_sentinels_url(&sentinels, query, url, size);
    return true;
}

const struct shortage_store shortage_stores[] = {
    {"memory", false, false, REDBUCKET_OK, in_memory, "?size=64k"},
    {"memory that grows", false, false, REDBUCKET_OK, in_memory, "?grow=yes"},
    {"shm", false, false, REDBUCKET_OK, in_shm, "?size=64k"},
    {"server", false, false, REDBUCKET_OK, by_socket, "timeout=10s"},
    {"server, json, by transaction", false, false, REDBUCKET_OK, by_socket,
     "timeout=10s&codec=json&method=transaction"},
    {"server by its name", false, false, REDBUCKET_ERROR_UNAVAILABLE, by_name, "timeout=10s"},
    {"server with a policy", false, true, REDBUCKET_OK, by_socket, "timeout=10s&on_error=local"},
    {"server by TLS", false, false, REDBUCKET_ERROR_TLS, by_tls, "timeout=10s"},
    {"old server", true, false, REDBUCKET_OK, on_old, "timeout=10s"},
    {"cluster", false, false, REDBUCKET_OK, on_cluster, "timeout=10s"},
    {"sentinels", true, false, REDBUCKET_OK, by_sentinels, "timeout=10s"},
};
const size_t shortage_stores_len = sizeof shortage_stores / sizeof shortage_stores[0];

bool shortage_every(void)
{
    return getenv("RESOURCES_EVERY") != NULL;
}

unsigned long shortage_next(unsigned long place, unsigned long places)
{
    static uint64_t random = 1;
    static bool begun;
    unsigned long stride = places / (TRIED - FIRST) + 1;

    if (shortage_every() || place < FIRST || stride < 2)
        return place + 1;
    if (!begun && getenv("RESOURCES_SEED") != NULL)
        random = strtoul(getenv("RESOURCES_SEED"), NULL, 10) | 1;
    begun = true;
    random = random * 6364136223846793005u + 1442695040888963407u;
    return place + 1 + (unsigned long)(random >> 33) % (2 * stride - 1);
}

void shortage_clean(void)
{
    if (server != NULL)
        (void)test_server_do(server, "FLUSHALL", NULL);
    if (old_server != NULL)
        (void)test_server_do(old_server, "FLUSHALL", NULL);
    for (size_t i = 0; cluster != NULL && i < TEST_CLUSTER_MASTERS; i++)
        (void)test_server_do(cluster->nodes[i], "FLUSHALL", NULL);
    for (size_t i = 0; have_sentinels && i < 2; i++)
        (void)test_server_do(sentinels.data[i], "FLUSHALL", NULL);
}

static void cut(struct test_server *one)
{
    (void)test_server_do(one, "CLIENT", "KILL", "TYPE", "normal", NULL);
}

void shortage_cut(void)
{
    if (server != NULL)
        cut(server);
    if (old_server != NULL)
        cut(old_server);
    for (size_t i = 0; cluster != NULL && i < TEST_CLUSTER_MASTERS; i++)
        cut(cluster->nodes[i]);
    for (size_t i = 0; have_sentinels && i < 2; i++)
        cut(sentinels.data[i]);
}

int shortage_tear_down(void **state)
{
    (void)state;
    test_server_stop(server);
    test_server_stop(old_server);
    test_cluster_stop(cluster);
    if (have_sentinels)
        test_sentinels_stop(&sentinels);
    return 0;
}
