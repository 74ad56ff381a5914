/* SPDX-License-Identifier: MIT */
/*
 * Nodes of a real cluster under the URL of a server: keys that are theirs are decided, any other is
 * refused in words that say what to do, and harms nobody else.
 */
#include "host.h"
#include "processes.h"
#include "server.h"
#include "test.h"

#include <stdio.h>

#define LEN(array) (sizeof(array) / sizeof(array)[0])

static const char *const methods[] = {"method=script", "method=transaction"};

static const enum test_server_kind kinds[] = {TEST_REDIS, TEST_VALKEY};

/* CLUSTER ADDSLOTSRANGE came with Redis 7. */
static struct test_server *start_node(enum test_server_kind kind, const char *first,
                                      const char *last)
{
    struct test_server *node;

    if (!test_server_have(kind))
        return NULL;
    node = test_server_start(&(struct test_server_options){
        .kind = kind, .config = "cluster-enabled yes\ncluster-require-full-coverage no\n"});
    assert_non_null(node);
    if (node->version < 70000) {
        test_server_stop(node);
        return NULL;
    }
    assert_true(test_server_do(node, "CLUSTER", "ADDSLOTSRANGE", first, last, NULL));
    return node;
}

static bool says(struct test_server *server, const char *what)
{
    redisReply *reply = test_server_ask(server, "CLUSTER", "INFO", NULL);
    bool said = reply != NULL && reply->str != NULL && strstr(reply->str, what) != NULL;

    freeReplyObject(reply);
    return said;
}

static void await(struct test_server *server, const char *what)
{
    for (double until = test_now() + 30.0 * TEST_PATIENCE; !says(server, what); test_pause(0.02))
        assert_true(test_now() < until);
}

static long long slot_of(struct test_server *server, const char *name)
{
    redisReply *reply = test_server_ask(server, "CLUSTER", "KEYSLOT", name, NULL);

    assert_non_null(reply);
    long long slot = reply->integer;

    freeReplyObject(reply);
    return slot;
}

/* A key whose bucket under limit "a" is in the lower half of the slots, or in the upper: the first
 * of k0, k1 and so on from a number on. Returns its slot. */
static long long choose(struct test_server *server, bool upper, int number, char key[16])
{
    long long slot;
    char name[64];

    do {
        (void)snprintf(key, 16, "k%d", number++);
        (void)snprintf(name, sizeof name, "redbucket:a:%s", key);
        slot = slot_of(server, name);
    } while ((slot >= 8192) != upper);
    return slot;
}

static void open_at(struct test_host *host, struct test_server *server, const char *query)
{
    char url[512];

    test_server_url(server, TEST_BY_SOCKET, query, url, sizeof url);
    test_host_open(host, url);
    test_host_limit(host, "a", 0.001, 4.0);
    test_host_limit(host, "b", 0.001, 4.0);
}

/* How many connections there have been, the test's own among them. */
static long long connections(struct test_server *server)
{
    return test_server_info(server, "total_connections_received");
}

/* What is refused says so, and neither another key nor the connection comes to harm. */
static void refuse(struct test_host *host, struct test_server *server,
                   const struct redbucket_key *keys, size_t keys_len, const char *why)
{
    struct redbucket_response response;
    struct redbucket_error error;
    char ours[16];
    long long before;

    (void)choose(server, false, 0, ours);
    assert_int_equal(test_host_ask(host, ours, NULL), REDBUCKET_OK);
    before = connections(server);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(redbucket_request(host->limiter, keys, keys_len, &response),
                         REDBUCKET_ERROR_UNSUPPORTED);
        test_host_failure(host, &error);
        assert_int_equal(error.status, REDBUCKET_ERROR_UNSUPPORTED);
        if (strncmp(error.message, why, strlen(why)) != 0)
            fail_msg("%s", error.message);
        assert_int_equal(test_host_ask(host, ours, NULL), REDBUCKET_OK);
    }
    assert_int_equal(host->down, 0);
    assert_int_equal(connections(server), before);
}

#define USE_CLUSTER "this server is a node of a cluster: use redis+cluster:// ("

static void test_keys_that_lie_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEN(kinds); i++) {
        const struct redbucket_key keys[] = {{"a", "x"}, {"b", "x"}};
        struct test_server *node = start_node(kinds[i], "0", "16383");

        if (node == NULL)
            continue;
        await(node, "cluster_state:ok");
        for (size_t j = 0; j < LEN(methods); j++) {
            struct test_host host;

            open_at(&host, node, methods[j]);
            refuse(&host, node, keys, 2, USE_CLUSTER "CROSSSLOT ");
            test_host_close(&host);
        }
        test_server_stop(node);
    }
}

/* Half of the slots are nobody's. */
static void test_a_key_of_nobody(void **state)
{
    struct test_server *node = start_node(TEST_REDIS, "0", "8191");
    char ours[16], nobodys[16];

    (void)state;
    assert_non_null(node);
    await(node, "cluster_state:ok");
    (void)choose(node, false, 0, ours);
    (void)choose(node, true, 0, nobodys);
    for (size_t j = 0; j < LEN(methods); j++) {
        struct test_host host;

        open_at(&host, node, methods[j]);
        assert_int_equal(test_host_ask(&host, ours, NULL), REDBUCKET_OK);
        assert_int_equal(test_host_ask(&host, nobodys, NULL), REDBUCKET_ERROR_UNAVAILABLE);
        (void)test_host_recover(&host, ours);
        test_host_close(&host);
    }
    test_server_stop(node);
}

static void meet(struct test_server *a, struct test_server *b)
{
    char port[16], bus[16];

    (void)snprintf(port, sizeof port, "%d", b->port);
    (void)snprintf(bus, sizeof bus, "%d", b->port + 10000);
    assert_true(test_server_do(b, "CLUSTER", "SET-CONFIG-EPOCH", "2", NULL));
    assert_true(test_server_do(a, "CLUSTER", "SET-CONFIG-EPOCH", "1", NULL));
    assert_true(test_server_do(a, "CLUSTER", "MEET", "127.0.0.1", port, bus, NULL));
    await(a, "cluster_slots_ok:16384");
    await(b, "cluster_slots_ok:16384");
    await(a, "cluster_state:ok");
}

/* Has a slot of `from` begin to go over to `to`. */
static void migrate(struct test_server *from, struct test_server *to, long long number)
{
    redisReply *id = test_server_ask(to, "CLUSTER", "MYID", NULL);
    char slot[24];

    assert_true(id != NULL && id->str != NULL);
    (void)snprintf(slot, sizeof slot, "%lld", number);
    assert_true(test_server_do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", id->str, NULL));
    freeReplyObject(id);
}

static void test_keys_of_another_node(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEN(kinds); i++) {
        struct test_server *node = start_node(kinds[i], "0", "8191");
        struct test_server *other = start_node(kinds[i], "8192", "16383");
        char ours[16], theirs[16], leaving[16];

        if (node == NULL)
            continue;
        meet(node, other);
        long long slot = choose(node, false, 0, ours);

        (void)choose(node, true, 0, theirs);
        assert_int_not_equal(choose(node, false, 1000, leaving), slot);
        migrate(node, other, choose(node, false, 1000, leaving));
        for (size_t j = 0; j < LEN(methods); j++) {
            const struct redbucket_key moved = {"a", theirs}, asked = {"a", leaving};
            struct test_host host;

            open_at(&host, node, methods[j]);
            refuse(&host, node, &moved, 1, USE_CLUSTER "MOVED ");
            refuse(&host, node, &asked, 1, USE_CLUSTER "ASK ");
            test_host_close(&host);
        }
        test_server_stop(node);
        test_server_stop(other);
    }
}

static bool warned(struct test_server *server, const char *query, const char *of)
{
    struct redbucket_health health = {.size = sizeof health};
    struct test_host host;
    bool found = false;

    open_at(&host, server, query);
    assert_int_equal(redbucket_store_check(host.store, &health), REDBUCKET_OK);
    for (size_t i = 0; i < health.warnings_len; i++)
        found = found || strcmp(health.warnings[i], of) == 0;
    test_host_close(&host);
    return found;
}

static void test_check_says_what_it_is(void **state)
{
    static const char words[] = "cluster-enabled is yes: this URL reaches the slots of one node "
                                "alone, use redis+cluster://";

    (void)state;
    for (size_t i = 0; i < LEN(kinds); i++) {
        struct test_server *node = start_node(kinds[i], "0", "16383");
        struct test_server *alone;

        if (node == NULL)
            continue;
        alone = test_server_start(&(struct test_server_options){.kind = kinds[i]});
        assert_non_null(alone);
        for (size_t j = 0; j < LEN(methods); j++) {
            assert_true(warned(node, methods[j], words));
            assert_false(warned(alone, methods[j], words));
        }
        test_server_stop(alone);
        test_server_stop(node);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_that_lie_apart),
        cmocka_unit_test(test_a_key_of_nobody),
        cmocka_unit_test(test_keys_of_another_node),
        cmocka_unit_test(test_check_says_what_it_is),
    };

    return cmocka_run_group_tests_name("server_node", tests, NULL, NULL);
}
