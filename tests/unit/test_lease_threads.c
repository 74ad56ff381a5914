/* SPDX-License-Identifier: MIT */
/*
 * Leases under threads, and in a child of a fork: each permit is spent once or given back once,
 * whoever else is at it.
 */
#include "lease.h"
#include "lease_purse.h"
#include "leased.h"
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS  4
#define REQUESTS 20000

/* What is left of a lease and less than any cost may be is not given back: of the last few, which
 * are of next to nothing. A permit is more. */
#define CRUMBS 0.02

static pthread_mutex_t serial = PTHREAD_MUTEX_INITIALIZER;
static struct redbucket_store *shared;

static void decide_serially(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                            struct rbk_batch *batch)
{
    (void)pthread_mutex_lock(&serial);
    model_store_decide(store, requests, len, batch);
    (void)pthread_mutex_unlock(&serial);
}

/* Time stands still, so that nothing drains: what was taken is what is there. */
static double clock_that_stands(void)
{
    return 5000.0;
}

/* Enough for most. */
static const struct rbk_limit limit = {.rate = 1e-6, .burst = 99999};

struct worker {
    pthread_t thread;
    unsigned number;
    double admitted[2]; /* of buckets a and b */
    unsigned here;
};

static void *work(void *data)
{
    static const char *const buckets[] = {"a", "ab", "b", "ba"};
    static const double costs[] = {1, 1, 2, 0.5, 7};
    struct worker *worker = data;

    for (unsigned i = 0; i < REQUESTS; i++) {
        const char *named = buckets[(i / 16 + worker->number) % 4];
        double cost = costs[(i + worker->number) % 5];
        enum rbk_operation operation = i % 1000 == 999 ? RBK_CHARGE : RBK_REQUEST;
        struct model_ask ask;

        if (!model_send(shared, leased_ask(&ask, operation, cost, limit, named)))
            continue;
        worker->here += ask.request.here;
        for (const char *at = named; *at != '\0'; at++)
            worker->admitted[*at - 'a'] += cost;
    }
    return NULL;
}

static void each_permit_is_used_once(void **unused)
{
    struct worker workers[THREADS] = {{.number = 0}};
    double admitted[2] = {0, 0};
    struct redbucket_error error;
    unsigned here = 0;

    (void)unused;
    leased_begin(true);
    model_store_ops.decide = decide_serially;
    assert_int_equal(rbk_lease_create(&model_store.store, clock_that_stands, &shared, &error),
                     REDBUCKET_OK);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].number = i;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        here += workers[i].here;
        for (unsigned j = 0; j < 2; j++)
            admitted[j] += workers[i].admitted[j];
    }
    redbucket_store_close(shared);
    assert_true(here > THREADS * REQUESTS / 8);
    for (unsigned j = 0; j < 2; j++) {
        assert_true(model_store.states[j].value >= admitted[j] - 1e-6);
        assert_true(model_store.states[j].value <= admitted[j] + CRUMBS);
    }
}

static void a_child_holds_nothing(void **unused)
{
    struct redbucket_store *store;
    pid_t child;
    int status;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    leased_warm(store, leased_large, "a");
    child = fork();
    if (child == 0) {
        /* It gives nothing back, and its first request is asked for. */
        bool good = true;

        (void)model_store_asked();
        good = leased_request(store, 1, leased_large, "a") && good;
        good = model_store_asked() == 1 && good;
        redbucket_store_close(store);
        good = model_store_asked() == 0 && good;
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    (void)model_store_asked();
    assert_true(leased_request(store, 1, leased_large, "a"));
    assert_int_equal(model_store_asked(), 0);
    redbucket_store_close(store);
}

static pid_t forked;

static void fork_in_the_middle(struct redbucket_store *store, struct rbk_request *requests,
                               size_t len, struct rbk_batch *batch)
{
    model_store_ops.decide = model_store_decide;
    model_store_decide(store, requests, len, batch);
    forked = fork();
}

/* A listener may fork while a lease is on its way: it is the parent's. */
static void a_lease_on_its_way_is_the_parents(void **unused)
{
    struct redbucket_store *store;
    int status;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    for (int i = 0; i < 7; i++)
        assert_true(leased_request(store, 1, leased_large, "a"));
    model_store_ops.decide = fork_in_the_middle;
    assert_true(leased_request(store, 1, leased_large, "a"));
    (void)model_store_asked();
    if (forked == 0) {
        bool good = leased_request(store, 1, leased_large, "a") && model_store_asked() == 1;

        redbucket_store_close(store);
        _exit(good ? 0 : 1);
    }
    assert_true(leased_request(store, 1, leased_large, "a"));
    assert_int_equal(model_store_asked(), 0);
    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_int_equal(status, 0);
    redbucket_store_close(store);
}

/* Between spending and putting back, the lease may have ended, and another begun: what was spent of
 * the one is then not the other's. */
static void nothing_is_put_back_into_another_lease(void **unused)
{
    const struct rbk_note note = {
        .bucket = 7, .until = 10, .received = 1, .top = 4, .limit = limit};
    struct rbk_want want = {.bucket = 7, .limit = &limit, .parts = rbk_purse_parts(1), .now = 2};
    struct rbk_purse purse = {0};
    struct rbk_permit permit;

    (void)unused;
    rbk_purse_fill(&purse, &note, rbk_purse_parts(4));
    assert_true(rbk_purse_spend(&purse, &want, &permit));
    assert_true(rbk_purse_restore(&purse, &permit));
    assert_true(rbk_purse_now(&purse) == rbk_purse_parts(4));

    assert_true(rbk_purse_spend(&purse, &want, &permit));
    assert_true(rbk_purse_empty(&purse) == rbk_purse_parts(3));
    assert_false(rbk_purse_restore(&purse, &permit));
    assert_true(rbk_purse_now(&purse) == 0);
    rbk_purse_fill(&purse, &note, rbk_purse_parts(1));
    assert_false(rbk_purse_restore(&purse, &permit));
    assert_true(rbk_purse_now(&purse) == rbk_purse_parts(1));

    assert_true(rbk_purse_spend(&purse, &want, &permit));
    assert_true(rbk_purse_close(&purse));
    assert_false(rbk_purse_restore(&purse, &permit));
    assert_true(rbk_purse_now(&purse) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_permit_is_used_once),
        cmocka_unit_test(nothing_is_put_back_into_another_lease),
        cmocka_unit_test(a_child_holds_nothing),
        cmocka_unit_test(a_lease_on_its_way_is_the_parents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
