/* SPDX-License-Identifier: MIT */
/*
 * Walks through buckets on a server, for each kind of server: what is seen of which keys, whatever
 * else is stored there, and what it costs.
 */
#include "host.h"
#include "redbucket/walk.h"
#include "server.h"
#include "test.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define KEYS 1000

static struct test_server *server;

static void open_at(struct test_host *host, const char *query)
{
    char url[512];

    test_server_url(server, TEST_BY_SOCKET, query, url, sizeof url);
    test_host_open(host, url);
    test_host_limit(host, "a", 1e-3, 5.0);
}

/* What a walk has met. */
struct met {
    size_t len;
    size_t unreadable;
    size_t guessed;
    unsigned char times[KEYS];
    struct redbucket_bucket last;
    char last_key[64];
    char last_name[64];
};

static void meet(void *data, const struct redbucket_bucket *bucket)
{
    struct met *met = data;
    char text[16] = "";

    met->len++;
    met->unreadable += bucket->status == REDBUCKET_ERROR_STATE;
    met->guessed += bucket->guessed;
    met->last = *bucket;
    if (bucket->key_len < sizeof met->last_key && bucket->name_len < sizeof met->last_name) {
        (void)snprintf(met->last_key, sizeof met->last_key, "%.*s", (int)bucket->key_len,
                       bucket->key);
        (void)snprintf(met->last_name, sizeof met->last_name, "%.*s", (int)bucket->name_len,
                       bucket->name);
    }
    if (bucket->key_len == 6 && bucket->key[0] == 'k') {
        memcpy(text, bucket->key, 6);
        met->times[strtoul(text + 1, NULL, 10) % KEYS] = 1;
    }
}

static enum redbucket_status walk(struct test_host *host,
                                  const struct redbucket_walk_options *options, struct met *met)
{
    enum redbucket_status status = REDBUCKET_OK;
    struct redbucket_walk *from;
    bool done = false;

    *met = (struct met){.len = 0};
    assert_int_equal(redbucket_walk_create(host->store, options, &from), REDBUCKET_OK);
    while (!done && status == REDBUCKET_OK)
        status = redbucket_walk_step(from, meet, met, &done);
    assert_true(done);
    redbucket_walk_destroy(from);
    return status;
}

static void test_every_bucket_is_met(void **state)
{
    struct test_host host;
    struct met met;
    char key[16];

    (void)state;
    open_at(&host, "timeout=5s");
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof key, "k%05d", i);
        assert_int_equal(test_host_ask(&host, key, NULL), REDBUCKET_OK);
    }
    for (int i = 0; i < 500; i++) {
        (void)snprintf(key, sizeof key, "other:%d", i);
        assert_true(test_server_do(server, "SET", key, "x", NULL));
    }
    assert_int_equal(walk(&host, NULL, &met), REDBUCKET_OK);
    assert_true(met.len >= KEYS);
    assert_int_equal(met.unreadable, 0);
    assert_int_equal(met.guessed, 0);
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(met.times[i], 1);
    test_host_close(&host);
}

static void test_a_bucket_is_told_in_full(void **state)
{
    struct test_host host;
    struct met met;

    (void)state;
    open_at(&host, "timeout=5s");
    assert_int_equal(test_host_ask(&host, "alice", NULL), REDBUCKET_OK);
    assert_int_equal(walk(&host, NULL, &met), REDBUCKET_OK);
    assert_int_equal(met.len, 1);
    assert_string_equal(met.last_name, "redbucket:a:alice");
    assert_string_equal(met.last_key, "alice");
    assert_int_equal(met.last.zone_len, 1);
    assert_int_equal(met.last.status, REDBUCKET_OK);
    assert_true(met.last.state.exists && met.last.state.value == 1.0);
    assert_true(met.last.now >= met.last.state.timestamp &&
                met.last.now < met.last.state.timestamp + 60.0);
    assert_true(met.last.rate == 0.0 && met.last.depth == 0.0);
    test_host_close(&host);
}

static void test_json_is_read_as_well(void **state)
{
    struct test_host host;
    struct met met;

    (void)state;
    open_at(&host, "timeout=5s&codec=json");
    assert_int_equal(test_host_ask(&host, "alice", NULL), REDBUCKET_OK);
    assert_int_equal(walk(&host, NULL, &met), REDBUCKET_OK);
    assert_int_equal(met.len, 1);
    assert_true(met.last.status == REDBUCKET_OK && met.last.state.value == 1.0);
    test_host_close(&host);
}

/* A walk is no reason to fetch a value of any size, nor to stop. */
static void test_what_is_no_state_is_told_as_such(void **state)
{
    struct test_host host;
    struct met met;

    (void)state;
    open_at(&host, "timeout=5s");
    assert_true(test_server_do(server, "SET", "redbucket:a:text", "no state", NULL));
    assert_true(test_server_do(server, "SET", "redbucket:a:empty", "", NULL));
    assert_true(test_server_do(server, "LPUSH", "redbucket:a:list", "x", NULL));
    assert_true(test_server_do(server, "SETRANGE", "redbucket:a:large", "20000000", "x", NULL));
    assert_int_equal(test_host_ask(&host, "good", NULL), REDBUCKET_OK);
    assert_int_equal(walk(&host, NULL, &met), REDBUCKET_OK);
    assert_int_equal(met.len, 5);
    assert_int_equal(met.unreadable, 4);
    test_host_close(&host);
}

/* Whatever else has a name like it is another format's, or nobody's. */
static void test_specials_of_a_format_are_no_wildcards(void **state)
{
    struct test_host host;
    struct met met;

    (void)state;
    open_at(&host, "timeout=5s&key_format=%5Brb%5D*%3F%5C{zone}:{key}");
    assert_int_equal(test_host_ask(&host, "alice", NULL), REDBUCKET_OK);
    assert_true(test_server_do(server, "SET", "r*?\\a:bob", "x", NULL));
    assert_true(test_server_do(server, "SET", "[rb]xy\\a:bob", "x", NULL));
    assert_int_equal(walk(&host, NULL, &met), REDBUCKET_OK);
    assert_int_equal(met.len, 1);
    assert_string_equal(met.last_name, "[rb]*?\\a:alice");
    assert_string_equal(met.last_key, "alice");
    test_host_close(&host);
}

static void test_zones_are_told_as_far_as_they_are_known(void **state)
{
    struct redbucket_walk_options options = {.zone = "ip:2001"};
    struct test_host host;
    struct met met;

    (void)state;
    open_at(&host, "timeout=5s");
    test_host_limit(&host, "ip", 1.0, 5.0);
    const struct redbucket_key key = {"ip", "2001:db8::1", 0, 0};
    struct redbucket_response response;

    assert_int_equal(redbucket_request(host.limiter, &key, 1, &response), REDBUCKET_OK);
    assert_int_equal(walk(&host, NULL, &met), REDBUCKET_OK);
    assert_int_equal(met.guessed, 1);
    assert_string_equal(met.last_key, "2001:db8::1");
    assert_int_equal(walk(&host, &options, &met), REDBUCKET_OK);
    assert_int_equal(met.len, 1);
    assert_int_equal(met.guessed, 0);
    assert_string_equal(met.last_key, "db8::1");
    options = (struct redbucket_walk_options){.limiter = host.limiter};
    assert_int_equal(walk(&host, &options, &met), REDBUCKET_OK);
    assert_int_equal(met.guessed, 0);
    assert_string_equal(met.last_key, "2001:db8::1");
    options.zone = "b";
    assert_int_equal(walk(&host, &options, &met), REDBUCKET_OK);
    assert_int_equal(met.len, 0);
    test_host_close(&host);
}

/* Together they are more than a reply may be, and one by one they aren't. */
static void test_long_names_are_met_in_small_pieces(void **state)
{
    const size_t long_len = 600000;
    char *key = malloc(long_len + 1);
    struct test_host host;
    struct met met;

    (void)state;
    open_at(&host, "timeout=20s");
    memset(key, 'x', long_len);
    key[long_len] = '\0';
    for (int i = 0; i < 20; i++) {
        key[0] = (char)('a' + i);
        assert_int_equal(test_host_ask(&host, key, NULL), REDBUCKET_OK);
    }
    assert_int_equal(walk(&host, NULL, &met), REDBUCKET_OK);
    assert_true(met.len >= 20);
    assert_int_equal(met.last.key_len, long_len);
    free(key);
    test_host_close(&host);
}

/* Nothing is written, and for each hundred keys there is one SCAN. */
static void test_a_walk_is_gentle(void **state)
{
    struct test_host host;
    struct met met;
    char key[32];

    (void)state;
    open_at(&host, "timeout=5s");
    for (int i = 0; i < 1280; i++) {
        (void)snprintf(key, sizeof key, "other:%d", i);
        assert_true(test_server_do(server, "SET", key, "x", NULL));
    }
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_true(test_server_do(server, "CONFIG", "RESETSTAT", NULL));
    assert_int_equal(walk(&host, NULL, &met), REDBUCKET_OK);
    assert_in_range(test_server_calls(server, "scan"), 5, 20);
    assert_int_equal(test_server_calls(server, "getrange"), met.len);
    assert_true(test_server_calls(server, "keys") <= 0);
    assert_true(test_server_calls(server, "evalsha") <= 0);
    test_host_close(&host);
}

static void test_a_silent_server_ends_the_walk_in_time(void **state)
{
    struct test_host host;
    struct met met;

    (void)state;
    open_at(&host, "timeout=200ms");
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_int_equal(kill(server->pid, SIGSTOP), 0);
    const enum redbucket_status status = walk(&host, NULL, &met);

    assert_int_equal(kill(server->pid, SIGCONT), 0);
    assert_int_equal(status, REDBUCKET_ERROR_TIMEOUT);
    test_host_close(&host);
}

static void test_a_user_who_may_not_scan_is_told_so(void **state)
{
    struct redbucket_error error;
    struct test_host host;
    struct met met;
    char url[512];

    (void)state;
    if (server->version < 60000)
        skip();
    assert_true(test_server_do(server, "ACL", "SETUSER", "guest", "on", ">" TEST_SECRET, "~*",
                               "+@all", "-scan", NULL));
    (void)snprintf(url, sizeof url, "redis://guest:" TEST_SECRET "@127.0.0.1:%d", server->port);
    test_host_open(&host, url);
    assert_int_equal(walk(&host, NULL, &met), REDBUCKET_ERROR_AUTH);
    test_host_failure(&host, &error);
    assert_int_equal(error.status, REDBUCKET_ERROR_AUTH);
    assert_non_null(strstr(error.message, "scan"));
    test_host_close(&host);
}

/* Through everything that is put in front of a store. */
static void test_a_policy_passes_walks_on(void **state)
{
    struct test_host host;
    struct met met;

    (void)state;
    open_at(&host, "timeout=5s&on_error=local");
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_int_equal(walk(&host, NULL, &met), REDBUCKET_OK);
    assert_int_equal(met.len, 1);
    test_host_close(&host);
}

static int empty(void **state)
{
    (void)state;
    assert_true(test_server_do(server, "FLUSHALL", NULL));
    return 0;
}

static int run(enum test_server_kind kind)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_every_bucket_is_met, empty),
        cmocka_unit_test_setup(test_a_bucket_is_told_in_full, empty),
        cmocka_unit_test_setup(test_json_is_read_as_well, empty),
        cmocka_unit_test_setup(test_what_is_no_state_is_told_as_such, empty),
        cmocka_unit_test_setup(test_specials_of_a_format_are_no_wildcards, empty),
        cmocka_unit_test_setup(test_zones_are_told_as_far_as_they_are_known, empty),
        cmocka_unit_test_setup(test_long_names_are_met_in_small_pieces, empty),
        cmocka_unit_test_setup(test_a_walk_is_gentle, empty),
        cmocka_unit_test_setup(test_a_silent_server_ends_the_walk_in_time, empty),
        cmocka_unit_test_setup(test_a_user_who_may_not_scan_is_told_so, empty),
        cmocka_unit_test_setup(test_a_policy_passes_walks_on, empty),
    };
    int failed;

    server = test_server_start(&(struct test_server_options){.kind = kind});
    if (server == NULL)
        return 1;
    failed = cmocka_run_group_tests_name(test_server_name(kind), tests, NULL, NULL);
    test_server_stop(server);
    return failed;
}

int main(void)
{
    int failed = 0;

    for (enum test_server_kind kind = TEST_REDIS; kind < TEST_SERVER_KINDS; kind++) {
        if (test_server_have(kind))
            failed += run(kind);
    }
    return failed;
}
