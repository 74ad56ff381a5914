/* SPDX-License-Identifier: MIT */
/*
 * Many threads and processes at one instant of the caller's clock, so that the numbers are exact:
 * how many get through, and that two limits of one request are taken together or not at all,
 * whatever the order they are named in. W01, V05 and V08 of the cases.
 */
#include "audit.h"
#include "processes.h"
#include "stores.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define WORKERS  50
#define REQUESTS 20
#define KEYS     8
#define TOGETHER 12
#define EACH     (TEST_SANITIZED ? 2000 : 20000)
#define VISITS   2000
#define VISITORS 16

struct board {
    atomic_int ready;
    atomic_int go;
    atomic_int accepted;
    atomic_int rejected;
    atomic_int full;
    atomic_int errors;
    int workers;
};

struct job {
    struct board *board;
    const char *url;
    struct redbucket_limiter *limiter;
    unsigned seed;
};

static void count(struct board *board, const struct redbucket_request *request)
{
    if (request->status == REDBUCKET_ERROR_FULL)
        atomic_fetch_add(&board->full, 1);
    else if (request->status != REDBUCKET_OK)
        atomic_fetch_add(&board->errors, 1);
    else if (request->response.accepted)
        atomic_fetch_add(&board->accepted, 1);
    else
        atomic_fetch_add(&board->rejected, 1);
}

/* All begin together. */
static bool begin(struct board *board)
{
    if (atomic_fetch_add(&board->ready, 1) + 1 == board->workers)
        atomic_store(&board->go, 1);
    return test_await((volatile int *)&board->go);
}

/* W01: some requests for one key at one instant. */
static void *ask_for_one(void *data)
{
    struct job *job = data;
    struct redbucket_key key = {.limit = "a", .key = "k"};

    if (!begin(job->board))
        atomic_fetch_add(&job->board->errors, 1);
    for (int i = 0; i < REQUESTS; i++) {
        struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1.0};

        request.status = redbucket_decide_at(job->limiter, &request, 1, 0.0);
        count(job->board, &request);
    }
    return NULL;
}

/* One permit of an a-key and one of a b-key, in one order or the other. */
static void *ask_for_two(void *data)
{
    struct job *job = data;
    char a[8], b[8];

    if (!begin(job->board))
        atomic_fetch_add(&job->board->errors, 1);
    for (int i = 0; i < EACH; i++) {
        bool swapped = test_random(&job->seed, 2);
        struct redbucket_key keys[2];
        struct redbucket_request request = {.keys = keys, .keys_len = 2, .cost = 1.0};

        (void)snprintf(a, sizeof a, "%u", test_random(&job->seed, KEYS));
        (void)snprintf(b, sizeof b, "%u", test_random(&job->seed, KEYS));
        keys[swapped] = (struct redbucket_key){.limit = "a", .key = a};
        keys[!swapped] = (struct redbucket_key){.limit = "b", .key = b};
        request.status = redbucket_decide_at(job->limiter, &request, 1, 0.0);
        count(job->board, &request);
    }
    return NULL;
}

/* V08: keys of all lengths, far more than there is room for, by the store's own clock. */
static void *visit(void *data)
{
    struct job *job = data;
    char text[400];

    memset(text, 'x', sizeof text);
    if (!begin(job->board))
        atomic_fetch_add(&job->board->errors, 1);
    for (int i = 0; i < VISITS; i++) {
        size_t len = 8 + test_random(&job->seed, test_random(&job->seed, 4) ? 10 : 390);
        struct redbucket_key key = {"b", text, len, 0};
        struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1.0};

        (void)snprintf(text, sizeof text, "%07u", test_random(&job->seed, 2000));
        text[7] = 'x';
        if (test_random(&job->seed, 10) == 0)
            request.operation = REDBUCKET_RESET;
        request.status = redbucket_decide(job->limiter, &request, 1);
        count(job->board, &request);
    }
    return NULL;
}

static struct redbucket_limiter *make_limiter(struct redbucket_store *store)
{
    struct redbucket_limiter *limiter =
        test_limiter(store, &(struct redbucket_limit){.rate = 0.001, .burst = 9});

    assert_int_equal(redbucket_limiter_add(
                         limiter, "b", &(struct redbucket_limit){.rate = 0.001, .burst = 9}, NULL),
                     REDBUCKET_OK);
    return limiter;
}

/* A body of threads as a process, with a limiter of its own. */
static void *(*process_body)(void *);

static void as_process(void *data)
{
    struct job job = *(struct job *)data;
    struct redbucket_store *store = NULL;

    child_check(redbucket_store_open(job.url, &store, NULL) == REDBUCKET_OK);
    job.limiter = make_limiter(store);
    (void)process_body(&job);
    redbucket_limiter_destroy(job.limiter);
    redbucket_store_close(store);
}

static void run_threads(struct job *jobs, int workers, void *(*body)(void *))
{
    pthread_t threads[WORKERS];

    for (int i = 0; i < workers; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, &jobs[i]), 0);
    for (int i = 0; i < workers; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void run_processes(struct job *jobs, int workers, void *(*body)(void *))
{
    pid_t pids[WORKERS];

    process_body = body;
    for (int i = 0; i < workers; i++)
        pids[i] = test_fork(as_process, &jobs[i]);
    for (int i = 0; i < workers; i++)
        test_join(pids[i]);
}

/* A store with workers on it. */
struct stage {
    char url[128];
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    struct board *board;
};

/* What is tested here is not how long a crowd takes on a busy machine. */
static void open_stage(struct stage *stage, const struct test_store *kind, const char *size)
{
    char query[64];

    (void)snprintf(query, sizeof query, "?size=%s%s", size, kind->shared ? "&timeout=60s" : "");
    test_store_url(kind, query, stage->url, sizeof stage->url);
    stage->store = test_store_open(stage->url);
    stage->limiter = make_limiter(stage->store);
    stage->board = test_share(sizeof *stage->board);
}

static void close_stage(struct stage *stage)
{
    redbucket_limiter_destroy(stage->limiter);
    test_store_drop(stage->url, stage->store);
    test_unshare(stage->board, sizeof *stage->board);
}

static void run(struct stage *stage, int workers, bool processes, void *(*body)(void *))
{
    struct job jobs[WORKERS];

    stage->board->workers = workers;
    for (int i = 0; i < workers; i++)
        jobs[i] = (struct job){stage->board, stage->url, stage->limiter, (unsigned)i};
    if (processes)
        run_processes(jobs, workers, body);
    else
        run_threads(jobs, workers, body);
    assert_int_equal(atomic_load(&stage->board->errors), 0);
}

static void check_one_key(const struct test_store *kind, bool processes)
{
    struct stage stage;

    open_stage(&stage, kind, "16m");
    run(&stage, WORKERS, processes, ask_for_one);
    assert_int_equal(atomic_load(&stage.board->accepted), 10);
    assert_int_equal(atomic_load(&stage.board->rejected), WORKERS * REQUESTS - 10);
    close_stage(&stage);
}

static void test_one_key_by_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < test_stores_len; i++)
        check_one_key(&test_stores[i], false);
}

static void test_one_key_by_processes(void **state)
{
    (void)state;
    check_one_key(&test_stores[1], true);
}

static double levels(struct stage *stage, const char *limit)
{
    double sum = 0.0;
    char text[8];

    for (unsigned i = 0; i < KEYS; i++) {
        struct redbucket_key key = {.limit = limit, .key = text};
        struct redbucket_state state;

        (void)snprintf(text, sizeof text, "%u", i);
        assert_int_equal(redbucket_read(stage->limiter, &key, &state), REDBUCKET_OK);
        assert_true(!state.exists || (state.timestamp == 0.0 && state.value <= 10.0));
        sum += state.exists ? state.value : 0.0;
    }
    return sum;
}

/* Every permit is in one a-bucket and in one b-bucket, and in the end no more fit. */
static void check_two_limits(const struct test_store *kind, bool processes)
{
    struct stage stage;
    int accepted;

    open_stage(&stage, kind, "4m");
    assert_true(rbk_table_shards(test_table_of(stage.store)) >= 8);
    run(&stage, TOGETHER, processes, ask_for_two);
    accepted = atomic_load(&stage.board->accepted);
    assert_int_equal(accepted + atomic_load(&stage.board->rejected), TOGETHER * EACH);
    assert_int_equal(accepted, (int)levels(&stage, "a"));
    assert_int_equal(accepted, (int)levels(&stage, "b"));
    assert_int_equal(accepted, 10 * KEYS);
    close_stage(&stage);
}

static void test_two_limits_by_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < test_stores_len; i++)
        check_two_limits(&test_stores[i], false);
}

static void test_two_limits_by_processes(void **state)
{
    (void)state;
    check_two_limits(&test_stores[1], true);
}

static void check_visits(const struct test_store *kind, bool processes)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct test_audit audit;
    struct stage stage;

    open_stage(&stage, kind, "32k");
    run(&stage, VISITORS, processes, visit);
    assert_int_equal(redbucket_store_statistics(stage.store, &statistics), REDBUCKET_OK);
    assert_true(statistics.evicted > 100);
    assert_int_equal(statistics.full, atomic_load(&stage.board->full));
    assert_int_equal(statistics.recovered, 0);
    if (test_audit(test_table_of(stage.store), &audit) != NULL)
        fail_msg("%s", test_audit(test_table_of(stage.store), &audit));
    assert_int_equal(audit.buckets, statistics.buckets);
    close_stage(&stage);
}

static void test_visits_by_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < test_stores_len; i++)
        check_visits(&test_stores[i], false);
}

static void test_visits_by_processes(void **state)
{
    (void)state;
    check_visits(&test_stores[1], true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_key_by_threads),
        cmocka_unit_test(test_one_key_by_processes),
        cmocka_unit_test(test_two_limits_by_threads),
        cmocka_unit_test(test_two_limits_by_processes),
        cmocka_unit_test(test_visits_by_threads),
        cmocka_unit_test(test_visits_by_processes),
    };

    return cmocka_run_group_tests_name("together", tests, NULL, test_clean_up);
}
