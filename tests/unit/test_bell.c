/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a bell: who is woken, when it ends, and what a signal does to it.
 */
#include "bell.h"
#include "interrupt.h"
#include "processes.h"
#include "redbucket/interrupt.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#define WAITERS 4
#define LONG_S  30.0
#define SHORT_S 0.1

static struct {
    pthread_mutex_t mutex;
    struct rbk_bell bell;
    int gone; /* how many have ended their wait */
    int late; /* how many of them, because time was over */
    int asked;
} world;

static bool await(double seconds)
{
    struct rbk_deadline deadline;

    rbk_deadline_start(&deadline, seconds);
    return rbk_bell_await(&world.bell, &world.mutex, &deadline);
}

static void *wait_once(void *data)
{
    (void)data;
    pthread_mutex_lock(&world.mutex);
    world.late += !await(LONG_S);
    world.gone++;
    pthread_mutex_unlock(&world.mutex);
    return NULL;
}

static int look(const int *number)
{
    pthread_mutex_lock(&world.mutex);
    int seen = *number;

    pthread_mutex_unlock(&world.mutex);
    return seen;
}

static void await_number(const int *number, int wanted)
{
    double until = test_now() + LONG_S / 2;

    while (look(number) < wanted) {
        assert_true(test_now() < until);
        sched_yield();
    }
}

static void start(pthread_t *threads)
{
    world.gone = world.late = 0;
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_once, NULL), 0);
    await_number((const int *)&world.bell.waiting, WAITERS);
}

static void ring(void (*how)(struct rbk_bell *bell))
{
    pthread_mutex_lock(&world.mutex);
    how(&world.bell);
    pthread_mutex_unlock(&world.mutex);
}

static void join(pthread_t *threads)
{
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(world.late, 0);
    assert_int_equal(world.bell.waiting, 0);
}

/* One may wake more, who was about to sleep; not fewer. */
static void each_ring_wakes_somebody(void **state)
{
    pthread_t threads[WAITERS];

    (void)state;
    start(threads);
    for (int i = 1; i <= WAITERS; i++) {
        ring(rbk_bell_ring);
        await_number(&world.gone, i);
    }
    join(threads);
}

static void all_are_woken_at_once(void **state)
{
    pthread_t threads[WAITERS];

    (void)state;
    start(threads);
    ring(rbk_bell_ring_all);
    await_number(&world.gone, WAITERS);
    join(threads);
}

static void time_ends_it(void **state)
{
    double began = test_now();
    bool more = true;

    (void)state;
    pthread_mutex_lock(&world.mutex);
    while (more)
        more = await(SHORT_S);
    pthread_mutex_unlock(&world.mutex);
    assert_true(test_now() - began >= SHORT_S);
}

static void take_signal(int number)
{
    (void)number;
}

static void start_storm(bool on)
{
    const struct sigaction action = {.sa_handler = take_signal};
    const struct itimerval every = {.it_interval.tv_usec = on ? 1000 : 0,
                                    .it_value.tv_usec = on ? 1000 : 0};

    if (on)
        assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

/* As a host that has had enough at the third signal. Nobody holds a lock meanwhile. */
static bool is_third(void *data)
{
    (void)data;
    if (pthread_mutex_trylock(&world.mutex) != 0)
        abort();
    pthread_mutex_unlock(&world.mutex);
    return ++world.asked >= 3;
}

static void a_host_may_leave_at_a_signal(void **state)
{
    double began = test_now();

    (void)state;
    world.asked = 0;
    redbucket_thread_interrupt(is_third, NULL);
    start_storm(true);
    pthread_mutex_lock(&world.mutex);
    while (await(LONG_S))
        continue;
    pthread_mutex_unlock(&world.mutex);
    start_storm(false);
    redbucket_thread_interrupt(NULL, NULL);
    assert_int_equal(world.asked, 3);
    assert_true(test_now() - began < LONG_S / 2);
}

static void a_signal_alone_ends_nothing(void **state)
{
    double began = test_now();
    bool more = true;

    (void)state;
    start_storm(true);
    pthread_mutex_lock(&world.mutex);
    while (more) {
        struct rbk_deadline deadline;

        rbk_deadline_start(&deadline,
                           began + SHORT_S > test_now() ? began + SHORT_S - test_now() : 0);
        more = rbk_bell_await(&world.bell, &world.mutex, &deadline);
    }
    pthread_mutex_unlock(&world.mutex);
    start_storm(false);
    assert_true(test_now() - began >= SHORT_S);
}

/* What a host has said holds for the rest of the call, and not for the next. */
static void enough_is_enough_until_the_call_ends(void **state)
{
    struct rbk_deadline deadline;

    (void)state;
    world.asked = 2;
    rbk_deadline_start(&deadline, LONG_S);
    redbucket_thread_interrupt(is_third, NULL);
    rbk_interrupt_begin();
    assert_true(rbk_deadline_left(&deadline) > 0.0);
    assert_true(rbk_interrupted());
    assert_true(rbk_deadline_left(&deadline) == 0.0);
    rbk_interrupt_begin(); /* a listener's own call, say */
    rbk_interrupt_end();
    assert_true(rbk_deadline_left(&deadline) == 0.0);
    rbk_interrupt_end();
    assert_true(rbk_deadline_left(&deadline) > 0.0);
    assert_true(rbk_interrupted());
    assert_true(rbk_deadline_left(&deadline) > 0.0); /* outside of calls nothing is kept */
    redbucket_thread_interrupt(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_ring_wakes_somebody),
        cmocka_unit_test(all_are_woken_at_once),
        cmocka_unit_test(time_ends_it),
        cmocka_unit_test(a_host_may_leave_at_a_signal),
        cmocka_unit_test(a_signal_alone_ends_nothing),
        cmocka_unit_test(enough_is_enough_until_the_call_ends),
    };

    (void)pthread_mutex_init(&world.mutex, NULL);
    return cmocka_run_group_tests_name("bell", tests, NULL, NULL);
}
