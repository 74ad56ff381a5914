/* SPDX-License-Identifier: MIT */
/*
 * Many processes with many threads on one key: in all, no more than the limit allows gets through,
 * and nearly that; also while one of them is killed and started anew again and again.
 *
 * Workers are this program, started again. They count what they were given in memory that they
 * share with the test, by the store's own clock, so that the time counted is just the time in which
 * the last of the permits could be given: until a moment that the test sets ahead.
 */
#include "processes.h"
#include "stores.h"
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROCESSES 8
#define THREADS   2
#define SECONDS   3.0
#define KILLS     100
#define TICK      2e-6

static const struct redbucket_limit limit = {.rate = 1000, .burst = 1000};

/* Times are in microseconds of the store's clock, so that they are atomic. */
struct board {
    atomic_int go;
    atomic_int ready;
    atomic_int errors;
    atomic_llong until;    /* permits given later don't count */
    atomic_ullong counted; /* permits given until then */
    atomic_ullong permits; /* all of them */
    atomic_ullong rejected;
    atomic_int asked[PROCESSES]; /* of the present worker in each place */
};

struct worker {
    struct board *board;
    struct redbucket_limiter *limiter;
    int place;
};

static double store_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Asks as fast as it can. What it was given is on the board before it asks again. */
static void *hammer(void *data)
{
    struct worker *worker = data;
    struct board *board = worker->board;
    double until = INFINITY;
    double time = 0.0;

    if (!test_await((volatile int *)&board->go))
        atomic_fetch_add(&board->errors, 1);
    while (time < until) {
        struct redbucket_response response;

        if (redbucket_request(worker->limiter, &(struct redbucket_key){"a", "key", 0, 0}, 1,
                              &response) != REDBUCKET_OK) {
            atomic_fetch_add(&board->errors, 1);
            continue;
        }
        until = (double)atomic_load(&board->until) * 1e-6;
        time = response.time;
        if (response.accepted) {
            atomic_fetch_add(&board->permits, 1);
            atomic_fetch_add(&board->counted, time <= until);
        } else {
            atomic_fetch_add(&board->rejected, 1);
        }
        atomic_fetch_add(&board->asked[worker->place], 1);
    }
    return NULL;
}

/* A worker's main: worker URL FD PLACE. */
static int work(char *argv[])
{
    struct worker worker = {.board = test_share_again(sizeof(struct board), atoi(argv[3])),
                            .place = atoi(argv[4])};
    struct redbucket_store *store = NULL;
    pthread_t threads[THREADS];

    if (redbucket_store_open(argv[2], &store, NULL) != REDBUCKET_OK ||
        redbucket_limiter_create(store, &worker.limiter, NULL) != REDBUCKET_OK ||
        redbucket_limiter_add(worker.limiter, "a", &limit, NULL) != REDBUCKET_OK)
        return 1;
    atomic_fetch_add(&worker.board->ready, 1);
    for (int i = 0; i < THREADS; i++)
        child_check(pthread_create(&threads[i], NULL, hammer, &worker) == 0);
    for (int i = 0; i < THREADS; i++)
        child_check(pthread_join(threads[i], NULL) == 0);
    redbucket_limiter_destroy(worker.limiter);
    redbucket_store_close(store);
    return 0;
}

struct crowd {
    char url[128];
    int fd;
    struct board *board;
    pid_t pids[PROCESSES];
};

static pid_t start_worker(struct crowd *crowd, int place)
{
    char fd[16], number[16];

    (void)snprintf(fd, sizeof fd, "%d", crowd->fd);
    (void)snprintf(number, sizeof number, "%d", place);
    atomic_store(&crowd->board->asked[place], 0);
    return test_spawn((char *[]){"test_hammer", "worker", crowd->url, fd, number, NULL});
}

/* Starts all of them at one moment, which is returned. */
static double start_crowd(struct crowd *crowd)
{
    test_store_url(&test_stores[1], "?timeout=30s", crowd->url, sizeof crowd->url);
    crowd->board = test_share_fd(sizeof *crowd->board, &crowd->fd);
    atomic_store(&crowd->board->until, (long long)1e18);
    for (int i = 0; i < PROCESSES; i++)
        crowd->pids[i] = start_worker(crowd, i);
    for (int i = 0; atomic_load(&crowd->board->ready) < PROCESSES; i++) {
        test_pause(0.001);
        assert_true(i < 60000);
    }
    double begun = store_now();

    atomic_store(&crowd->board->go, 1);
    return begun;
}

/* Sets the end, a moment ahead, and waits for everybody's. Returns what the end is. */
static double end_crowd(struct crowd *crowd)
{
    double until = floor((store_now() + 0.25) * 1e6) * 1e-6;

    atomic_store(&crowd->board->until, (long long)(until * 1e6 + 0.5));
    for (int i = 0; i < PROCESSES; i++)
        test_join(crowd->pids[i]);
    return until;
}

/* What T seconds allow. */
static double bound(double seconds)
{
    return limit.burst + 1.0 + limit.rate * (seconds + TICK);
}

/* Fails the test unless at most the bound was given, and at least 99 % of it, less `kills`. */
static void check_crowd(struct crowd *crowd, double begun, double until, double kills)
{
    struct redbucket_store *store = test_store_open(crowd->url);
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct board *board = crowd->board;
    double counted = (double)atomic_load(&board->counted);
    double permits = (double)atomic_load(&board->permits);

    assert_int_equal(redbucket_store_statistics(store, &statistics), REDBUCKET_OK);
    assert_int_equal(atomic_load(&board->errors), 0);
    assert_true(permits <= bound(store_now() - begun));
    assert_true(counted <= bound(until - begun));
    if (counted < 0.99 * bound(until - begun) - kills)
        fail_msg("%.0f permits in %.6f s, of %.0f", counted, until - begun, bound(until - begun));
    assert_true(atomic_load(&board->rejected) > 0);
    /* Those that were given and not counted by the store, or by a worker, died in between. */
    assert_true(fabs((double)statistics.accepted - permits) <= THREADS * kills);
    assert_int_equal(statistics.buckets, 1);
    test_store_drop(crowd->url, store);
    test_unshare(board, sizeof *board);
    (void)close(crowd->fd);
}

static void test_hot_key(void **state)
{
    struct crowd crowd;
    double begun = start_crowd(&crowd);
    double until;

    (void)state;
    test_pause(SECONDS);
    until = end_crowd(&crowd);
    check_crowd(&crowd, begun, until, 0);
}

/* Kills the worker once it has been at work, at a moment of its own each time. */
static void kill_and_restart(struct crowd *crowd, unsigned *seed)
{
    for (int i = 0; atomic_load(&crowd->board->asked[0]) == 0; i++) {
        test_pause(0.0001);
        assert_true(i < 600000);
    }
    for (unsigned spins = test_random(seed, 20000); spins > 0; spins--)
        atomic_signal_fence(memory_order_seq_cst);
    test_kill(crowd->pids[0]);
    crowd->pids[0] = start_worker(crowd, 0);
}

static void test_hot_key_and_kills(void **state)
{
    unsigned seed = (unsigned)getpid();
    struct crowd crowd;
    double begun = start_crowd(&crowd);
    double until;

    (void)state;
    for (int i = 0; i < KILLS; i++)
        kill_and_restart(&crowd, &seed);
    while (store_now() < begun + SECONDS)
        test_pause(0.01);
    until = end_crowd(&crowd);
    check_crowd(&crowd, begun, until, KILLS);
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hot_key),
        cmocka_unit_test(test_hot_key_and_kills),
    };

    if (argc == 5 && strcmp(argv[1], "worker") == 0)
        return work(argv);
    return cmocka_run_group_tests_name("hammer", tests, NULL, test_clean_up);
}
