/* SPDX-License-Identifier: MIT */
/*
 * A flood: somebody asks ten thousand times a second for a key whose limit is slower than one a
 * second. That costs the server a few calls a second for each process, and who waits for as long as
 * he was told to gets what he waited for.
 */
#include "host.h"
#include "processes.h"
#include "server.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>

#define RATE      0.5   /* a permit each two seconds */
#define FLOOD     10000 /* requests a second of each process */
#define SECONDS   5.0
#define PROCESSES 2
#define THREADS   8
#define PIECE     0.01 /* so often each thread asks for its part */

/* Calls of the server, a second and process. When an answer is too old, or a permit is there, one
 * call finds out; threads that ask in the middle of it make another, and one may be on its way
 * already. */
#define CALLS_ALONE 3.0
#define CALLS       8.0

/* By so much the server's clock, which somebody sets, may go slower than ours in that time. */
#define CLOCKS 0.005

static struct test_server *server;

static void open_at(struct test_host *host)
{
    char url[512];

    test_server_url(server, TEST_BY_SOCKET, "timeout=5s", url, sizeof url);
    test_host_open(host, url);
    test_host_limit(host, "a", RATE, 0.0);
}

static bool ask(struct test_host *host, struct redbucket_response *response)
{
    child_check(test_host_ask(host, "k", response) == REDBUCKET_OK);
    return response->accepted;
}

static long long denied(struct test_host *host)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};

    child_check(redbucket_store_statistics(host->store, &statistics) == REDBUCKET_OK);
    return (long long)statistics.denied;
}

/* Before `due`, what was told last, nobody is accepted; the first behind it is. Returns how many
 * were. */
static int flood_alone(struct test_host *host, int *asked)
{
    double end = test_now() + SECONDS;
    double due = 0.0;
    int accepted = 0;

    for (double next = test_now(); next < end; next += 1.0 / FLOOD) {
        struct redbucket_response response;
        double before = test_now();

        if (before < next)
            test_pause(next - before);
        before = test_now();
        ++*asked;
        if (ask(host, &response)) {
            accepted++;
            due = 0.0;
            assert_int_equal(response.retry_after_us, 0);
            continue;
        }
        assert_true(due == 0.0 || before < due + CLOCKS);
        assert_true(response.retry_after > 0.0 && response.retry_after <= 1.0 / RATE);
        due = test_now() + response.retry_after;
    }
    return accepted;
}

static void a_flood_costs_a_few_calls(void **state)
{
    struct test_host host;
    long long before, calls;
    double began = test_now();
    int accepted, asked = 0;

    (void)state;
    assert_true(test_server_do(server, "FLUSHALL", NULL));
    open_at(&host);
    /* The first call of a store may be two: a script is sent by its text once. */
    before = test_server_calls(server, "evalsha");
    accepted = flood_alone(&host, &asked);
    calls = test_server_calls(server, "evalsha") - before;
    print_message("# %d asked, %d accepted, %lld denied here, %lld calls\n", asked, accepted,
                  denied(&host), calls);
    assert_true(accepted >= 2);
    assert_true(accepted <= 1 + (test_now() - began) * RATE);
    assert_true((double)calls <= 1 + CALLS_ALONE * (test_now() - began));
    assert_true(asked > 20 * calls);
    test_host_close(&host);
}

/* ---- Many ----------------------------------------------------------------------------------- */

struct shared {
    atomic_int asked;
    atomic_int accepted;
};

static struct shared *shared;

static void *flood_in_pieces(void *data)
{
    struct test_host *host = data;
    double end = test_now() + SECONDS;

    for (double next = test_now(); next < end; next += PIECE) {
        if (next > test_now())
            test_pause(next - test_now());
        for (int i = 0; i < (int)(FLOOD * PIECE) / THREADS; i++) {
            struct redbucket_response response;

            (void)atomic_fetch_add(&shared->asked, 1);
            if (ask(host, &response))
                (void)atomic_fetch_add(&shared->accepted, 1);
        }
    }
    return NULL;
}

static void flood_by_threads(void *data)
{
    pthread_t threads[THREADS];
    struct test_host host;

    (void)data;
    open_at(&host);
    for (int i = 0; i < THREADS; i++)
        child_check(pthread_create(&threads[i], NULL, flood_in_pieces, &host) == 0);
    for (int i = 0; i < THREADS; i++)
        child_check(pthread_join(threads[i], NULL) == 0);
    test_host_close(&host);
}

static void a_flood_from_many_costs_a_few_calls_of_each_process(void **state)
{
    pid_t children[PROCESSES];
    long long before, calls;
    double began = test_now();

    (void)state;
    shared = test_share(sizeof *shared);
    assert_true(test_server_do(server, "FLUSHALL", NULL));
    before = test_server_calls(server, "evalsha");
    for (int i = 0; i < PROCESSES; i++)
        children[i] = test_fork(flood_by_threads, NULL);
    for (int i = 0; i < PROCESSES; i++)
        test_join(children[i]);
    calls = test_server_calls(server, "evalsha") - before;
    print_message("# %d asked, %d accepted, %lld calls\n", shared->asked, shared->accepted, calls);
    assert_true(shared->accepted >= 2);
    assert_true(shared->accepted <= 1 + (test_now() - began) * RATE);
    assert_true((double)calls <= PROCESSES * (1 + CALLS * (test_now() - began)));
    assert_true(shared->asked > 20 * calls);
    test_unshare(shared, sizeof *shared);
}

static int start(void **state)
{
    (void)state;
    server = test_server_start(&(struct test_server_options){.kind = TEST_REDIS});
    return server == NULL ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    test_server_stop(server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flood_costs_a_few_calls),
        cmocka_unit_test(a_flood_from_many_costs_a_few_calls_of_each_process),
    };

    return cmocka_run_group_tests_name("server_flood", tests, start, stop);
}
