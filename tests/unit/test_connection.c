/* SPDX-License-Identifier: MIT */
/*
 * Calls on a connection, against a peer that does whatever a server, a proxy or a network can do.
 */
#include "caller.h"
#include "processes.h"
#include "test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PING "*1\r\n$4\r\nPING\r\n"

static bool hear(int fd, const char *expected)
{
    char heard[256];
    size_t len = strlen(expected);

    return test_actor_read(fd, heard, len) && memcmp(heard, expected, len) == 0;
}

static void say(int fd, const char *text)
{
    (void)test_actor_write(fd, text, strlen(text));
}

/* Answers each PING with `data`. */
static void answer(int fd, void *data)
{
    while (hear(fd, PING))
        say(fd, data);
}

static void a_command_is_answered(void **state)
{
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    for (int over_unix = 0; over_unix < 2; over_unix++) {
        if (over_unix)
            test_actor_start_unix(&peer, answer, "+PONG\r\n");
        else
            test_actor_start(&peer, answer, "+PONG\r\n");
        test_caller_start(&caller, &peer);
        for (int i = 0; i < 100; i++) {
            assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
            assert_int_equal(caller.replies[0].type, RBK_REPLY_STATUS);
            assert_string_equal(caller.replies[0].text, "PONG");
            assert_true(rbk_connection_good(caller.connection));
        }
        assert_int_equal(atomic_load(&peer.accepted), 1);
        test_caller_fini(&caller);
        test_actor_stop(&peer);
    }
}

static void answer_batch(int fd, void *data)
{
    (void)data;
    if (hear(fd, PING PING PING))
        say(fd, ":1\r\n-ERR two\r\n*2\r\n$1\r\na\r\n$-1\r\n");
    test_actor_drain(fd);
}

static void some_commands_are_one_round_trip(void **state)
{
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    test_actor_start(&peer, answer_batch, NULL);
    test_caller_start(&caller, &peer);
    assert_int_equal(test_caller_say(&caller, "PING", 3, LONG_S), REDBUCKET_OK);
    assert_int_equal(caller.replies[0].integer, 1);
    assert_string_equal(caller.replies[1].text, "ERR two");
    assert_string_equal(caller.replies[2].elements[0].text, "a");
    assert_int_equal(caller.replies[2].elements[1].type, RBK_REPLY_NIL);
    assert_int_equal(test_caller_say(&caller, "PING", 0, LONG_S), REDBUCKET_OK);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
}

static void answer_byte_by_byte(int fd, void *data)
{
    const char *text = data;

    if (hear(fd, PING)) {
        for (; *text != '\0'; text++)
            (void)test_actor_write(fd, text, 1);
    }
    test_actor_drain(fd);
}

static void replies_may_come_a_byte_at_a_time(void **state)
{
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    test_actor_start(&peer, answer_byte_by_byte, "*3\r\n$5\r\nhello\r\n:12\r\n+fine\r\n");
    test_caller_start(&caller, &peer);
    assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
    assert_string_equal(caller.replies[0].elements[0].text, "hello");
    assert_int_equal(caller.replies[0].elements[1].integer, 12);
    assert_string_equal(caller.replies[0].elements[2].text, "fine");
    test_caller_fini(&caller);
    test_actor_stop(&peer);
}

#define MEGABYTE ((size_t)1 << 20)

/* Takes but one byte before it has said everything, so that who only writes waits for ever. */
static void answer_first(int fd, void *data)
{
    char *bytes = calloc(1, MEGABYTE);
    char byte;

    (void)data;
    (void)test_actor_read(fd, &byte, 1);
    for (int i = 0; bytes != NULL && i < 8; i++) {
        say(fd, "$1048576\r\n");
        (void)test_actor_write(fd, bytes, MEGABYTE);
        say(fd, "\r\n");
    }
    free(bytes);
    test_actor_drain(fd);
}

static void a_call_reads_while_it_writes(void **state)
{
    char *bytes = calloc(1, 2 * MEGABYTE);
    struct rbk_argument argument = {bytes, 2 * MEGABYTE};
    struct rbk_command commands[8];
    struct rbk_deadline deadline;
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < 8; i++)
        commands[i] = (struct rbk_command){&argument, 1};
    test_actor_start(&peer, answer_first, NULL);
    test_caller_start(&caller, &peer);
    rbk_deadline_start(&deadline, LONG_S);
    /* Replies before the question was out are nonsense, but nobody hangs over them. */
    enum redbucket_status status =
        rbk_connection_call(caller.connection, commands, 8, caller.replies, &deadline);

    assert_true(status == REDBUCKET_OK || status == REDBUCKET_ERROR_PROTOCOL);
    assert_true(rbk_deadline_left(&deadline) > 0);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
    free(bytes);
}

static void stay_silent(int fd, void *data)
{
    (void)data;
    test_actor_drain(fd);
}

static void a_server_that_never_answers_ends_at_the_deadline(void **state)
{
    struct test_actor peer;
    struct test_caller caller;
    double begin;

    (void)state;
    test_actor_start(&peer, stay_silent, NULL);
    test_caller_start(&caller, &peer);
    begin = test_now();
    assert_int_equal(test_caller_say(&caller, "PING", 1, SHORT_S), REDBUCKET_ERROR_TIMEOUT);
    test_took(begin, SHORT_S);
    assert_string_equal(rbk_connection_failure(caller.connection), "no answer in time");
    assert_false(rbk_connection_good(caller.connection));
    test_caller_fini(&caller);
    test_actor_stop(&peer);
}

/* Counts what it hears. */
static void listen_up(int fd, void *data)
{
    char byte;

    while (test_actor_read(fd, &byte, 1))
        (void)atomic_fetch_add((atomic_int *)data, 1);
}

static void nothing_is_said_without_time_for_an_answer(void **state)
{
    atomic_int heard = 0;
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    test_actor_start(&peer, listen_up, &heard);
    test_caller_start(&caller, &peer);
    assert_int_equal(test_caller_say(&caller, "PING", 1, 0.0), REDBUCKET_ERROR_TIMEOUT);
    assert_string_equal(rbk_connection_failure(caller.connection), "no time was left");
    assert_false(rbk_connection_good(caller.connection));
    test_caller_fini(&caller);
    test_actor_stop(&peer);
    assert_int_equal(heard, 0);
}

/* Each byte comes in time, the reply never does. */
static void answer_for_ever(int fd, void *data)
{
    (void)hear(fd, PING);
    while (test_actor_write(fd, data, 1))
        continue;
}

static void drops_that_keep_coming_end_at_the_deadline(void **state)
{
    struct test_actor peer;
    struct test_caller caller;
    double begin;

    (void)state;
    test_actor_start(&peer, answer_for_ever, "+");
    test_caller_start(&caller, &peer);
    begin = test_now();
    assert_int_equal(test_caller_say(&caller, "PING", 1, SHORT_S), REDBUCKET_ERROR_TIMEOUT);
    test_took(begin, SHORT_S);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
}

/* Answers only when the test says that the time is over. */
struct late {
    int told[2];
};

static void answer_late(int fd, void *data)
{
    struct late *late = data;
    char byte;

    if (hear(fd, PING) && read(late->told[0], &byte, 1) == 1)
        say(fd, "+LATE\r\n");
    test_actor_drain(fd);
}

static void a_late_reply_answers_nothing(void **state)
{
    struct late late;
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    assert_int_equal(pipe(late.told), 0);
    test_actor_start(&peer, answer_late, &late);
    test_caller_start(&caller, &peer);
    assert_int_equal(test_caller_say(&caller, "PING", 1, SHORT_S), REDBUCKET_ERROR_TIMEOUT);
    assert_int_equal(write(late.told[1], "x", 1), 1);
    assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_ERROR_UNAVAILABLE);
    assert_string_equal(rbk_connection_failure(caller.connection), "failed before");
    assert_false(rbk_connection_good(caller.connection));
    test_caller_fini(&caller);
    test_actor_stop(&peer);
    (void)close(late.told[0]);
    (void)close(late.told[1]);
}

/* Says `data` and hangs up. */
static void answer_and_close(int fd, void *data)
{
    (void)hear(fd, PING);
    say(fd, data);
}

static enum redbucket_status ask(test_actor_act *act, char *text, size_t len, char *failure)
{
    struct test_actor peer;
    struct test_caller caller;
    enum redbucket_status status;

    test_actor_start(&peer, act, text);
    test_caller_start(&caller, &peer);
    status = test_caller_say(&caller, "PING", len, LONG_S);
    if (failure != NULL)
        (void)snprintf(failure, 200, "%s", rbk_connection_failure(caller.connection));
    assert_int_equal(rbk_connection_good(caller.connection), false);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
    return status;
}

static void a_connection_that_ends_in_the_middle_is_an_error(void **state)
{
    static char *const pieces[] = {"", "+", "+OK", "+OK\r", "$5\r\nab", "*2\r\n:1\r\n", "-ERR x"};
    char failure[200];

    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        assert_int_equal(ask(answer_and_close, pieces[i], 1, failure), REDBUCKET_ERROR_IO);
        assert_string_equal(failure, "closed by the server");
    }
    /* One reply of two, even when it is an error. */
    assert_int_equal(ask(answer_and_close, "+OK\r\n", 2, NULL), REDBUCKET_ERROR_IO);
    assert_int_equal(ask(answer_and_close, "-LOADING x\r\n", 2, NULL), REDBUCKET_ERROR_IO);
}

static void a_server_that_turns_us_away_says_why(void **state)
{
    char failure[200];

    (void)state;
    assert_int_equal(ask(answer_and_close, "-ERR max number of clients reached\r\n", 2, failure),
                     REDBUCKET_ERROR_UNAVAILABLE);
    assert_string_equal(failure, "ERR max number of clients reached");
    assert_int_equal(
        ask(answer_and_close, "-DENIED Redis is running in protected mode\r\n", 2, NULL),
        REDBUCKET_ERROR_AUTH);
}

/* Without having read anything. */
static void turn_away(int fd, void *data)
{
    say(fd, data);
}

static void what_it_said_before_it_hung_up_is_heard(void **state)
{
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    test_actor_start_unix(&peer, turn_away, "-ERR max number of clients reached\r\n");
    for (int len = 1; len <= 3; len++) {
        test_caller_of(&caller, &peer);
        assert_int_equal(test_caller_open(&caller, LONG_S), REDBUCKET_OK);
        while (atomic_load(&peer.closed) < len)
            (void)sched_yield();
        assert_int_equal(test_caller_say(&caller, "PING", (size_t)len, LONG_S),
                         REDBUCKET_ERROR_UNAVAILABLE);
        assert_string_equal(rbk_connection_failure(caller.connection),
                            "ERR max number of clients reached");
        test_caller_fini(&caller);
    }
    test_actor_stop(&peer);
}

static void nonsense_is_an_error(void **state)
{
    static char *const texts[] = {"HTTP/1.1 400 Bad Request\r\n\r\n",
                                  "\x15\x03\x01",
                                  "$1000000000\r\n",
                                  "*1000000000\r\n",
                                  "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
                                  ">2\r\n+a\r\n+b\r\n",
                                  "+OK\r\n+OK\r\n",
                                  "+OK\r\n+"};
    char failure[200];

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(ask(answer_and_close, texts[i], 1, failure), REDBUCKET_ERROR_PROTOCOL);
        assert_true(strlen(failure) > 0);
    }
    assert_int_equal(ask(answer_and_close, "$1000000000\r\n", 1, failure),
                     REDBUCKET_ERROR_PROTOCOL);
    assert_string_equal(failure, "a reply of too many bytes");
}

/* Hangs up, or says something, once the test has been answered. */
static void answer_then(int fd, void *data)
{
    (void)hear(fd, PING);
    say(fd, "+OK\r\n");
    say(fd, data);
    if (*(const char *)data != '\0')
        test_actor_drain(fd);
}

static void an_idle_connection_is_looked_at(void **state)
{
    static char *const after[] = {"", "+UNASKED\r\n"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct test_actor peer;
        struct test_caller caller;
        double begin = test_now();
        enum redbucket_status status;

        test_actor_start(&peer, answer_then, after[i]);
        test_caller_start(&caller, &peer);
        status = test_caller_say(&caller, "PING", 1, LONG_S);
        assert_true(status == REDBUCKET_OK || (i == 1 && status == REDBUCKET_ERROR_PROTOCOL));
        while (rbk_connection_good(caller.connection) && test_now() < begin + LONG_S)
            continue;
        assert_false(rbk_connection_good(caller.connection));
        test_caller_fini(&caller);
        test_actor_stop(&peer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_is_answered),
        cmocka_unit_test(some_commands_are_one_round_trip),
        cmocka_unit_test(replies_may_come_a_byte_at_a_time),
        cmocka_unit_test(a_call_reads_while_it_writes),
        cmocka_unit_test(a_server_that_never_answers_ends_at_the_deadline),
        cmocka_unit_test(nothing_is_said_without_time_for_an_answer),
        cmocka_unit_test(drops_that_keep_coming_end_at_the_deadline),
        cmocka_unit_test(a_late_reply_answers_nothing),
        cmocka_unit_test(a_connection_that_ends_in_the_middle_is_an_error),
        cmocka_unit_test(a_server_that_turns_us_away_says_why),
        cmocka_unit_test(what_it_said_before_it_hung_up_is_heard),
        cmocka_unit_test(nonsense_is_an_error),
        cmocka_unit_test(an_idle_connection_is_looked_at),
    };

    return cmocka_run_group_tests_name("connection", tests, NULL, NULL);
}
