/* SPDX-License-Identifier: MIT */
/*
 * Real servers that can't or won't: full memory, replicas, users that may not, busy scripts, too
 * many clients; and managed ones, which refuse much and serve all the same.
 */
#include "host.h"
#include "processes.h"
#include "server.h"
#include "test.h"

#include <stdio.h>

#define LEN(array) (sizeof(array) / sizeof(array)[0])

static struct test_server *server;

static void open_at(struct test_host *host, const char *query)
{
    char url[512];

    test_server_url(server, TEST_BY_SOCKET, query, url, sizeof url);
    test_host_open(host, url);
    test_host_limit(host, "a", 0.001, 4.0);
}

static void assert_done(bool done)
{
    assert_true(done);
}

static void set_config(const char *name, const char *value)
{
    assert_done(test_server_do(server, "CONFIG", "SET", name, value, NULL));
}

/* What the store says of its last failure has these words in it. */
static void assert_reason(struct test_host *host, enum redbucket_status status, const char *words)
{
    struct redbucket_error error;

    test_host_failure(host, &error);
    assert_int_equal(error.status, status);
    if (strstr(error.message, words) == NULL)
        fail_msg("no \"%s\" in \"%s\"", words, error.message);
}

/* A server of its own for one case; the shared one is put back by release. */
static struct test_server *borrow(const struct test_server_options *options)
{
    struct test_server *shared = server;

    server = test_server_start(options);
    assert_non_null(server);
    return shared;
}

static void release(struct test_server *shared)
{
    test_server_stop(server);
    server = shared;
}

/* ---- Full memory ---------------------------------------------------------------------------- */

static const struct test_server_options kinds[] = {
    {.kind = TEST_REDIS}, {.kind = TEST_VALKEY}, {.kind = TEST_OLD_REDIS}};

/* A request for two buckets, of which one is new. */
static enum redbucket_status ask_two(struct test_host *host)
{
    const struct redbucket_key keys[] = {{"a", "old"}, {"b", "new"}};
    struct redbucket_response response;

    return redbucket_request(host->limiter, keys, 2, &response);
}

/* Nothing can be taken then, and nothing is half taken; what writes nothing goes on. */
static void fill(const char *query)
{
    struct redbucket_key key = {"b", "new"};
    struct redbucket_response response;
    struct redbucket_state stored;
    struct test_host host;

    open_at(&host, query);
    test_host_limit(&host, "b", 0.001, 4.0);
    assert_int_equal(test_host_ask(&host, "old", NULL), REDBUCKET_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(test_host_ask(&host, "full", NULL), REDBUCKET_OK);
    set_config("maxmemory", "1");
    assert_int_equal(test_host_ask(&host, "full", &response), REDBUCKET_OK);
    assert_false(response.accepted);
    assert_int_equal(test_host_ask(&host, "old", NULL), REDBUCKET_ERROR_UNAVAILABLE);
    assert_reason(&host, REDBUCKET_ERROR_UNAVAILABLE, "OOM");
    test_pause(0.1);
    assert_int_equal(ask_two(&host), REDBUCKET_ERROR_UNAVAILABLE);
    set_config("maxmemory", "0");
    (void)test_host_recover(&host, "other");
    assert_same(test_host_value(&host, "old"), 1.0);
    assert_int_equal(redbucket_read(host.limiter, &key, &stored), REDBUCKET_OK);
    assert_false(stored.exists);
    assert_int_equal(ask_two(&host), REDBUCKET_OK);
    test_host_close(&host);
}

static void test_full_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEN(kinds); i++) {
        struct test_server *shared;

        if (!test_server_have(kinds[i].kind))
            continue;
        shared = borrow(&kinds[i]);
        set_config("maxmemory-policy", "noeviction");
        fill("method=transaction");
        assert_done(test_server_do(server, "FLUSHALL", NULL));
        if (kinds[i].kind != TEST_OLD_REDIS)
            fill("method=script");
        release(shared);
    }
}

/* ---- Replicas ------------------------------------------------------------------------------- */

static void test_a_replica_is_refused_at_connect(void **state)
{
    struct redbucket_response response;
    struct test_host master;
    struct test_host host;
    struct test_server *shared = server;
    char config[64];

    (void)state;
    snprintf(config, sizeof config, "slaveof 127.0.0.1 %d", server->port);
    open_at(&master, "timeout=5s");
    for (int i = 0; i < 5; i++)
        assert_int_equal(test_host_ask(&master, "k", NULL), REDBUCKET_OK);
    (void)borrow(&(struct test_server_options){.config = config});
    open_at(&host, "timeout=5s");
    /* Its rejections would be right today, and stay so when nobody writes to it any more. */
    assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_ERROR_READONLY);
    assert_reason(&host, REDBUCKET_ERROR_READONLY, "replica");
    assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_ERROR_UNAVAILABLE);
    assert_done(test_server_do(server, "SLAVEOF", "NO", "ONE", NULL));
    assert_int_equal(test_host_recover(&host, "k"), REDBUCKET_ERROR_UNAVAILABLE);
    test_host_close(&host);
    test_host_close(&master);
    release(shared);
}

static void demote(const char *query, bool stale)
{
    struct test_host host;

    open_at(&host, query);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    set_config("slave-serve-stale-data", stale ? "yes" : "no");
    assert_done(test_server_do(server, "SLAVEOF", "127.0.0.1", "1", NULL));
    assert_int_equal(test_host_ask(&host, "k", NULL),
                     stale ? REDBUCKET_ERROR_READONLY : REDBUCKET_ERROR_UNAVAILABLE);
    /* Not on the same connection: behind the name there may be another server now. */
    test_pause(0.1);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_READONLY);
    assert_done(test_server_do(server, "SLAVEOF", "NO", "ONE", NULL));
    (void)test_host_recover(&host, "k");
    assert_true(test_host_value(&host, "k") < 2.1);
    assert_int_equal(host.down, 1);
    assert_int_equal(host.back, 1);
    test_host_close(&host);
}

static void test_a_master_that_is_demoted(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEN(kinds); i++) {
        struct test_server *shared;

        if (!test_server_have(kinds[i].kind))
            continue;
        shared = borrow(&kinds[i]);
        for (int stale = 0; stale < 2; stale++) {
            demote("method=transaction", stale != 0);
            assert_done(test_server_do(server, "FLUSHALL", NULL));
            if (kinds[i].kind != TEST_OLD_REDIS)
                demote("method=script", stale != 0);
            assert_done(test_server_do(server, "FLUSHALL", NULL));
        }
        release(shared);
    }
}

/* ---- Users and databases -------------------------------------------------------------------- */

/* What a user with these permissions (all commands, all keys before them) gets. */
struct permission {
    const char *words[4];
    const char *method;
    enum redbucket_status status;
};

static void make_user(const struct permission *permission)
{
    static const char password[] = ">" TEST_SECRET;
    const char *argv[16] = {"ACL",    "SETUSER", "tester", "reset", "on",
                            password, "~*",      "&*",     "+@all"};
    int argc = 9;
    redisReply *reply;

    for (size_t i = 0; i < LEN(permission->words) && permission->words[i] != NULL; i++)
        argv[argc++] = permission->words[i];
    reply = test_server_call(server, argc, argv, NULL);
    assert_non_null(reply);
    assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

static void open_as(struct test_host *host, const char *user, const char *query)
{
    char url[512];

    snprintf(url, sizeof url, "unix://%s@%s?%s", user, server->socket, query);
    test_host_open(host, url);
    test_host_limit(host, "a", 0.001, 4.0);
}

static long long stored(void)
{
    redisReply *reply = test_server_ask(server, "DBSIZE", NULL);

    assert_non_null(reply);
    long long size = reply->integer;

    freeReplyObject(reply);
    return size;
}

static void test_what_a_user_may(void **state)
{
    static const struct permission permissions[] = {
        {{NULL}, "method=script", REDBUCKET_OK},
        {{NULL}, "method=transaction", REDBUCKET_OK},
        {{"-info", "-role", "-script"}, "method=auto", REDBUCKET_OK},
        {{"-@all", "+evalsha", "+eval", "+mget"}, "method=auto", REDBUCKET_ERROR_UNSUPPORTED},
        {{"-@admin", "-@dangerous", "+@scripting"}, "method=auto", REDBUCKET_OK},
        {{"-evalsha", "-eval"}, "method=script", REDBUCKET_ERROR_AUTH},
        {{"-evalsha"}, "method=script", REDBUCKET_ERROR_AUTH},
        {{"-time"}, "method=script", REDBUCKET_ERROR_UNSUPPORTED},
        {{"-setex"}, "method=script", REDBUCKET_ERROR_UNSUPPORTED},
        {{"-time"}, "method=transaction", REDBUCKET_ERROR_AUTH},
        {{"-watch"}, "method=transaction", REDBUCKET_ERROR_AUTH},
        {{"-multi"}, "method=transaction", REDBUCKET_ERROR_AUTH},
        {{"-exec"}, "method=transaction", REDBUCKET_ERROR_AUTH},
        {{"resetkeys", "~other:*"}, "method=script", REDBUCKET_ERROR_AUTH},
        {{"resetkeys", "~other:*"}, "method=transaction", REDBUCKET_ERROR_AUTH},
        {{"resetkeys", "~redbucket:*"}, "method=script", REDBUCKET_OK},
        {{"resetkeys", "~redbucket:*"}, "method=transaction", REDBUCKET_OK},
        {{"resetkeys", "%R~*"}, "method=transaction", REDBUCKET_ERROR_AUTH},
    };

    (void)state;
    for (size_t i = 0; i < LEN(permissions); i++) {
        struct test_host host;

        assert_done(test_server_do(server, "FLUSHALL", NULL));
        make_user(&permissions[i]);
        open_as(&host, "tester:" TEST_SECRET, permissions[i].method);
        for (int j = 0; j < 3; j++) {
            enum redbucket_status status = test_host_ask(&host, "k", NULL);

            if (status != permissions[i].status)
                fail_msg("permission %zu: %s", i, redbucket_status_name(status));
        }
        /* What is refused has written nothing. */
        if (permissions[i].status != REDBUCKET_OK)
            assert_int_equal(stored(), 0);
        /* The server works: others may well be served. */
        assert_int_equal(host.down, 0);
        make_user(&permissions[0]);
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
        test_host_close(&host);
    }
}

static void test_who_is_not_let_in(void **state)
{
    static const struct {
        const char *user;
        const char *query;
        enum redbucket_status status;
        const char *words;
    } refusals[] = {
        {"tester:" TEST_SECRET "-wrong", "timeout=5s", REDBUCKET_ERROR_AUTH, "WRONGPASS"},
        {"nobody:" TEST_SECRET, "timeout=5s", REDBUCKET_ERROR_AUTH, "WRONGPASS"},
        {":" TEST_SECRET, "timeout=5s", REDBUCKET_ERROR_AUTH, "AUTH"},
        {"tester:" TEST_SECRET, "db=9999", REDBUCKET_ERROR_SERVER, "DB index"},
        {"tester:" TEST_SECRET, "db=2147483647", REDBUCKET_ERROR_SERVER, "SELECT"},
    };
    static const struct permission all = {.words = {NULL}};

    (void)state;
    make_user(&all);
    for (size_t i = 0; i < LEN(refusals); i++) {
        struct test_host host;

        open_as(&host, refusals[i].user, refusals[i].query);
        assert_int_equal(test_host_ask(&host, "k", NULL), refusals[i].status);
        assert_reason(&host, refusals[i].status, refusals[i].words);
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_UNAVAILABLE);
        assert_int_equal(host.down, 1);
        test_host_close(&host);
    }
}

static void test_a_missing_password(void **state)
{
    struct test_server *shared = borrow(&(struct test_server_options){.password = TEST_SECRET});
    struct test_host host;
    char url[512];

    (void)state;
    snprintf(url, sizeof url, "unix://%s?timeout=5s", server->socket);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 0.001, 4.0);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_AUTH);
    assert_reason(&host, REDBUCKET_ERROR_AUTH, "NOAUTH");
    /* Once the server has changed its mind, we notice by ourselves. */
    set_config("requirepass", "");
    (void)test_host_recover(&host, "k");
    /* A connection that was let in stays in. */
    set_config("requirepass", TEST_SECRET);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    test_host_close(&host);
    release(shared);
}

/* ---- Commands that there aren't ------------------------------------------------------------- */

static void test_a_server_that_hides_commands(void **state)
{
    static const struct {
        const char *config;
        const char *query;
        enum redbucket_status status;
    } servers[] = {
        {"rename-command INFO \"\"\nrename-command ROLE \"\"\nrename-command SCRIPT \"\"\n",
         "method=auto", REDBUCKET_OK},
        {"rename-command WATCH \"\"\n", "method=transaction", REDBUCKET_ERROR_UNSUPPORTED},
        {"rename-command EVALSHA \"\"\n", "method=script", REDBUCKET_ERROR_UNSUPPORTED},
        {"rename-command SETEX \"\"\n", "method=script", REDBUCKET_ERROR_UNSUPPORTED},
    };

    (void)state;
    for (size_t i = 0; i < LEN(servers); i++) {
        struct test_server_options options = {.config = servers[i].config};
        struct test_server *shared = borrow(&options);
        struct test_host host;

        open_at(&host, servers[i].query);
        for (int j = 0; j < 3; j++)
            assert_int_equal(test_host_ask(&host, "k", NULL), servers[i].status);
        assert_int_equal(host.down, 0);
        test_host_close(&host);
        release(shared);
    }
}

/* What an old server can't do is said so, where it was asked for, and isn't by itself. */
static void test_an_old_server(void **state)
{
    static const struct test_server_options options = {.kind = TEST_OLD_REDIS};
    struct test_server *shared;
    struct test_host host;

    (void)state;
    if (!test_server_have(TEST_OLD_REDIS))
        skip();
    shared = borrow(&options);
    open_at(&host, "method=script");
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_UNSUPPORTED);
    test_host_close(&host);
    open_at(&host, "method=auto");
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_same(test_host_value(&host, "k"), 1.0);
    test_host_close(&host);
    release(shared);
}

/* ---- Busy, crowded -------------------------------------------------------------------------- */

/* Neither who is connected already nor who connects now takes it for anything else. */
static void test_a_busy_script(void **state)
{
    const char *loop[] = {"EVAL", "while true do end", "0"};
    struct test_client *client = test_client_open(server->socket);
    struct test_host connected;
    struct test_host host;
    redisReply *reply;

    (void)state;
    assert_non_null(client);
    set_config("lua-time-limit", "50");
    open_at(&connected, "timeout=20s");
    assert_int_equal(test_host_ask(&connected, "k", NULL), REDBUCKET_OK);
    assert_done(test_client_send(client, 3, loop, NULL));
    while (test_server_do(server, "PING", NULL))
        continue;
    assert_int_equal(test_host_ask(&connected, "k", NULL), REDBUCKET_ERROR_UNAVAILABLE);
    assert_reason(&connected, REDBUCKET_ERROR_UNAVAILABLE, "BUSY");
    open_at(&host, "timeout=20s");
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_UNAVAILABLE);
    assert_reason(&host, REDBUCKET_ERROR_UNAVAILABLE, "BUSY");
    assert_done(test_server_do(server, "SCRIPT", "KILL", NULL));
    reply = test_client_receive(client);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    (void)test_host_recover(&connected, "k");
    (void)test_host_recover(&host, "k");
    assert_true(test_host_value(&host, "k") < 3.1);
    test_host_close(&host);
    test_host_close(&connected);
    test_client_close(client);
}

static void test_too_many_clients(void **state)
{
    struct test_server *shared = borrow(&(struct test_server_options){.config = "maxclients 6"});
    struct test_client *clients[6];
    struct test_host host;

    (void)state;
    for (size_t i = 0; i < LEN(clients); i++)
        clients[i] = test_client_open(server->socket);
    open_at(&host, "timeout=5s");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_UNAVAILABLE);
        assert_reason(&host, REDBUCKET_ERROR_UNAVAILABLE, "max number of clients");
    }
    for (size_t i = 0; i < LEN(clients); i++)
        test_client_close(clients[i]);
    (void)test_host_recover(&host, "k");
    assert_int_equal(host.down, 1);
    assert_int_equal(host.back, 1);
    test_host_close(&host);
    release(shared);
}

static int start(void **state)
{
    (void)state;
    server = test_server_start(&(struct test_server_options){.kind = TEST_REDIS});
    return server == NULL ? -1 : 0;
}

static int empty(void **state)
{
    (void)state;
    return test_server_do(server, "FLUSHALL", NULL) ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    test_server_stop(server);
    return 0;
}

#define CASE(name) cmocka_unit_test_setup(name, empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_full_memory),
        CASE(test_a_replica_is_refused_at_connect),
        CASE(test_a_master_that_is_demoted),
        CASE(test_what_a_user_may),
        CASE(test_who_is_not_let_in),
        CASE(test_a_missing_password),
        CASE(test_a_server_that_hides_commands),
        CASE(test_an_old_server),
        CASE(test_a_busy_script),
        CASE(test_too_many_clients),
    };

    return cmocka_run_group_tests_name("server_refusals", tests, start, stop);
}
