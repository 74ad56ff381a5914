/* SPDX-License-Identifier: MIT */
/*
 * Sentinels find each other by what they publish on the master, every two seconds: until they have,
 * there is no majority for a failover.
 */
#include "sentinels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONFIG_SIZE 2048
#define READY_S     60
#define DOWN_MS     1000
#define FAILOVER_MS 3000
#define PAUSE_NS    20000000
#define VERSION_6_2 60200 /* before that, a sentinel gives others the password that it wants */

struct text {
    char bytes[CONFIG_SIZE];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    text->len +=
        (size_t)vsnprintf(text->bytes + text->len, CONFIG_SIZE - text->len, format, arguments);
    va_end(arguments);
}

/* All have the master's certificates, since each trusts but one authority. */
static void add_tls(struct text *text, const struct test_sentinels *all)
{
    const char *folder = all->data[0]->directory;

    add(text, "tls-replication yes\ntls-cert-file %s/server.pem\n", folder);
    add(text, "tls-key-file %s/server.key\ntls-ca-cert-file %s/ca.pem\n", folder, folder);
}

int test_sentinels_port(const struct test_sentinels *all, const struct test_server *server)
{
    return all->tls ? server->tls_port : server->port;
}

static struct test_server *start_data(struct test_sentinels *all, size_t i,
                                      const struct test_sentinels_options *options)
{
    struct text text = {.len = 0};
    const struct test_server_options server = {.kind = options->kind,
                                               .config = text.bytes,
                                               .password = options->password,
                                               .tls = all->tls};

    add(&text, "repl-diskless-sync yes\nrepl-diskless-sync-delay 0\n");
    if (options->password != NULL)
        add(&text, "masterauth %s\n", options->password);
    if (i > 0)
        add(&text, "slaveof 127.0.0.1 %d\n", test_sentinels_port(all, all->data[0]));
    if (i > 0 && all->tls)
        add_tls(&text, all);
    else if (all->tls)
        add(&text, "tls-replication yes\n");
    if (options->config != NULL)
        add(&text, "%s\n", options->config);
    return test_server_start(&server);
}

static struct test_server *start_sentinel(struct test_sentinels *all,
                                          const struct test_sentinels_options *options)
{
    struct text text = {.len = 0};
    const struct test_server_options server = {.kind = options->kind,
                                               .config = text.bytes,
                                               .password = options->sentinel_password,
                                               .tls = all->tls,
                                               .sentinel = true};

    add(&text, "sentinel monitor " TEST_SERVICE " 127.0.0.1 %d 2\n",
        test_sentinels_port(all, all->data[0]));
    add(&text, "sentinel down-after-milliseconds " TEST_SERVICE " %d\n", DOWN_MS);
    add(&text, "sentinel failover-timeout " TEST_SERVICE " %d\n", FAILOVER_MS);
    if (options->password != NULL)
        add(&text, "sentinel auth-pass " TEST_SERVICE " %s\n", options->password);
    if (options->sentinel_password != NULL && all->data[0]->version >= VERSION_6_2)
        add(&text, "sentinel sentinel-pass %s\n", options->sentinel_password);
    if (all->tls)
        add_tls(&text, all);
    return test_server_start(&server);
}

/* A number out of what a sentinel says of the service. */
static int number_of(struct test_server *sentinel, const char *name)
{
    redisReply *reply = test_server_ask(sentinel, "SENTINEL", "MASTER", TEST_SERVICE, NULL);
    int number = -1;

    if (reply != NULL && reply->type == REDIS_REPLY_ARRAY) {
        for (size_t i = 0; i + 1 < reply->elements; i += 2) {
            if (strcmp(reply->element[i]->str, name) == 0)
                number = atoi(reply->element[i + 1]->str);
        }
    }
    freeReplyObject(reply);
    return number;
}

static bool are_ready(struct test_sentinels *all)
{
    if (test_server_info(all->data[0], "connected_slaves") != 1)
        return false;
    for (size_t i = 0; i < TEST_SENTINELS_LEN; i++) {
        if (number_of(all->sentinels[i], "num-slaves") != 1 ||
            number_of(all->sentinels[i], "num-other-sentinels") != TEST_SENTINELS_LEN - 1)
            return false;
    }
    return true;
}

static bool await(struct test_sentinels *all, bool (*ready)(struct test_sentinels *all))
{
    time_t until = time(NULL) + READY_S;

    while (!ready(all)) {
        if (time(NULL) > until)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return true;
}

bool test_sentinels_follow(struct test_sentinels *all)
{
    redisReply *reply = test_server_ask(all->data[1], "ROLE", NULL);
    bool follows = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements > 3 &&
                   strcmp(reply->element[3]->str, "connected") == 0;

    freeReplyObject(reply);
    return follows;
}

static bool start_all(struct test_sentinels *all, const struct test_sentinels_options *options)
{
    for (size_t i = 0; i < 2; i++) {
        all->data[i] = start_data(all, i, options);
        if (all->data[i] == NULL)
            return false;
    }
    /* A sentinel that starts before that hears of the replica only ten seconds later. */
    if (!await(all, test_sentinels_follow))
        return false;
    for (size_t i = 0; i < TEST_SENTINELS_LEN; i++) {
        all->sentinels[i] = start_sentinel(all, options);
        if (all->sentinels[i] == NULL)
            return false;
    }
    return await(all, are_ready);
}

bool test_sentinels_start(struct test_sentinels *all, const struct test_sentinels_options *options)
{
    memset(all, 0, sizeof *all);
    all->tls = options->tls;
    if (start_all(all, options))
        return true;
    fputs("# no sentinels\n", stderr);
    test_sentinels_stop(all);
    return false;
}

void test_sentinels_stop(struct test_sentinels *all)
{
    for (size_t i = 0; i < TEST_SENTINELS_LEN; i++)
        test_server_stop(all->sentinels[i]);
    for (size_t i = 2; i-- > 0;)
        test_server_stop(all->data[i]);
    memset(all, 0, sizeof *all);
}

void test_sentinels_url(const struct test_sentinels *all, const char *query, char *url, size_t size)
{
    const char *password = all->data[0]->password;
    const char *other = all->sentinels[0]->password;
    struct text text = {.len = 0};
    char mark = '?';

    add(&text, "redis%s+sentinel://", all->tls ? "s" : "");
    if (password[0] != '\0')
        add(&text, ":%s@", password);
    for (size_t i = 0; i < TEST_SENTINELS_LEN; i++)
        add(&text, "%s127.0.0.1:%d", i > 0 ? "," : "", test_sentinels_port(all, all->sentinels[i]));
    add(&text, "/" TEST_SERVICE);
    if (other[0] != '\0') {
        add(&text, "%csentinel_password=%s", mark, other);
        mark = '&';
    }
    if (all->tls) {
        add(&text, "%cca=%s/ca.pem", mark, all->data[0]->directory);
        mark = '&';
    }
    if (query[0] != '\0')
        add(&text, "%c%s", mark, query);
    snprintf(url, size, "%s", text.bytes);
}

int test_sentinels_named(struct test_sentinels *all, size_t i)
{
    redisReply *reply = test_server_ask(all->sentinels[i], "SENTINEL", "get-master-addr-by-name",
                                        TEST_SERVICE, NULL);
    int port = 0;

    if (reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
        port = atoi(reply->element[1]->str);
    freeReplyObject(reply);
    return port;
}

int test_sentinels_role(struct test_sentinels *all, size_t i)
{
    redisReply *reply = test_server_ask(all->data[i], "ROLE", NULL);
    int is_master = -1;

    if (reply == NULL) /* who is promoted or demoted closes its connections */
        reply = test_server_ask(all->data[i], "ROLE", NULL);
    if (reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0)
        is_master = strcmp(reply->element[0]->str, "master") == 0;
    freeReplyObject(reply);
    return is_master;
}
