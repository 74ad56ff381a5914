/* SPDX-License-Identifier: MIT */
/*
 * Gathering, in front of a store whose calls last for as long as the test wants: who goes with
 * whom, who gets which answer, and who leaves when. Threads are let go one after the other by what
 * the store and the queue show, never by time; only deadlines are real ones.
 */
#include "gather.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_TIME 60.0
#define CALLERS   24

/* ---- The store ---------------------------------------------------------------------------------
 */

/* Every call waits for its number to be opened, and is noted. */
static struct inner {
    struct redbucket_store store;
    atomic_uint begun;
    atomic_uint open; /* calls below this number may end */
    atomic_uint lens[64];
    const struct rbk_request *given[64];
    atomic_uint asked; /* requests */
    bool closed;
    bool one_by_one;
} inner;

/* The bucket "f" can't be read; a call that has "x" in it fails as a whole. */
static void settle(struct rbk_request *request, bool broken)
{
    request->failed = RBK_NONE;
    if (broken) {
        request->status = REDBUCKET_ERROR_IO;
    } else if (request->keys[0].key[0] == 'f') {
        request->status = REDBUCKET_ERROR_STATE;
        request->failed = 0;
    } else {
        request->status = REDBUCKET_OK;
        request->ask.now = (double)request->keys[0].key[1];
        for (size_t i = 0; i < request->len; i++) {
            request->claims[i].state = (struct rbk_state){.exists = false};
            request->claims[i].verdict.remaining = request->keys[i].key[1];
        }
        request->answer =
            (struct rbk_answer){.accepted = true, .remaining = 7, .decided = RBK_NONE};
    }
}

static void inner_decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                         struct rbk_batch *batch)
{
    unsigned number = atomic_fetch_add(&inner.begun, 1);
    bool broken = false;

    (void)store;
    assert_true(batch->waited >= 0.0);
    inner.given[number % 64] = requests;
    atomic_store(&inner.lens[number % 64], (unsigned)len);
    atomic_fetch_add(&inner.asked, (unsigned)len);
    while (number >= atomic_load(&inner.open))
        (void)sched_yield();
    for (size_t i = 0; i < len; i++)
        broken = broken || requests[i].keys[0].key[0] == 'x';
    for (size_t i = 0; i < len; i++)
        settle(&requests[i], broken);
}

static size_t inner_key_max(const struct redbucket_store *store)
{
    (void)store;
    return 77;
}

static void inner_close(struct redbucket_store *store)
{
    (void)store;
    inner.closed = true;
}

static bool inner_batches(const struct redbucket_store *store)
{
    (void)store;
    return !inner.one_by_one;
}

static struct rbk_store_ops inner_ops = {.decide = inner_decide,
                                         .key_max = inner_key_max,
                                         .batches = inner_batches,
                                         .close = inner_close,
                                         .far = true};

static struct redbucket_store *make(double timeout, unsigned flights)
{
    struct redbucket_store *store = NULL;
    struct redbucket_error error;

    memset(&inner, 0, sizeof inner);
    inner.store.ops = &inner_ops;
    assert_int_equal(rbk_gather_create(&inner.store, timeout, flights, &store, &error),
                     REDBUCKET_OK);
    return store;
}

static void open_to(unsigned number)
{
    atomic_store(&inner.open, number);
}

static void await_begun(unsigned calls)
{
    while (atomic_load(&inner.begun) < calls)
        (void)sched_yield();
}

/* ---- Callers -----------------------------------------------------------------------------------
 */

struct caller {
    pthread_t thread;
    struct redbucket_store *store;
    struct rbk_request *requests; /* in memory of their own, so that a late write shows */
    size_t len;
    char kind;
    unsigned char number;
    double waited;
    atomic_bool entered;
    atomic_bool left;
};

struct asked {
    struct rbk_request requests[40];
    struct rbk_key keys[40];
    struct rbk_claim claims[40];
    unsigned char bytes[40][2];
};

static void ask(struct caller *caller, struct rbk_batch *batch)
{
    struct asked *asked = calloc(1, sizeof *asked);

    assert_non_null(asked);
    for (size_t i = 0; i < caller->len; i++) {
        asked->bytes[i][0] = (unsigned char)caller->kind;
        asked->bytes[i][1] = (unsigned char)(caller->number + i);
        asked->keys[i] = (struct rbk_key){.key = asked->bytes[i], .key_len = 2};
        asked->requests[i] = (struct rbk_request){.ask = {.operation = RBK_REQUEST, .cost = 1},
                                                  .keys = &asked->keys[i],
                                                  .claims = &asked->claims[i],
                                                  .len = 1};
    }
    atomic_store(&caller->entered, true);
    caller->store->ops->decide(caller->store, asked->requests, caller->len, batch);
    for (size_t i = 0; i < caller->len; i++) {
        assert_ptr_equal(asked->requests[i].keys, &asked->keys[i]);
        assert_ptr_equal(asked->requests[i].claims, &asked->claims[i]);
        if (asked->requests[i].status == REDBUCKET_OK) {
            assert_same(asked->requests[i].ask.now, (double)asked->bytes[i][1]);
            assert_int_equal(asked->claims[i].verdict.remaining, asked->bytes[i][1]);
        }
    }
    caller->requests = malloc(sizeof asked->requests);
    assert_non_null(caller->requests);
    memcpy(caller->requests, asked->requests, sizeof asked->requests);
    free(asked);
}

static void *run(void *data)
{
    struct caller *caller = data;
    struct rbk_batch batch = {.waited = 0.0};

    ask(caller, &batch);
    caller->waited = batch.waited;
    atomic_store(&caller->left, true);
    return NULL;
}

static void start(struct caller *caller, struct redbucket_store *store, char kind, unsigned number)
{
    *caller =
        (struct caller){.store = store, .len = 1, .kind = kind, .number = (unsigned char)number};
    assert_int_equal(pthread_create(&caller->thread, NULL, run, caller), 0);
}

static enum redbucket_status join(struct caller *caller)
{
    enum redbucket_status status;

    assert_int_equal(pthread_join(caller->thread, NULL), 0);
    status = caller->requests[0].status;
    free(caller->requests);
    return status;
}

/* Until the caller is in the queue: it has entered, and doesn't run. */
static void await_queued(const struct caller *callers, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        while (!atomic_load(&callers[i].entered))
            (void)sched_yield();
    }
    /* What lies between entering and waiting is a few instructions; whoever is later than this
     * only goes with the call after the next. */
    for (int i = 0; i < 2000; i++)
        (void)sched_yield();
}

/* ---- Tests -------------------------------------------------------------------------------------
 */

static void a_lone_caller_goes_straight_through(void **unused)
{
    struct redbucket_store *store = make(LONG_TIME, 2);
    struct caller caller;

    (void)unused;
    open_to(100);
    for (unsigned i = 0; i < 3; i++) {
        start(&caller, store, 'a', i);
        assert_int_equal(join(&caller), REDBUCKET_OK);
        assert_int_equal(atomic_load(&inner.begun), i + 1);
    }
    store->ops->close(store);
    assert_true(inner.closed);
}

static void who_asks_during_a_call_goes_with_the_next(void **unused)
{
    struct redbucket_store *store = make(LONG_TIME, 1);
    struct caller callers[CALLERS + 1];
    unsigned calls;

    (void)unused;
    start(&callers[0], store, 'a', 0);
    await_begun(1);
    for (unsigned i = 1; i <= CALLERS; i++)
        start(&callers[i], store, 'a', i);
    await_queued(callers, CALLERS + 1);
    assert_int_equal(atomic_load(&inner.begun), 1);
    open_to(100);
    for (unsigned i = 0; i <= CALLERS; i++)
        assert_int_equal(join(&callers[i]), REDBUCKET_OK);
    calls = atomic_load(&inner.begun);
    /* Who was late to queue may have made a third. */
    assert_true(calls == 2 || calls == 3);
    assert_true(atomic_load(&inner.lens[1]) > 1);
    assert_int_equal(atomic_load(&inner.asked), CALLERS + 1);
    store->ops->close(store);
}

static void two_calls_fly_at_once_and_no_more(void **unused)
{
    struct redbucket_store *store = make(LONG_TIME, 2);
    struct caller callers[6];

    (void)unused;
    for (unsigned i = 0; i < 2; i++) {
        start(&callers[i], store, 'a', i);
        await_begun(i + 1);
    }
    for (unsigned i = 2; i < 6; i++)
        start(&callers[i], store, 'a', i);
    await_queued(callers, 6);
    assert_int_equal(atomic_load(&inner.begun), 2);
    open_to(1);
    await_begun(3);
    open_to(100);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(join(&callers[i]), REDBUCKET_OK);
    assert_int_equal(atomic_load(&inner.asked), 6);
    store->ops->close(store);
}

static void a_fault_is_its_requests_and_a_failure_its_calls(void **unused)
{
    struct redbucket_store *store = make(LONG_TIME, 1);
    struct caller callers[5];

    (void)unused;
    start(&callers[0], store, 'a', 0);
    await_begun(1);
    start(&callers[1], store, 'f', 1);
    start(&callers[2], store, 'a', 2);
    await_queued(callers, 3);
    open_to(1);
    await_begun(2);
    start(&callers[3], store, 'x', 3);
    start(&callers[4], store, 'a', 4);
    await_queued(callers, 5);
    open_to(100);
    assert_int_equal(join(&callers[0]), REDBUCKET_OK);
    assert_int_equal(join(&callers[1]), REDBUCKET_ERROR_STATE);
    assert_int_equal(join(&callers[2]), REDBUCKET_OK);
    assert_int_equal(join(&callers[3]), REDBUCKET_ERROR_IO);
    /* With the broken one, or, late to queue, after it. */
    (void)join(&callers[4]);
    store->ops->close(store);
}

static void long_arrays_are_calls_of_their_own(void **unused)
{
    struct redbucket_store *store = make(LONG_TIME, 1);
    struct caller first, array = {.store = store, .len = 40, .kind = 'a'};
    struct rbk_batch batch = {.waited = 0.25};

    (void)unused;
    start(&first, store, 'a', 0);
    await_begun(1);
    /* The second call is let through while the first still flies. */
    assert_int_equal(pthread_create(&array.thread, NULL, run, &array), 0);
    await_begun(2);
    assert_int_equal(atomic_load(&inner.lens[1]), 40);
    open_to(100);
    assert_int_equal(join(&first), REDBUCKET_OK);
    assert_int_equal(join(&array), REDBUCKET_OK);
    store->ops->decide(store, NULL, 0, &batch);
    store->ops->close(store);
}

/* A batch of such a store takes as long as its requests one after the other. */
static void what_is_decided_one_by_one_is_not_gathered(void **unused)
{
    struct redbucket_store *store = make(LONG_TIME, 1);
    struct caller callers[4];

    (void)unused;
    inner.one_by_one = true;
    for (unsigned i = 0; i < 4; i++) {
        start(&callers[i], store, 'a', i);
        await_begun(i + 1);
    }
    open_to(100);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(join(&callers[i]), REDBUCKET_OK);
    store->ops->close(store);
}

/* Nobody stays for a call that isn't over when his time is; what comes of it later reaches nobody.
 */
static void each_leaves_at_his_own_deadline(void **unused)
{
    struct redbucket_store *store = make(0.05, 1);
    struct caller callers[4];

    (void)unused;
    start(&callers[0], store, 'a', 0);
    await_begun(1);
    for (unsigned i = 1; i < 3; i++)
        start(&callers[i], store, 'a', i);
    /* In the queue. */
    for (unsigned i = 1; i < 3; i++) {
        assert_int_equal(join(&callers[i]), REDBUCKET_ERROR_TIMEOUT);
        assert_true(callers[i].waited >= 0.05);
    }
    open_to(100);
    assert_int_equal(join(&callers[0]), REDBUCKET_OK);
    start(&callers[3], store, 'a', 3);
    assert_int_equal(join(&callers[3]), REDBUCKET_OK);
    assert_int_equal(atomic_load(&inner.asked), 2);
    store->ops->close(store);
}

/* The leader's call goes on when those that it took along have left. */
static void whoever_is_aboard_leaves_too(void **unused)
{
    struct redbucket_store *store = make(0.2, 1);
    struct caller callers[8];
    unsigned late = 0;

    (void)unused;
    start(&callers[0], store, 'a', 0);
    await_begun(1);
    for (unsigned i = 1; i < 8; i++)
        start(&callers[i], store, 'a', i);
    await_queued(callers, 8);
    open_to(1);
    await_begun(2);
    /* All but the leader of the second call, who is in the store. */
    while (atomic_load(&inner.lens[1]) > 1 && late < atomic_load(&inner.lens[1]) - 1) {
        late = 0;
        for (unsigned i = 1; i < 8; i++)
            late += atomic_load(&callers[i].left);
        (void)sched_yield();
    }
    open_to(100);
    for (unsigned i = 0; i < 8; i++) {
        enum redbucket_status status = join(&callers[i]);

        assert_true(status == REDBUCKET_OK || status == REDBUCKET_ERROR_TIMEOUT);
    }
    start(&callers[0], store, 'a', 0);
    assert_int_equal(join(&callers[0]), REDBUCKET_OK);
    store->ops->close(store);
}

static void a_child_begins_with_nothing_in_flight(void **unused)
{
    struct redbucket_store *store = make(LONG_TIME, 1);
    struct caller caller;
    int status;
    pid_t child;

    (void)unused;
    start(&caller, store, 'a', 0);
    await_begun(1);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rbk_batch batch = {.waited = 0.0};
        struct caller own = {.store = store, .len = 1, .kind = 'a', .number = 9};

        open_to(100);
        ask(&own, &batch);
        _exit(own.requests[0].status == REDBUCKET_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    open_to(100);
    assert_int_equal(join(&caller), REDBUCKET_OK);
    store->ops->close(store);
}

static void the_rest_is_passed_on(void **unused)
{
    struct redbucket_store *store = make(LONG_TIME, 1);

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
        struct caller caller = {.store = crowd->store,
                                .len = 1 + i % 3,
                                .kind = 'a',
                                .number = (unsigned char)(i % 100)};
        struct rbk_batch batch = {.waited = 0.0};

        ask(&caller, &batch);
        assert_int_equal(caller.requests[0].status, REDBUCKET_OK);
        atomic_fetch_add(&crowd->answered, (unsigned)caller.len);
        free(caller.requests);
    }
    return NULL;
}

static void a_crowd_is_served(void **unused)
{
    struct crowd crowd = {.store = make(LONG_TIME, 2)};
    pthread_t threads[8];

    (void)unused;
    open_to(1000000);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_work, &crowd), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&crowd.answered), 8 * 600);
    assert_int_equal(atomic_load(&inner.asked), 8 * 600);
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
