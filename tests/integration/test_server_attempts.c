/* SPDX-License-Identifier: MIT */
/*
 * Deciding by transaction, attempt by attempt, against a peer that answers each command as it is
 * told: what is written only if nobody interfered, tried again if somebody did, and never half
 * believed.
 */
#include "fault_peer.h"
#include "host.h"
#include "processes.h"
#include "test.h"

#include <math.h>
#include <stdio.h>

#define LEN(array) (sizeof(array) / sizeof(array)[0])

#define TIME "*2\r\n$10\r\n1000000000\r\n$1\r\n0\r\n"

static const struct test_rule good[] = {
    {.command = "INFO", .answer = "$21\r\nredis_version:3.0.5\r\n\r\n"},
    {.command = "ROLE", .answer = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"},
    {.command = "WATCH", .answer = "+OK\r\n"},
    {.command = "TYPE", .answer = "+none\r\n"},
    {.command = "GETRANGE", .answer = "$0\r\n\r\n"},
    {.command = "TIME", .answer = TIME},
    {.command = "DISCARD", .answer = "+OK\r\n"},
    {.command = "MULTI", .answer = "+OK\r\n"},
    {.command = "SETEX", .answer = "+QUEUED\r\n"},
    {.command = "EXEC", .answer = "*1\r\n+OK\r\n"},
};

/* A peer with these rules before those of a good server, and a host of it with limit "a". */
static struct test_peer *begin(struct test_host *host, const struct test_rule *rules, size_t len,
                               const char *query)
{
    struct test_rule all[24];
    struct test_peer *peer;
    char url[256];

    assert_true(len + LEN(good) <= LEN(all));
    if (len > 0)
        memcpy(all, rules, len * sizeof rules[0]);
    memcpy(all + len, good, sizeof good);
    peer = test_peer_start(false, all, len + LEN(good));
    assert_non_null(peer);
    test_peer_url(peer, query, url, sizeof url);
    test_host_open(host, url);
    test_host_limit(host, "a", 1.0, 5.0);
    return peer;
}

static void end(struct test_host *host, struct test_peer *peer)
{
    test_host_close(host);
    test_peer_stop(peer);
}

static void test_the_good_peer_is_good(void **state)
{
    struct redbucket_response response;
    struct test_host host;
    struct test_peer *peer = begin(&host, NULL, 0, "timeout=5s");

    (void)state;
    assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
    assert_true(response.accepted);
    assert_same(response.time, 1e9);
    assert_int_equal(test_peer_commands(peer, "EXEC"), 1);
    assert_int_equal(test_peer_commands(peer, "EVALSHA"), 0);
    end(&host, peer);
}

/* TIME has no zeros in front: 999 microseconds are not 0.999 s. */
static void test_microseconds_are_counted_and_not_pasted(void **state)
{
    static const struct {
        const char *answer;
        double now;
    } times[] = {
        {"*2\r\n$10\r\n1700000000\r\n$3\r\n999\r\n", 1700000000.000999},
        {"*2\r\n$10\r\n1700000000\r\n$4\r\n1000\r\n", 1700000000.001},
        {"*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n", 1700000000.0},
        {"*2\r\n$10\r\n1700000000\r\n$6\r\n999999\r\n", 1700000000.999999},
    };

    (void)state;
    for (size_t i = 0; i < LEN(times); i++) {
        const struct test_rule rule = {.command = "TIME", .answer = times[i].answer};
        struct redbucket_response response;
        struct test_host host;
        struct test_peer *peer = begin(&host, &rule, 1, "timeout=5s");

        assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
        assert_true(fabs(response.time - times[i].now) < 5e-7);
        end(&host, peer);
    }
}

/* Without WATCH a write would be lost, and without MULTI it would be made whatever others did:
 * nothing is written then. */
static void test_a_server_without_transactions(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "WATCH", .answer = "-ERR unknown command 'WATCH'\r\n"},
        {.command = "MULTI", .answer = "-ERR unknown command 'MULTI'\r\n"},
    };

    (void)state;
    for (size_t first = 0; first < 2; first++) {
        for (size_t len = 1; first + len <= LEN(rules); len++) {
            struct test_host host;
            struct test_peer *peer = begin(&host, rules + first, len, "method=transaction");

            for (int i = 0; i < 3; i++)
                assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_UNSUPPORTED);
            assert_int_equal(test_peer_commands(peer, "SETEX"), 0);
            assert_int_equal(test_peer_commands(peer, "EXEC"), 0);
            assert_int_equal(host.down, 0);
            /* What can't be ended is hung up on. */
            assert_int_equal(test_peer_connections(peer), first == 1 ? 3 : 1);
            end(&host, peer);
        }
    }
}

/* What the answers to one command come to; nothing is believed of what isn't whole. */
struct fault {
    const char *command;
    const char *answer;
    enum redbucket_status status;
};

static void test_refusals_and_nonsense(void **state)
{
    static const struct fault faults[] = {
        {"WATCH", "-NOPERM this user has no permissions\r\n", REDBUCKET_ERROR_AUTH},
        {"WATCH", "-BUSY Redis is busy running a script.\r\n", REDBUCKET_ERROR_UNAVAILABLE},
        {"GETRANGE", "-LOADING Redis is loading\r\n", REDBUCKET_ERROR_UNAVAILABLE},
        {"TIME", "-NOPERM this user has no permissions\r\n", REDBUCKET_ERROR_AUTH},
        {"MULTI", "-ERR unknown command 'MULTI'\r\n", REDBUCKET_ERROR_UNSUPPORTED},
        {"SETEX", "-OOM command not allowed\r\n", REDBUCKET_ERROR_UNAVAILABLE},
        {"SETEX", "-READONLY You can't write\r\n", REDBUCKET_ERROR_READONLY},
        {"EXEC", "-EXECABORT Transaction discarded because of: OOM no\r\n",
         REDBUCKET_ERROR_UNAVAILABLE},
        {"EXEC", "-EXECABORT Transaction discarded\r\n", REDBUCKET_ERROR_SERVER},
        {"EXEC", "*1\r\n-ERR invalid expire time in 'setex' command\r\n", REDBUCKET_ERROR_SERVER},
        {"EXEC", "*1\r\n-OOM command not allowed\r\n", REDBUCKET_ERROR_UNAVAILABLE},
        {"EXEC", "*0\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"EXEC", "*2\r\n+OK\r\n+OK\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"EXEC", "+OK\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"EXEC", "*1\r\n$-1\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"EXEC", "*1\r\n:1\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"EXEC", "*1\r\n+QUEUED\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"WATCH", ":1\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"MULTI", "$2\r\nOK\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"TYPE", "$4\r\nnone\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"TYPE", "-NOPERM this user has no permissions\r\n", REDBUCKET_ERROR_AUTH},
        {"GETRANGE", "*0\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"GETRANGE", "$-1\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"GETRANGE", "+OK\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"GETRANGE", "-NOPERM this user has no permissions\r\n", REDBUCKET_ERROR_AUTH},
        {"TIME", "*1\r\n$10\r\n1700000000\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"TIME", "*2\r\n$10\r\n1700000000\r\n$1\r\nx\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"TIME", "*2\r\n$10\r\n-700000000\r\n$1\r\n0\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"TIME", "*2\r\n:1700000000\r\n:0\r\n", REDBUCKET_ERROR_PROTOCOL},
        {"GETRANGE", "$3\r\nabc\r\n", REDBUCKET_ERROR_STATE},
        {"GETRANGE", "-WRONGTYPE Operation against a key\r\n", REDBUCKET_ERROR_STATE},
    };

    (void)state;
    for (size_t i = 0; i < LEN(faults); i++) {
        const struct test_rule rule = {
            .command = faults[i].command, .answer = faults[i].answer, .times = 1};
        struct redbucket_error error;
        struct test_host host;
        struct test_peer *peer = begin(&host, &rule, 1, "timeout=5s");

        assert_int_equal(test_host_ask(&host, "k", NULL), faults[i].status);
        test_host_failure(&host, &error);
        if (faults[i].status != REDBUCKET_ERROR_STATE)
            assert_int_equal(error.status, faults[i].status);
        if (faults[i].status == REDBUCKET_ERROR_PROTOCOL)
            assert_int_equal(test_peer_commands(peer, "DISCARD"), 0);
        (void)test_host_recover(&host, "k");
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
        assert_int_equal(host.down, faults[i].status == REDBUCKET_ERROR_UNAVAILABLE ||
                                        faults[i].status == REDBUCKET_ERROR_READONLY);
        end(&host, peer);
    }
}

/* One part of the request was written and another not. */
static void test_an_error_inside_exec_among_several_limits(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "EXEC",
         .answer = "*2\r\n+OK\r\n-ERR invalid expire time in 'setex' command\r\n"},
    };
    struct redbucket_key keys[] = {{"a", "k"}, {"b", "k"}};
    struct redbucket_response response;
    struct test_host host;
    struct test_peer *peer = begin(&host, rules, LEN(rules), "timeout=5s");

    (void)state;
    test_host_limit(&host, "b", 1.0, 2.0);
    assert_int_equal(redbucket_request(host.limiter, keys, 2, &response), REDBUCKET_ERROR_SERVER);
    assert_int_equal(test_peer_commands(peer, "EXEC"), 1);
    end(&host, peer);
}

static void test_interference_is_tried_again(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "EXEC", .answer = "*-1\r\n", .times = 3},
        {.command = "EXEC", .answer = "$-1\r\n", .times = 1},
    };
    struct test_host host;
    struct test_peer *peer = begin(&host, rules, LEN(rules), "timeout=5s");

    (void)state;
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_int_equal(test_peer_commands(peer, "EXEC"), 5);
    assert_int_equal(test_peer_commands(peer, "WATCH"), 5);
    assert_int_equal(test_peer_connections(peer), 1);
    end(&host, peer);
}

/* Between the commands that look at it, a bucket may be made, and may expire: no fault of its
 * state. The types of before and after, and what is seen between. */
static void test_a_bucket_that_comes_and_goes(void **state)
{
    static const struct {
        const char *before, *text, *after;
        enum redbucket_status status;
    } looks[] = {
        {"+none\r\n", "$0\r\n\r\n", "+string\r\n", REDBUCKET_OK},
        {"+string\r\n", "$0\r\n\r\n", "+none\r\n", REDBUCKET_OK},
        {"+none\r\n", "$0\r\n\r\n", "+list\r\n", REDBUCKET_ERROR_STATE},
        {"+list\r\n", "$0\r\n\r\n", "+none\r\n", REDBUCKET_OK},
        {"+string\r\n", "$0\r\n\r\n", "+string\r\n", REDBUCKET_ERROR_STATE},
        {"+none\r\n", "$1\r\n7\r\n", "+string\r\n", REDBUCKET_ERROR_STATE},
        {"+list\r\n", "-WRONGTYPE Operation\r\n", "+none\r\n", REDBUCKET_ERROR_STATE},
    };

    (void)state;
    for (size_t i = 0; i < LEN(looks); i++) {
        const struct test_rule rules[] = {
            {.command = "TYPE", .answer = looks[i].before, .times = 1},
            {.command = "TYPE", .answer = looks[i].after, .times = 1},
            {.command = "GETRANGE", .answer = looks[i].text, .times = 1},
        };
        struct test_host host;
        struct test_peer *peer = begin(&host, rules, LEN(rules), "timeout=5s");

        assert_int_equal(test_host_ask(&host, "k", NULL), looks[i].status);
        assert_int_equal(test_peer_commands(peer, "EXEC"), looks[i].status == REDBUCKET_OK);
        assert_int_equal(test_peer_commands(peer, "DISCARD"), looks[i].status != REDBUCKET_OK);
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
        assert_int_equal(test_peer_connections(peer), 1);
        end(&host, peer);
    }
}

/* A refusal of a command or two costs no connection, as long as all that was begun is ended. */
static void test_what_is_begun_is_ended(void **state)
{
    static const struct {
        const char *command, *answer;
        int connections;
    } cases[] = {
        {"DISCARD", "+OK\r\n", 1},
        {"DISCARD", "-ERR unknown command 'DISCARD'\r\n", 2},
    };

    (void)state;
    for (size_t i = 0; i < LEN(cases); i++) {
        const struct test_rule rules[] = {
            {.command = "TIME", .answer = "-NOPERM no permissions\r\n", .times = 1},
            {.command = cases[i].command, .answer = cases[i].answer, .times = 1},
        };
        struct test_host host;
        struct test_peer *peer = begin(&host, rules, LEN(rules), "timeout=5s");

        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_AUTH);
        assert_int_equal(test_peer_commands(peer, "DISCARD"), 1);
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
        assert_int_equal(test_peer_connections(peer), cases[i].connections);
        end(&host, peer);
    }
}

/* A machine that stops us in the middle of an attempt makes a time-out of it, which is no fault. */
static bool disturbed(enum redbucket_status status)
{
    if (status != REDBUCKET_ERROR_TIMEOUT || test_control_late() < 0.005)
        return false;
    test_host_rest();
    return true;
}

static void test_interference_until_the_deadline(void **state)
{
    static const struct test_rule rules[] = {{.command = "EXEC", .answer = "*-1\r\n"}};
    struct test_host host;
    struct test_peer *peer = begin(&host, rules, LEN(rules), "timeout=300ms");
    struct redbucket_error error;
    int disturbances = 0, unexplained = 0, conflicts = 0;
    double took;

    (void)state;
    for (int i = 0; i < 20 && conflicts < 3; i++) {
        size_t before = test_peer_commands(peer, "EXEC");
        enum redbucket_status status;

        test_control_reset();
        status = test_host_time(&host, "k", &took);
        test_control_check(took, 0.3);
        if (status == REDBUCKET_ERROR_TIMEOUT) {
            /* An attempt of a fraction of a millisecond takes thrice as long now and then, which no
             * control shows. */
            if (!disturbed(status)) {
                assert_true(++unexplained < 3);
                test_host_rest();
            }
            disturbances++;
            continue;
        }
        conflicts++;
        assert_int_equal(status, REDBUCKET_ERROR_CONFLICT);
        assert_true(took > 0.15);
        test_host_failure(&host, &error);
        assert_int_equal(error.status, REDBUCKET_ERROR_CONFLICT);
        /* 8 ms on average once it is backed off; without that there would be thousands. */
        size_t attempts = test_peer_commands(peer, "EXEC") - before;

        assert_in_range(attempts, attempts < 5 && test_control_late() > 0.005 ? 1 : 5, 90);
    }
    assert_int_equal(conflicts, 3);
    assert_true(host.down <= disturbances);
    assert_int_equal(test_peer_connections(peer), 1 + disturbances);
    end(&host, peer);
}

/* Where another attempt wouldn't end in time, none is begun, which would leave it unknown whether
 * it was counted. */
static void test_slow_interference_is_no_time_out(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "EXEC", .answer = "*-1\r\n", .pause_us = 40000}};
    struct test_host host;
    struct test_peer *peer = begin(&host, rules, LEN(rules), "timeout=200ms");
    int disturbances = 0;

    (void)state;
    for (int i = 0; i < 3 + disturbances && i < 20; i++) {
        enum redbucket_status status;

        test_control_reset();
        status = test_host_ask(&host, "k", NULL);
        if (disturbed(status))
            disturbances++;
        else
            assert_int_equal(status, REDBUCKET_ERROR_CONFLICT);
    }
    assert_int_equal(test_peer_connections(peer), 1 + disturbances);
    end(&host, peer);
}

/* Nor where one would that takes a little longer than the last. */
static void test_interference_that_slows_down_is_no_time_out(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "EXEC", .answer = "*-1\r\n", .pause_us = 80000, .times = 1},
        {.command = "EXEC", .answer = "*-1\r\n", .pause_us = 140000}};
    enum redbucket_status status = REDBUCKET_ERROR_TIMEOUT;

    (void)state;
    for (int i = 0; i < 10 && status != REDBUCKET_ERROR_CONFLICT; i++) {
        struct test_host host;
        struct test_peer *peer = begin(&host, rules, LEN(rules), "timeout=200ms");

        test_control_reset();
        status = test_host_ask(&host, "k", NULL);
        if (status == REDBUCKET_ERROR_CONFLICT)
            assert_int_equal(test_peer_commands(peer, "EXEC"), 1);
        else
            assert_true(disturbed(status));
        end(&host, peer);
    }
    assert_int_equal(status, REDBUCKET_ERROR_CONFLICT);
}

#define MANY 20

/* What would be cut off in the middle is not begun: a long array is not the server's fault. */
static void test_an_array_that_is_out_of_time(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "EXEC", .answer = "*1\r\n+OK\r\n", .pause_us = 30000}};
    const struct redbucket_key key = {"a", "k"};
    struct redbucket_request requests[MANY];
    struct redbucket_error error;
    struct test_host host;
    struct test_peer *peer = begin(&host, rules, LEN(rules), "timeout=200ms");
    size_t done = 0;

    (void)state;
    for (size_t i = 0; i < MANY; i++)
        requests[i] = (struct redbucket_request){.keys = &key, .keys_len = 1, .cost = 0.1};
    test_control_reset();
    assert_int_equal(redbucket_decide(host.limiter, requests, MANY), REDBUCKET_ERROR_TIMEOUT);
    while (done < MANY && requests[done].status == REDBUCKET_OK)
        done++;
    for (size_t i = done; i < MANY; i++)
        assert_int_equal(requests[i].status, REDBUCKET_ERROR_TIMEOUT);
    test_host_failure(&host, &error);
    if (test_control_late() < 0.005) {
        assert_in_range(done, 1, 6);
        assert_string_equal(error.message, "no time was left to ask the server");
        assert_int_equal(test_peer_commands(peer, "EXEC"), done);
        assert_int_equal(host.down, 0);
        assert_int_equal(test_peer_connections(peer), 1);
    }
    end(&host, peer);
}

/* The server hangs in the second attempt, before anything can have been written. */
static void test_a_time_out_after_interference(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "EXEC", .answer = "*-1\r\n", .times = 1},
        {.command = "WATCH", .answer = "+OK\r\n", .times = 1},
        {.command = "WATCH", .manner = TEST_SILENT, .times = 1},
    };
    struct test_host host;
    struct test_peer *peer = begin(&host, rules, LEN(rules), "timeout=200ms");
    struct redbucket_error error;
    double took;

    (void)state;
    test_control_reset();
    assert_int_equal(test_host_time(&host, "k", &took), REDBUCKET_ERROR_TIMEOUT);
    test_control_check(took, 0.2);
    test_host_failure(&host, &error);
    assert_int_equal(error.status, REDBUCKET_ERROR_TIMEOUT);
    (void)test_host_recover(&host, "k");
    /* A busy machine may take too long over the second as well. */
    assert_true(test_peer_connections(peer) == 2 || test_control_late() > 0.005);
    end(&host, peer);
}

static int start_control(void **state)
{
    (void)state;
    test_control_start();
    return 0;
}

static int stop_control(void **state)
{
    (void)state;
    test_control_stop();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_good_peer_is_good),
        cmocka_unit_test(test_microseconds_are_counted_and_not_pasted),
        cmocka_unit_test(test_a_server_without_transactions),
        cmocka_unit_test(test_refusals_and_nonsense),
        cmocka_unit_test(test_an_error_inside_exec_among_several_limits),
        cmocka_unit_test(test_interference_is_tried_again),
        cmocka_unit_test(test_a_bucket_that_comes_and_goes),
        cmocka_unit_test(test_what_is_begun_is_ended),
        cmocka_unit_test(test_interference_until_the_deadline),
        cmocka_unit_test(test_slow_interference_is_no_time_out),
        cmocka_unit_test(test_interference_that_slows_down_is_no_time_out),
        cmocka_unit_test(test_an_array_that_is_out_of_time),
        cmocka_unit_test(test_a_time_out_after_interference),
    };

    return cmocka_run_group_tests_name("server_attempts", tests, start_control, stop_control);
}
