/* SPDX-License-Identifier: MIT */
/*
 * Connections in a process that has signals and children.
 */
#include "caller.h"
#include "processes.h"
#include "redbucket/interrupt.h"
#include "test.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>

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

static void stay_silent(int fd, void *data)
{
    (void)data;
    test_actor_drain(fd);
}

/* Waits for the semaphore in between: a reset would overtake the answer. */
static void answer_and_reset(int fd, void *data)
{
    (void)hear(fd, PING);
    say(fd, "+OK\r\n");
    (void)sem_wait(data);
    test_actor_reset(fd);
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

/* As hosts may have left it: without SA_RESTART. */
static void handle(int number, struct sigaction *before)
{
    struct sigaction action = {.sa_handler = count_signal};

    signals = 0;
    assert_int_equal(sigaction(number, &action, before), 0);
}

static void a_closed_connection_raises_no_signal(void **state)
{
    struct sigaction before, after;
    sem_t reset;
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    handle(SIGPIPE, &before);
    assert_int_equal(sem_init(&reset, 0, 0), 0);
    for (int i = 0; i < 10; i++) {
        test_actor_start(&peer, answer_and_reset, &reset);
        test_caller_start(&caller, &peer);
        assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
        (void)sem_post(&reset);
        while (rbk_connection_good(caller.connection))
            continue;
        /* Not a byte was sent, so nothing was done. */
        assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_ERROR_UNAVAILABLE);
        test_caller_fini(&caller);
        test_actor_stop(&peer);
    }
    assert_int_equal(signals, 0);
    assert_int_equal(sigaction(SIGPIPE, &before, &after), 0);
    assert_ptr_equal(after.sa_handler, count_signal);
}

static void start_storm(bool on)
{
    struct itimerval every = {.it_interval.tv_usec = on ? 1000 : 0,
                              .it_value.tv_usec = on ? 1000 : 0};

    assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static void a_storm_of_signals_disturbs_nothing(void **state)
{
    struct sigaction before;
    struct test_actor peer;
    struct test_caller caller;
    double begin;

    (void)state;
    handle(SIGALRM, &before);
    start_storm(true);
    test_actor_start(&peer, answer, "+PONG\r\n");
    for (int i = 0; i < 100 || signals < 100; i++) {
        test_caller_start(&caller, &peer);
        assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
        test_caller_fini(&caller);
    }
    test_actor_stop(&peer);

    test_actor_start(&peer, stay_silent, NULL);
    test_caller_start(&caller, &peer);
    begin = test_now();
    assert_int_equal(test_caller_say(&caller, "PING", 1, SHORT_S), REDBUCKET_ERROR_TIMEOUT);
    test_took(begin, SHORT_S);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
    start_storm(false);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
}

/* A host that has had enough at the third signal. */
static bool is_third(void *data)
{
    int *asked = data;

    return ++*asked >= 3;
}

static void a_host_may_end_a_wait_at_a_signal(void **state)
{
    struct sigaction before;
    struct test_actor peer;
    struct test_caller caller;
    int asked = 0;

    (void)state;
    handle(SIGALRM, &before);
    test_actor_start(&peer, stay_silent, NULL);
    test_caller_start(&caller, &peer);
    redbucket_thread_interrupt(is_third, &asked);
    start_storm(true);
    double begin = test_now();

    assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_ERROR_IO);
    assert_true(test_now() - begin < LONG_S / 2);
    assert_int_equal(asked, 3);
    redbucket_thread_interrupt(NULL, NULL);
    start_storm(false);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
}

static void close_copy(void *data)
{
    rbk_connection_close(data);
}

static void abandon_copy(void *data)
{
    rbk_connection_abandon(data);
}

static void a_child_closes_its_copy_and_no_more(void **state)
{
    struct test_actor peer;
    struct test_caller caller;

    (void)state;
    test_actor_start(&peer, answer, "+PONG\r\n");
    test_caller_start(&caller, &peer);
    assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
    test_join(test_fork(close_copy, caller.connection));
    assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
    test_join(test_fork(abandon_copy, caller.connection));
    assert_int_equal(test_caller_say(&caller, "PING", 1, LONG_S), REDBUCKET_OK);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
    rbk_connection_close(NULL);
    rbk_connection_abandon(NULL);
    rbk_transport_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_closed_connection_raises_no_signal),
        cmocka_unit_test(a_storm_of_signals_disturbs_nothing),
        cmocka_unit_test(a_host_may_end_a_wait_at_a_signal),
        cmocka_unit_test(a_child_closes_its_copy_and_no_more),
    };

    return cmocka_run_group_tests_name("connection signals", tests, NULL, NULL);
}
