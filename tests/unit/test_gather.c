/* SPDX-License-Identifier: MIT */
/*
 * Gathering, in front of a store whose calls last for as long as the test wants: who goes with
 * whom, who gets which answer, and who leaves when. Threads are let go one after the other by what
 * the store and the queue show, never by time; only deadlines are real ones.
 */
#include "gated.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLERS 24

/* ---- Tests -------------------------------------------------------------------------------------
 */

static void a_lone_caller_goes_straight_through(void **unused)
{
    struct redbucket_store *store = gated_make(GATED_LONG, 2, 0);
    struct gated_caller caller;

    (void)unused;
    gated_open(0, 100);
    for (unsigned i = 0; i < 3; i++) {
        gated_start(&caller, store, 'a', i);
        assert_int_equal(gated_join(&caller), REDBUCKET_OK);
        assert_int_equal(atomic_load(&gated.lanes[0].begun), i + 1);
    }
    store->ops->close(store);
    assert_true(gated.closed);
}

static void who_asks_during_a_call_goes_with_the_next(void **unused)
{
    struct redbucket_store *store = gated_make(GATED_LONG, 1, 0);
    struct gated_caller callers[CALLERS + 1];
    unsigned calls;

    (void)unused;
    gated_start(&callers[0], store, 'a', 0);
    gated_await_begun(0, 1);
    for (unsigned i = 1; i <= CALLERS; i++)
        gated_start(&callers[i], store, 'a', i);
    gated_await_queued(callers, CALLERS + 1);
    assert_int_equal(atomic_load(&gated.lanes[0].begun), 1);
    gated_open(0, 100);
    for (unsigned i = 0; i <= CALLERS; i++)
        assert_int_equal(gated_join(&callers[i]), REDBUCKET_OK);
    calls = atomic_load(&gated.lanes[0].begun);
    /* Who was late to queue may have made a third. */
    assert_true(calls == 2 || calls == 3);
    assert_true(atomic_load(&gated.lanes[0].lens[1]) > 1);
    assert_int_equal(atomic_load(&gated.asked), CALLERS + 1);
    store->ops->close(store);
}

static void two_calls_fly_at_once_and_no_more(void **unused)
{
    struct redbucket_store *store = gated_make(GATED_LONG, 2, 0);
    struct gated_caller callers[6];

    (void)unused;
    for (unsigned i = 0; i < 2; i++) {
        gated_start(&callers[i], store, 'a', i);
        gated_await_begun(0, i + 1);
    }
    for (unsigned i = 2; i < 6; i++)
        gated_start(&callers[i], store, 'a', i);
    gated_await_queued(callers, 6);
    assert_int_equal(atomic_load(&gated.lanes[0].begun), 2);
    gated_open(0, 1);
    gated_await_begun(0, 3);
    gated_open(0, 100);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(gated_join(&callers[i]), REDBUCKET_OK);
    assert_int_equal(atomic_load(&gated.asked), 6);
    store->ops->close(store);
}

static void a_fault_is_its_requests_and_a_failure_its_calls(void **unused)
{
    struct redbucket_store *store = gated_make(GATED_LONG, 1, 0);
    struct gated_caller callers[5];

    (void)unused;
    gated_start(&callers[0], store, 'a', 0);
    gated_await_begun(0, 1);
    gated_start(&callers[1], store, 'f', 1);
    gated_start(&callers[2], store, 'a', 2);
    gated_await_queued(callers, 3);
    gated_open(0, 1);
    gated_await_begun(0, 2);
    gated_start(&callers[3], store, 'x', 3);
    gated_start(&callers[4], store, 'a', 4);
    gated_await_queued(callers, 5);
    gated_open(0, 100);
    assert_int_equal(gated_join(&callers[0]), REDBUCKET_OK);
    assert_int_equal(gated_join(&callers[1]), REDBUCKET_ERROR_STATE);
    assert_int_equal(gated_join(&callers[2]), REDBUCKET_OK);
    assert_int_equal(gated_join(&callers[3]), REDBUCKET_ERROR_IO);
    /* With the broken one, or, late to queue, after it. */
    (void)gated_join(&callers[4]);
    store->ops->close(store);
}

static void long_arrays_are_calls_of_their_own(void **unused)
{
    struct redbucket_store *store = gated_make(GATED_LONG, 1, 0);
    struct gated_caller first, array = {.store = store, .len = 40, .kind = 'a'};
    struct rbk_batch batch = {.waited = 0.25};

    (void)unused;
    gated_start(&first, store, 'a', 0);
    gated_await_begun(0, 1);
    /* The second call is let through while the first still flies. */
    gated_start_array(&array);
    gated_await_begun(0, 2);
    assert_int_equal(atomic_load(&gated.lanes[0].lens[1]), 40);
    gated_open(0, 100);
    assert_int_equal(gated_join(&first), REDBUCKET_OK);
    assert_int_equal(gated_join(&array), REDBUCKET_OK);
    gated_open(GATED_LANES - 1, 1);
    store->ops->decide(store, NULL, 0, &batch);
    store->ops->close(store);
}

/* A batch of such a store takes as long as its requests one after the other. */
static void what_is_decided_one_by_one_is_not_gathered(void **unused)
{
    struct redbucket_store *store = gated_make(GATED_LONG, 1, 0);
    struct gated_caller callers[4];

    (void)unused;
    gated.one_by_one = true;
    for (unsigned i = 0; i < 4; i++) {
        gated_start(&callers[i], store, 'a', i);
        gated_await_begun(GATED_LANES - 1, i + 1);
    }
    gated_open(GATED_LANES - 1, 100);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(gated_join(&callers[i]), REDBUCKET_OK);
    store->ops->close(store);
}

/* Nobody stays for a call that isn't over when his time is; what comes of it later reaches nobody.
 */
static void each_leaves_at_his_own_deadline(void **unused)
{
    struct redbucket_store *store = gated_make(0.05, 1, 0);
    struct gated_caller callers[4];

    (void)unused;
    gated_start(&callers[0], store, 'a', 0);
    gated_await_begun(0, 1);
    for (unsigned i = 1; i < 3; i++)
        gated_start(&callers[i], store, 'a', i);
    /* In the queue. */
    for (unsigned i = 1; i < 3; i++) {
        assert_int_equal(gated_join(&callers[i]), REDBUCKET_ERROR_TIMEOUT);
        assert_true(callers[i].waited >= 0.05);
    }
    gated_open(0, 100);
    assert_int_equal(gated_join(&callers[0]), REDBUCKET_OK);
    gated_start(&callers[3], store, 'a', 3);
    assert_int_equal(gated_join(&callers[3]), REDBUCKET_OK);
    assert_int_equal(atomic_load(&gated.asked), 2);
    store->ops->close(store);
}

/* The leader's call goes on when those that it took along have left. */
static void whoever_is_aboard_leaves_too(void **unused)
{
    struct redbucket_store *store = gated_make(0.2, 1, 0);
    struct gated_caller callers[8];
    unsigned late = 0;

    (void)unused;
    gated_start(&callers[0], store, 'a', 0);
    gated_await_begun(0, 1);
    for (unsigned i = 1; i < 8; i++)
        gated_start(&callers[i], store, 'a', i);
    gated_await_queued(callers, 8);
    gated_open(0, 1);
    gated_await_begun(0, 2);
    /* All but the leader of the second call, who is in the store. */
    while (atomic_load(&gated.lanes[0].lens[1]) > 1 &&
           late < atomic_load(&gated.lanes[0].lens[1]) - 1) {
        late = 0;
        for (unsigned i = 1; i < 8; i++)
            late += atomic_load(&callers[i].left);
        (void)sched_yield();
    }
    gated_open(0, 100);
    for (unsigned i = 0; i < 8; i++) {
        enum redbucket_status status = gated_join(&callers[i]);

        assert_true(status == REDBUCKET_OK || status == REDBUCKET_ERROR_TIMEOUT);
    }
    gated_start(&callers[0], store, 'a', 0);
    assert_int_equal(gated_join(&callers[0]), REDBUCKET_OK);
    store->ops->close(store);
}

static void a_child_begins_with_nothing_in_flight(void **unused)
{
    struct redbucket_store *store = gated_make(GATED_LONG, 1, 0);
    struct gated_caller caller;
    int status;
    pid_t child;

    (void)unused;
    gated_start(&caller, store, 'a', 0);
    gated_await_begun(0, 1);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rbk_batch batch = {.waited = 0.0};
        struct gated_caller own = {.store = store, .len = 1, .kind = 'a', .number = 9};

        gated_open(0, 100);
        gated_ask(&own, &batch);
        _exit(own.requests[0].status == REDBUCKET_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gated_open(0, 100);
    assert_int_equal(gated_join(&caller), REDBUCKET_OK);
    store->ops->close(store);
}

static void the_rest_is_passed_on(void **unused)
{
    struct redbucket_store *store = gated_make(GATED_LONG, 1, 0);

    (void)unused;
    assert_int_equal(store->ops->key_max(store), 77);
    assert_true(store->ops->far);
    assert_null(store->ops->check);
    store->ops->close(store);
}

/* Every request is asked once and answered once, however threads meet. */
struct crowd {
    struct redbucket_store *store;
    atomic_uint answered;
};

static void *crowd_work(void *data)
{
    struct crowd *crowd = data;

    for (unsigned i = 0; i < 300; i++) {
        struct gated_caller caller = {.store = crowd->store,
                                      .len = 1 + i % 3,
                                      .kind = 'a',
                                      .number = (unsigned char)(i % 100)};
        struct rbk_batch batch = {.waited = 0.0};

        gated_ask(&caller, &batch);
        assert_int_equal(caller.requests[0].status, REDBUCKET_OK);
        atomic_fetch_add(&crowd->answered, (unsigned)caller.len);
        free(caller.requests);
    }
    return NULL;
}

static void a_crowd_is_served(void **unused)
{
    struct crowd crowd = {.store = gated_make(GATED_LONG, 2, 0)};
    pthread_t threads[8];

    (void)unused;
    gated_open(0, 1000000);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_work, &crowd), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&crowd.answered), 8 * 600);
    assert_int_equal(atomic_load(&gated.asked), 8 * 600);
    crowd.store->ops->close(crowd.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_caller_goes_straight_through),
        cmocka_unit_test(who_asks_during_a_call_goes_with_the_next),
        cmocka_unit_test(two_calls_fly_at_once_and_no_more),
        cmocka_unit_test(a_fault_is_its_requests_and_a_failure_its_calls),
        cmocka_unit_test(long_arrays_are_calls_of_their_own),
        cmocka_unit_test(what_is_decided_one_by_one_is_not_gathered),
        cmocka_unit_test(each_leaves_at_his_own_deadline),
        cmocka_unit_test(whoever_is_aboard_leaves_too),
        cmocka_unit_test(a_child_begins_with_nothing_in_flight),
        cmocka_unit_test(the_rest_is_passed_on),
        cmocka_unit_test(a_crowd_is_served),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
