/* SPDX-License-Identifier: MIT */
/*
 * Linearizability: some threads ask for the same few buckets at the same time, single requests and
 * arrays; afterwards there must be an order of all their requests that respects who had ended when
 * another began, and gives the answers that were given. Thousands of small random histories, whose
 * seed is told (REDBUCKET_TEST_SEED begins with it again, but threads meet otherwise each time).
 *
 * Without the denial cache, whose answers are those of an earlier moment.
 */
#include "cluster.h"
#include "host.h"
#include "linear.h"
#include "processes.h"
#include "random.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>

/* ---- Histories ------------------------------------------------------------------------------ */

/* How threads ask for it. */
struct plan {
    struct linear_history history;
    size_t array[LINEAR_THREADS][LINEAR_STEPS]; /* 1, or how many go together from here on */
    char keys[LINEAR_KEYS][32];
};

static struct round {
    struct redbucket_limiter *limiter;
    struct plan plan;
    double earlier; /* when the round had not begun, by the store's clock */
    atomic_ullong clock;
    pthread_barrier_t begins;
    pthread_barrier_t ends;
    bool ending; /* read behind a barrier */
    atomic_int failed;
} shared;

static const char *const names[LINEAR_LIMITS] = {"first", "second"};

/* Mostly requests. A permit may be given back that nobody took: no more than it costs is. */
static void choose_step(struct random *random, struct linear_step *step)
{
    static const enum redbucket_operation others[] = {
        REDBUCKET_PEEK, REDBUCKET_REFUND, REDBUCKET_CHARGE, REDBUCKET_RESET, REDBUCKET_GIVE_BACK};
    unsigned first = random_below(random, LINEAR_LIMITS);

    step->operation = REDBUCKET_REQUEST;
    if (random_one_in(random, 3))
        step->operation = others[random_below(random, 5)];
    step->cost = 1 + random_one_in(random, 3);
    step->len = 1 + random_one_in(random, 2);
    for (size_t i = 0; i < step->len; i++)
        step->buckets[i] = (unsigned)((first + i) % LINEAR_LIMITS) * LINEAR_KEYS +
                           (random_one_in(random, 4) ? 1 : 0);
}

static void choose(struct random *random, struct plan *plan)
{
    memset(plan, 0, sizeof *plan);
    for (int i = 0; i < LINEAR_KEYS; i++)
        (void)snprintf(plan->keys[i], sizeof plan->keys[i], "%llx-%d",
                       (unsigned long long)random->seed, i);
    for (size_t i = 0; i < LINEAR_THREADS; i++) {
        size_t len = i == 0 ? LINEAR_STEPS : random_below(random, LINEAR_STEPS + 1);

        plan->history.len[i] = len;
        for (size_t j = 0; j < len; j++) {
            choose_step(random, &plan->history.steps[i][j]);
            plan->array[i][j] =
                random_one_in(random, 4) ? 1 + random_below(random, (unsigned)(len - j)) : 1;
        }
    }
}

/* ---- Asking --------------------------------------------------------------------------------- */

struct asked {
    struct redbucket_request requests[LINEAR_STEPS];
    struct redbucket_key keys[LINEAR_STEPS][LINEAR_LIMITS];
    struct redbucket_verdict verdicts[LINEAR_STEPS][LINEAR_LIMITS];
};

static void fill(const struct linear_step *steps, size_t len, struct asked *asked)
{
    for (size_t i = 0; i < len; i++) {
        for (size_t j = 0; j < steps[i].len; j++)
            asked->keys[i][j] =
                (struct redbucket_key){.limit = names[steps[i].buckets[j] / LINEAR_KEYS],
                                       .key = shared.plan.keys[steps[i].buckets[j] % LINEAR_KEYS]};
        asked->requests[i] = (struct redbucket_request){.operation = steps[i].operation,
                                                        .keys = asked->keys[i],
                                                        .keys_len = steps[i].len,
                                                        .cost = steps[i].cost,
                                                        .taken_at = shared.earlier,
                                                        .verdicts = asked->verdicts[i]};
    }
}

static void note(const struct redbucket_request *request, struct linear_step *step)
{
    step->accepted = request->response.accepted;
    step->decided = request->response.decided;
    step->remaining = request->response.remaining;
    for (size_t i = 0; i < step->len; i++) {
        const struct redbucket_verdict *verdict = &request->verdicts[i];

        step->verdicts[i] = (struct linear_verdict){
            .accepted = verdict->accepted,
            .remaining = verdict->remaining,
            .wait = (verdict->accepted ? verdict->delay : verdict->retry_after) * LINEAR_RATE};
    }
    if (request->status != REDBUCKET_OK)
        (void)atomic_fetch_add(&shared.failed, 1);
}

/* Some of a thread's steps as one array. */
static void ask_some(struct linear_step *steps, size_t len)
{
    struct asked asked;
    uint64_t begun, ended;

    fill(steps, len, &asked);
    begun = atomic_fetch_add(&shared.clock, 1);
    /* What failed shows in each. */
    if (redbucket_decide(shared.limiter, asked.requests, len) != REDBUCKET_OK)
        (void)atomic_fetch_add(&shared.failed, 1);
    ended = atomic_fetch_add(&shared.clock, 1);
    for (size_t i = 0; i < len; i++) {
        steps[i].begun = begun;
        steps[i].ended = ended;
        note(&asked.requests[i], &steps[i]);
    }
}

static void ask_all(size_t thread)
{
    struct linear_step *steps = shared.plan.history.steps[thread];
    size_t len = shared.plan.history.len[thread];
    size_t some;

    for (size_t i = 0; i < len; i += some) {
        some = shared.plan.array[thread][i];
        ask_some(&steps[i], some);
    }
}

static void *run(void *data)
{
    size_t thread = (size_t)(uintptr_t)data;

    for (;;) {
        (void)pthread_barrier_wait(&shared.begins);
        if (shared.ending)
            return NULL;
        ask_all(thread);
        (void)pthread_barrier_wait(&shared.ends);
    }
}

/* ---- Stores --------------------------------------------------------------------------------- */

/* What is there is forgotten, so that a small table doesn't fill. */
static void forget(void)
{
    struct asked asked;
    struct linear_step steps[LINEAR_KEYS] = {{.operation = REDBUCKET_RESET, .cost = 1, .len = 2},
                                             {.operation = REDBUCKET_RESET, .cost = 1, .len = 2}};

    for (unsigned i = 0; i < LINEAR_KEYS; i++) {
        for (unsigned j = 0; j < LINEAR_LIMITS; j++)
            steps[i].buckets[j] = j * LINEAR_KEYS + i;
    }
    fill(steps, LINEAR_KEYS, &asked);
    assert_int_equal(redbucket_decide(shared.limiter, asked.requests, LINEAR_KEYS), REDBUCKET_OK);
    shared.earlier = asked.requests[0].response.time;
}

/* True when the order in which requests began gives the answers too: as if nobody had met. */
static bool is_plain(const struct linear_history *history)
{
    struct linear_history plain = *history;

    for (size_t i = 0; i < LINEAR_THREADS; i++) {
        for (size_t j = 0; j < plain.len[i]; j++) {
            plain.steps[i][j].begun = plain.steps[i][j].begun * 16 + i * LINEAR_STEPS + j;
            plain.steps[i][j].ended = plain.steps[i][j].begun;
        }
    }
    return linear_holds(&plain);
}

/* False for a history that nothing explains. */
static bool play(struct random *random, unsigned *met)
{
    bool holds;

    choose(random, &shared.plan);
    (void)pthread_barrier_wait(&shared.begins);
    (void)pthread_barrier_wait(&shared.ends);
    holds = linear_holds(&shared.plan.history);
    if (!holds)
        linear_print(&shared.plan.history);
    *met += holds && !is_plain(&shared.plan.history);
    forget();
    return holds && atomic_load(&shared.failed) == 0;
}

static void start(pthread_t *threads)
{
    assert_int_equal(pthread_barrier_init(&shared.begins, NULL, LINEAR_THREADS + 1), 0);
    assert_int_equal(pthread_barrier_init(&shared.ends, NULL, LINEAR_THREADS + 1), 0);
    for (size_t i = 0; i < LINEAR_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i), 0);
}

static void stop(const pthread_t *threads)
{
    shared.ending = true;
    (void)pthread_barrier_wait(&shared.begins);
    for (size_t i = 0; i < LINEAR_THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    (void)pthread_barrier_destroy(&shared.begins);
    (void)pthread_barrier_destroy(&shared.ends);
}

/* Returns how many histories were not as if threads had asked one after the other. */
static unsigned play_all(const char *url, unsigned rounds)
{
    pthread_t threads[LINEAR_THREADS];
    struct test_host host;
    struct random random;
    bool good = true;
    unsigned met = 0;

    test_host_open(&host, url);
    for (size_t i = 0; i < LINEAR_LIMITS; i++)
        assert_int_equal(redbucket_limiter_add(host.limiter, names[i], &linear_limits[i], NULL),
                         REDBUCKET_OK);
    memset(&shared, 0, sizeof shared);
    shared.limiter = host.limiter;
    forget();
    start(threads);
    rounds = TEST_SANITIZED ? rounds / 4 : rounds;
    random_begin(&random, rounds);
    print_message("# seed %llu\n", (unsigned long long)random.seed + 1);
    while (good && random_next_round(&random))
        good = play(&random, &met);
    print_message("# %u histories, in %u of them threads met\n", rounds, met);
    stop(threads);
    HOLDS(&random, good);
    test_host_close(&host);
    return met;
}

static void play_at(enum test_server_kind kind, const char *query, unsigned rounds)
{
    struct test_server *server;
    char url[512];

    if (!test_server_have(kind)) {
        skip();
        return;
    }
    server = test_server_start(&(struct test_server_options){.kind = kind});
    assert_non_null(server);
    test_server_url(server, TEST_BY_SOCKET, query, url, sizeof url);
    assert_true(play_all(url, rounds) > 0);
    test_server_stop(server);
}

static void by_script(void **state)
{
    (void)state;
    play_at(TEST_REDIS, "denial_time=0&timeout=20s", 2000);
}

static void by_script_of_valkey(void **state)
{
    (void)state;
    play_at(TEST_VALKEY, "denial_time=0&timeout=20s&codec=json", 1000);
}

/* More calls at a time, each of them of fewer. */
static void by_transaction(void **state)
{
    (void)state;
    play_at(TEST_REDIS, "denial_time=0&timeout=20s&method=transaction", 1000);
}

/* Buckets that are decided together have one slot. */
static void by_a_cluster(void **state)
{
    struct test_cluster *cluster =
        test_cluster_start(&(struct test_server_options){.kind = TEST_REDIS});
    char url[512];

    (void)state;
    assert_non_null(cluster);
    test_cluster_url(cluster, TEST_BY_PORT,
                     "denial_time=0&timeout=20s&key_format=%7B%7Bt%7D%7D%3A%7Bzone%7D%3A%7Bkey%7D",
                     url, sizeof url);
    assert_true(play_all(url, 1000) > 0);
    test_cluster_stop(cluster);
}

static void by_a_table(void **state)
{
    (void)state;
    (void)play_all("memory:", 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_script),      cmocka_unit_test(by_script_of_valkey),
        cmocka_unit_test(by_transaction), cmocka_unit_test(by_a_cluster),
        cmocka_unit_test(by_a_table),
    };

    return cmocka_run_group_tests_name("linear", tests, NULL, NULL);
}
