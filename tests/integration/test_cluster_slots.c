/* SPDX-License-Identifier: MIT */
/*
 * Slots and who serves them, held against servers of every kind: names of all sorts of bytes have
 * the slot that CLUSTER KEYSLOT gives, and what CLUSTER SLOTS answers is read, whatever a node may
 * tell of its own address.
 */
#include "server.h"
#include "test.h"
#include "wire/key_format.h"
#include "wire/topology.h"

#include <stdio.h>
#include <stdlib.h>

#define NAMES      400
#define NAME_MAX   10240
#define REPLY_ROOM 64

static struct test_server *servers[TEST_SERVER_KINDS];

/* Somebody in a cluster of his own. */
static struct test_server *server_of(void **state)
{
    enum test_server_kind kind = *(enum test_server_kind *)*state;
    const struct test_server_options options = {
        .kind = kind, .config = "cluster-enabled yes", .node = true};

    if (!test_server_have(kind))
        skip();
    if (servers[kind] == NULL)
        servers[kind] = test_server_start(&options);
    assert_non_null(servers[kind]);
    return servers[kind];
}

/* ---- Names ---------------------------------------------------------------------------------- */

static uint64_t random_state;

static unsigned random_below(unsigned bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((random_state >> 33) % bound);
}

static long long slot_by_server(struct test_server *server, const unsigned char *name, size_t len)
{
    const char *argv[] = {"CLUSTER", "KEYSLOT", (const char *)name};
    const size_t lengths[] = {7, 7, len};
    redisReply *reply = test_server_call(server, 3, argv, lengths);
    long long slot;

    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    slot = reply->integer;
    freeReplyObject(reply);
    return slot;
}

static void assert_slot(struct test_server *server, const unsigned char *name, size_t len)
{
    long long expected = slot_by_server(server, name, len);

    if ((long long)rbk_slot_of(name, len) == expected)
        return;
    for (size_t i = 0; i < len; i++)
        print_error("%02x", name[i]);
    fail_msg(": %u, not %lld", rbk_slot_of(name, len), expected);
}

/* Pieces of what names are made of, braces more often than not. */
static size_t make_name(unsigned char name[NAME_MAX])
{
    static const char *const pieces[] = {"{",  "}",        "{}",           "user", "192.0.2.7",
                                         "\0", "\xc3\xa4", "\xe2\x82\xac", "\r\n", "2001:db8::7"};
    static const size_t lengths[] = {1, 1, 2, 4, 9, 1, 2, 3, 2, 11};
    size_t max = random_below(10) == 0 ? NAME_MAX : random_below(40);
    size_t len = 0;

    while (len < max) {
        unsigned piece = random_below(14);

        if (piece >= 10) {
            name[len++] = (unsigned char)random_below(256);
        } else if (len + lengths[piece] <= max) {
            memcpy(name + len, pieces[piece], lengths[piece]);
            len += lengths[piece];
        }
    }
    return len;
}

static void names_have_the_slot_that_the_server_says(void **state)
{
    struct test_server *server = server_of(state);
    static unsigned char name[NAME_MAX];
    size_t longest = 0;

    random_state = 20240607;
    for (int i = 0; i < NAMES; i++) {
        size_t len = make_name(name);

        longest = len > longest ? len : longest;
        assert_slot(server, name, len);
    }
    assert_int_equal(longest, NAME_MAX);
    for (unsigned i = 0; i < 256; i++) {
        memcpy(name, (unsigned char[]){'{', (unsigned char)i, '}', 'x'}, 4);
        assert_slot(server, name, 4);
        assert_slot(server, name + 1, 1);
    }
}

/* As buckets are called: with a tag around the key, all its limits share a slot. */
static void buckets_of_one_key_meet_under_a_tag(void **state)
{
    struct test_server *server = server_of(state);
    static unsigned char key[NAME_MAX], name[2 * NAME_MAX];
    struct rbk_key_format format;

    assert_null(rbk_key_format_parse("redbucket:{zone}:{{{key}}}", &format));
    random_state = 7;
    for (int i = 0; i < NAMES / 4; i++) {
        size_t key_len = make_name(key) % (NAME_MAX / 2);
        struct rbk_key a = {(const unsigned char *)"user", 4, key, key_len};
        struct rbk_key b = {(const unsigned char *)"ip", 2, key, key_len};
        size_t len = rbk_key_format_len(&format, &a);

        rbk_key_format_write(&format, &a, name);
        assert_slot(server, name, len);
        unsigned slot = rbk_slot_of(name, len);

        rbk_key_format_write(&format, &b, name);
        len = rbk_key_format_len(&format, &b);
        assert_slot(server, name, len);
        /* But for a key that ends the tag where it begins. */
        if (key_len > 0 && key[0] != '}')
            assert_int_equal(rbk_slot_of(name, len), slot);
    }
}

/* ---- Who serves them ------------------------------------------------------------------------ */

/* hiredis' replies as ours, without a copy of their texts. */
static void convert(const redisReply *from, struct rbk_reply *to, struct rbk_reply **room)
{
    *to = (struct rbk_reply){.type = RBK_REPLY_NIL, .text = from->str, .len = from->len};
    if (from->type == REDIS_REPLY_INTEGER) {
        *to = (struct rbk_reply){.type = RBK_REPLY_INTEGER, .integer = from->integer};
    } else if (from->type == REDIS_REPLY_STRING) {
        to->type = RBK_REPLY_STRING;
    } else if (from->type == REDIS_REPLY_ARRAY) {
        struct rbk_reply *elements = *room;

        *room += from->elements;
        for (size_t i = 0; i < from->elements; i++)
            convert(from->element[i], &elements[i], room);
        *to = (struct rbk_reply){
            .type = RBK_REPLY_ARRAY, .len = from->elements, .elements = elements};
    }
}

static enum redbucket_status read_slots(struct test_server *server, struct rbk_topology *topology)
{
    static const struct rbk_place asked = {"192.0.2.9", 1};
    redisReply *reply = test_server_ask(server, "CLUSTER", "SLOTS", NULL);
    struct rbk_reply room[REPLY_ROOM], converted;
    struct rbk_reply *rest = room;

    assert_non_null(reply);
    convert(reply, &converted, &rest);
    assert_true(rest <= room + REPLY_ROOM);
    enum redbucket_status status = rbk_topology_read(&converted, &asked, topology);

    freeReplyObject(reply);
    return status;
}

static void assert_serves(struct test_server *server, const char *host)
{
    struct rbk_topology topology;

    rbk_topology_init(&topology);
    assert_int_equal(read_slots(server, &topology), REDBUCKET_OK);
    assert_int_equal(topology.places_len, 1);
    assert_string_equal(topology.places[0].host, host);
    assert_int_equal(topology.places[0].port, server->port);
    for (unsigned i = 0; i < RBK_SLOTS; i++)
        assert_int_equal(topology.owner[i], i == 0 || i == 77 || i == 78 ? 0 : RBK_NO_OWNER);
    rbk_topology_fini(&topology);
}

/* Answers may be made once and kept until the slots change. */
static void set(struct test_server *server, const char *name, const char *value)
{
    assert_true(test_server_do(server, "CONFIG", "SET", name, value, NULL));
    assert_true(test_server_do(server, "CLUSTER", "DELSLOTS", "77", NULL));
    assert_true(test_server_do(server, "CLUSTER", "ADDSLOTS", "77", NULL));
}

static void nodes_tell_who_serves_what(void **state)
{
    struct test_server *server = server_of(state);
    struct rbk_topology topology;

    rbk_topology_init(&topology);
    assert_int_equal(read_slots(server, &topology), REDBUCKET_ERROR_PROTOCOL); /* nobody yet */
    assert_true(test_server_do(server, "CLUSTER", "ADDSLOTS", "0", "77", "78", NULL));
    /* It doesn't know its address before it has met somebody. */
    assert_serves(server, "192.0.2.9");
    if (server->version < 70000)
        return;
    set(server, "cluster-announce-ip", "2001:db8::7");
    assert_serves(server, "2001:db8::7");
    set(server, "cluster-preferred-endpoint-type", "unknown-endpoint");
    assert_serves(server, "192.0.2.9");
    set(server, "cluster-preferred-endpoint-type", "hostname");
    assert_serves(server, "192.0.2.9"); /* "?" */
    set(server, "cluster-announce-hostname", "host-1.example");
    assert_serves(server, "host-1.example");
}

static void who_is_in_no_cluster_says_so(void **state)
{
    const struct test_server_options options = {.kind = *(enum test_server_kind *)*state};
    struct rbk_topology topology;
    struct test_server *server;

    if (!test_server_have(options.kind))
        skip();
    server = test_server_start(&options);
    assert_non_null(server);
    rbk_topology_init(&topology);
    assert_int_equal(read_slots(server, &topology), REDBUCKET_ERROR_PROTOCOL);
    rbk_topology_fini(&topology);
    test_server_stop(server);
}

static enum test_server_kind kinds[] = {TEST_REDIS, TEST_VALKEY, TEST_OLD_REDIS};

#define AT(kind, name, test)                            \
    {                                                   \
        name ": " #test, test, NULL, NULL, &kinds[kind] \
    }
#define EACH(test)                                                  \
    AT(TEST_REDIS, "redis", test), AT(TEST_VALKEY, "valkey", test), \
        AT(TEST_OLD_REDIS, "old-redis", test)

static int stop_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEST_SERVER_KINDS; i++)
        test_server_stop(servers[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(names_have_the_slot_that_the_server_says),
        EACH(buckets_of_one_key_meet_under_a_tag),
        EACH(nodes_tell_who_serves_what),
        EACH(who_is_in_no_cluster_says_so),
    };

    return cmocka_run_group_tests_name("cluster_slots", tests, NULL, stop_all);
}
