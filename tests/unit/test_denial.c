/* SPDX-License-Identifier: MIT */
/*
 * The denial cache: what it answers by itself is what the server would have said; and whatever
 * empties a bucket here is known at once, elsewhere when its time is over.
 */
#include "denial.h"
#include "model_store.h"
#include "test.h"

static void a_rejection_is_known_until_it_could_pass(void **unused)
{
    struct redbucket_store *store = model_store_rejecting();

    (void)unused;
    for (int i = 0; i < 9; i++) {
        model_store_pass(0.1);
        assert_false(model_request(store, 1, "a"));
        assert_int_equal(model_store_asked(), 0);
    }
    model_store_pass(0.11);
    assert_true(model_request(store, 1, "a"));
    assert_int_equal(model_store_asked(), 1);
    store->ops->close(store);
}

/* To the last bit what the model says at that moment. */
static void the_answer_is_the_models(void **unused)
{
    struct redbucket_store *store = model_store_rejecting();
    struct rbk_answer expected;
    struct model_ask ask, other;

    (void)unused;
    model_store_pass(0.25);
    (void)model_ask(&other, RBK_REQUEST, 1, model_slow, "a");
    other.claims[0].state = model_store.states[0];
    other.request.ask.now = model_store.now;
    rbk_decide(&other.request.ask, other.claims, 1, &expected);
    assert_false(model_send(store, model_ask(&ask, RBK_REQUEST, 1, model_slow, "a")));
    assert_int_equal(model_store_asked(), 0);
    assert_same(ask.request.ask.now, model_store.now);
    assert_same(ask.request.answer.retry_after, expected.retry_after);
    assert_same(ask.request.answer.reset_after, expected.reset_after);
    assert_int_equal(ask.request.answer.remaining, expected.remaining);
    assert_int_equal(ask.request.answer.decided, 0);
    assert_int_equal(ask.request.failed, RBK_NONE);
    store->ops->close(store);
}

static void no_entry_lives_longer_than_its_time(void **unused)
{
    struct redbucket_store *store = model_store_make();
    struct rbk_limit slowest = {.rate = 0.001, .burst = 0};
    struct model_ask ask;

    (void)unused;
    assert_true(model_send(store, model_ask(&ask, RBK_REQUEST, 1, slowest, "a")));
    assert_false(model_send(store, model_ask(&ask, RBK_REQUEST, 1, slowest, "a")));
    (void)model_store_asked();
    model_store_pass(MODEL_DENIAL_TIME - 0.01);
    assert_false(model_send(store, model_ask(&ask, RBK_REQUEST, 1, slowest, "a")));
    assert_int_equal(model_store_asked(), 0);
    /* Somebody deletes the bucket elsewhere. */
    model_store.states[0].exists = false;
    assert_false(model_send(store, model_ask(&ask, RBK_REQUEST, 1, slowest, "a")));
    model_store_pass(0.02);
    assert_true(model_send(store, model_ask(&ask, RBK_REQUEST, 1, slowest, "a")));
    store->ops->close(store);
}

/* What could pass never: a cost beyond the limit. */
static void never_is_asked_again_when_time_is_over(void **unused)
{
    struct redbucket_store *store = model_store_make();

    (void)unused;
    assert_false(model_request(store, 3, "a"));
    assert_false(model_request(store, 3, "a"));
    assert_int_equal(model_store_asked(), 1);
    model_store_pass(MODEL_DENIAL_TIME);
    assert_false(model_request(store, 3, "a"));
    assert_int_equal(model_store_asked(), 1);
    store->ops->close(store);
}

static void others_are_not_meant(void **unused)
{
    struct redbucket_store *store = model_store_make();
    struct rbk_limit wider = {.rate = 1, .burst = 2};
    struct model_ask ask;

    (void)unused;
    assert_true(model_request(store, 1, "a"));
    assert_false(model_request(store, 2, "a"));
    (void)model_store_asked();
    /* Less, another key, another limit, both, and another order: each asks. */
    assert_true(model_request(store, 1, "a"));
    assert_true(model_request(store, 2, "b"));
    assert_false(model_request(store, 1, "ab"));
    assert_false(model_request(store, 1, "ba"));
    assert_int_equal(model_store_asked(), 4);
    assert_true(model_send(store, model_ask(&ask, RBK_REQUEST, 1, wider, "a")));
    assert_int_equal(model_store_asked(), 1);
    /* And the zone is told from the key. */
    (void)model_ask(&ask, RBK_REQUEST, 2, model_slow, "a");
    ask.keys[0].zone = (const unsigned char *)"y";
    (void)model_send(store, &ask);
    assert_int_equal(model_store_asked(), 1);
    store->ops->close(store);
}

static void several_limits_are_known_together(void **unused)
{
    struct redbucket_store *store = model_store_make();
    struct model_ask ask;

    (void)unused;
    assert_true(model_request(store, 2, "a"));
    assert_false(model_request(store, 1, "abc"));
    (void)model_store_asked();
    model_store_pass(0.5);
    assert_false(model_send(store, model_ask(&ask, RBK_REQUEST, 1, model_slow, "abc")));
    assert_int_equal(model_store_asked(), 0);
    assert_int_equal(ask.request.answer.decided, 0);
    assert_true(ask.claims[1].verdict.accepted);
    assert_int_equal(ask.claims[1].verdict.remaining, 2);
    assert_true(model_request(store, 1, "bc"));
    /* Too many to remember. */
    assert_false(model_request(store, 1, "abcde"));
    assert_false(model_request(store, 1, "abcde"));
    assert_int_equal(model_store_asked(), 3);
    store->ops->close(store);
}

static void what_is_done_here_is_known_at_once(void **unused)
{
    static const enum rbk_operation operations[] = {RBK_REFUND, RBK_CHARGE, RBK_RESET,
                                                    RBK_GIVE_BACK};
    struct model_ask ask;

    (void)unused;
    for (size_t i = 0; i < 4; i++) {
        for (int failed = 0; failed < 2; failed++) {
            struct redbucket_store *store = model_store_rejecting();

            /* Whether what failed was done is unknown. */
            model_store.status = failed ? REDBUCKET_ERROR_TIMEOUT : REDBUCKET_OK;
            (void)model_send(store, model_ask(&ask, operations[i], 1, model_slow, "a"));
            model_store.status = REDBUCKET_OK;
            (void)model_store_asked();
            (void)model_request(store, 1, "a");
            assert_int_equal(model_store_asked(), 1);
            store->ops->close(store);
        }
    }
}

/* A rejection that was on its way while somebody reset the bucket says nothing any more. */
static struct redbucket_store *racing;

static void decide_while_reset(struct redbucket_store *store, struct rbk_request *requests,
                               size_t len, struct rbk_batch *batch)
{
    struct model_ask ask;

    model_store_decide(store, requests, len, batch);
    model_store_ops.decide = model_store_decide;
    (void)model_send(racing, model_ask(&ask, RBK_RESET, 1, model_slow, "a"));
}

static void a_rejection_from_before_a_reset_is_not_kept(void **unused)
{
    struct redbucket_store *store = model_store_make();

    (void)unused;
    assert_true(model_request(store, 2, "a"));
    racing = store;
    model_store_ops.decide = decide_while_reset;
    assert_false(model_request(store, 1, "a"));
    (void)model_store_asked();
    assert_true(model_request(store, 1, "a"));
    assert_int_equal(model_store_asked(), 1);
    store->ops->close(store);
}

static void a_batch_is_decided_in_its_order(void **unused)
{
    struct redbucket_store *store = model_store_rejecting();
    struct rbk_batch batch = {.waited = 0.0};
    struct rbk_request array[5];
    struct model_ask asks[5];

    (void)unused;
    (void)model_ask(&asks[0], RBK_REQUEST, 1, model_slow, "a");
    (void)model_ask(&asks[1], RBK_REQUEST, 1, model_slow, "b");
    (void)model_ask(&asks[2], RBK_RESET, 1, model_slow, "a");
    (void)model_ask(&asks[3], RBK_REQUEST, 1, model_slow, "a");
    (void)model_ask(&asks[4], RBK_PEEK, 1, model_slow, "a");
    for (int i = 0; i < 5; i++)
        array[i] = asks[i].request;
    store->ops->decide(store, array, 5, &batch);
    assert_int_equal(model_store_asked(), 4);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(array[i].status, REDBUCKET_OK);
        assert_int_equal(array[i].answer.accepted, i != 0);
        assert_ptr_equal(array[i].claims, asks[i].claims);
    }
    store->ops->close(store);
}

static void long_arrays_are_sorted_out_too(void **unused)
{
    struct redbucket_store *store = model_store_rejecting();
    struct rbk_batch batch = {.waited = 0.0};
    static struct rbk_request array[100];
    static struct model_ask asks[100];

    (void)unused;
    for (int i = 0; i < 100; i++)
        array[i] = model_ask(&asks[i], RBK_REQUEST, 1, model_slow, i % 2 == 0 ? "a" : "b")->request;
    store->ops->decide(store, array, 100, &batch);
    assert_int_equal(model_store_asked(), 50);
    for (int i = 0; i < 100; i++)
        assert_int_equal(array[i].answer.accepted, i == 1 || i == 3);
    store->ops->close(store);
}

static void failures_are_not_kept(void **unused)
{
    struct redbucket_store *store = model_store_make();

    (void)unused;
    assert_true(model_request(store, 2, "a"));
    model_store.status = REDBUCKET_ERROR_IO;
    for (int i = 0; i < 3; i++)
        assert_false(model_request(store, 1, "a"));
    assert_int_equal(model_store_asked(), 4);
    store->ops->close(store);
}

/* Where requests over several buckets are taken in steps, a rejected one has filled some for a
 * moment, in which others were rejected who need not be any more. */
static void what_steps_filled_for_a_moment_is_not_kept(void **unused)
{
    struct redbucket_store *store = model_store_rejecting();

    (void)unused;
    model_store_ops.in_steps = true;
    assert_false(model_request(store, 1, "ba"));
    (void)model_store_asked();
    assert_false(model_request(store, 1, "a"));
    assert_false(model_request(store, 1, "ba"));
    assert_int_equal(model_store_asked(), 2);
    store->ops->close(store);
}

static void it_is_counted(void **unused)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct redbucket_store *store = model_store_rejecting();

    (void)unused;
    for (int i = 0; i < 3; i++)
        assert_false(model_request(store, 1, "a"));
    assert_int_equal(store->ops->statistics(store, &statistics), REDBUCKET_OK);
    assert_int_equal(statistics.denied, 3);
    assert_int_equal(statistics.rejected, 1003);
    store->ops->close(store);
}

/* The server decided at some moment between sending and receiving: what is told counts from the
 * last, however long that took. */
static void whoever_waits_for_as_long_as_told_is_accepted(void **state)
{
    struct redbucket_store *store = model_store_make();
    struct model_ask ask;

    (void)state;
    assert_true(model_request(store, 2, "a"));
    model_store.travel = 0.1;
    assert_false(model_request(store, 1, "a"));
    model_store.travel = 0.0;
    model_store_pass(0.3);
    (void)model_store_asked();
    assert_false(model_send(store, model_ask(&ask, RBK_REQUEST, 1, model_slow, "a")));
    assert_int_equal(model_store_asked(), 0);
    model_store_pass(ask.request.answer.retry_after);
    assert_true(model_request(store, 1, "a"));
    assert_int_equal(model_store_asked(), 1);
    store->ops->close(store);
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
        cmocka_unit_test(whoever_waits_for_as_long_as_told_is_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
