/* SPDX-License-Identifier: MIT */
/*
 * Leases with real servers, processes and time: by script, by transaction and in a cluster, what
 * two processes admit is within the bound though one is killed, and what isn't used comes back.
 */
#include "cluster.h"
#include "processes.h"
#include "redbucket/redbucket.h"
#include "test.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct test_server *server;
static struct test_cluster *cluster;

/* ---- A process with a limit --------------------------------------------------------------------
 */

struct user {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
};

static const char *const ways[] = {"script", "transaction", "cluster"};

static void user_open(struct user *user, const char *way, const char *query,
                      const struct redbucket_limit *limit)
{
    char url[512], full[128];

    if (strcmp(way, "cluster") == 0) {
        test_cluster_url(cluster, TEST_BY_PORT, query, url, sizeof url);
    } else {
        (void)snprintf(full, sizeof full, "method=%s&%s", way, query);
        test_server_url(server, TEST_BY_SOCKET, full, url, sizeof url);
    }
    child_check(redbucket_store_open(url, &user->store, NULL) == REDBUCKET_OK);
    child_check(redbucket_limiter_create(user->store, &user->limiter, NULL) == REDBUCKET_OK);
    child_check(redbucket_limiter_add(user->limiter, "a", limit, NULL) == REDBUCKET_OK);
}

static void user_close(struct user *user)
{
    redbucket_limiter_destroy(user->limiter);
    redbucket_store_close(user->store);
}

static bool user_ask(struct user *user, const char *key, enum redbucket_status *status)
{
    struct redbucket_key named = {"a", key};
    struct redbucket_response response = {.accepted = false};

    *status = redbucket_request(user->limiter, &named, 1, &response);
    return *status == REDBUCKET_OK && response.accepted;
}

static double user_value(struct user *user, const char *key)
{
    struct redbucket_key named = {"a", key};
    struct redbucket_state state = {.value = NAN};

    assert_int_equal(redbucket_read(user->limiter, &named, &state), REDBUCKET_OK);
    return state.exists ? state.value : 0.0;
}

static struct redbucket_statistics user_counts(struct user *user)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};

    assert_int_equal(redbucket_store_statistics(user->store, &statistics), REDBUCKET_OK);
    return statistics;
}

static void forget(void)
{
    assert_true(test_server_do(server, "FLUSHALL", NULL));
    for (size_t i = 0; i < TEST_CLUSTER_MASTERS; i++)
        assert_true(test_server_do(cluster->nodes[i], "FLUSHALL", NULL));
}

/* ---- What isn't used ---------------------------------------------------------------------------
 */

static void test_what_is_held_comes_back_at_the_end(void **state)
{
    struct redbucket_limit limit = {.rate = 0.01, .burst = 99999, .lease = 1000, .lease_time = 60};

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct redbucket_statistics counts;
        enum redbucket_status status;
        struct user user;

        forget();
        user_open(&user, ways[i], "timeout=5s", &limit);
        for (int j = 0; j < 500; j++)
            assert_true(user_ask(&user, "hot", &status));
        counts = user_counts(&user);
        assert_int_equal(counts.accepted, 500);
        assert_true(counts.leased > 400);
        assert_int_equal(counts.rejected, 0);
        assert_true(user_value(&user, "hot") > 500.5);
        user_close(&user);
        user_open(&user, ways[i], "timeout=5s", &limit);
        assert_true(fabs(user_value(&user, "hot") - 500.0) < 0.5);
        user_close(&user);
    }
}

/* Another process gets what the first one held. */
static void test_who_comes_later_gets_it(void **state)
{
    struct redbucket_limit limit = {.rate = 0.01, .burst = 99, .lease = 1000, .lease_time = 60};
    enum redbucket_status status;
    unsigned accepted = 0;
    struct user user;

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        forget();
        user_open(&user, ways[i], "timeout=5s", &limit);
        for (int j = 0; j < 40; j++)
            assert_true(user_ask(&user, "hot", &status));
        user_close(&user);
        user_open(&user, ways[i], "timeout=5s", &limit);
        for (accepted = 0; user_ask(&user, "hot", &status);)
            accepted++;
        assert_int_equal(status, REDBUCKET_OK);
        assert_in_range(accepted, 59, 61);
        user_close(&user);
    }
}

/* A server that doesn't answer any more. */
static void test_the_end_waits_for_nobody_long(void **state)
{
    struct redbucket_limit limit = {.rate = 0.01, .burst = 9999, .lease = 1000};
    enum redbucket_status status;
    struct user user;
    double begin;

    (void)state;
    forget();
    user_open(&user, "script", "timeout=30s", &limit);
    for (int i = 0; i < 100; i++)
        assert_true(user_ask(&user, "hot", &status));
    assert_int_equal(kill(server->pid, SIGSTOP), 0);
    begin = test_now();
    user_close(&user);
    begin = test_now() - begin;
    assert_int_equal(kill(server->pid, SIGCONT), 0);
    assert_true(begin < 5.0 * TEST_PATIENCE);
}

/* ---- Two processes, of which one is killed -----------------------------------------------------
 */

#define RATE  200.0
#define BURST 400.0

struct shared {
    const char *way;
    atomic_uint accepted;
    atomic_int ready;
    atomic_bool stop;
};

static void ask_until_told(void *data)
{
    struct redbucket_limit limit = {.rate = RATE, .burst = BURST, .lease = 200};
    struct shared *shared = data;
    struct user user;

    user_open(&user, shared->way, "timeout=5s", &limit);
    while (!atomic_load(&shared->stop)) {
        enum redbucket_status status;

        if (user_ask(&user, "hot", &status))
            (void)atomic_fetch_add(&shared->accepted, 1);
        child_check(status == REDBUCKET_OK);
        (void)atomic_store(&shared->ready, 1);
        (void)usleep(500);
    }
    user_close(&user);
}

static void ask_together(struct shared *shared)
{
    double begin = test_now();
    double bound;
    pid_t first = test_fork(ask_until_told, shared);
    pid_t second = test_fork(ask_until_told, shared);

    while (atomic_load(&shared->ready) == 0)
        test_pause(0.001);
    test_pause(0.7);
    test_kill(first);
    first = test_fork(ask_until_told, shared);
    test_pause(0.7);
    atomic_store(&shared->stop, true);
    test_join(first);
    test_join(second);
    bound = BURST + 1 + RATE * (test_now() - begin + 1.0);
    assert_true(atomic_load(&shared->accepted) <= bound);
    assert_true(atomic_load(&shared->accepted) > BURST / 2);
}

static void test_two_processes_keep_within_the_bound(void **state)
{
    struct shared *shared = test_share(sizeof *shared);

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        forget();
        atomic_store(&shared->accepted, 0);
        atomic_store(&shared->ready, 0);
        atomic_store(&shared->stop, false);
        shared->way = ways[i];
        ask_together(shared);
    }
    test_unshare(shared, sizeof *shared);
}

static int start(void **state)
{
    (void)state;
    server = test_server_start(&(struct test_server_options){.kind = TEST_REDIS});
    cluster = test_cluster_start(&(struct test_server_options){.kind = TEST_REDIS});
    return server == NULL || cluster == NULL ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    test_cluster_stop(cluster);
    test_server_stop(server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_held_comes_back_at_the_end),
        cmocka_unit_test(test_who_comes_later_gets_it),
        cmocka_unit_test(test_the_end_waits_for_nobody_long),
        cmocka_unit_test(test_two_processes_keep_within_the_bound),
    };

    return cmocka_run_group_tests_name("server_leases", tests, start, stop);
}
