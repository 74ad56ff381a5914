/* SPDX-License-Identifier: MIT */
/*
 * Who serves which slot, out of the answers that servers of all versions give, and out of such as
 * no server should: read as a whole or not at all.
 */
#include "redis/connection.h"
#include "redis/reader.h"
#include "test.h"
#include "wire/topology.h"

#include <stdio.h>
#include <stdlib.h>

static const struct rbk_place asked = {"192.0.2.9", 7000};

/* Reads the bytes of one reply as the answer to CLUSTER SLOTS. */
static enum redbucket_status read_bytes(const char *bytes, size_t len,
                                        struct rbk_topology *topology)
{
    struct rbk_reader *reader = rbk_reader_create();
    struct rbk_reply reply;
    bool complete = false;

    assert_non_null(reader);
    assert_int_equal(rbk_reader_feed(reader, bytes, len), REDBUCKET_OK);
    assert_int_equal(rbk_reader_next(reader, &reply, &complete), REDBUCKET_OK);
    if (!complete || !rbk_reader_empty(reader))
        fail_msg("not one reply: %s", bytes);
    enum redbucket_status status = rbk_topology_read(&reply, &asked, topology);

    rbk_reader_destroy(reader);
    return status;
}

#define READ(text, topology) read_bytes(text, sizeof(text) - 1, topology)

/* Nodes as they are written. */
#define NODE_3(len, host, port) "*2\r\n$" #len "\r\n" host "\r\n:" #port "\r\n"
#define NODE_4(len, host, port)                     \
    "*3\r\n$" #len "\r\n" host "\r\n:" #port "\r\n" \
    "$40\r\n0123456789abcdef0123456789abcdef01234567\r\n"
#define NODE_7(len, host, port)                     \
    "*4\r\n$" #len "\r\n" host "\r\n:" #port "\r\n" \
    "$40\r\n0123456789abcdef0123456789abcdef01234567\r\n*0\r\n"
#define NODE_NIL(port)                                    \
    "*4\r\n$-1\r\n:" #port "\r\n"                         \
    "$40\r\n0123456789abcdef0123456789abcdef01234567\r\n" \
    "*2\r\n$2\r\nip\r\n$9\r\n192.0.2.1\r\n"

static void assert_place(const struct rbk_topology *topology, size_t index, const char *host,
                         unsigned port)
{
    assert_true(index < topology->places_len);
    assert_string_equal(topology->places[index].host, host);
    assert_int_equal(topology->places[index].port, port);
}

static void assert_owned(const struct rbk_topology *topology, unsigned first, unsigned last,
                         unsigned owner)
{
    for (unsigned i = first; i <= last; i++)
        assert_int_equal(topology->owner[i], owner);
}

static void look_at(const struct rbk_topology *topology)
{
    assert_int_equal(topology->places_len, 3);
    assert_int_equal(topology->masters_len, 2);
    assert_place(topology, 0, "192.0.2.1", 7001);
    assert_place(topology, 1, "192.0.2.2", 7001);
    assert_place(topology, 2, "192.0.2.1", 7002);
    assert_owned(topology, 0, 99, RBK_NO_OWNER);
    assert_owned(topology, 100, 8191, 0);
    assert_owned(topology, 8192, 8192, 1);
    assert_owned(topology, 8193, 16382, RBK_NO_OWNER);
    assert_owned(topology, 16383, 16383, 0);
}

/* The same cluster, as each version tells it. */
#define CLUSTER(node)                                                                     \
    "*3\r\n*4\r\n:100\r\n:8191\r\n" node(9, "192.0.2.1", 7001)                            \
        node(9, "192.0.2.1", 7002) "*3\r\n:8192\r\n:8192\r\n" node(                       \
            9, "192.0.2.2", 7001) "*4\r\n:16383\r\n:16383\r\n" node(9, "192.0.2.1", 7001) \
            node(9, "192.0.2.1", 7002)

static void answers_of_all_versions_say_the_same(void **state)
{
    struct rbk_topology topology;

    (void)state;
    rbk_topology_init(&topology);
    assert_int_equal(topology.places_len, 0);
    assert_owned(&topology, 0, RBK_SLOTS - 1, RBK_NO_OWNER);
    assert_int_equal(READ(CLUSTER(NODE_3), &topology), REDBUCKET_OK);
    look_at(&topology);
    assert_int_equal(READ(CLUSTER(NODE_4), &topology), REDBUCKET_OK);
    look_at(&topology);
    assert_int_equal(READ(CLUSTER(NODE_7), &topology), REDBUCKET_OK);
    look_at(&topology);
    rbk_topology_fini(&topology);
    assert_null(topology.places);
    assert_int_equal(topology.owner[100], RBK_NO_OWNER);
    rbk_topology_fini(&topology);
}

/* One node for all slots. */
#define ALONE(node) "*1\r\n*3\r\n:0\r\n:16383\r\n" node

static void assert_alone(const char *bytes, size_t len, const char *host, unsigned port)
{
    struct rbk_topology topology;

    rbk_topology_init(&topology);
    if (read_bytes(bytes, len, &topology) != REDBUCKET_OK)
        fail_msg("%s", host);
    assert_int_equal(topology.places_len, 1);
    assert_place(&topology, 0, host, port);
    assert_owned(&topology, 0, RBK_SLOTS - 1, 0);
    rbk_topology_fini(&topology);
}

#define ASSERT_ALONE(node, host, port) \
    assert_alone(ALONE(node), sizeof(ALONE(node)) - 1, host, port)

#define HOST_253                                                        \
    "abcdefghijklmnopqrstuvwxyz.ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789_" \
    "abcdefghijklmnopqrstuvwxyz.ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789_" \
    "abcdefghijklmnopqrstuvwxyz.ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789_" \
    "abcdefghijklmnopqrstuvwxyz.ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123"

static void hosts_are_names_and_addresses(void **state)
{
    (void)state;
    ASSERT_ALONE(NODE_7(1, "a", 1), "a", 1);
    ASSERT_ALONE(NODE_7(14, "host-1.example", 65535), "host-1.example", 65535);
    ASSERT_ALONE(NODE_7(11, "2001:db8::7", 7000), "2001:db8::7", 7000);
    ASSERT_ALONE(NODE_7(12, "fe80::1%eth0", 7000), "fe80::1%eth0", 7000);
    assert_int_equal(strlen(HOST_253), RBK_PLACE_HOST_MAX);
    ASSERT_ALONE(NODE_7(253, HOST_253, 7000), HOST_253, 7000);
}

static void a_host_that_is_not_named_is_the_one_that_was_asked(void **state)
{
    (void)state;
    ASSERT_ALONE(NODE_NIL(7001), "192.0.2.9", 7001);
    ASSERT_ALONE(NODE_3(0, "", 7001), "192.0.2.9", 7001);
    ASSERT_ALONE(NODE_7(1, "?", 7001), "192.0.2.9", 7001);
    ASSERT_ALONE("*2\r\n*-1\r\n:7001\r\n", "192.0.2.9", 7001);
}

/* The place that was asked may be one of those that are replaced. */
static void a_topology_is_replaced_by_what_one_of_its_nodes_says(void **state)
{
    static const char bytes[] = ALONE("*2\r\n$0\r\n\r\n:7009\r\n");
    struct rbk_topology topology;
    struct rbk_reader *reader = rbk_reader_create();
    struct rbk_reply reply;
    bool complete;

    (void)state;
    assert_non_null(reader);
    rbk_topology_init(&topology);
    assert_int_equal(READ(CLUSTER(NODE_7), &topology), REDBUCKET_OK);
    assert_int_equal(rbk_reader_feed(reader, bytes, sizeof bytes - 1), REDBUCKET_OK);
    assert_int_equal(rbk_reader_next(reader, &reply, &complete), REDBUCKET_OK);
    assert_int_equal(rbk_topology_read(&reply, &topology.places[1], &topology), REDBUCKET_OK);
    assert_int_equal(topology.places_len, 1);
    assert_place(&topology, 0, "192.0.2.2", 7009);
    rbk_reader_destroy(reader);
    rbk_topology_fini(&topology);
}

/* A port of 0 is none of the kind that was asked through. */
static void a_node_that_cannot_be_reached_serves_nothing(void **state)
{
    struct rbk_topology topology;

    (void)state;
    rbk_topology_init(&topology);
    assert_int_equal(READ("*2\r\n*4\r\n:0\r\n:9\r\n" NODE_7(1, "a", 0) NODE_7(
                              1, "b", 0) "*4\r\n:10\r\n:19\r\n" NODE_7(1, "c", 5) NODE_7(1, "d", 6),
                          &topology),
                     REDBUCKET_OK);
    assert_int_equal(topology.masters_len, 1);
    assert_int_equal(topology.places_len, 2);
    assert_place(&topology, 0, "c", 5);
    assert_place(&topology, 1, "d", 6);
    assert_owned(&topology, 0, 9, RBK_NO_OWNER);
    assert_owned(&topology, 10, 19, 0);
    assert_int_equal(READ(ALONE(NODE_7(1, "a", 0)), &topology), REDBUCKET_ERROR_PROTOCOL);
    assert_int_equal(topology.places_len, 2);
    rbk_topology_fini(&topology);
}

static void a_place_is_there_once(void **state)
{
    struct rbk_topology topology;

    (void)state;
    rbk_topology_init(&topology);
    /* Hosts alike with other ports, ports alike with other hosts; a master that replicates too. */
    assert_int_equal(READ("*4\r\n"
                          "*4\r\n:0\r\n:1\r\n" NODE_7(1, "a", 5)
                              NODE_7(1, "b", 5) "*4\r\n:2\r\n:3\r\n" NODE_7(1, "a", 6)
                                  NODE_7(1, "c", 5) "*4\r\n:4\r\n:5\r\n" NODE_7(1, "b", 5)
                                      NODE_7(1, "a", 5) "*5\r\n:6\r\n:7\r\n" NODE_7(1, "a", 5)
                                          NODE_7(1, "c", 5) NODE_7(1, "c", 5),
                          &topology),
                     REDBUCKET_OK);
    assert_int_equal(topology.masters_len, 3);
    assert_int_equal(topology.places_len, 4);
    assert_place(&topology, 3, "c", 5);
    assert_owned(&topology, 0, 1, 0);
    assert_owned(&topology, 2, 3, 1);
    assert_owned(&topology, 4, 5, 2);
    assert_owned(&topology, 6, 7, 0);
    rbk_topology_fini(&topology);
}

/* ---- Many ----------------------------------------------------------------------------------- */

/* As many ranges of one slot each, whose masters are `places` in turn. Freed by the caller. */
static char *scattered(unsigned ranges, unsigned places, const char *replica, size_t *len)
{
    char *bytes = malloc((size_t)ranges * 256 + 32);

    assert_non_null(bytes);
    *len = (size_t)sprintf(bytes, "*%u\r\n", ranges);
    for (unsigned i = 0; i < ranges; i++)
        *len += (size_t)sprintf(bytes + *len,
                                "*%u\r\n:%u\r\n:%u\r\n*3\r\n$%u\r\nnode-%04u\r\n:%u\r\n"
                                "$40\r\n0123456789abcdef0123456789abcdef01234567\r\n%s",
                                replica[0] != '\0' ? 4 : 3, i, i, 9, i % places,
                                7000 + i % places % 2, replica);
    return bytes;
}

static void each_slot_may_have_a_range_of_its_own(void **state)
{
    struct rbk_topology topology;
    size_t len;
    char *bytes = scattered(RBK_SLOTS, 128, NODE_7(9, "node-9999", 7001), &len);

    (void)state;
    rbk_topology_init(&topology);
    assert_true(len > 2u << 20);
    assert_int_equal(read_bytes(bytes, len, &topology), REDBUCKET_OK);
    assert_int_equal(topology.masters_len, 128);
    assert_int_equal(topology.places_len, 129);
    for (unsigned i = 0; i < RBK_SLOTS; i++)
        assert_int_equal(topology.owner[i], i % 128);
    assert_place(&topology, 127, "node-0127", 7001);
    assert_place(&topology, 128, "node-9999", 7001);
    rbk_topology_fini(&topology);
    free(bytes);
}

static void places_are_so_many_at_most(void **state)
{
    struct rbk_topology topology;
    size_t len;
    char *bytes = scattered(5000, RBK_PLACES_MAX, "", &len);

    (void)state;
    rbk_topology_init(&topology);
    assert_int_equal(read_bytes(bytes, len, &topology), REDBUCKET_OK);
    assert_int_equal(topology.places_len, RBK_PLACES_MAX);
    for (unsigned i = 0; i < 5000; i++)
        assert_int_equal(topology.owner[i], i % RBK_PLACES_MAX);
    free(bytes);
    bytes = scattered(5000, RBK_PLACES_MAX + 1, "", &len);
    assert_int_equal(read_bytes(bytes, len, &topology), REDBUCKET_ERROR_PROTOCOL);
    assert_int_equal(topology.owner[RBK_PLACES_MAX], 0);
    rbk_topology_fini(&topology);
    free(bytes);
}

/* ---- What no server should say -------------------------------------------------------------- */

static void assert_refused(const char *bytes, size_t len)
{
    struct rbk_topology topology;

    rbk_topology_init(&topology);
    assert_int_equal(READ(CLUSTER(NODE_7), &topology), REDBUCKET_OK);
    if (read_bytes(bytes, len, &topology) != REDBUCKET_ERROR_PROTOCOL)
        fail_msg("%s", bytes);
    look_at(&topology);
    rbk_topology_fini(&topology);
}

#define REFUSED(text)      assert_refused(text, sizeof(text) - 1)
#define REFUSED_NODE(node) REFUSED(ALONE(node))

static void what_is_no_answer_is_refused(void **state)
{
    (void)state;
    REFUSED("*0\r\n");
    REFUSED("*-1\r\n");
    REFUSED("$-1\r\n");
    REFUSED("$0\r\n\r\n");
    REFUSED("+OK\r\n");
    REFUSED(":1\r\n");
    REFUSED("-ERR This instance has cluster support disabled\r\n");
    REFUSED("*1\r\n*0\r\n");
    REFUSED("*1\r\n*-1\r\n");
    REFUSED("*1\r\n:0\r\n");
    REFUSED("*1\r\n$1\r\na\r\n");
    REFUSED("*3\r\n:0\r\n:16383\r\n" NODE_7(1, "a", 5));
    REFUSED("*1\r\n*2\r\n:0\r\n:16383\r\n");
    REFUSED("*1\r\n*3\r\n:0\r\n" NODE_7(1, "a", 5) ":16383\r\n");
    /* And when only the last range is wrong. */
    REFUSED("*2\r\n*3\r\n:0\r\n:9\r\n" NODE_7(1, "a", 5) "*2\r\n:10\r\n:16383\r\n");
}

static void slots_out_of_range_are_refused(void **state)
{
    (void)state;
    REFUSED("*1\r\n*3\r\n:0\r\n:16384\r\n" NODE_7(1, "a", 5));
    REFUSED("*1\r\n*3\r\n:-1\r\n:16383\r\n" NODE_7(1, "a", 5));
    REFUSED("*1\r\n*3\r\n:16384\r\n:16384\r\n" NODE_7(1, "a", 5));
    REFUSED("*1\r\n*3\r\n:9\r\n:8\r\n" NODE_7(1, "a", 5));
    REFUSED("*1\r\n*3\r\n:9\r\n:-9223372036854775808\r\n" NODE_7(1, "a", 5));
    REFUSED("*1\r\n*3\r\n:0\r\n:9223372036854775807\r\n" NODE_7(1, "a", 5));
    REFUSED("*1\r\n*3\r\n:4294967296\r\n:4294967297\r\n" NODE_7(1, "a", 5));
    REFUSED("*1\r\n*3\r\n$1\r\n0\r\n$1\r\n9\r\n" NODE_7(1, "a", 5));
    REFUSED("*1\r\n*3\r\n$-1\r\n:9\r\n" NODE_7(1, "a", 5));
}

static void slots_of_two_masters_are_refused(void **state)
{
    (void)state;
    REFUSED("*2\r\n*3\r\n:0\r\n:9\r\n" NODE_7(1, "a", 5) "*3\r\n:9\r\n:19\r\n" NODE_7(1, "b", 5));
    REFUSED("*2\r\n*3\r\n:9\r\n:9\r\n" NODE_7(1, "a", 5) "*3\r\n:0\r\n:19\r\n" NODE_7(1, "b", 5));
    REFUSED("*2\r\n*3\r\n:0\r\n:9\r\n" NODE_7(1, "a", 5) "*3\r\n:0\r\n:9\r\n" NODE_7(1, "a", 5));
}

static void nodes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    REFUSED_NODE("*1\r\n$1\r\na\r\n");
    REFUSED_NODE("*0\r\n");
    REFUSED_NODE("*-1\r\n");
    REFUSED_NODE("$3\r\na:5\r\n");
    REFUSED_NODE("*2\r\n:1\r\n:5\r\n");
    REFUSED_NODE("*2\r\n-a\r\n:5\r\n");
    REFUSED_NODE("*2\r\n*0\r\n:5\r\n");
    REFUSED_NODE("*2\r\n$1\r\na\r\n$1\r\n5\r\n");
    REFUSED_NODE("*2\r\n$1\r\na\r\n$-1\r\n");
    REFUSED_NODE(NODE_7(1, "a", -1));
    REFUSED_NODE(NODE_7(1, "a", 65536));
    REFUSED_NODE(NODE_7(1, "a", 4294967297));
    /* A replica that can't be spoils the answer as well. */
    REFUSED("*1\r\n*4\r\n:0\r\n:9\r\n" NODE_7(1, "a", 5) ":7\r\n");
    REFUSED("*1\r\n*4\r\n:0\r\n:9\r\n" NODE_7(1, "a", 5) NODE_7(1, "/", 5));
}

static void hosts_that_cannot_be_are_refused(void **state)
{
    (void)state;
    REFUSED_NODE(NODE_7(1, " ", 5));
    REFUSED_NODE(NODE_7(2, "a\n", 5));
    REFUSED_NODE(NODE_7(2, "a\0", 5));
    REFUSED_NODE(NODE_7(3, "a\0b", 5));
    REFUSED_NODE(NODE_7(2, "??", 5));
    REFUSED_NODE(NODE_7(3, "a b", 5));
    REFUSED_NODE(NODE_7(12, "/tmp/a.socke", 5));
    REFUSED_NODE(NODE_7(3, "a@b", 5));
    REFUSED_NODE(NODE_7(13, "[2001:db8::7]", 5));
    REFUSED_NODE(NODE_7(2, "\xc3\xa4", 5));
    REFUSED_NODE(NODE_7(4, "\x1b[0m", 5));
    REFUSED_NODE(NODE_7(254, HOST_253 "a", 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_of_all_versions_say_the_same),
        cmocka_unit_test(hosts_are_names_and_addresses),
        cmocka_unit_test(a_host_that_is_not_named_is_the_one_that_was_asked),
        cmocka_unit_test(a_topology_is_replaced_by_what_one_of_its_nodes_says),
        cmocka_unit_test(a_node_that_cannot_be_reached_serves_nothing),
        cmocka_unit_test(a_place_is_there_once),
        cmocka_unit_test(each_slot_may_have_a_range_of_its_own),
        cmocka_unit_test(places_are_so_many_at_most),
        cmocka_unit_test(what_is_no_answer_is_refused),
        cmocka_unit_test(slots_out_of_range_are_refused),
        cmocka_unit_test(slots_of_two_masters_are_refused),
        cmocka_unit_test(nodes_that_cannot_be_are_refused),
        cmocka_unit_test(hosts_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
