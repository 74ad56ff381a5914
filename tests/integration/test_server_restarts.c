/* SPDX-License-Identifier: MIT */
/*
 * A long trouble: 64 threads share a store whose server is killed and started again every second,
 * and stands still now and then.
 * Every call returns by its deadline, late by no more than who only sleeps is on this machine, and
 * 100 ms; with a server that keeps its data, no more was accepted than it has counted; and nothing
 * is left behind, neither memory nor descriptors.
 *
 * It takes 30 seconds, or as many as REDBUCKET_TEST_SECONDS says. A failed call is answered by the
 * failure policy, and what that accepts isn't counted.
 */
#include "host.h"
#include "processes.h"
#include "server.h"
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS   64
#define KEYS      8
#define TIMEOUT   0.25
#define ALLOWANCE 0.1

/* Buckets that are never full, and one that soon is. Next to nothing drains. */
#define SLOW  1e-6
#define ROOM  1e9
#define BURST 499.0

/* More than a library that has come to rest takes in so many seconds, and less than what any loss a
 * call or a connection would make of it. */
#define GROWTH_KB 2048

static struct {
    struct test_server *server;
    struct test_host host;
    pthread_t threads[THREADS];
    atomic_bool ending;
    _Atomic double longest;
    atomic_long accepted; /* and not degraded, of the buckets that are never full */
    atomic_long limited;  /* the same of the one that is */
    atomic_long rejected;
    atomic_long degraded;
    atomic_long failed;
} all;

static double seconds(void)
{
    const char *text = getenv("REDBUCKET_TEST_SECONDS");
    double wanted = text != NULL ? strtod(text, NULL) : 0.0;

    return wanted > 0.0 ? wanted : TEST_SANITIZED ? 8.0 : 30.0;
}

/* Kilobytes that this process has in memory. */
static long resident(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
    (void)fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* ---- Threads -------------------------------------------------------------------------------- */

static void note_time(double took)
{
    double before = atomic_load(&all.longest);

    while (took > before && !atomic_compare_exchange_weak(&all.longest, &before, took))
        continue;
}

/* True when the server answered. */
static bool ask(const struct redbucket_key *key, atomic_long *accepted)
{
    struct redbucket_response response = {.accepted = false};
    double began = test_now();
    enum redbucket_status status = redbucket_request(all.host.limiter, key, 1, &response);

    note_time(test_now() - began);
    if (status != REDBUCKET_OK)
        (void)atomic_fetch_add(&all.failed, 1);
    else if (response.degraded)
        (void)atomic_fetch_add(&all.degraded, 1);
    else
        (void)atomic_fetch_add(response.accepted ? accepted : &all.rejected, 1);
    return status == REDBUCKET_OK && !response.degraded;
}

static void *ask_on(void *data)
{
    size_t number = (size_t)(uintptr_t)data;
    char text[16];
    struct redbucket_key key = {"a", text};
    const struct redbucket_key full = {"b", "full"};

    (void)snprintf(text, sizeof text, "%zu", number % KEYS);
    while (!atomic_load(&all.ending)) {
        bool answered = ask(&key, &all.accepted);

        /* A known outage costs a call next to nothing; so many threads would leave the server no
         * processor to start on. */
        if (!answered || !ask(&full, &all.limited))
            test_pause(0.005);
    }
    return NULL;
}

/* ---- The server ----------------------------------------------------------------------------- */

/* Killed and started again every second; returns how often. Each third time it first stands still
 * for longer than a call may take. */
static int trouble(double from, double to)
{
    int times = 0;

    for (double next = from; next < to; next += 1.0) {
        if (next > test_now())
            test_pause(next - test_now());
        if (times % 3 == 2) {
            assert_int_equal(kill(all.server->pid, SIGSTOP), 0);
            test_pause(TIMEOUT * 1.4);
        }
        test_server_kill(all.server);
        test_pause(0.05 * (times % 4));
        assert_true(test_server_again(all.server));
        times++;
    }
    return times;
}

/* What the server has counted of the buckets that are never full. Little drains meanwhile. */
static double counted(void)
{
    double sum = 0.0;

    for (int i = 0; i < KEYS; i++) {
        char text[16];

        (void)snprintf(text, sizeof text, "%d", i);
        sum += test_host_value(&all.host, text);
    }
    return sum;
}

static void start(void)
{
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&all.threads[i], NULL, ask_on, (void *)(uintptr_t)i), 0);
}

static void stop(void)
{
    atomic_store(&all.ending, true);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(all.threads[i], NULL), 0);
}

static void recover(void)
{
    double until = test_now() + 10.0 * TEST_PATIENCE;
    struct redbucket_response response = {.degraded = true};

    while (response.degraded) {
        assert_true(test_now() < until);
        test_pause(0.02);
        assert_int_equal(test_host_ask(&all.host, "other", &response), REDBUCKET_OK);
    }
}

static void tell(int times, double late)
{
    print_message("# killed %d times; %ld accepted, %ld and %ld of the limited, %ld degraded; the "
                  "longest call %.0f ms, who slept %.0f ms late\n",
                  times, all.accepted, all.limited, all.rejected, all.degraded, all.longest * 1e3,
                  late * 1e3);
}

static void whoever_asks_is_answered_in_time(void **state)
{
    double length = seconds();
    int descriptors = test_open_descriptors();
    char url[512];
    double began, late;
    long before, after;
    int times;

    (void)state;
    test_server_url(all.server, TEST_BY_SOCKET, "timeout=250ms&on_error=open", url, sizeof url);
    test_host_open(&all.host, url);
    test_host_limit(&all.host, "a", SLOW, ROOM);
    test_host_limit(&all.host, "b", SLOW, BURST);
    test_control_start();
    began = test_now();
    start();
    /* At a third, all that is kept has been made. */
    times = trouble(began + 0.5, began + length / 3);
    before = resident();
    times += trouble(began + 0.5 + times, began + length);
    after = resident();
    stop();
    late = test_control_late();
    test_control_stop();
    tell(times, late);
    recover();
    assert_true(times >= (int)length - 1);
    assert_int_equal(all.failed, 0);
    assert_true(all.accepted > 1000 / TEST_PATIENCE && all.degraded > 0);
    assert_true((double)all.accepted <= counted() + 0.01);
    assert_true((double)all.limited <= BURST + 1);
    if (!TEST_SANITIZED) {
        assert_true(all.longest <= TIMEOUT + late + ALLOWANCE);
        print_message("# %ld KB grown\n", after - before);
        assert_true(after - before < GROWTH_KB);
    }
    test_host_close(&all.host);
    assert_int_equal(test_open_descriptors(), descriptors);
}

static int set_up(void **state)
{
    (void)state;
    all.server = test_server_start(&(struct test_server_options){
        .kind = TEST_REDIS, .config = "appendonly yes\nappendfsync always"});
    return all.server == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_server_stop(all.server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whoever_asks_is_answered_in_time)};

    return cmocka_run_group_tests_name("server_restarts", tests, set_up, tear_down);
}
