/* SPDX-License-Identifier: MIT */
/*
 * The program around a store in tests of faults.
 */
#include "host.h"

#include "processes.h"
#include "test.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* The circuit's longest pause, and some for a machine that is busy. */
#define REST_S    1.05
#define PATIENCE  (10.0 * TEST_PATIENCE)
#define PIECE_S   0.005
#define ALLOWANCE (TEST_SANITIZED ? 0.3 : 0.1)

/* A machine may be quick to wake who sleeps for a moment, and slow with who has slept for long and
 * wakes together with others. */
#define SLEEPERS 9
#define LONG_S   0.1

struct sleeper {
    pthread_t thread;
    double begin_s; /* its first sleep, so that they don't all wake together */
    double piece_s; /* each other one */
};

static struct {
    struct sleeper sleepers[SLEEPERS];
    atomic_bool ending;
    _Atomic double late;
} control;

static __thread double kept_before; /* at the last reset by this thread */

static void hear(void *data, enum redbucket_event event, const char *message)
{
    struct test_host *host = data;

    /* Perhaps in a thread of the test's, where an assertion would jump astray. */
    if (message[0] == '\0' || strstr(message, TEST_SECRET) != NULL)
        abort();
    if (event == REDBUCKET_EVENT_DOWN)
        (void)atomic_fetch_add(&host->down, 1);
    else if (event == REDBUCKET_EVENT_BACK)
        (void)atomic_fetch_add(&host->back, 1);
    else if (event == REDBUCKET_EVENT_DEGRADED)
        (void)atomic_fetch_add(&host->degraded, 1);
}

void test_host_open(struct test_host *host, const char *url)
{
    struct redbucket_error error = {.message = ""};

    memset(host, 0, sizeof *host);
    if (redbucket_store_open(url, &host->store, &error) != REDBUCKET_OK)
        fail_msg("%s: %s", url, error.message);
    redbucket_store_listen(host->store, hear, host);
    assert_int_equal(redbucket_limiter_create(host->store, &host->limiter, NULL), REDBUCKET_OK);
}

void test_host_limit(struct test_host *host, const char *name, double rate, double burst)
{
    const struct redbucket_limit limit = {.rate = rate, .burst = burst};

    assert_int_equal(redbucket_limiter_add(host->limiter, name, &limit, NULL), REDBUCKET_OK);
}

void test_host_close(struct test_host *host)
{
    redbucket_limiter_destroy(host->limiter);
    redbucket_store_close(host->store);
}

void test_host_failure(struct test_host *host, struct redbucket_error *error)
{
    struct redbucket_error last;

    redbucket_store_failure(host->store, &last);
    if (memmem(last.message, sizeof last.message, TEST_SECRET, strlen(TEST_SECRET)) != NULL)
        abort();
    if (error != NULL)
        *error = last;
}

enum redbucket_status test_host_ask(struct test_host *host, const char *key,
                                    struct redbucket_response *response)
{
    struct redbucket_key named = {"a", key};
    struct redbucket_response unwanted;
    enum redbucket_status status =
        redbucket_request(host->limiter, &named, 1, response == NULL ? &unwanted : response);

    if (status != REDBUCKET_OK)
        test_host_failure(host, NULL);
    return status;
}

enum redbucket_status test_host_time(struct test_host *host, const char *key, double *took)
{
    double begin = test_now();
    enum redbucket_status status = test_host_ask(host, key, NULL);

    *took = test_now() - begin;
    return status;
}

enum redbucket_status test_host_recover(struct test_host *host, const char *key)
{
    enum redbucket_status first = test_host_ask(host, key, NULL);
    enum redbucket_status status = first;
    double until = test_now() + PATIENCE;

    while (status != REDBUCKET_OK) {
        if (test_now() > until)
            fail_msg("never back: %s", redbucket_status_name(status));
        test_pause(PIECE_S);
        status = test_host_ask(host, key, NULL);
    }
    return first;
}

void test_host_rest(void)
{
    test_pause(REST_S);
}

double test_host_value(struct test_host *host, const char *key)
{
    struct redbucket_key named = {"a", key};
    struct redbucket_state state;

    assert_int_equal(redbucket_read(host->limiter, &named, &state), REDBUCKET_OK);
    return state.exists ? state.value : 0.0;
}

uint64_t test_host_counted_degraded(struct test_host *host)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};

    assert_int_equal(redbucket_store_statistics(host->store, &statistics), REDBUCKET_OK);
    return statistics.degraded;
}

/* ---- The control ---------------------------------------------------------------------------- */

static void note_late(double late)
{
    double before = atomic_load(&control.late);

    while (late > before && !atomic_compare_exchange_weak(&control.late, &before, late))
        continue;
}

static void *only_sleep(void *data)
{
    const struct sleeper *sleeper = data;

    test_pause(sleeper->begin_s);
    while (!atomic_load(&control.ending)) {
        double begin = test_now();

        test_pause(sleeper->piece_s);
        note_late(test_now() - begin - sleeper->piece_s);
    }
    return NULL;
}

void test_control_start(void)
{
    atomic_store(&control.ending, false);
    atomic_store(&control.late, 0.0);
    for (int i = 0; i < SLEEPERS; i++) {
        struct sleeper *sleeper = &control.sleepers[i];

        sleeper->begin_s = LONG_S * i / SLEEPERS;
        sleeper->piece_s = i == 0 ? PIECE_S : LONG_S;
        assert_int_equal(pthread_create(&sleeper->thread, NULL, only_sleep, sleeper), 0);
    }
}

void test_control_stop(void)
{
    atomic_store(&control.ending, true);
    for (int i = 0; i < SLEEPERS; i++)
        assert_int_equal(pthread_join(control.sleepers[i].thread, NULL), 0);
}

/* Seconds for which this thread had something to do and no processor to do it on; 0 where the
 * system doesn't tell. Sleepers are preferred to whoever has been busy, so that they don't show
 * that. */
static double kept_s(void)
{
    FILE *file = fopen("/proc/thread-self/schedstat", "re");
    unsigned long long kept_ns = 0;

    if (file == NULL)
        return 0.0;
    if (fscanf(file, "%*u %llu", &kept_ns) != 1)
        kept_ns = 0;
    (void)fclose(file);
    return (double)kept_ns * 1e-9;
}

void test_control_reset(void)
{
    atomic_store(&control.late, 0.0);
    kept_before = kept_s();
}

double test_control_late(void)
{
    /* Whatever held us up may have the control in its grip still. */
    test_pause(LONG_S * 2);
    return atomic_load(&control.late);
}

void test_control_check(double took, double seconds)
{
    if (took <= seconds + ALLOWANCE)
        return;
    double kept = kept_s() - kept_before;
    double late = test_control_late();

    if (took > seconds + ALLOWANCE + 2.0 * late + kept)
        fail_msg(
            "took %.0f ms of %.0f ms, where who slept was %.0f ms late, and it was kept %.0f ms",
            took * 1e3, seconds * 1e3, late * 1e3, kept * 1e3);
}

int test_open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    return count - 3; /* two dots and the folder itself */
}
