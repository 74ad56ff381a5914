/* SPDX-License-Identifier: MIT */
/*
 * Walks through servers that are none: what nonsense, refusals and a want of memory come to, and
 * that a walk ends.
 */
#include "fault_peer.h"
#include "host.h"
#include "redbucket/walk.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define LEN(array) (sizeof(array) / sizeof(array)[0])

#define ONE_NAME "*2\r\n$1\r\n0\r\n*1\r\n$13\r\nredbucket:a:k\r\n"
#define STATE    "$16\r\n\0\0\0\0\x65\xcd\xcd\x41\0\0\0\0\0\0\xf0\x3f\r\n"

static const struct test_rule good[] = {
    {.command = "AUTH", .answer = "+OK\r\n"},
    {.command = "INFO", .answer = "$22\r\nredis_version:7.0.15\r\n\r\n"},
    {.command = "ROLE", .answer = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"},
    {.command = "SCAN", .answer = ONE_NAME},
    {.command = "GETRANGE", .answer = STATE, .answer_len = 23},
    {.command = "TIME", .answer = "*2\r\n$10\r\n1000000007\r\n$6\r\n500000\r\n"},
    {.command = "TYPE", .answer = "+string\r\n"},
};

/* The N-th call fails, 0 for none; of this thread, for the peer is another. */
static _Thread_local struct {
    unsigned long made;
    unsigned long fail;
} memory;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
    return ++memory.made == memory.fail ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return ++memory.made == memory.fail ? NULL : __real_calloc(count, size);
}

/* A peer with a rule before those of a good server. */
static struct test_peer *begin(struct test_host *host, const struct test_rule *rule)
{
    struct test_rule all[1 + LEN(good)];
    struct test_peer *peer;
    char url[256];
    size_t len = 0;

    if (rule != NULL)
        all[len++] = *rule;
    memcpy(all + len, good, sizeof good);
    peer = test_peer_start(false, all, len + LEN(good));
    assert_non_null(peer);
    test_peer_url(peer, "timeout=5s&connections=2", url, sizeof url);
    test_host_open(host, url);
    return peer;
}

static void end(struct test_host *host, struct test_peer *peer)
{
    test_host_close(host);
    test_peer_stop(peer);
}

struct met {
    size_t len;
    struct redbucket_bucket last;
};

static void meet(void *data, const struct redbucket_bucket *bucket)
{
    struct met *met = data;

    met->len++;
    met->last = *bucket;
}

static enum redbucket_status walk(struct test_host *host, struct met *met)
{
    enum redbucket_status status = REDBUCKET_OK;
    struct redbucket_walk *from;
    bool done = false;

    *met = (struct met){.len = 0};
    assert_int_equal(redbucket_walk_create(host->store, NULL, &from), REDBUCKET_OK);
    while (!done && status == REDBUCKET_OK)
        status = redbucket_walk_step(from, meet, met, &done);
    assert_true(done);
    redbucket_walk_destroy(from);
    return status;
}

static void test_the_good_peer_is_good(void **state)
{
    struct test_host host;
    struct test_peer *peer = begin(&host, NULL);
    struct met met;

    (void)state;
    assert_int_equal(walk(&host, &met), REDBUCKET_OK);
    assert_int_equal(met.len, 1);
    assert_same(met.last.state.timestamp, 1e9);
    assert_same(met.last.state.value, 1.0);
    assert_same(met.last.now, 1000000007.5);
    end(&host, peer);
}

static void test_nonsense_ends_the_walk(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "SCAN", .answer = "+OK\r\n"},
        {.command = "SCAN", .answer = ":0\r\n"},
        {.command = "SCAN", .answer = "*-1\r\n"},
        {.command = "SCAN", .answer = "*0\r\n"},
        {.command = "SCAN", .answer = "*1\r\n$1\r\n0\r\n"},
        {.command = "SCAN", .answer = "*2\r\n$1\r\nx\r\n*0\r\n"},
        {.command = "SCAN", .answer = "*2\r\n$0\r\n\r\n*0\r\n"},
        {.command = "SCAN", .answer = "*2\r\n$2\r\n-1\r\n*0\r\n"},
        {.command = "SCAN", .answer = "*2\r\n$20\r\n18446744073709551616\r\n*0\r\n"},
        {.command = "SCAN", .answer = "*2\r\n$21\r\n000000000000000000000\r\n*0\r\n"},
        {.command = "SCAN", .answer = "*2\r\n:0\r\n*0\r\n"},
        {.command = "SCAN", .answer = "*2\r\n$1\r\n0\r\n:1\r\n"},
        {.command = "SCAN", .answer = "*2\r\n$1\r\n0\r\n*1\r\n:5\r\n"},
        {.command = "SCAN", .answer = "*2\r\n$1\r\n0\r\n*1\r\n$-1\r\n"},
        {.command = "SCAN", .answer = "*2\r\n$1\r\n0\r\n*1\r\n*0\r\n"},
        {.command = "SCAN", .answer = "*3\r\n$1\r\n0\r\n*0\r\n*0\r\n"},
        {.command = "GETRANGE", .answer = ":5\r\n"},
        {.command = "GETRANGE", .answer = "*0\r\n"},
        {.command = "GETRANGE", .answer = "$-1\r\n"},
        {.command = "TIME", .answer = "*1\r\n$1\r\n1\r\n"},
        {.command = "TIME", .answer = "*2\r\n$1\r\n1\r\n:5\r\n"},
        {.command = "TIME", .answer = "*2\r\n$3\r\nnan\r\n$1\r\n0\r\n"},
        {.command = "TIME", .answer = "$1\r\n1\r\n"},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rules); i++) {
        struct redbucket_error error;
        struct test_host host;
        struct test_peer *peer = begin(&host, &rules[i]);
        struct met met;

        if (walk(&host, &met) != REDBUCKET_ERROR_PROTOCOL)
            fail_msg("rule %zu", i);
        assert_int_equal(met.len, 0);
        test_host_failure(&host, &error);
        assert_int_equal(error.status, REDBUCKET_ERROR_PROTOCOL);
        assert_true(test_peer_commands(peer, "SCAN") <= 4);
        end(&host, peer);
    }
}

static void test_refusals_have_their_status(void **state)
{
    static const struct {
        struct test_rule rule;
        enum redbucket_status status;
    } rows[] = {
        {{.command = "SCAN", .answer = "-ERR unknown command 'SCAN'\r\n"},
         REDBUCKET_ERROR_UNSUPPORTED},
        {{.command = "SCAN", .answer = "-NOPERM no\r\n"}, REDBUCKET_ERROR_AUTH},
        {{.command = "SCAN", .answer = "-LOADING data\r\n"}, REDBUCKET_ERROR_UNAVAILABLE},
        {{.command = "GETRANGE", .answer = "-NOPERM no\r\n"}, REDBUCKET_ERROR_AUTH},
        {{.command = "TIME", .answer = "-NOPERM no\r\n"}, REDBUCKET_ERROR_AUTH},
        {{.command = "GETRANGE", .answer = "$16\r\n0123", .manner = TEST_CLOSE},
         REDBUCKET_ERROR_IO},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        struct test_host host;
        struct test_peer *peer = begin(&host, &rows[i].rule);
        struct met met;

        assert_int_equal(walk(&host, &met), rows[i].status);
        assert_int_equal(met.len, 0);
        assert_int_equal(test_peer_commands(peer, "SCAN"), 1);
        end(&host, peer);
    }
}

/* What is of another type is told of; what is gone, or elsewhere, is not. */
static void test_what_is_under_a_name_may_change(void **state)
{
    static const struct {
        struct test_rule rule;
        size_t met;
        enum redbucket_status status;
    } rows[] = {
        {{.command = "GETRANGE", .answer = "-WRONGTYPE no\r\n"}, 1, REDBUCKET_ERROR_STATE},
        {{.command = "GETRANGE", .answer = "-MOVED 1 192.0.2.1:6379\r\n"}, 0, REDBUCKET_OK},
        {{.command = "GETRANGE", .answer = "-ASK 1 192.0.2.1:6379\r\n"}, 0, REDBUCKET_OK},
        {{.command = "GETRANGE", .answer = "$0\r\n\r\n"}, 1, REDBUCKET_ERROR_STATE},
        {{.command = "GETRANGE", .answer = "$3\r\nabc\r\n"}, 1, REDBUCKET_ERROR_STATE},
    };

    (void)state;
    for (size_t i = 0; i < LEN(rows); i++) {
        struct test_host host;
        struct test_peer *peer = begin(&host, &rows[i].rule);
        struct met met;

        assert_int_equal(walk(&host, &met), REDBUCKET_OK);
        assert_int_equal(met.len, rows[i].met);
        if (met.len > 0)
            assert_int_equal(met.last.status, rows[i].status);
        end(&host, peer);
    }
}

/* Other names than were asked for are nobody's buckets. */
static void test_names_of_another_shape_are_passed_over(void **state)
{
    const struct test_rule rule = {
        .command = "SCAN",
        .answer = "*2\r\n$1\r\n0\r\n*3\r\n$5\r\nother\r\n$0\r\n\r\n$13\r\nredbucket:a:k\r\n",
    };
    struct test_host host;
    struct test_peer *peer = begin(&host, &rule);
    struct met met;

    (void)state;
    assert_int_equal(walk(&host, &met), REDBUCKET_OK);
    assert_int_equal(met.len, 1);
    end(&host, peer);
}

/* Each allocation in turn: a status that says so, and the next walk goes through. */
static void test_a_want_of_memory_is_survived(void **state)
{
    struct test_host host;
    struct test_peer *peer = begin(&host, NULL);
    struct redbucket_walk *from;
    unsigned long failures = 0;
    struct met met;

    (void)state;
    assert_int_equal(walk(&host, &met), REDBUCKET_OK); /* connects */
    for (unsigned long nth = 1;; nth++) {
        bool done = false;

        met = (struct met){.len = 0};
        assert_int_equal(redbucket_walk_create(host.store, NULL, &from), REDBUCKET_OK);
        memory.made = 0;
        memory.fail = nth;
        const enum redbucket_status status = redbucket_walk_step(from, meet, &met, &done);
        const bool enough = memory.made < nth;

        memory.fail = 0;
        redbucket_walk_destroy(from);
        if (enough) {
            assert_int_equal(status, REDBUCKET_OK);
            break;
        }
        if (status != REDBUCKET_OK) {
            assert_int_equal(status, REDBUCKET_ERROR_MEMORY);
            assert_true(done);
            assert_int_equal(met.len, 0);
            failures++;
        }
        assert_int_equal(walk(&host, &met), REDBUCKET_OK);
    }
    assert_true(failures >= 5);
    end(&host, peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_good_peer_is_good),
        cmocka_unit_test(test_nonsense_ends_the_walk),
        cmocka_unit_test(test_refusals_have_their_status),
        cmocka_unit_test(test_what_is_under_a_name_may_change),
        cmocka_unit_test(test_names_of_another_shape_are_passed_over),
        cmocka_unit_test(test_a_want_of_memory_is_survived),
    };

    return cmocka_run_group_tests_name("walk_peers", tests, NULL, NULL);
}
