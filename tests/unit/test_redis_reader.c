/* SPDX-License-Identifier: MIT */
/*
 * Bytes of commands, and replies out of bytes: complete or cut anywhere, and whatever a peer may
 * send instead.
 */
#include "redis/connection.h"
#include "redis/outgoing.h"
#include "redis/reader.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static struct rbk_reader *make_reader(void)
{
    struct rbk_reader *reader = rbk_reader_create();

    assert_non_null(reader);
    return reader;
}

/* Feeds the bytes in pieces of `piece` and takes the one reply that they are. */
static struct rbk_reply read_one(struct rbk_reader *reader, const char *bytes, size_t len,
                                 size_t piece)
{
    struct rbk_reply reply = {.type = RBK_REPLY_NIL};
    bool complete = false;

    for (size_t at = 0; at < len; at += piece) {
        size_t some = len - at < piece ? len - at : piece;

        assert_false(complete);
        assert_int_equal(rbk_reader_feed(reader, bytes + at, some), REDBUCKET_OK);
        assert_int_equal(rbk_reader_next(reader, &reply, &complete), REDBUCKET_OK);
    }
    assert_true(complete);
    assert_true(rbk_reader_empty(reader));
    return reply;
}

static void assert_text(const struct rbk_reply *reply, enum rbk_reply_type type, const char *text,
                        size_t len)
{
    assert_int_equal(reply->type, type);
    assert_int_equal(reply->len, len);
    assert_memory_equal(reply->text, text, len + 1); /* with the NUL behind it */
}

static void look_at(const struct rbk_reply *reply)
{
    const struct rbk_reply *inner;

    assert_int_equal(reply->type, RBK_REPLY_ARRAY);
    assert_int_equal(reply->len, 9);
    assert_text(&reply->elements[0], RBK_REPLY_STATUS, "OK", 2);
    assert_text(&reply->elements[1], RBK_REPLY_ERROR, "ERR no", 6);
    assert_int_equal(reply->elements[2].type, RBK_REPLY_INTEGER);
    assert_true(reply->elements[2].integer == INT64_MIN);
    assert_text(&reply->elements[3], RBK_REPLY_STRING, "a\r\n\0b", 5);
    assert_int_equal(reply->elements[4].type, RBK_REPLY_NIL);
    assert_int_equal(reply->elements[5].type, RBK_REPLY_NIL);
    assert_text(&reply->elements[6], RBK_REPLY_STRING, "", 0);
    assert_int_equal(reply->elements[7].type, RBK_REPLY_ARRAY);
    assert_int_equal(reply->elements[7].len, 0);
    inner = &reply->elements[8];
    assert_int_equal(inner->type, RBK_REPLY_ARRAY);
    assert_int_equal(inner->len, 2);
    assert_true(inner->elements[0].integer == 7);
    assert_int_equal(inner->elements[1].elements[0].integer, -1);
}

#define EVERY_KIND                                                        \
    "*9\r\n+OK\r\n-ERR no\r\n:-9223372036854775808\r\n$5\r\na\r\n\0b\r\n" \
    "$-1\r\n*-1\r\n$0\r\n\r\n*0\r\n*2\r\n:7\r\n*1\r\n:-1\r\n"

static void replies_are_read_however_they_are_cut(void **state)
{
    static const char bytes[] = EVERY_KIND;

    (void)state;
    for (size_t piece = 1; piece < sizeof bytes; piece++) {
        struct rbk_reader *reader = make_reader();
        struct rbk_reply reply = read_one(reader, bytes, sizeof bytes - 1, piece);

        look_at(&reply);
        rbk_reader_destroy(reader);
    }
}

static void replies_stay_until_the_reset(void **state)
{
    struct rbk_reader *reader = make_reader();
    struct rbk_reply replies[3];
    bool complete;

    (void)state;
    for (int round = 0; round < 3; round++) {
        rbk_reader_reset(reader);
        assert_int_equal(rbk_reader_feed(reader, EVERY_KIND "+A\r\n" EVERY_KIND,
                                         sizeof(EVERY_KIND "+A\r\n" EVERY_KIND) - 1),
                         REDBUCKET_OK);
        for (size_t i = 0; i < 3; i++) {
            assert_false(rbk_reader_empty(reader));
            assert_int_equal(rbk_reader_next(reader, &replies[i], &complete), REDBUCKET_OK);
            assert_true(complete);
        }
        assert_true(rbk_reader_empty(reader));
        look_at(&replies[0]);
        assert_text(&replies[1], RBK_REPLY_STATUS, "A", 1);
        look_at(&replies[2]);
    }
    rbk_reader_destroy(reader);
}

static void replies_of_the_newer_protocol_are_read(void **state)
{
    static const char bytes[] = "*5\r\n_\r\n#t\r\n,1.5\r\n=7\r\ntxt:abc\r\n"
                                "%1\r\n+k\r\n~1\r\n:1\r\n";
    struct rbk_reader *reader = make_reader();
    struct rbk_reply reply = read_one(reader, bytes, sizeof bytes - 1, 3);

    (void)state;
    assert_int_equal(reply.elements[0].type, RBK_REPLY_NIL);
    assert_int_equal(reply.elements[1].type, RBK_REPLY_INTEGER);
    assert_int_equal(reply.elements[1].integer, 1);
    assert_text(&reply.elements[2], RBK_REPLY_STRING, "1.5", 3);
    assert_text(&reply.elements[3], RBK_REPLY_STRING, "abc", 3);
    assert_int_equal(reply.elements[4].len, 2);
    assert_text(&reply.elements[4].elements[0], RBK_REPLY_STATUS, "k", 1);
    assert_int_equal(reply.elements[4].elements[1].elements[0].integer, 1);
    rbk_reader_destroy(reader);
}

static enum redbucket_status feed_all(struct rbk_reader *reader, const char *bytes, size_t len)
{
    struct rbk_reply reply;
    bool complete = false;
    enum redbucket_status status = rbk_reader_feed(reader, bytes, len);

    if (status == REDBUCKET_OK)
        status = rbk_reader_next(reader, &reply, &complete);
    assert_false(complete && status != REDBUCKET_OK);
    return status;
}

static void assert_no_reply(const char *bytes, size_t len)
{
    struct rbk_reader *reader = make_reader();

    if (feed_all(reader, bytes, len) != REDBUCKET_ERROR_PROTOCOL)
        fail_msg("%s", bytes);
    assert_true(strlen(rbk_reader_failure(reader)) > 0);
    /* And it stays that way. */
    assert_int_not_equal(feed_all(reader, "+OK\r\n", 5), REDBUCKET_OK);
    rbk_reader_destroy(reader);
}

static void what_is_no_reply_is_refused(void **state)
{
    static const char *const texts[] = {"HTTP/1.1 400 Bad Request\r\n",
                                        "\x16\x03\x01",
                                        "\r\n",
                                        "OK\r\n",
                                        " +OK\r\n",
                                        "\xff",
                                        "!3\r\nabc\r\n",
                                        ":\r\n",
                                        ":1a\r\n",
                                        ":--1\r\n",
                                        ": 1\r\n",
                                        ":99999999999999999999\r\n",
                                        "$\r\n",
                                        "$a\r\n",
                                        "$-2\r\n",
                                        "$1e3\r\n",
                                        "$99999999999999999999\r\n",
                                        "*\r\n",
                                        "*x\r\n",
                                        "*-2\r\n",
                                        "*1\r\n?",
                                        "*2\r\n:1\r\n\r\n",
                                        "$3\r\nabcd\r\n",
                                        "$3\r\nabc\n\n",
                                        "$0\r\nab",
                                        "=3\r\nabc\r\n",
                                        "=4\r\nabcd\r\n",
                                        ">1\r\n+message\r\n",
                                        "*1\r\n>1\r\n:1\r\n"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_no_reply(texts[i], strlen(texts[i]));
    assert_no_reply("\0", 1);
}

/* Before the bytes come, and before memory is taken for them. */
static void what_announces_too_much_is_refused(void **state)
{
    static const char *const texts[] = {"$1000000000\r\n",
                                        "$8388609",
                                        "$8388609\r\n",
                                        "=8388609\r\n",
                                        "*327681\r\n",
                                        "*1000000000\r\n",
                                        "*9223372036854775807\r\n",
                                        "%163841\r\n",
                                        "%9223372036854775807\r\n",
                                        "*4294967296\r\n",
                                        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
                                        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*0\r\n",
                                        "*2\r\n:1\r\n$1000000000\r\n"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_no_reply(texts[i], strlen(texts[i]));
}

/* The elements of all arrays of a reply count together, and each reply counts anew. */
static void elements_are_so_many_at_most(void **state)
{
    char *text = calloc(1, (RBK_REPLY_ELEMENTS_MAX + 4) * 4 + 64);
    struct rbk_reader *reader = make_reader();
    struct rbk_reply reply;
    size_t len;

    (void)state;
    assert_non_null(text);
    len = (size_t)sprintf(text, "*2\r\n*%u\r\n", RBK_REPLY_ELEMENTS_MAX - 2);
    for (unsigned i = 0; i < RBK_REPLY_ELEMENTS_MAX - 2; i++)
        len += (size_t)sprintf(text + len, ":%u\r\n", i % 10);
    memcpy(text + len, ":5\r\n", 5);
    for (int round = 0; round < 2; round++) {
        reply = read_one(reader, text, len + 4, len + 4);
        assert_int_equal(reply.elements[0].elements[RBK_REPLY_ELEMENTS_MAX - 3].integer,
                         (RBK_REPLY_ELEMENTS_MAX - 3) % 10);
        assert_int_equal(reply.elements[1].integer, 5);
        rbk_reader_reset(reader);
    }
    memcpy(text + len, "*1\r\n:1\r\n", 9);
    assert_no_reply(text, len + 8);
    rbk_reader_destroy(reader);
    free(text);
}

static void depth_is_so_much_at_most(void **state)
{
    char text[RBK_REPLY_DEPTH_MAX * 4 + 8] = "";
    struct rbk_reader *reader = make_reader();
    struct rbk_reply reply;
    const struct rbk_reply *inner = &reply;

    (void)state;
    for (unsigned i = 0; i < RBK_REPLY_DEPTH_MAX; i++)
        memcpy(text + (size_t)i * 4, "*1\r\n", 5);
    memcpy(text + (size_t)RBK_REPLY_DEPTH_MAX * 4, ":9\r\n", 5);
    reply = read_one(reader, text, strlen(text), 1);
    for (unsigned i = 0; i < RBK_REPLY_DEPTH_MAX; i++)
        inner = inner->elements;
    assert_int_equal(inner->integer, 9);
    rbk_reader_destroy(reader);
}

/* A string of this many bytes as a reply, cut into pieces as a socket would. */
static enum redbucket_status read_long(const char *head, size_t len, struct rbk_reply *reply)
{
    struct rbk_reader *reader = make_reader();
    enum redbucket_status status = rbk_reader_feed(reader, head, strlen(head));
    size_t fed = strlen(head);
    bool complete = false;
    static char piece[16384];

    memset(piece, 'x', sizeof piece);
    while (status == REDBUCKET_OK && fed < len) {
        size_t some = len - fed < sizeof piece ? len - fed : sizeof piece;

        status = rbk_reader_feed(reader, piece, some);
        fed += some;
        if (status == REDBUCKET_OK)
            status = rbk_reader_next(reader, reply, &complete);
        assert_false(complete);
    }
    if (status == REDBUCKET_OK)
        status = rbk_reader_feed(reader, "\r\n", 2);
    if (status == REDBUCKET_OK)
        status = rbk_reader_next(reader, reply, &complete);
    assert_true(complete == (status == REDBUCKET_OK));
    if (complete)
        assert_int_equal(reply->text[reply->len], '\0');
    rbk_reader_destroy(reader);
    return status;
}

static void bytes_are_so_many_at_most(void **state)
{
    struct rbk_reply reply = {.len = 0};
    const size_t max = RBK_REPLY_BYTES_MAX;

    (void)state;
    /* With the head and the line's end it is just as long as it may be, and then one longer. */
    assert_int_equal(read_long("$8388596\r\n", max - 2, &reply), REDBUCKET_OK);
    assert_int_equal(reply.len, 8388596);
    assert_int_equal(read_long("$8388597\r\n", max - 1, &reply), REDBUCKET_ERROR_PROTOCOL);
    assert_int_equal(read_long("+", max - 2, &reply), REDBUCKET_OK);
    assert_int_equal(read_long("+", max - 1, &reply), REDBUCKET_ERROR_PROTOCOL);
    /* A line without an end, and an array that goes on for ever. */
    assert_int_equal(read_long("-", 4 * max, &reply), REDBUCKET_ERROR_PROTOCOL);
    assert_int_equal(read_long("*3\r\n$2000000\r\n", 4 * max, &reply), REDBUCKET_ERROR_PROTOCOL);
}

static struct rbk_argument argument(const void *bytes, size_t len)
{
    return (struct rbk_argument){bytes, len};
}

static void commands_are_bytes_with_lengths(void **state)
{
    static const char expected[] =
        "*3\r\n$4\r\nEVAL\r\n$0\r\n\r\n$9\r\na\0b%s\r\n\xff\xfe\r\n*1\r\n$4\r\nPING\r\n*0\r\n";
    struct rbk_argument first[] = {argument("EVAL", 4), argument(NULL, 0),
                                   argument("a\0b%s\r\n\xff\xfe", 9)};
    struct rbk_argument second[] = {argument("PING", 4)};
    struct rbk_command commands[] = {{first, 3}, {second, 1}, {NULL, 0}};
    struct rbk_outgoing outgoing = {.len = 0};

    (void)state;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(rbk_outgoing_set(&outgoing, commands, 3), REDBUCKET_OK);
        assert_int_equal(outgoing.len, sizeof expected - 1);
        assert_memory_equal(outgoing.bytes, expected, sizeof expected - 1);
    }
    rbk_outgoing_clear(&outgoing);
    assert_int_equal(outgoing.len, 0);
    rbk_outgoing_free(&outgoing);
}

static void a_long_command_leaves_no_long_buffer(void **state)
{
    const size_t len = (size_t)1 << 20;
    char *bytes = calloc(1, len);
    struct rbk_argument long_one = argument(bytes, len);
    struct rbk_command command = {&long_one, 1};
    struct rbk_outgoing outgoing = {.len = 0};

    (void)state;
    assert_non_null(bytes);
    assert_int_equal(rbk_outgoing_set(&outgoing, &command, 1), REDBUCKET_OK);
    assert_int_equal(outgoing.len, len + 4 + 10 + 2);
    rbk_outgoing_clear(&outgoing);
    assert_int_equal(outgoing.size, 0);
    rbk_outgoing_free(&outgoing);
    free(bytes);
}

static void what_no_memory_holds_is_an_error(void **state)
{
    struct rbk_argument huge[] = {argument("x", SIZE_MAX - 8), argument("x", 64)};
    struct rbk_command command = {huge, 2};
    struct rbk_outgoing outgoing = {.len = 0};

    (void)state;
    assert_int_equal(rbk_outgoing_set(&outgoing, &command, 1), REDBUCKET_ERROR_MEMORY);
    assert_int_equal(outgoing.len, 0);
    rbk_outgoing_free(&outgoing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_are_read_however_they_are_cut),
        cmocka_unit_test(replies_stay_until_the_reset),
        cmocka_unit_test(replies_of_the_newer_protocol_are_read),
        cmocka_unit_test(what_is_no_reply_is_refused),
        cmocka_unit_test(what_announces_too_much_is_refused),
        cmocka_unit_test(elements_are_so_many_at_most),
        cmocka_unit_test(depth_is_so_much_at_most),
        cmocka_unit_test(bytes_are_so_many_at_most),
        cmocka_unit_test(commands_are_bytes_with_lengths),
        cmocka_unit_test(a_long_command_leaves_no_long_buffer),
        cmocka_unit_test(what_no_memory_holds_is_an_error),
    };

    return cmocka_run_group_tests_name("redis reader", tests, NULL, NULL);
}
