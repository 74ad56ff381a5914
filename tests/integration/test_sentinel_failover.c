/* SPDX-License-Identifier: MIT */
/*
 * Masters that are killed, stopped or asked to step down while processes decide: how long until
 * decisions go on by themselves, held against what the sentinels need, and what was accepted, held
 * against the limits and what a failover can lose.
 */
#include "host.h"
#include "processes.h"
#include "proxy.h"
#include "sentinels.h"
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define URL_SIZE  1024
#define PROCESSES 4
#define KEYS      8
#define TIMEOUT_S 1.0

/* What a key is allowed. The deep bucket is never full, so that it tells what was lost. */
#define RATE  20.0
#define BURST 5.0
#define DEEP  1e6

/* What the library may need beside the sentinels. */
#define OURS_S 2.0

/* How long things may go on, on a machine that is busy. */
#define PATIENCE_S (40.0 * TEST_PATIENCE)

/*
 * What the processes tell.
 *
 *   accepted  requests under each key that were answered so, `deep` under the deep one
 *   unknown   requests that may have been counted: they timed out, or broke off
 *   slowest   call, in seconds
 *   failed    when a process last met a failure, by its own number
 *   worked    when it first had an answer after `since`
 */
struct tally {
    atomic_int accepted[KEYS];
    atomic_int deep;
    atomic_int unknown;
    atomic_int readonly;
    _Atomic double slowest;
    _Atomic double since;
    _Atomic double failed[PROCESSES];
    _Atomic double worked[PROCESSES];
    atomic_bool ending;
};

struct worker {
    struct tally *tally;
    const char *url;
    int number;
};

static struct test_sentinels all;
static struct tally *tally;
static struct test_proxy *between; /* the master and its replica, or NULL */

/* ---- Load ----------------------------------------------------------------------------------- */

static void note_slow(double took)
{
    for (double known = tally->slowest;
         took > known && !atomic_compare_exchange_weak(&tally->slowest, &known, took);)
        continue;
}

static void note(const struct worker *worker, enum redbucket_status status, double began)
{
    double now = test_now();

    note_slow(now - began);
    if (status != REDBUCKET_OK) {
        tally->failed[worker->number] = now;
        tally->worked[worker->number] = 0.0;
        if (status == REDBUCKET_ERROR_TIMEOUT || status == REDBUCKET_ERROR_IO ||
            status == REDBUCKET_ERROR_PROTOCOL)
            (void)atomic_fetch_add(&tally->unknown, 1);
        if (status == REDBUCKET_ERROR_READONLY)
            (void)atomic_fetch_add(&tally->readonly, 1);
    } else if (tally->worked[worker->number] == 0.0 && tally->since != 0.0 &&
               began > tally->since) {
        tally->worked[worker->number] = now;
    }
}

static void ask_one(struct worker *worker, struct test_host *host, unsigned choice)
{
    bool deep = choice == KEYS;
    const char digit[2] = {(char)('0' + choice), '\0'};
    const struct redbucket_key key = {.limit = deep ? "deep" : "a", .key = digit};
    struct redbucket_response response = {.accepted = false};
    double began = test_now();
    enum redbucket_status status = redbucket_request(host->limiter, &key, 1, &response);

    note(worker, status, began);
    if (status == REDBUCKET_OK && response.accepted)
        (void)atomic_fetch_add(deep ? &tally->deep : &tally->accepted[choice], 1);
}

static void work(void *data)
{
    struct worker *worker = data;
    struct test_host host;
    unsigned seed = (unsigned)worker->number + 1;

    test_host_open(&host, worker->url);
    test_host_limit(&host, "a", RATE, BURST);
    test_host_limit(&host, "deep", 0.001, DEEP);
    while (!atomic_load(&tally->ending)) {
        ask_one(worker, &host, test_random(&seed, KEYS + 1));
        test_pause(0.0005);
    }
    test_host_close(&host);
}

/* ---- The sentinels' part -------------------------------------------------------------------- */

/* When the first of them names the other server, and that is a master: from then on nothing but the
 * library keeps anybody from deciding. */
static double await_switch(size_t to)
{
    int port = test_sentinels_port(&all, all.data[to]);

    for (double until = test_now() + PATIENCE_S; test_now() < until; test_pause(0.005)) {
        for (size_t i = 0; i < TEST_SENTINELS_LEN; i++) {
            if (test_sentinels_named(&all, i) == port && test_sentinels_role(&all, to) == 1)
                return test_now();
        }
    }
    fail_msg("no failover");
    return 0.0;
}

static double await_decisions(void)
{
    double last = 0.0;

    for (int i = 0; i < PROCESSES; i++) {
        double until = test_now() + PATIENCE_S;

        while (tally->worked[i] == 0.0 && test_now() < until)
            test_pause(0.005);
        assert_true(tally->worked[i] != 0.0);
        if (tally->worked[i] > last)
            last = tally->worked[i];
    }
    return last;
}

/* ---- What was accepted ---------------------------------------------------------------------- */

/* No more than the limit allows, and one more burst + 1 for a bucket that was lost. */
static void check_limits(double seconds)
{
    for (int i = 0; i < KEYS; i++) {
        double most = 2.0 * (BURST + 1.0) + RATE * seconds;

        if (tally->accepted[i] > most)
            fail_msg("key %d: %d accepted, more than %g", i, tally->accepted[i], most);
        assert_true(tally->accepted[i] > BURST);
    }
}

/* Returns how many requests the deep bucket doesn't know of; counted but unanswered ones may be in
 * it, too. */
static double check_loss(const char *url)
{
    const struct redbucket_key key = {.limit = "deep", .key = "8"};
    struct redbucket_state state;
    struct test_host host;
    double level, lost;

    test_host_open(&host, url);
    test_host_limit(&host, "deep", 0.001, DEEP);
    assert_int_equal(redbucket_read(host.limiter, &key, &state), REDBUCKET_OK);
    level = state.exists ? state.value : 0.0;
    lost = tally->deep - level;
    print_message("# %d accepted, %.0f of them unknown to the new master; %d unanswered\n",
                  tally->deep, lost > 0.0 ? lost : 0.0, tally->unknown);
    assert_true(level <= tally->deep + tally->unknown + 0.5);
    test_host_close(&host);
    return lost;
}

/* ---- The cases ------------------------------------------------------------------------------ */

/* What happens to the master; returns when. */
typedef double blow(void);

static double kill_master(void)
{
    test_server_kill(all.data[0]);
    return test_now();
}

/* Its replica hears of nothing for a second, which a proxy between them sees to. */
static double kill_lonely_master(void)
{
    test_proxy_hold(between, true);
    test_pause(1.0);
    return kill_master();
}

static double stop_master(void)
{
    assert_int_equal(kill(all.data[0]->pid, SIGSTOP), 0);
    return test_now();
}

static double ask_to_step_down(void)
{
    assert_true(test_server_do(all.sentinels[1], "SENTINEL", "FAILOVER", TEST_SERVICE, NULL));
    return test_now();
}

static void start_load(pid_t pids[PROCESSES], const char *url)
{
    static struct worker workers[PROCESSES];

    for (int i = 0; i < PROCESSES; i++) {
        workers[i] = (struct worker){tally, url, i};
        pids[i] = test_fork(work, &workers[i]);
    }
}

static void end_load(const pid_t pids[PROCESSES])
{
    atomic_store(&tally->ending, true);
    for (int i = 0; i < PROCESSES; i++)
        test_join(pids[i]);
}

/* The old master goes on for seconds as if nothing had happened, and would take requests that the
 * new one never hears of. */
static void check_nobody_stays(void)
{
    long long before = test_server_calls(all.data[0], "evalsha");

    assert_true(before > 0);
    print_message("# the old master still is one: %s\n",
                  test_sentinels_role(&all, 0) == 1 ? "yes" : "no");
    test_pause(0.3);
    assert_int_equal(test_server_calls(all.data[0], "evalsha"), before);
}

/* Nobody hangs past a deadline, and all go on by themselves. Returns how many requests under the
 * deep key were lost. */
static double run(blow *strike, const char *query)
{
    pid_t pids[PROCESSES];
    char url[URL_SIZE];
    double began, struck, switched, going_on;

    test_sentinels_url(&all, query, url, sizeof url);
    began = test_now();
    start_load(pids, url);
    test_pause(1.0);
    test_control_reset();
    struck = strike();
    tally->since = struck;
    switched = await_switch(1);
    tally->since = switched;
    for (int i = 0; i < PROCESSES; i++)
        tally->worked[i] = 0.0;
    going_on = await_decisions();
    if (strike == ask_to_step_down) {
        test_pause(switched + OURS_S > test_now() ? switched + OURS_S - test_now() : 0.0);
        check_nobody_stays();
    }
    print_message("# sentinels took %.2f s, and the last process %.2f s more\n", switched - struck,
                  going_on - switched);
    test_control_check(going_on - switched, OURS_S);
    test_pause(1.5);
    for (int i = 0; i < PROCESSES; i++) /* and it stays so */
        assert_true(tally->failed[i] < going_on);
    end_load(pids);
    test_control_check(tally->slowest, TIMEOUT_S);
    check_limits(test_now() - began);
    return check_loss(url);
}

/* What is on its way to a replica is far less than a second's worth. */
static void assert_little(double lost)
{
    assert_true(lost < tally->deep * 0.2);
}

static void a_master_is_killed(void **state)
{
    (void)state;
    assert_little(run(kill_master, ""));
}

/* A replica that lags behind has all buckets as they were a second ago; even so no limit lets in
 * more than one more burst + 1. */
static void a_master_is_killed_before_its_replica_heard(void **state)
{
    char url[256];

    (void)state;
    between = test_proxy_start(all.data[0], TEST_BY_PORT);
    assert_non_null(between);
    test_proxy_url(between, "", url, sizeof url);
    assert_true(test_server_do(all.data[1], "SLAVEOF", "127.0.0.1", strrchr(url, ':') + 1, NULL));
    for (double until = test_now() + PATIENCE_S; !test_sentinels_follow(&all) && test_now() < until;
         test_pause(0.02))
        continue;
    assert_true(test_sentinels_follow(&all));
    assert_true(run(kill_lonely_master, "") > 10.0);
}

static void a_master_of_valkey_is_killed(void **state)
{
    (void)state;
    if (all.data[0] == NULL)
        skip();
    assert_little(run(kill_master, ""));
}

static void a_master_is_killed_under_transactions(void **state)
{
    (void)state;
    assert_little(run(kill_master, "method=transaction"));
}

static void a_master_is_asked_to_step_down(void **state)
{
    (void)state;
    (void)run(ask_to_step_down, "");
}

/* It comes back as one that believes itself the master, until the sentinels tell it otherwise. */
static void a_master_is_stopped_and_comes_back(void **state)
{
    struct test_host host;
    char url[URL_SIZE];

    (void)state;
    assert_little(run(stop_master, ""));
    test_sentinels_url(&all, "", url, sizeof url);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 0.001, 1e6);
    assert_int_equal(kill(all.data[0]->pid, SIGCONT), 0);
    for (double until = test_now() + PATIENCE_S;
         test_sentinels_role(&all, 0) != 0 && test_now() < until; test_pause(0.02))
        assert_int_equal(test_host_ask(&host, "back", NULL), REDBUCKET_OK);
    assert_int_equal(test_sentinels_role(&all, 0), 0);
    assert_int_equal(test_host_ask(&host, "back", NULL), REDBUCKET_OK);
    assert_int_equal(host.down, 0);
    test_host_close(&host);
}

/* Every connection of a pool has its answer outstanding, or would, when the master stops. */
static void *ask_thrice(void *data)
{
    for (int i = 0; i < 3; i++)
        (void)test_host_ask(data, "warm", NULL);
    return NULL;
}

static void stopped_connections_do_not_time_out_one_by_one(void **state)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    struct test_host host;
    char url[URL_SIZE];
    double switched = 0.0;
    int slow = 0;

    (void)state;
    test_sentinels_url(&all, "connections=8", url, sizeof url);
    test_host_open(&host, url);
    test_host_limit(&host, "a", 0.001, 1e6);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_thrice, &host), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    (void)stop_master();
    for (bool works = false; !works; test_pause(0.01)) {
        double took;

        works = test_host_time(&host, "warm", &took) == REDBUCKET_OK;
        slow += took > 0.9;
        if (switched == 0.0 && test_sentinels_named(&all, 1) == all.data[1]->port)
            switched = test_now();
        assert_true(works || switched == 0.0 || test_now() < switched + OURS_S + PATIENCE_S / 40.0);
    }
    assert_int_equal(slow, 1);
    test_host_close(&host);
}

/* ---- Set-up --------------------------------------------------------------------------------- */

static int start_kind(enum test_server_kind kind)
{
    tally = test_share(sizeof *tally);
    return !test_server_have(kind) ||
                   test_sentinels_start(&all, &(struct test_sentinels_options){.kind = kind})
               ? 0
               : -1;
}

static int start(void **state)
{
    (void)state;
    return start_kind(TEST_REDIS);
}

static int start_valkey(void **state)
{
    (void)state;
    return start_kind(TEST_VALKEY);
}

static int stop(void **state)
{
    (void)state;
    test_proxy_stop(between);
    between = NULL;
    test_sentinels_stop(&all);
    test_unshare(tally, sizeof *tally);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    test_control_start();
    return 0;
}

static int end(void **state)
{
    (void)state;
    test_control_stop();
    return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_master_is_killed),
        CASE(a_master_is_killed_before_its_replica_heard),
        cmocka_unit_test_setup_teardown(a_master_of_valkey_is_killed, start_valkey, stop),
        CASE(a_master_is_killed_under_transactions),
        CASE(a_master_is_asked_to_step_down),
        CASE(a_master_is_stopped_and_comes_back),
        CASE(stopped_connections_do_not_time_out_one_by_one),
    };

    return cmocka_run_group_tests_name("sentinel failover", tests, begin, end);
}
