/* SPDX-License-Identifier: MIT */
/*
 * What requests see of leases: delays, costs, several limits, and the other operations.
 */
#include "lease.h"
#include "leased.h"
#include "test.h"

#include <math.h>

#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

/* ---- Answers -----------------------------------------------------------------------------------
 */

/* One process alone: each waits as long as if the server had been asked, at its own time. */
static void delays_are_the_models(void **unused)
{
    struct rbk_limit shaped = {.rate = 10, .burst = 3, .delay = 1000};
    struct rbk_state alone = {.exists = false};
    unsigned leased = 0;

    (void)unused;
    for (int i = 0; i < 400; i++) {
        struct rbk_judgement judgement;
        struct model_ask ask;

        rbk_judge(&shaped, &alone, 1, model_store.now, &judgement);
        alone = rbk_take(&alone, judgement.level, 1, model_store.now);
        (void)model_store_asked();
        assert_true(model_send(leased_store, leased_ask(&ask, RBK_REQUEST, 1, shaped, "a")));
        if (model_store_asked() == 0) {
            leased++;
            assert_near(ask.request.answer.delay, judgement.delay, 1e-5);
            assert_near(ask.claims[0].verdict.delay, ask.request.answer.delay, 1e-12);
            assert_true(ask.request.answer.reset_after >= ask.request.answer.delay);
        }
        model_store_pass(i % 100 == 99 ? 0.2 : 0.001 * (i % 7));
    }
    assert_true(leased > 200);
}

/* Permits that lay here until they had drained are no reason to go all at once. */
static void what_waits_here_is_still_spaced(void **unused)
{
    struct rbk_limit shaped = {.rate = 10, .burst = 0, .delay = 1000};
    struct model_ask ask;

    (void)unused;
    for (int i = 0; i < 15; i++)
        assert_true(leased_request(leased_store, 1, shaped, "a"));
    model_store_pass(0.7);
    (void)model_store_asked();
    for (int i = 0; i < 3; i++) {
        double before = i == 0 ? 0.0 : ask.request.answer.delay;

        assert_true(model_send(leased_store, leased_ask(&ask, RBK_REQUEST, 1, shaped, "a")));
        assert_int_equal(model_store_asked(), 0);
        if (i > 0)
            assert_near(ask.request.answer.delay, before + 0.1, 1e-6);
    }
}

/* What remains is what is held here; the time is that of the lease, to give it back by. */
static void an_answer_promises_what_there_is(void **unused)
{
    struct rbk_limit limit = {.rate = 1, .burst = 99};
    double taken_at;
    struct model_ask ask;

    (void)unused;
    leased_warm(leased_store, limit, "a");
    taken_at = model_store.now;
    model_store_pass(0.5);
    assert_true(model_send(leased_store, leased_ask(&ask, RBK_REQUEST, 1, limit, "a")));
    assert_true(ask.request.here);
    assert_int_equal(ask.request.answer.remaining, 3);
    assert_int_equal(ask.request.answer.decided, RBK_NONE);
    assert_near(ask.request.answer.reset_after, leased_level(limit, 'a'), 1e-9);
    assert_near(ask.request.ask.now, taken_at, 1e-9);
    assert_near(ask.request.answer.delay, 0.0, 0.0);
}

/* Nothing drains while the server's clock is behind the bucket's. */
static void a_clock_set_back_drains_nothing(void **unused)
{
    struct rbk_limit shaped = {.rate = 10, .burst = 0, .delay = 100};
    struct model_ask ask;

    (void)unused;
    assert_true(leased_request(leased_store, 1, shaped, "a"));
    model_store.now -= 50;
    for (int i = 0; i < 7; i++)
        assert_true(leased_request(leased_store, 1, shaped, "a"));
    model_store_pass(0.5);
    (void)model_store_asked();
    assert_true(model_send(leased_store, leased_ask(&ask, RBK_REQUEST, 1, shaped, "a")));
    assert_int_equal(model_store_asked(), 0);
    assert_true(ask.request.answer.delay >= 0.8);
}

/* ---- Costs -------------------------------------------------------------------------------------
 */

static void costs_are_spent_as_they_are(void **unused)
{
    (void)unused;
    for (int i = 0; i < 8; i++)
        assert_true(leased_request(leased_store, 2.5, leased_large, "a"));
    /* Four requests of 2.5 were taken ahead. */
    assert_int_equal(leased_asked_for(5, "a"), 0);
    assert_int_equal(leased_asked_for(0.5, "a"), 0);
    assert_int_equal(leased_asked_for(4.5, "a"), 0);
    assert_true(leased_asked_for(0.001, "a") > 0);
}

/* A small lease, and a request that it can't serve: what is left goes back before it, for it. */
static void a_request_too_large_gets_what_is_held(void **unused)
{
    struct rbk_limit limit = {.rate = 1e-6, .burst = 99};

    (void)unused;
    leased_warm(leased_store, limit, "a");
    assert_near(leased_level(limit, 'a'), 12, 1e-4);
    assert_true(leased_request(leased_store, 92, limit, "a"));
    assert_near(leased_level(limit, 'a'), 100, 1e-4);
}

static void more_than_a_purse_holds_is_asked_for(void **unused)
{
    struct rbk_limit vast = {.rate = 1, .burst = 1e12};

    (void)unused;
    leased_warm(leased_store, vast, "a");
    assert_true(leased_request(leased_store, 1e11, vast, "a"));
    assert_near(leased_level(vast, 'a'), 1e11 + 8, 1);
}

/* ---- Several limits ----------------------------------------------------------------------------
 */

static void all_buckets_give_or_none(void **unused)
{
    (void)unused;
    for (int i = 0; i < 8; i++)
        assert_true(leased_request(leased_store, 1, leased_large, "ab"));
    assert_int_equal(leased_asked_for(1, "ab"), 0);
    /* b has one less than a then. */
    assert_int_equal(leased_asked_for(1, "b"), 0);
    assert_int_equal(leased_asked_for(1, "ab"), 0);
    assert_int_equal(leased_asked_for(1, "ab"), 0);
    assert_int_equal(leased_asked_for(1, "ab"), 2); /* with permits of b ahead; a has one still */
    assert_int_equal(leased_asked_for(1, "a"), 0);
}

/* Rejected by one: what was spent of the others is there again. */
static void none_is_spent_of_a_rejected_request(void **unused)
{
    struct rbk_limit none = {.rate = 1e-6, .burst = 0};
    struct model_ask ask;

    (void)unused;
    leased_warm(leased_store, leased_large, "a");
    assert_true(leased_request(leased_store, 1, none, "b"));
    for (int i = 0; i < 3; i++) {
        (void)leased_ask(&ask, RBK_REQUEST, 1, leased_large, "ab");
        ask.claims[1].limit = none;
        assert_false(model_send(leased_store, &ask));
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(leased_asked_for(1, "a"), 0);
    assert_true(leased_asked_for(1, "a") > 0);
}

/* One of the limits has no lease: the store decides all of it. */
static void each_limit_has_to_have_a_lease(void **unused)
{
    struct model_ask ask;

    (void)unused;
    leased_warm(leased_store, leased_large, "a");
    leased_warm(leased_store, leased_large, "b");
    (void)leased_ask(&ask, RBK_REQUEST, 1, leased_large, "ab");
    ask.claims[1].lease = NULL;
    ask.request.leases = 1;
    (void)model_store_asked();
    assert_true(model_send(leased_store, &ask));
    assert_int_equal(model_store_asked(), 1);
    assert_int_equal(leased_asked_for(1, "ab"), 0);
}

/* For cold buckets nothing is taken of hot ones that come with them. */
static void a_hot_bucket_waits_for_those_with_it(void **unused)
{
    struct model_ask ask;

    (void)unused;
    for (int i = 0; i < 30; i++) {
        const char pairs[3] = {'a', (char)('b' + i % 4), '\0'};

        model_store_pass(0.1);
        (void)model_store_asked();
        assert_true(
            model_send(leased_store, leased_ask(&ask, RBK_REQUEST, 1, leased_large, pairs)));
        assert_int_equal(model_store_asked(), 1);
    }
}

/* All that the bucket has left is held here, by those who ask for it alone: rather than be
 * rejected, a request of two limits gets it back. */
static void who_is_rejected_gets_what_is_held(void **unused)
{
    struct rbk_limit tight = {.rate = 1e-6, .burst = 15};
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct model_ask ask;

    (void)unused;
    leased_warm(leased_store, tight, "a");
    model_store.states[0].value = 16; /* what is left, others take */
    (void)leased_ask(&ask, RBK_REQUEST, 1, tight, "ab");
    ask.claims[1].limit = leased_large;
    (void)model_store_asked();
    assert_true(model_send(leased_store, &ask));
    assert_int_equal(model_store_asked(), 3);
    assert_near(model_store.states[0].value, 13, 1e-4);
    (void)leased_store->ops->statistics(leased_store, &statistics);
    assert_int_equal(statistics.rejected, 999); /* of 1000 that the model claims */
}

/* ---- Other operations --------------------------------------------------------------------------
 */

static void a_peek_answers_as_a_request_would(void **unused)
{
    struct model_ask peek, ask;

    (void)unused;
    leased_warm(leased_store, leased_large, "a");
    for (int i = 0; i < 4; i++) {
        (void)model_store_asked();
        assert_true(model_send(leased_store, leased_ask(&peek, RBK_PEEK, 1, leased_large, "a")));
        assert_true(model_send(leased_store, leased_ask(&ask, RBK_REQUEST, 1, leased_large, "a")));
        assert_int_equal(model_store_asked(), 0);
        assert_int_equal(peek.request.answer.remaining, ask.request.answer.remaining);
        assert_near(peek.request.answer.reset_after, ask.request.answer.reset_after, 0.0);
    }
    assert_true(model_send(leased_store, leased_ask(&peek, RBK_PEEK, 1, leased_large, "a")));
    assert_int_equal(model_store_asked(), 1);
}

static void resetting_drops_what_is_held(void **unused)
{
    struct model_ask ask;

    (void)unused;
    leased_warm(leased_store, leased_large, "a");
    assert_true(model_send(leased_store, leased_ask(&ask, RBK_RESET, 1, leased_large, "a")));
    assert_false(model_store.states[0].exists);
    assert_true(leased_asked_for(1, "a") > 0);
}

/* Who charges wants it to tell: nothing held here hides it. */
static void charging_gives_back_what_is_held(void **unused)
{
    struct model_ask ask;

    (void)unused;
    leased_warm(leased_store, leased_large, "a");
    assert_true(model_send(leased_store, leased_ask(&ask, RBK_CHARGE, 2e6, leased_large, "a")));
    assert_near(leased_level(leased_large, 'a'), 2e6 + 8, 1e-4);
    assert_false(leased_request(leased_store, 1, leased_large, "a"));
}

static void refunds_are_the_stores(void **unused)
{
    struct model_ask ask;

    (void)unused;
    leased_warm(leased_store, leased_large, "a");
    assert_true(model_send(leased_store, leased_ask(&ask, RBK_REFUND, 5, leased_large, "a")));
    assert_near(leased_level(leased_large, 'a'), 7, 1e-4);
    assert_int_equal(leased_asked_for(1, "a"), 0);
}

/* A permit of a lease, given back by its caller: what has drained since the lease was taken isn't.
 */
static void a_permit_can_be_given_back(void **unused)
{
    struct rbk_limit limit = {.rate = 1, .burst = 99};
    struct model_ask ask, back;
    double before;

    (void)unused;
    leased_warm(leased_store, limit, "a");
    model_store_pass(0.4);
    assert_true(model_send(leased_store, leased_ask(&ask, RBK_REQUEST, 1, limit, "a")));
    assert_true(ask.request.here);
    before = leased_level(limit, 'a');
    (void)leased_ask(&back, RBK_GIVE_BACK, 1, limit, "a");
    back.request.ask.taken_at = ask.request.ask.now;
    assert_true(model_send(leased_store, &back));
    assert_near(leased_level(limit, 'a'), before - 0.6, 1e-6);
}

/* A lease that is on its way while the bucket is charged is over when it comes. */
static void charge_in_between(struct redbucket_store *inner, struct rbk_request *requests,
                              size_t len, struct rbk_batch *batch)
{
    struct model_ask ask;

    model_store_ops.decide = model_store_decide;
    model_store_decide(inner, requests, len, batch);
    assert_true(model_send(leased_store, leased_ask(&ask, RBK_CHARGE, 1, leased_large, "a")));
}

static void charging_reaches_what_is_on_its_way(void **unused)
{
    (void)unused;
    for (int i = 0; i < 7; i++)
        assert_true(leased_request(leased_store, 1, leased_large, "a"));
    model_store_ops.decide = charge_in_between;
    assert_true(leased_request(leased_store, 1, leased_large, "a"));
    assert_near(leased_level(leased_large, 'a'), 13, 1e-4);
    assert_true(leased_asked_for(1, "a") > 0);
    assert_true(leased_level(leased_large, 'a') >= 10 - 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, leased_setup, leased_teardown)
        CASE(delays_are_the_models),
        CASE(what_waits_here_is_still_spaced),
        CASE(an_answer_promises_what_there_is),
        CASE(a_clock_set_back_drains_nothing),
        CASE(costs_are_spent_as_they_are),
        CASE(a_request_too_large_gets_what_is_held),
        CASE(more_than_a_purse_holds_is_asked_for),
        CASE(all_buckets_give_or_none),
        CASE(none_is_spent_of_a_rejected_request),
        CASE(each_limit_has_to_have_a_lease),
        CASE(a_hot_bucket_waits_for_those_with_it),
        CASE(who_is_rejected_gets_what_is_held),
        CASE(a_peek_answers_as_a_request_would),
        CASE(resetting_drops_what_is_held),
        CASE(charging_gives_back_what_is_held),
        CASE(refunds_are_the_stores),
        CASE(a_permit_can_be_given_back),
        CASE(charging_reaches_what_is_on_its_way),
#undef CASE
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
