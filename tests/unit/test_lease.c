/* SPDX-License-Identifier: MIT */
/*
 * Leases: which keys have them, how large they are, how long they are held, and what becomes
 * of what isn't used.
 */
#include "lease.h"
#include "lease_pace.h"
#include "leased.h"
#include "test.h"

static const struct rbk_limit quick = {.rate = 100, .burst = 1000};

static void a_cold_key_is_asked_each_time(void **unused)
{
    struct redbucket_store *store;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    for (int i = 0; i < 40; i++) {
        assert_true(leased_request(store, 1, leased_large, "a"));
        assert_int_equal(model_store_asked(), 1);
        model_store_pass(0.15);
    }
    store->ops->close(store);
}

/* With the request that makes it hot, some are taken ahead; these are spent here. */
static void a_hot_key_is_served_here(void **unused)
{
    struct redbucket_store *store;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    for (unsigned i = 1; i < RBK_PACE_HOT; i++) {
        assert_true(leased_request(store, 1, leased_large, "a"));
        assert_int_equal(model_store_asked(), 1);
    }
    assert_true(leased_request(store, 1, leased_large, "a"));
    assert_int_equal(model_store_asked(), 2);
    assert_same(leased_level(leased_large, 'a'), RBK_PACE_HOT + RBK_PACE_FIRST);
    for (int i = 0; i < (int)RBK_PACE_FIRST; i++) {
        assert_true(leased_request(store, 1, leased_large, "a"));
        assert_int_equal(model_store_asked(), 0);
    }
    assert_true(leased_request(store, 1, leased_large, "a"));
    assert_int_equal(model_store_asked(), 2);
    store->ops->close(store);
}

static void who_asks_for_no_lease_has_none(void **unused)
{
    struct redbucket_store *store;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    for (int i = 0; i < 40; i++) {
        struct model_ask ask;

        assert_true(model_send(store, model_ask(&ask, RBK_REQUEST, 1, leased_large, "a")));
        assert_int_equal(model_store_asked(), 1);
    }
    store->ops->close(store);
}

/* Requests until the server is asked again: what was held. */
static unsigned use_up(struct redbucket_store *store, struct rbk_limit limit)
{
    unsigned held = 0;

    for (;; held++) {
        (void)model_store_asked();
        assert_true(leased_request(store, 1, limit, "a"));
        if (model_store_asked() > 0)
            return held;
    }
}

static void a_lease_that_is_used_up_doubles(void **unused)
{
    struct redbucket_store *store;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    leased_warm(store, leased_large, "a");
    for (unsigned expected = 4; expected < 10000; expected *= 2)
        assert_int_equal(use_up(store, leased_large), expected);
    /* As many as the limit says, and no more. */
    assert_int_equal(use_up(store, leased_large), 10000);
    assert_int_equal(use_up(store, leased_large), 10000);
    store->ops->close(store);
}

/* To what was used; and to none when that was too little to go on with. */
static void a_lease_that_outlives_its_use_shrinks(void **unused)
{
    struct redbucket_store *store;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    leased_warm(store, leased_large, "a");
    for (int i = 0; i < 3; i++)
        (void)use_up(store, leased_large);
    /* 32 are held: 20 are used, in time enough. */
    for (int i = 0; i < 20; i++) {
        model_store_pass(0.04);
        assert_true(leased_request(store, 1, leased_large, "a"));
    }
    model_store_pass(0.21);
    (void)model_store_asked();
    assert_true(leased_request(store, 1, leased_large, "a"));
    assert_int_equal(model_store_asked(), 3); /* it, what is given back, and a new lease */
    assert_int_equal(use_up(store, leased_large), 20);
    model_store_pass(1.0);
    assert_true(leased_request(store, 1, leased_large, "a"));
    assert_int_equal(model_store_asked(), 2);
    assert_true(leased_request(store, 1, leased_large, "a"));
    assert_int_equal(model_store_asked(), 1);
    store->ops->close(store);
}

static void nothing_is_spent_after_its_time(void **unused)
{
    struct redbucket_store *store;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    for (unsigned i = 1; i < RBK_PACE_HOT; i++)
        assert_true(leased_request(store, 1, leased_large, "a"));
    model_store.travel = 0.3;
    assert_true(leased_request(store, 1, leased_large, "a"));
    /* It was sent 0.6 seconds ago. */
    model_store_pass(0.39);
    (void)model_store_asked();
    assert_true(leased_request(store, 1, leased_large, "a"));
    assert_int_equal(model_store_asked(), 0);
    model_store_pass(0.011);
    assert_true(leased_request(store, 1, leased_large, "a"));
    assert_true(model_store_asked() > 0);
    store->ops->close(store);
}

/* Given back as if it had never been taken, by a request for another bucket. */
static void what_is_left_is_given_back_in_the_end(void **unused)
{
    struct redbucket_store *store;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    leased_warm(store, leased_large, "a");
    assert_true(leased_request(store, 1, leased_large, "a"));
    model_store_pass(1.0);
    assert_true(leased_level(leased_large, 'a') > RBK_PACE_HOT + 3.9);
    assert_true(leased_request(store, 1, leased_large, "b"));
    assert_true(leased_level(leased_large, 'a') <= RBK_PACE_HOT + 1);
    assert_true(leased_level(leased_large, 'a') > RBK_PACE_HOT + 0.99);
    store->ops->close(store);
}

/* Four permits are taken ahead and not used; in the second that they are held two of them drain. */
static void what_has_drained_in_part_is_given_back_in_part(void **unused)
{
    const struct rbk_limit limit = {.rate = 2, .burst = 99};
    struct redbucket_store *store;
    double level;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    leased_warm(store, limit, "a");
    model_store_pass(1.0);
    level = leased_level(limit, 'a');
    assert_true(leased_request(store, 1, leased_large, "b"));
    assert_true(leased_level(limit, 'a') < level - 1.5);
    assert_true(leased_level(limit, 'a') > level - 2.5);
    store->ops->close(store);
}

static void what_has_drained_is_not_given_back(void **unused)
{
    struct redbucket_store *store;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    leased_warm(store, quick, "a");
    model_store_pass(1.0);
    (void)model_store_asked();
    assert_true(leased_request(store, 1, leased_large, "b"));
    assert_int_equal(model_store_asked(), 1);
    store->ops->close(store);
}

/* Nobody has used it for a quarter of its time. */
static void what_nobody_uses_is_given_back_early(void **unused)
{
    struct redbucket_store *store;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    leased_warm(store, leased_large, "a");
    model_store_pass(0.2);
    assert_true(leased_request(store, 1, leased_large, "a"));
    model_store_pass(0.1);
    assert_true(leased_request(store, 1, leased_large, "b")); /* looks, and it has been used */
    model_store_pass(0.24);
    (void)model_store_asked();
    assert_true(leased_request(store, 1, leased_large, "b"));
    assert_int_equal(model_store_asked(), 1);
    model_store_pass(0.02);
    assert_true(leased_request(store, 1, leased_large, "b"));
    assert_int_equal(model_store_asked(), 2);
    assert_true(leased_level(leased_large, 'a') <= RBK_PACE_HOT + 1);
    store->ops->close(store);
}

/* Also by those who ask for no lease; but for nothing that isn't due. */
static void any_call_gives_back(void **unused)
{
    struct redbucket_store *store;
    struct model_ask ask;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    leased_warm(store, leased_large, "a");
    (void)model_store_asked();
    assert_true(model_send(store, model_ask(&ask, RBK_REQUEST, 1, leased_large, "b")));
    assert_int_equal(model_store_asked(), 1);
    model_store_pass(1.0);
    assert_true(model_send(store, model_ask(&ask, RBK_REQUEST, 1, leased_large, "b")));
    assert_int_equal(model_store_asked(), 2);
    assert_true(leased_level(leased_large, 'a') <= RBK_PACE_HOT);
    store->ops->close(store);
}

static void closing_gives_back(void **unused)
{
    struct redbucket_store *store;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    leased_warm(store, leased_large, "a");
    leased_warm(store, leased_large, "b");
    assert_true(leased_request(store, 1, leased_large, "a"));
    store->ops->close(store);
    assert_same(leased_level(leased_large, 'a'), RBK_PACE_HOT + 1);
    assert_same(leased_level(leased_large, 'b'), RBK_PACE_HOT);
}

/* How much time the store had for the last call, in seconds. */
static double time_given;

static void decide_noting_time(struct redbucket_store *store, struct rbk_request *requests,
                               size_t len, struct rbk_batch *batch)
{
    time_given = LEASED_TIMEOUT - batch->waited;
    model_store_decide(store, requests, len, batch);
    batch->waited = LEASED_TIMEOUT;
}

static void closing_waits_for_nobody_long(void **unused)
{
    static const char *const all[] = {"a", "b", "c", "d", "e"};
    struct redbucket_store *store;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        leased_warm(store, leased_large, all[i]);
    model_store_ops.decide = decide_noting_time;
    model_store.status = REDBUCKET_ERROR_TIMEOUT;
    (void)model_store_asked();
    store->ops->close(store);
    assert_true(time_given <= 0.25);
    assert_int_equal(model_store_asked(), 5);
}

/* Those of a cluster may be on a node that doesn't answer: they go by themselves, afterwards, and
 * have little time. */
static void of_a_cluster_others_are_given_back_apart(void **unused)
{
    struct redbucket_store *store;

    (void)unused;
    leased_begin(false);
    store = leased_join();
    leased_warm(store, leased_large, "a");
    model_store_pass(1.0);
    model_store_ops.decide = decide_noting_time;
    assert_true(leased_request(store, 1, leased_large, "b"));
    assert_true(time_given <= 0.25);
    assert_true(leased_level(leased_large, 'a') <= RBK_PACE_HOT);
    store->ops->close(store);
}

/* Whether it was taken is unknown: it isn't spent. */
static void what_failed_is_not_held(void **unused)
{
    struct redbucket_store *store;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    for (unsigned i = 1; i < RBK_PACE_HOT; i++)
        assert_true(leased_request(store, 1, leased_large, "a"));
    model_store.status = REDBUCKET_ERROR_TIMEOUT;
    assert_false(leased_request(store, 1, leased_large, "a"));
    assert_int_equal(model_store_asked(), RBK_PACE_HOT + 1);
    model_store.status = REDBUCKET_OK;
    assert_true(leased_request(store, 1, leased_large, "a"));
    assert_int_equal(model_store_asked(), 2);
    assert_true(leased_request(store, 1, leased_large, "a"));
    assert_int_equal(model_store_asked(), 0);
    store->ops->close(store);
}

/* Half of what is left is for others; the last are decided by the server. */
static void some_room_is_left_to_others(void **unused)
{
    struct rbk_limit narrow = {.rate = 1e-6, .burst = 13};
    struct redbucket_store *store, *other;

    (void)unused;
    leased_begin(true);
    store = leased_join();
    other = leased_join();
    leased_warm(store, narrow, "a");
    /* Seven were taken when the eighth asked for half of what was left: three and a half. */
    assert_true(leased_level(narrow, 'a') < 12.0);
    for (int i = 0; i < 2; i++)
        assert_true(leased_request(other, 1, narrow, "a"));
    assert_false(leased_request(other, 1, narrow, "a"));
    for (int i = 0; i < 4; i++)
        assert_true(leased_request(store, 1, narrow, "a"));
    assert_false(leased_request(store, 1, narrow, "a"));
    store->ops->close(store);
    other->ops->close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cold_key_is_asked_each_time),
        cmocka_unit_test(a_hot_key_is_served_here),
        cmocka_unit_test(who_asks_for_no_lease_has_none),
        cmocka_unit_test(a_lease_that_is_used_up_doubles),
        cmocka_unit_test(a_lease_that_outlives_its_use_shrinks),
        cmocka_unit_test(nothing_is_spent_after_its_time),
        cmocka_unit_test(what_is_left_is_given_back_in_the_end),
        cmocka_unit_test(what_has_drained_in_part_is_given_back_in_part),
        cmocka_unit_test(what_has_drained_is_not_given_back),
        cmocka_unit_test(what_nobody_uses_is_given_back_early),
        cmocka_unit_test(any_call_gives_back),
        cmocka_unit_test(closing_gives_back),
        cmocka_unit_test(closing_waits_for_nobody_long),
        cmocka_unit_test(of_a_cluster_others_are_given_back_apart),
        cmocka_unit_test(what_failed_is_not_held),
        cmocka_unit_test(some_room_is_left_to_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
