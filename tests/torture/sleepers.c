/* SPDX-License-Identifier: MIT */
/*
 * Lateness is noted for each tenth of a second that it touched.
 */
#include "sleepers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define SLEEPERS 5
#define SHORT_S  0.005
#define LONG_S   0.05
#define BIN_S    0.1

static const double pieces[SLEEPERS] = {SHORT_S, LONG_S, LONG_S, LONG_S, LONG_S};

static struct {
    pthread_t threads[SLEEPERS];
    atomic_bool ending;
    double begin;
    size_t bins_len;
    _Atomic double *bins;
} all;

double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double used_s(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

static long given_up(void)
{
    struct rusage usage = {0};

    (void)getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

void stretch_begin(struct stretch *stretch)
{
    *stretch = (struct stretch){now_s(), used_s(), given_up()};
}

void stretch_end(const struct stretch *stretch)
{
    double end = now_s();

    if (given_up() == stretch->given_up)
        sleepers_note(stretch->begin, end, end - stretch->begin - (used_s() - stretch->used));
}

static size_t bin_of(double time)
{
    double bin = (time - all.begin) / BIN_S;

    if (bin < 0.0)
        return 0;
    return (size_t)bin < all.bins_len ? (size_t)bin : all.bins_len - 1;
}

void sleepers_note(double begin, double end, double late)
{
    for (size_t i = bin_of(begin); i <= bin_of(end); i++) {
        double before = atomic_load(&all.bins[i]);

        while (late > before && !atomic_compare_exchange_weak(&all.bins[i], &before, late))
            continue;
    }
}

static void *only_sleep(void *data)
{
    double piece = *(const double *)data;

    while (!atomic_load(&all.ending)) {
        double begin = now_s();
        double end;

        nanosleep(&(struct timespec){.tv_nsec = (long)(piece * 1e9)}, NULL);
        end = now_s();
        sleepers_note(begin, end, end - begin - piece);
    }
    return NULL;
}

void sleepers_start(double seconds)
{
    all.begin = now_s();
    all.bins_len = (size_t)(seconds / BIN_S) + 1;
    all.bins = calloc(all.bins_len, sizeof all.bins[0]);
    if (all.bins == NULL)
        abort();
    for (int i = 0; i < SLEEPERS; i++) {
        if (pthread_create(&all.threads[i], NULL, only_sleep, (void *)&pieces[i]) != 0)
            abort();
    }
}

void sleepers_stop(void)
{
    atomic_store(&all.ending, true);
    for (int i = 0; i < SLEEPERS; i++)
        (void)pthread_join(all.threads[i], NULL);
}

double sleepers_late(double begin, double end)
{
    double late = 0.0;

    for (size_t i = bin_of(begin); i <= bin_of(end); i++) {
        double one = atomic_load(&all.bins[i]);

        late = one > late ? one : late;
    }
    return late;
}
