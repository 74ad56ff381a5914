/* SPDX-License-Identifier: MIT */
/*
 * Servers that are none: silent, slow, rude, talking nonsense, or refusing what others grant. Each
 * fault has its status, ends at the deadline, and leaves a store that works once the peer does.
 */
#include "fault_peer.h"
#include "host.h"
#include "processes.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define LEN(array) (sizeof(array) / sizeof(array)[0])

#define MASTER                                                                \
    {.command = "AUTH", .answer = "+OK\r\n"},                                 \
        {.command = "INFO", .answer = "$22\r\nredis_version:7.0.15\r\n\r\n"}, \
    {                                                                         \
        .command = "ROLE", .answer = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"     \
    }

/* What the script says of one request under one limit: when, that it is done, and the state as it
 * was. */
#define AT_1       "\0\0\0\0\0\0\xf0\x3f"
#define AT_1E9     "\0\0\0\0\x65\xcd\xcd\x41"
#define NONE       "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
#define SAID(text) .answer = "$25\r\n" text "\r\n", .answer_len = 32

#define ACCEPTED SAID(AT_1E9 "\1" NONE)

#define TIMEOUT_S 0.1

static void open_by(struct test_host *host, const struct test_peer *peer, const char *query)
{
    char url[256];

    if (test_peer_port(peer) != 0)
        snprintf(url, sizeof url, "redis://:" TEST_SECRET "@127.0.0.1:%d?%s", test_peer_port(peer),
                 query);
    else
        snprintf(url, sizeof url, "unix://:" TEST_SECRET "@%s?%s", test_peer_path(peer), query);
    test_host_open(host, url);
    test_host_limit(host, "a", 1.0, 5.0);
}

/* A peer with these rules, those of a good server behind them, and a host of it. */
static struct test_peer *begin(struct test_host *host, const struct test_rule *rules, size_t len,
                               const char *query)
{
    struct test_rule all[16];
    static const struct test_rule good[] = {MASTER, {.command = "EVALSHA", ACCEPTED}};
    struct test_peer *peer;

    assert_true(len + LEN(good) <= LEN(all));
    if (len > 0)
        memcpy(all, rules, len * sizeof rules[0]);
    memcpy(all + len, good, sizeof good);
    peer = test_peer_start(false, all, len + LEN(good));
    assert_non_null(peer);
    open_by(host, peer, query);
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
    struct test_peer *peer = begin(&host, NULL, 0, "connections=4");

    (void)state;
    assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
    assert_true(response.accepted);
    assert_int_equal(response.remaining, 5);
    assert_same(response.time, 1e9);
    end(&host, peer);
}

/* ---- Never, late, slowly -------------------------------------------------------------------- */

/* Again and again: a new connection has a deadline like the first. */
static void test_a_silent_peer_costs_the_timeout(void **state)
{
    static const struct test_rule rules[] = {{.manner = TEST_SILENT}};

    (void)state;
    for (int by_port = 0; by_port < 2; by_port++) {
        struct test_peer *peer = test_peer_start(by_port != 0, rules, LEN(rules));
        struct test_host host;
        double took;

        assert_non_null(peer);
        open_by(&host, peer, "timeout=100ms");
        for (int i = 0; i < 3; i++) {
            test_control_reset();
            assert_int_equal(test_host_time(&host, "k", &took), REDBUCKET_ERROR_TIMEOUT);
            assert_true(took >= TIMEOUT_S);
            test_control_check(took, TIMEOUT_S);
            assert_int_equal(test_host_time(&host, "k", &took), REDBUCKET_ERROR_UNAVAILABLE);
            test_control_check(took, 0.0);
            test_host_rest();
        }
        assert_int_equal(test_peer_connections(peer), 3);
        assert_int_equal(host.down, 1);
        assert_int_equal(host.back, 0);
        end(&host, peer);
    }
}

/* Each byte comes in time, and all of them don't. */
static void test_a_byte_at_a_time_extends_no_deadline(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "EVALSHA", ACCEPTED, .manner = TEST_BYTEWISE, .pause_us = 20000, .times = 1},
        {.command = "EVALSHA", ACCEPTED, .manner = TEST_BYTEWISE, .pause_us = 50},
    };
    struct test_host host;
    struct test_peer *peer = begin(&host, rules, LEN(rules), "timeout=100ms");
    double took;

    (void)state;
    test_control_reset();
    assert_int_equal(test_host_time(&host, "k", &took), REDBUCKET_ERROR_TIMEOUT);
    test_control_check(took, TIMEOUT_S);
    assert_int_equal(test_host_recover(&host, "k"), REDBUCKET_ERROR_UNAVAILABLE);
    end(&host, peer);
}

/* The late answer is of another key's bucket, and nobody takes it for his. */
static void test_a_late_answer_is_nobodys(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "EVALSHA", SAID(AT_1 "\1" NONE), .pause_us = 150000, .times = 1},
    };
    struct redbucket_response response;
    struct test_host host;
    struct test_peer *peer = begin(&host, rules, LEN(rules), "timeout=100ms&connections=1");

    (void)state;
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_TIMEOUT);
    (void)test_host_recover(&host, "k");
    for (int i = 0; i < 20; i++) {
        assert_int_equal(test_host_ask(&host, "k", &response), REDBUCKET_OK);
        assert_same(response.time, 1e9);
        test_pause(0.01);
    }
    assert_int_equal(test_peer_connections(peer), 2);
    end(&host, peer);
}

/* ---- Breaking off, nonsense ----------------------------------------------------------------- */

/* What comes of an answer to the script. */
struct fault {
    enum redbucket_status status;
    struct test_rule rule;
};

/* One request meets the fault, in time; the next has a new connection and an answer. */
static void meet(const struct fault *fault)
{
    struct test_rule rule = fault->rule;
    struct test_host host;
    struct test_peer *peer;
    double took;

    rule.command = "EVALSHA";
    rule.times = 1;
    peer = begin(&host, &rule, 1, "timeout=5s");
    assert_int_equal(test_host_time(&host, "k", &took), fault->status);
    assert_true(took < 4.0);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_int_equal(test_peer_connections(peer), 2);
    /* It was not sent again. */
    assert_int_equal(test_peer_commands(peer, "EVALSHA"), 2);
    assert_int_equal(test_peer_commands(peer, "EVAL"), 0);
    assert_int_equal(host.down, 0);
    end(&host, peer);
}

static void test_a_connection_that_breaks(void **state)
{
    static const struct fault faults[] = {
        {REDBUCKET_ERROR_IO, {.manner = TEST_CLOSE}},
        {REDBUCKET_ERROR_IO, {.manner = TEST_RESET}},
        {REDBUCKET_ERROR_IO, {.answer = "$25\r\nabcd", .manner = TEST_CLOSE}},
        {REDBUCKET_ERROR_IO, {.answer = "$25\r\nabcd", .manner = TEST_RESET}},
        {REDBUCKET_ERROR_IO, {.answer = "$2", .manner = TEST_CLOSE}},
        {REDBUCKET_ERROR_IO, {.answer = "-ERR what is th", .manner = TEST_CLOSE}},
    };

    (void)state;
    for (size_t i = 0; i < LEN(faults); i++)
        meet(&faults[i]);
}

static void test_what_is_no_reply(void **state)
{
    static const struct fault faults[] = {
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "HTTP/1.1 400 Bad Request\r\n\r\n"}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "$1073741824\r\n", .manner = TEST_FLOOD}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "$1073741824\r\n", .manner = TEST_SILENT}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "*1000000000\r\n", .manner = TEST_SILENT}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "*2147483647\r\n", .manner = TEST_FLOOD}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "+", .manner = TEST_FLOOD}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "$-2\r\n"}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "*-5\r\n"}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = ":12x\r\n"}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "\0\0\0\0", .answer_len = 4}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "$3\r\nabcde\r\n"}},
    };

    (void)state;
    for (size_t i = 0; i < LEN(faults); i++)
        meet(&faults[i]);
}

static void test_a_nesting_too_deep(void **state)
{
    (void)state;
    for (size_t depth = 8; depth <= 100000; depth *= 10) {
        char *text = test_nesting(depth);

        meet(&(struct fault){REDBUCKET_ERROR_PROTOCOL, {.answer = text, .manner = TEST_SILENT}});
        free(text);
    }
}

/* Replies as good as any, but none that the script would give. */
static void test_answers_that_make_no_sense(void **state)
{
    static const struct fault faults[] = {
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "+OK\r\n"}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = ":1\r\n"}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "$-1\r\n"}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "$0\r\n\r\n"}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "*0\r\n"}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "*1\r\n$3\r\nabc\r\n"}},
        /* too short, too long */
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "$24\r\n" AT_1E9 NONE "\r\n", .answer_len = 31}},
        {REDBUCKET_ERROR_PROTOCOL, {.answer = "$8\r\n" AT_1E9 "\r\n", .answer_len = 14}},
        {REDBUCKET_ERROR_PROTOCOL,
         {.answer = "$26\r\n" AT_1E9 "\1" NONE "\1\r\n", .answer_len = 33}},
        /* a time that is not a number, that is infinite */
        {REDBUCKET_ERROR_PROTOCOL,
         {SAID("\0\0\0\0\0\0\xf8\x7f"
               "\1" NONE)}},
        {REDBUCKET_ERROR_PROTOCOL,
         {SAID("\0\0\0\0\0\0\xf0\x7f"
               "\1" NONE)}},
        /* rejected, where there was room; of a claim that there isn't; of no meaning */
        {REDBUCKET_ERROR_PROTOCOL, {SAID(AT_1E9 "\0" NONE)}},
        {REDBUCKET_ERROR_PROTOCOL, {SAID(AT_1E9 "\202" NONE)}},
        {REDBUCKET_ERROR_PROTOCOL, {SAID(AT_1E9 "\2" NONE)}},
        {REDBUCKET_ERROR_PROTOCOL, {SAID(AT_1E9 "\200" NONE)}},
        /* states that are none */
        {REDBUCKET_ERROR_PROTOCOL, {SAID(AT_1E9 "\1" AT_1E9 "\0\0\0\0\0\0\xf8\x7f")}},
        {REDBUCKET_ERROR_PROTOCOL,
         {SAID(AT_1E9 "\1"
                      "\0\0\0\0\0\0\xf0\xff" AT_1)}},
        /* accepted, where there was no room */
        {REDBUCKET_ERROR_PROTOCOL, {SAID(AT_1E9 "\1" AT_1E9 AT_1E9)}},
    };

    (void)state;
    for (size_t i = 0; i < LEN(faults); i++)
        meet(&faults[i]);
}

/* Bytes that came when nobody had asked are not the answer to the next question. */
static void test_what_is_said_unasked(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "EVALSHA",
         .answer = "$25\r\n" AT_1E9 "\1" NONE "\r\n+OK\r\n",
         .answer_len = 37,
         .times = 1},
    };
    struct redbucket_error error;
    struct test_host host;
    struct test_peer *peer = begin(&host, rules, LEN(rules), "connections=4");
    enum redbucket_status status = test_host_ask(&host, "k", NULL);

    (void)state;
    /* Seen with the answer, or only afterwards. */
    if (status != REDBUCKET_OK) {
        assert_int_equal(status, REDBUCKET_ERROR_PROTOCOL);
        test_host_failure(&host, &error);
        assert_int_equal(error.status, REDBUCKET_ERROR_PROTOCOL);
    }
    test_pause(0.02);
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_int_equal(test_peer_connections(peer), 2);
    end(&host, peer);
}

/* ---- Errors --------------------------------------------------------------------------------- */

struct refusal {
    const char *answer;
    enum redbucket_status status;
    bool down;  /* everybody is refused for a while */
    bool again; /* the connection is used on */
};

static void test_what_errors_of_a_server_come_to(void **state)
{
    static const struct refusal refusals[] = {
        {"-BUSY Redis is busy running a script.\r\n", REDBUCKET_ERROR_UNAVAILABLE, true, true},
        {"-LOADING Redis is loading\r\n", REDBUCKET_ERROR_UNAVAILABLE, true, true},
        {"-CLUSTERDOWN The cluster is down\r\n", REDBUCKET_ERROR_UNAVAILABLE, true, true},
        {"-MISCONF Errors writing to the AOF file\r\n", REDBUCKET_ERROR_UNAVAILABLE, true, true},
        {"-NOREPLICAS Not enough good replicas\r\n", REDBUCKET_ERROR_UNAVAILABLE, true, true},
        {"-OOM command not allowed\r\n", REDBUCKET_ERROR_UNAVAILABLE, true, true},
        {"-MASTERDOWN Link with MASTER is down\r\n", REDBUCKET_ERROR_UNAVAILABLE, true, false},
        {"-READONLY You can't write against a read only replica.\r\n", REDBUCKET_ERROR_READONLY,
         true, false},
        {"-ERR Error running script (call to f_0): @user_script:9: @user_script: 9: -READONLY "
         "You can't write against a read only slave.\r\n",
         REDBUCKET_ERROR_READONLY, true, false},
        {"-NOAUTH Authentication required.\r\n", REDBUCKET_ERROR_AUTH, false, false},
        {"-NOPERM no permissions\r\n", REDBUCKET_ERROR_AUTH, false, true},
        {"-ERR unknown command 'EVALSHA'\r\n", REDBUCKET_ERROR_UNSUPPORTED, false, true},
        {"-ERR The user executing the script can't run this command or subcommand script: 0\r\n",
         REDBUCKET_ERROR_UNSUPPORTED, false, true},
        {"-MOVED 3999 192.0.2.1:6381\r\n", REDBUCKET_ERROR_UNSUPPORTED, false, true},
        {"-ERR something new\r\n", REDBUCKET_ERROR_SERVER, false, true},
        {"-\r\n", REDBUCKET_ERROR_SERVER, false, true},
    };

    (void)state;
    for (size_t i = 0; i < LEN(refusals); i++) {
        const struct refusal *refusal = &refusals[i];
        const struct test_rule rule = {.command = "EVALSHA", .answer = refusal->answer, .times = 1};
        struct redbucket_error error;
        struct test_host host;
        struct test_peer *peer = begin(&host, &rule, 1, "connections=4");

        assert_int_equal(test_host_ask(&host, "k", NULL), refusal->status);
        test_host_failure(&host, &error);
        assert_int_equal(error.status, refusal->status);
        assert_int_equal(test_host_recover(&host, "k"),
                         refusal->down ? REDBUCKET_ERROR_UNAVAILABLE : REDBUCKET_OK);
        assert_int_equal(host.down, refusal->down);
        assert_int_equal(host.back, refusal->down);
        assert_int_equal(test_peer_connections(peer), refusal->again ? 1 : 2);
        assert_int_equal(test_peer_commands(peer, "EVAL"), 0);
        end(&host, peer);
    }
}

static void test_a_forgotten_script_costs_one_more_turn(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "EVALSHA", .answer = "-NOSCRIPT No matching script.\r\n", .times = 1},
        {.command = "EVAL", ACCEPTED},
    };
    struct test_host host;
    struct test_peer *peer = begin(&host, rules, LEN(rules), "connections=4");

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
    assert_int_equal(test_peer_commands(peer, "EVALSHA"), 3);
    assert_int_equal(test_peer_commands(peer, "EVAL"), 1);
    assert_int_equal(test_peer_commands(peer, "SCRIPT"), 0);
    assert_int_equal(test_peer_connections(peer), 1);
    end(&host, peer);
}

static void test_a_script_that_stays_forgotten_is_an_error(void **state)
{
    static const struct test_rule rules[] = {
        {.command = "EVALSHA", .answer = "-NOSCRIPT No matching script.\r\n"},
        {.command = "EVAL", .answer = "-NOSCRIPT No matching script.\r\n"},
    };
    struct test_host host;
    struct test_peer *peer = begin(&host, rules, LEN(rules), "connections=4");

    (void)state;
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_SERVER);
        assert_int_equal(test_peer_commands(peer, "EVALSHA"), i);
        assert_int_equal(test_peer_commands(peer, "EVAL"), i);
    }
    end(&host, peer);
}

/* ---- On accepting --------------------------------------------------------------------------- */

static void test_being_turned_away(void **state)
{
    static const struct refusal refusals[] = {
        {"-ERR max number of clients reached\r\n", REDBUCKET_ERROR_UNAVAILABLE, true, false},
        {"-DENIED Redis is running in protected mode\r\n", REDBUCKET_ERROR_AUTH, true, false},
    };

    (void)state;
    for (size_t i = 0; i < LEN(refusals); i++) {
        const struct test_rule rule = {
            .command = "", .answer = refusals[i].answer, .manner = TEST_CLOSE, .times = 1};
        struct redbucket_error error;
        struct test_host host;
        struct test_peer *peer = begin(&host, &rule, 1, "connections=4");

        assert_int_equal(test_host_ask(&host, "k", NULL), refusals[i].status);
        test_host_failure(&host, &error);
        assert_non_null(strstr(error.message, i == 0 ? "max number of clients" : "protected"));
        assert_int_equal(test_host_recover(&host, "k"), REDBUCKET_ERROR_UNAVAILABLE);
        assert_int_equal(host.down, 1);
        assert_int_equal(host.back, 1);
        end(&host, peer);
    }
}

/* Who repeats the password says nothing of it to anybody else: see test_host_failure. */
static void test_the_password_in_a_farewell(void **state)
{
    static const char farewell[] = "-ERR invalid password " TEST_SECRET "\r\n";
    static const struct test_rule rules[] = {
        {.command = "AUTH", .answer = farewell, .manner = TEST_CLOSE, .times = 1},
        {.command = "EVALSHA", .answer = "-NOPERM " TEST_SECRET "\r\n", .times = 1},
        {.command = "EVALSHA", .answer = farewell, .manner = TEST_CLOSE, .times = 1},
    };
    struct redbucket_error error;
    struct test_host host;
    struct test_peer *peer = begin(&host, rules, LEN(rules), "timeout=20s");

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_ERROR_AUTH);
        test_host_failure(&host, &error);
        assert_non_null(strstr(error.message, "refused, in words that hold the password"));
        test_pause(0.06); /* the circuit's */
    }
    assert_int_equal(test_host_ask(&host, "k", NULL), REDBUCKET_OK);
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
        cmocka_unit_test(test_a_silent_peer_costs_the_timeout),
        cmocka_unit_test(test_a_byte_at_a_time_extends_no_deadline),
        cmocka_unit_test(test_a_late_answer_is_nobodys),
        cmocka_unit_test(test_a_connection_that_breaks),
        cmocka_unit_test(test_what_is_no_reply),
        cmocka_unit_test(test_a_nesting_too_deep),
        cmocka_unit_test(test_answers_that_make_no_sense),
        cmocka_unit_test(test_what_is_said_unasked),
        cmocka_unit_test(test_what_errors_of_a_server_come_to),
        cmocka_unit_test(test_a_forgotten_script_costs_one_more_turn),
        cmocka_unit_test(test_a_script_that_stays_forgotten_is_an_error),
        cmocka_unit_test(test_being_turned_away),
        cmocka_unit_test(test_the_password_in_a_farewell),
    };

    return cmocka_run_group_tests_name("server_peers", tests, start_control, stop_control);
}
