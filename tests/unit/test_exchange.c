/* SPDX-License-Identifier: MIT */
/*
 * Calls on several connections at once, whose servers do whatever they do: each fares as if it were
 * alone, and none waits for another.
 */
#include "caller.h"
#include "processes.h"
#include "test.h"

#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#define PING "*1\r\n$4\r\nPING\r\n"

/* More than are waited for without memory. */
#define MANY 70

/* Servers, a connection to each, and a call on each. */
struct crowd {
    size_t len;
    struct test_actor peers[MANY];
    struct test_caller callers[MANY];
    struct rbk_exchange exchanges[MANY];
};

static const struct rbk_argument ping = {"PING", 4};
static const struct rbk_command pings[] = {{&ping, 1}, {&ping, 1}, {&ping, 1}};

static struct crowd *gather(void)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);

    assert_non_null(crowd);
    return crowd;
}

static void add_on(struct crowd *crowd, test_actor_act *act, void *data, bool over_unix)
{
    size_t at = crowd->len++;

    if (over_unix)
        test_actor_start_unix(&crowd->peers[at], act, data);
    else
        test_actor_start(&crowd->peers[at], act, data);
    test_caller_of(&crowd->callers[at], &crowd->peers[at]);
    assert_int_equal(test_caller_open(&crowd->callers[at], LONG_S), REDBUCKET_OK);
    crowd->exchanges[at] = (struct rbk_exchange){.connection = crowd->callers[at].connection,
                                                 .commands = pings,
                                                 .len = 1,
                                                 .replies = crowd->callers[at].replies,
                                                 .status = REDBUCKET_ERROR_SYSTEM};
}

static void add(struct crowd *crowd, test_actor_act *act, void *data)
{
    add_on(crowd, act, data, false);
}

static void call(struct crowd *crowd, double seconds)
{
    struct rbk_deadline deadline;

    rbk_deadline_start(&deadline, seconds);
    rbk_connections_call(crowd->exchanges, crowd->len, &deadline);
}

static void disperse(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->len; i++) {
        test_caller_fini(&crowd->callers[i]);
        test_actor_stop(&crowd->peers[i]);
    }
    free(crowd);
}

static void assert_answered(struct crowd *crowd, size_t at, const char *text)
{
    assert_int_equal(crowd->exchanges[at].status, REDBUCKET_OK);
    assert_string_equal(crowd->callers[at].replies[0].text, text);
    assert_true(rbk_connection_good(crowd->callers[at].connection));
}

static void assert_failed(struct crowd *crowd, size_t at, enum redbucket_status status,
                          const char *why)
{
    assert_int_equal(crowd->exchanges[at].status, status);
    assert_string_equal(rbk_connection_failure(crowd->callers[at].connection), why);
    assert_false(rbk_connection_good(crowd->callers[at].connection));
}

static bool hear(int fd)
{
    char heard[sizeof PING - 1];

    return test_actor_read(fd, heard, sizeof heard) && memcmp(heard, PING, sizeof heard) == 0;
}

static void say(int fd, const char *text)
{
    (void)test_actor_write(fd, text, strlen(text));
}

static void answer(int fd, void *data)
{
    while (hear(fd))
        say(fd, data);
}

/* Answers when all have been asked. */
static void answer_together(int fd, void *data)
{
    while (hear(fd)) {
        (void)pthread_barrier_wait(data);
        say(fd, "+PONG\r\n");
    }
}

static void call_together(size_t len)
{
    struct crowd *crowd = gather();
    pthread_barrier_t asked;

    assert_int_equal(pthread_barrier_init(&asked, NULL, (unsigned)len), 0);
    while (crowd->len < len)
        add_on(crowd, answer_together, &asked, crowd->len % 2 == 1);
    for (int i = 0; i < 3; i++) {
        call(crowd, LONG_S);
        for (size_t at = 0; at < len; at++)
            assert_answered(crowd, at, "PONG");
    }
    disperse(crowd);
    (void)pthread_barrier_destroy(&asked);
}

static void all_are_asked_before_any_answer_is_awaited(void **state)
{
    (void)state;
    call_together(1);
    call_together(2);
    call_together(64);
    call_together(MANY);
}

static void nobody_is_called_without_an_exchange(void **state)
{
    struct crowd *crowd = gather();

    (void)state;
    call(crowd, SHORT_S);
    add(crowd, answer, "+PONG\r\n");
    add(crowd, answer, "+PONG\r\n");
    crowd->exchanges[0].len = 0;
    call(crowd, LONG_S);
    assert_int_equal(crowd->exchanges[0].status, REDBUCKET_OK);
    assert_answered(crowd, 1, "PONG");
    crowd->exchanges[1].len = 0;
    call(crowd, LONG_S);
    assert_int_equal(crowd->exchanges[0].status, REDBUCKET_OK);
    assert_int_equal(crowd->exchanges[1].status, REDBUCKET_OK);
    assert_true(rbk_connection_good(crowd->callers[0].connection));
    disperse(crowd);
}

static void answer_thrice(int fd, void *data)
{
    (void)data;
    if (hear(fd) && hear(fd) && hear(fd))
        say(fd, ":1\r\n:2\r\n:3\r\n");
    test_actor_drain(fd);
}

static void each_gets_the_replies_to_its_own_commands(void **state)
{
    struct crowd *crowd = gather();

    (void)state;
    add(crowd, answer, "+A\r\n");
    add(crowd, answer_thrice, NULL);
    add(crowd, answer, "-ERR c\r\n");
    crowd->exchanges[1].len = 3;
    call(crowd, LONG_S);
    assert_answered(crowd, 0, "A");
    assert_int_equal(crowd->exchanges[1].status, REDBUCKET_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(crowd->callers[1].replies[i].integer, i + 1);
    assert_answered(crowd, 2, "ERR c");
    assert_int_equal(crowd->callers[2].replies[0].type, RBK_REPLY_ERROR);
    disperse(crowd);
}

static void say_and_close(int fd, void *data)
{
    (void)hear(fd);
    say(fd, data);
}

static void turn_away(int fd, void *data)
{
    say(fd, data);
}

static void await_closed(const struct test_actor *peer)
{
    while (atomic_load(&peer->closed) == 0)
        (void)sched_yield();
}

static void the_dead_harm_nobody(void **state)
{
    struct crowd *crowd = gather();

    (void)state;
    add_on(crowd, turn_away, "", true);
    add_on(crowd, turn_away, "-ERR max number of clients reached\r\n", true);
    add(crowd, answer, "+PONG\r\n");
    add(crowd, say_and_close, "+PO");
    add(crowd, answer, "+PONG\r\n");
    await_closed(&crowd->peers[0]);
    await_closed(&crowd->peers[1]);
    call(crowd, LONG_S);
    assert_int_equal(crowd->exchanges[0].status, REDBUCKET_ERROR_UNAVAILABLE);
    assert_failed(crowd, 1, REDBUCKET_ERROR_UNAVAILABLE, "ERR max number of clients reached");
    assert_answered(crowd, 2, "PONG");
    assert_failed(crowd, 3, REDBUCKET_ERROR_IO, "closed by the server");
    assert_answered(crowd, 4, "PONG");
    /* And again, with what is left of them. */
    call(crowd, LONG_S);
    for (size_t at = 0; at < crowd->len; at++) {
        if (at == 2 || at == 4)
            assert_answered(crowd, at, "PONG");
        else
            assert_failed(crowd, at, REDBUCKET_ERROR_UNAVAILABLE, "failed before");
    }
    disperse(crowd);
}

static void nonsense_is_its_speakers_fault_alone(void **state)
{
    struct crowd *crowd = gather();

    (void)state;
    add(crowd, answer, "HTTP/1.1 400 Bad Request\r\n\r\n");
    add(crowd, answer, "+PONG\r\n");
    add(crowd, answer, "$1000000000\r\n");
    call(crowd, LONG_S);
    assert_int_equal(crowd->exchanges[0].status, REDBUCKET_ERROR_PROTOCOL);
    assert_answered(crowd, 1, "PONG");
    assert_failed(crowd, 2, REDBUCKET_ERROR_PROTOCOL, "a reply of too many bytes");
    disperse(crowd);
}

static void stay_silent(int fd, void *data)
{
    (void)data;
    test_actor_drain(fd);
}

/* Each byte comes in time, the reply never does. */
static void answer_for_ever(int fd, void *data)
{
    (void)hear(fd);
    while (test_actor_write(fd, data, 1))
        continue;
}

static void whoever_is_late_is_so_alone(void **state)
{
    const double seconds = 0.5 * TEST_PATIENCE; /* enough for the others */
    struct crowd *crowd = gather();
    double begin;

    (void)state;
    add(crowd, stay_silent, NULL);
    add(crowd, answer, "+PONG\r\n");
    add(crowd, answer_for_ever, "+");
    add(crowd, answer, "+PONG\r\n");
    begin = test_now();
    call(crowd, seconds);
    test_took(begin, seconds);
    assert_failed(crowd, 0, REDBUCKET_ERROR_TIMEOUT, "no answer in time");
    assert_answered(crowd, 1, "PONG");
    assert_failed(crowd, 2, REDBUCKET_ERROR_TIMEOUT, "no answer in time");
    assert_answered(crowd, 3, "PONG");
    disperse(crowd);
}

static void answer_byte_by_byte(int fd, void *data)
{
    if (hear(fd)) {
        for (const char *text = data; *text != '\0'; text++)
            (void)test_actor_write(fd, text, 1);
    }
    test_actor_drain(fd);
}

static void replies_may_come_a_byte_at_a_time(void **state)
{
    struct crowd *crowd = gather();

    (void)state;
    add(crowd, answer_byte_by_byte, "$5\r\nhello\r\n");
    add(crowd, answer, "+PONG\r\n");
    add(crowd, answer_byte_by_byte, "$14\r\nhello to you, \r\n");
    call(crowd, LONG_S);
    assert_answered(crowd, 0, "hello");
    assert_answered(crowd, 1, "PONG");
    assert_answered(crowd, 2, "hello to you, ");
    disperse(crowd);
}

#define MEGABYTE ((size_t)1 << 20)

/* Two servers, of which one says nothing until the other has got rid of a reply that no socket
 * holds. */
static sem_t rid;

static void answer_at_length(int fd, void *data)
{
    char *bytes = malloc(3 * MEGABYTE);

    (void)data;
    if (bytes != NULL && hear(fd)) {
        memset(bytes, 'x', 3 * MEGABYTE);
        say(fd, "$3145728\r\n");
        (void)test_actor_write(fd, bytes, 3 * MEGABYTE);
        (void)sem_post(&rid);
        say(fd, "\r\n");
    }
    free(bytes);
    test_actor_drain(fd);
}

static void answer_afterwards(int fd, void *data)
{
    if (hear(fd)) {
        while (sem_wait(&rid) != 0)
            continue;
        say(fd, data);
    }
    test_actor_drain(fd);
}

static void replies_are_taken_as_they_come(void **state)
{
    (void)state;
    for (size_t silent = 0; silent < 2; silent++) {
        struct crowd *crowd = gather();

        assert_int_equal(sem_init(&rid, 0, 0), 0);
        for (size_t at = 0; at < 2; at++)
            add(crowd, at == silent ? answer_afterwards : answer_at_length, "+PONG\r\n");
        call(crowd, LONG_S);
        assert_answered(crowd, silent, "PONG");
        assert_int_equal(crowd->exchanges[1 - silent].status, REDBUCKET_OK);
        assert_int_equal(crowd->callers[1 - silent].replies[0].len, 3 * MEGABYTE);
        disperse(crowd);
        (void)sem_destroy(&rid);
    }
}

#define LONG_HEAD "*1\r\n$3145728\r\n"
#define LONG_SIZE (sizeof LONG_HEAD - 1 + 3 * MEGABYTE + 2)

/* Reads what no socket holds, and only once another has been asked. */
static void read_afterwards(int fd, void *data)
{
    char *bytes = malloc(LONG_SIZE);

    while (sem_wait(&rid) != 0)
        continue;
    if (bytes != NULL && test_actor_read(fd, bytes, LONG_SIZE))
        say(fd, data);
    free(bytes);
    test_actor_drain(fd);
}

static void answer_and_tell(int fd, void *data)
{
    if (hear(fd)) {
        (void)sem_post(&rid);
        say(fd, data);
    }
    test_actor_drain(fd);
}

static void nobody_waits_for_one_who_does_not_read(void **state)
{
    struct crowd *crowd = gather();
    char *bytes = calloc(3, MEGABYTE);
    struct rbk_argument argument = {bytes, 3 * MEGABYTE};
    struct rbk_command command = {&argument, 1};

    (void)state;
    assert_non_null(bytes);
    assert_int_equal(sem_init(&rid, 0, 0), 0);
    add(crowd, read_afterwards, "+HEARD\r\n");
    add(crowd, answer_and_tell, "+PONG\r\n");
    crowd->exchanges[0].commands = &command;
    call(crowd, LONG_S);
    assert_answered(crowd, 0, "HEARD");
    assert_answered(crowd, 1, "PONG");
    disperse(crowd);
    (void)sem_destroy(&rid);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_asked_before_any_answer_is_awaited),
        cmocka_unit_test(nobody_is_called_without_an_exchange),
        cmocka_unit_test(each_gets_the_replies_to_its_own_commands),
        cmocka_unit_test(the_dead_harm_nobody),
        cmocka_unit_test(nonsense_is_its_speakers_fault_alone),
        cmocka_unit_test(whoever_is_late_is_so_alone),
        cmocka_unit_test(replies_may_come_a_byte_at_a_time),
        cmocka_unit_test(replies_are_taken_as_they_come),
        cmocka_unit_test(nobody_waits_for_one_who_does_not_read),
    };

    return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}
