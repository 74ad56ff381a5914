/* SPDX-License-Identifier: MIT */
/*
 * The denial cache in front of a server that is nothing but the model, with two clocks that a test
 * moves: the server's, and the one here. What it answers by itself has to be what the server would
 * have said; and whatever empties a bucket here is known at once, elsewhere when its time is over.
 */
#include "denial.h"
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 5
#define TIME    1.0

/* ---- The server --------------------------------------------------------------------------------
 */

static double here;

static double clock_here(void)
{
    return here;
}

static struct inner {
    struct redbucket_store store;
    struct rbk_state states[BUCKETS];
    double now;
    double travel; /* from sending to deciding, and back, seconds by both clocks */
    unsigned asked;
    enum redbucket_status status;
} inner;

static void inner_decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                         struct rbk_batch *batch)
{
    (void)store;
    (void)batch;
    inner.now += inner.travel;
    here += inner.travel;
    inner.asked += (unsigned)len;
    for (size_t i = 0; i < len; i++) {
        struct rbk_request *request = &requests[i];

        request->status = inner.status;
        request->failed = RBK_NONE;
        if (inner.status != REDBUCKET_OK)
            continue;
        request->ask.now = inner.now;
        for (size_t j = 0; j < request->len; j++)
            request->claims[j].state = inner.states[request->keys[j].key[0]];
        rbk_decide(&request->ask, request->claims, request->len, &request->answer);
        for (size_t j = 0; j < request->len; j++) {
            if (request->claims[j].change != RBK_KEEP)
                inner.states[request->keys[j].key[0]] = request->claims[j].state;
        }
    }
    inner.now += inner.travel;
    here += inner.travel;
}

static enum redbucket_status inner_statistics(struct redbucket_store *store,
                                              struct redbucket_statistics *out)
{
    (void)store;
    out->rejected = 1000;
    return REDBUCKET_OK;
}

static void inner_close(struct redbucket_store *store)
{
    (void)store;
}

static struct rbk_store_ops inner_ops;

static struct redbucket_store *make(void)
{
    struct redbucket_store *store = NULL;
    struct redbucket_error error;

    inner_ops = (struct rbk_store_ops){
        .decide = inner_decide, .statistics = inner_statistics, .close = inner_close};
    memset(&inner, 0, sizeof inner);
    inner.store.ops = &inner_ops;
    inner.now = 1700000000.0;
    here = 5000.0;
    assert_int_equal(rbk_denial_create(&inner.store, TIME, clock_here, &store, &error),
                     REDBUCKET_OK);
    return store;
}

static void pass(double seconds)
{
    inner.now += seconds;
    here += seconds;
}

/* ---- Requests ----------------------------------------------------------------------------------
 */

static const struct rbk_limit slow = {.rate = 1, .burst = 1};

struct ask {
    struct rbk_request request;
    struct rbk_key keys[8];
    struct rbk_claim claims[8];
    unsigned char bytes[8];
};

static struct ask *make_ask(struct ask *ask, enum rbk_operation operation, double cost,
                            struct rbk_limit limit, const char *buckets)
{
    size_t len = strlen(buckets);

    memset(ask, 0, sizeof *ask);
    for (size_t i = 0; i < len; i++) {
        ask->bytes[i] = (unsigned char)(buckets[i] - 'a');
        ask->keys[i] = (struct rbk_key){
            .zone = (const unsigned char *)"z", .zone_len = 1, .key = &ask->bytes[i], .key_len = 1};
        ask->claims[i].limit = limit;
    }
    ask->request = (struct rbk_request){.ask = {.operation = operation, .cost = cost},
                                        .keys = ask->keys,
                                        .claims = ask->claims,
                                        .len = len};
    return ask;
}

static bool send(struct redbucket_store *store, struct ask *ask)
{
    struct rbk_batch batch = {.waited = 0.0};

    store->ops->decide(store, &ask->request, 1, &batch);
    return ask->request.status == REDBUCKET_OK && ask->request.answer.accepted;
}

static bool request(struct redbucket_store *store, double cost, const char *buckets)
{
    struct ask ask;

    return send(store, make_ask(&ask, RBK_REQUEST, cost, slow, buckets));
}

/* How many requests the server was asked since last time. */
static unsigned asked(void)
{
    unsigned count = inner.asked;

    inner.asked = 0;
    return count;
}

static struct redbucket_store *make_rejecting(void)
{
    struct redbucket_store *store = make();

    assert_true(request(store, 2, "a"));
    assert_false(request(store, 1, "a"));
    assert_int_equal(asked(), 2);
    return store;
}

/* ---- Tests -------------------------------------------------------------------------------------
 */

static void a_rejection_is_known_until_it_could_pass(void **unused)
{
    struct redbucket_store *store = make_rejecting();

    (void)unused;
    for (int i = 0; i < 9; i++) {
        pass(0.1);
        assert_false(request(store, 1, "a"));
        assert_int_equal(asked(), 0);
    }
    pass(0.11);
    assert_true(request(store, 1, "a"));
    assert_int_equal(asked(), 1);
    store->ops->close(store);
}

/* To the last bit what the model says at that moment. */
static void the_answer_is_the_models(void **unused)
{
    struct redbucket_store *store = make_rejecting();
    struct rbk_answer expected;
    struct ask ask, other;

    (void)unused;
    pass(0.25);
    (void)make_ask(&other, RBK_REQUEST, 1, slow, "a");
    other.claims[0].state = inner.states[0];
    other.request.ask.now = inner.now;
    rbk_decide(&other.request.ask, other.claims, 1, &expected);
    assert_false(send(store, make_ask(&ask, RBK_REQUEST, 1, slow, "a")));
    assert_int_equal(asked(), 0);
    assert_same(ask.request.ask.now, inner.now);
    assert_same(ask.request.answer.retry_after, expected.retry_after);
    assert_same(ask.request.answer.reset_after, expected.reset_after);
    assert_int_equal(ask.request.answer.remaining, expected.remaining);
    assert_int_equal(ask.request.answer.decided, 0);
    assert_int_equal(ask.request.failed, RBK_NONE);
    store->ops->close(store);
}

static void no_entry_lives_longer_than_its_time(void **unused)
{
    struct redbucket_store *store = make();
    struct rbk_limit slowest = {.rate = 0.001, .burst = 0};
    struct ask ask;

    (void)unused;
    assert_true(send(store, make_ask(&ask, RBK_REQUEST, 1, slowest, "a")));
    assert_false(send(store, make_ask(&ask, RBK_REQUEST, 1, slowest, "a")));
    (void)asked();
    pass(TIME - 0.01);
    assert_false(send(store, make_ask(&ask, RBK_REQUEST, 1, slowest, "a")));
    assert_int_equal(asked(), 0);
    /* Somebody deletes the bucket elsewhere. */
    inner.states[0].exists = false;
    assert_false(send(store, make_ask(&ask, RBK_REQUEST, 1, slowest, "a")));
    pass(0.02);
    assert_true(send(store, make_ask(&ask, RBK_REQUEST, 1, slowest, "a")));
    store->ops->close(store);
}

/* What could pass never: a cost beyond the limit. */
static void never_is_asked_again_when_time_is_over(void **unused)
{
    struct redbucket_store *store = make();

    (void)unused;
    assert_false(request(store, 3, "a"));
    assert_false(request(store, 3, "a"));
    assert_int_equal(asked(), 1);
    pass(TIME);
    assert_false(request(store, 3, "a"));
    assert_int_equal(asked(), 1);
    store->ops->close(store);
}

static void others_are_not_meant(void **unused)
{
    struct redbucket_store *store = make();
    struct rbk_limit wider = {.rate = 1, .burst = 2};
    struct ask ask;

    (void)unused;
    assert_true(request(store, 1, "a"));
    assert_false(request(store, 2, "a"));
    (void)asked();
    /* Less, another key, another limit, both, and another order: each asks. */
    assert_true(request(store, 1, "a"));
    assert_true(request(store, 2, "b"));
    assert_false(request(store, 1, "ab"));
    assert_false(request(store, 1, "ba"));
    assert_int_equal(asked(), 4);
    assert_true(send(store, make_ask(&ask, RBK_REQUEST, 1, wider, "a")));
    assert_int_equal(asked(), 1);
    /* And the zone is told from the key. */
    (void)make_ask(&ask, RBK_REQUEST, 2, slow, "a");
    ask.keys[0].zone = (const unsigned char *)"y";
    (void)send(store, &ask);
    assert_int_equal(asked(), 1);
    store->ops->close(store);
}

static void several_limits_are_known_together(void **unused)
{
    struct redbucket_store *store = make();
    struct ask ask;

    (void)unused;
    assert_true(request(store, 2, "a"));
    assert_false(request(store, 1, "abc"));
    (void)asked();
    pass(0.5);
    assert_false(send(store, make_ask(&ask, RBK_REQUEST, 1, slow, "abc")));
    assert_int_equal(asked(), 0);
    assert_int_equal(ask.request.answer.decided, 0);
    assert_true(ask.claims[1].verdict.accepted);
    assert_int_equal(ask.claims[1].verdict.remaining, 2);
    assert_true(request(store, 1, "bc"));
    /* Too many to remember. */
    assert_false(request(store, 1, "abcde"));
    assert_false(request(store, 1, "abcde"));
    assert_int_equal(asked(), 3);
    store->ops->close(store);
}

static void what_is_done_here_is_known_at_once(void **unused)
{
    static const enum rbk_operation operations[] = {RBK_REFUND, RBK_CHARGE, RBK_RESET,
                                                    RBK_GIVE_BACK};
    struct ask ask;

    (void)unused;
    for (size_t i = 0; i < 4; i++) {
        for (int failed = 0; failed < 2; failed++) {
            struct redbucket_store *store = make_rejecting();

            /* Whether what failed was done is unknown. */
            inner.status = failed ? REDBUCKET_ERROR_TIMEOUT : REDBUCKET_OK;
            (void)send(store, make_ask(&ask, operations[i], 1, slow, "a"));
            inner.status = REDBUCKET_OK;
            (void)asked();
            (void)request(store, 1, "a");
            assert_int_equal(asked(), 1);
            store->ops->close(store);
        }
    }
}

/* A rejection that was on its way while somebody reset the bucket says nothing any more. */
static struct redbucket_store *racing;

static void decide_while_reset(struct redbucket_store *store, struct rbk_request *requests,
                               size_t len, struct rbk_batch *batch)
{
    struct ask ask;

    inner_decide(store, requests, len, batch);
    inner_ops.decide = inner_decide;
    (void)send(racing, make_ask(&ask, RBK_RESET, 1, slow, "a"));
}

static void a_rejection_from_before_a_reset_is_not_kept(void **unused)
{
    struct redbucket_store *store = make();

    (void)unused;
    assert_true(request(store, 2, "a"));
    racing = store;
    inner_ops.decide = decide_while_reset;
    assert_false(request(store, 1, "a"));
    (void)asked();
    assert_true(request(store, 1, "a"));
    assert_int_equal(asked(), 1);
    store->ops->close(store);
}

static void a_batch_is_decided_in_its_order(void **unused)
{
    struct redbucket_store *store = make_rejecting();
    struct rbk_batch batch = {.waited = 0.0};
    struct rbk_request array[5];
    struct ask asks[5];

    (void)unused;
    (void)make_ask(&asks[0], RBK_REQUEST, 1, slow, "a");
    (void)make_ask(&asks[1], RBK_REQUEST, 1, slow, "b");
    (void)make_ask(&asks[2], RBK_RESET, 1, slow, "a");
    (void)make_ask(&asks[3], RBK_REQUEST, 1, slow, "a");
    (void)make_ask(&asks[4], RBK_PEEK, 1, slow, "a");
    for (int i = 0; i < 5; i++)
        array[i] = asks[i].request;
    store->ops->decide(store, array, 5, &batch);
    assert_int_equal(asked(), 4);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(array[i].status, REDBUCKET_OK);
        assert_int_equal(array[i].answer.accepted, i != 0);
        assert_ptr_equal(array[i].claims, asks[i].claims);
    }
    store->ops->close(store);
}

static void long_arrays_are_sorted_out_too(void **unused)
{
    struct redbucket_store *store = make_rejecting();
    struct rbk_batch batch = {.waited = 0.0};
    static struct rbk_request array[100];
    static struct ask asks[100];

    (void)unused;
    for (int i = 0; i < 100; i++)
        array[i] = make_ask(&asks[i], RBK_REQUEST, 1, slow, i % 2 == 0 ? "a" : "b")->request;
    store->ops->decide(store, array, 100, &batch);
    assert_int_equal(asked(), 50);
    for (int i = 0; i < 100; i++)
        assert_int_equal(array[i].answer.accepted, i == 1 || i == 3);
    store->ops->close(store);
}

static void failures_are_not_kept(void **unused)
{
    struct redbucket_store *store = make();

    (void)unused;
    assert_true(request(store, 2, "a"));
    inner.status = REDBUCKET_ERROR_IO;
    for (int i = 0; i < 3; i++)
        assert_false(request(store, 1, "a"));
    assert_int_equal(asked(), 4);
    store->ops->close(store);
}

/* Where requests over several buckets are taken in steps, a rejected one has filled some for a
 * moment, in which others were rejected who need not be any more. */
static void what_steps_filled_for_a_moment_is_not_kept(void **unused)
{
    struct redbucket_store *store = make_rejecting();

    (void)unused;
    inner_ops.in_steps = true;
    assert_false(request(store, 1, "ba"));
    (void)asked();
    assert_false(request(store, 1, "a"));
    assert_false(request(store, 1, "ba"));
    assert_int_equal(asked(), 2);
    store->ops->close(store);
}

static void it_is_counted(void **unused)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct redbucket_store *store = make_rejecting();

    (void)unused;
    for (int i = 0; i < 3; i++)
        assert_false(request(store, 1, "a"));
    assert_int_equal(store->ops->statistics(store, &statistics), REDBUCKET_OK);
    assert_int_equal(statistics.denied, 3);
    assert_int_equal(statistics.rejected, 1003);
    store->ops->close(store);
}

/* ---- Chance ------------------------------------------------------------------------------------
 */

static uint64_t chance;

static unsigned draw(unsigned below)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chance >> 33) % below;
}

/* What the server would say at its own time now, without being asked. */
static bool would_accept(const struct ask *ask)
{
    struct rbk_judgement judgement;
    bool accepted = true;

    for (size_t i = 0; i < ask->request.len; i++) {
        rbk_judge(&ask->claims[i].limit, &inner.states[ask->bytes[i]], ask->request.ask.cost,
                  inner.now, &judgement);
        accepted = accepted && judgement.accepted;
    }
    return accepted;
}

/* Requests here and elsewhere, slow networks, and whatever else is done here. */
static void it_never_denies_what_the_server_would_not(void **unused)
{
    static const char *const some[] = {"a", "b", "c", "ab", "bc", "abc", "ca"};
    unsigned denied = 0;

    (void)unused;
    for (unsigned seed = 1; seed <= 300; seed++) {
        struct redbucket_store *store = make();
        struct rbk_limit limits[2] = {{.rate = 1 + seed % 7, .burst = seed % 4, .delay = seed % 3},
                                      {.rate = 8, .burst = 1}};

        chance = seed;
        for (int i = 0; i < 200; i++) {
            enum rbk_operation operation =
                draw(8) == 0 ? (enum rbk_operation)(2 + draw(4)) : RBK_REQUEST;
            struct ask ask;

            inner.travel = draw(3) * 0.004;
            pass(draw(20) * 0.002);
            (void)make_ask(&ask, operation, 1 + draw(2), limits[draw(8) == 0], some[draw(7)]);
            if (draw(4) == 0) {
                /* Elsewhere: only takes, and by the limit that drains slowest. */
                struct rbk_batch batch = {.waited = 0.0};

                (void)make_ask(&ask, RBK_REQUEST, 1 + draw(2), limits[0], some[draw(7)]);
                inner_decide(&inner.store, &ask.request, 1, &batch);
                continue;
            }
            bool expected = would_accept(&ask);
            bool accepted;

            (void)asked();
            accepted = send(store, &ask);
            if (operation == RBK_REQUEST && asked() == 0) {
                denied++;
                assert_false(accepted);
                assert_false(expected);
            }
        }
        store->ops->close(store);
    }
    print_message("%u denied\n", denied);
    assert_true(denied > 1000);
}

/* ---- Threads -----------------------------------------------------------------------------------
 */

static void *crowd(void *data)
{
    struct redbucket_store *store = data;

    for (int i = 0; i < 3000; i++) {
        struct ask ask;
        char bucket[2] = {(char)('a' + i % BUCKETS), '\0'};

        (void)send(store, make_ask(&ask, i % 50 == 0 ? RBK_RESET : RBK_REQUEST, 1, slow, bucket));
        assert_int_equal(ask.request.status, REDBUCKET_OK);
    }
    return NULL;
}

static pthread_mutex_t serial = PTHREAD_MUTEX_INITIALIZER;

static void decide_serially(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                            struct rbk_batch *batch)
{
    (void)pthread_mutex_lock(&serial);
    inner_decide(store, requests, len, batch);
    (void)pthread_mutex_unlock(&serial);
}

static double clock_that_stands(void)
{
    return 5000.0;
}

static void threads_share_it(void **unused)
{
    struct redbucket_store *store = make();
    struct redbucket_store *standing = NULL;
    struct redbucket_error error;
    pthread_t threads[4];

    (void)unused;
    store->ops->close(store);
    assert_int_equal(rbk_denial_create(&inner.store, TIME, clock_that_stands, &standing, &error),
                     REDBUCKET_OK);
    inner_ops.decide = decide_serially;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd, standing), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    standing->ops->close(standing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rejection_is_known_until_it_could_pass),
        cmocka_unit_test(the_answer_is_the_models),
        cmocka_unit_test(no_entry_lives_longer_than_its_time),
        cmocka_unit_test(never_is_asked_again_when_time_is_over),
        cmocka_unit_test(others_are_not_meant),
        cmocka_unit_test(several_limits_are_known_together),
        cmocka_unit_test(what_is_done_here_is_known_at_once),
        cmocka_unit_test(a_rejection_from_before_a_reset_is_not_kept),
        cmocka_unit_test(a_batch_is_decided_in_its_order),
        cmocka_unit_test(long_arrays_are_sorted_out_too),
        cmocka_unit_test(failures_are_not_kept),
        cmocka_unit_test(what_steps_filled_for_a_moment_is_not_kept),
        cmocka_unit_test(it_is_counted),
        cmocka_unit_test(it_never_denies_what_the_server_would_not),
        cmocka_unit_test(threads_share_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
