/* SPDX-License-Identifier: MIT */
/*
 * Gathering by lanes: those who ask one node of a cluster wait for nobody who asks another, and
 * whoever asks several at once waits for nobody at all.
 */
#include "gated.h"

#include <sched.h>

enum { LANE_A, LANE_B, NO_LANE };

/* Letters are of lane A, but for b. */
static void a_lane_that_stands_still_holds_nobody_else_up(void **unused)
{
    struct redbucket_store *store = gated_make(GATED_LONG, 1, 0);
    struct gated_caller stuck[4], others[3];

    (void)unused;
    gated_start(&stuck[0], store, 'b', 0);
    gated_await_begun(LANE_B, 1);
    for (unsigned i = 1; i < 4; i++)
        gated_start(&stuck[i], store, 'b', i);
    gated_await_queued(stuck, 4);
    gated_open(LANE_A, 100);
    for (unsigned i = 0; i < 3; i++) {
        gated_start(&others[i], store, 'a', i);
        assert_int_equal(gated_join(&others[i]), REDBUCKET_OK);
    }
    assert_int_equal(atomic_load(&gated.lanes[LANE_A].begun), 3);
    assert_int_equal(atomic_load(&gated.lanes[LANE_B].begun), 1);
    gated_open(LANE_B, 100);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(gated_join(&stuck[i]), REDBUCKET_OK);
    store->ops->close(store);
}

/* Each by itself: those who wait for the one don't go with a call of the other. */
static void lanes_are_gathered_apart(void **unused)
{
    struct redbucket_store *store = gated_make(GATED_LONG, 1, 0);
    struct gated_caller callers[2][6];

    (void)unused;
    for (unsigned i = 0; i < 6; i++) {
        for (unsigned lane = LANE_A; lane <= LANE_B; lane++) {
            gated_start(&callers[lane][i], store, lane == LANE_A ? 'a' : 'b', i);
            if (i == 0)
                gated_await_begun(lane, 1);
        }
    }
    for (unsigned lane = LANE_A; lane <= LANE_B; lane++)
        gated_await_queued(callers[lane], 6);
    gated_open(LANE_A, 1);
    gated_await_begun(LANE_A, 2);
    assert_int_equal(atomic_load(&gated.lanes[LANE_B].begun), 1);
    gated_open(LANE_A, 100);
    gated_open(LANE_B, 100);
    for (unsigned lane = LANE_A; lane <= LANE_B; lane++) {
        for (unsigned i = 0; i < 6; i++)
            assert_int_equal(gated_join(&callers[lane][i]), REDBUCKET_OK);
        assert_true(atomic_load(&gated.lanes[lane].lens[1]) > 1);
    }
    assert_int_equal(atomic_load(&gated.asked), 12);
    assert_int_equal(atomic_load(&gated.lanes[NO_LANE].begun), 0);
    store->ops->close(store);
}

/* A request that is in no lane, and an array over two. */
static void what_is_in_no_lane_goes_straight_through(void **unused)
{
    struct redbucket_store *store = gated_make(GATED_LONG, 1, 0);
    struct gated_caller first[2], none, both = {.store = store, .len = 3, .kind = 'a', .last = 'b'};
    struct gated_caller one = {.store = store, .len = 3, .kind = 'a'};

    (void)unused;
    gated_start(&first[0], store, 'a', 0);
    gated_start(&first[1], store, 'b', 1);
    gated_await_begun(LANE_A, 1);
    gated_await_begun(LANE_B, 1);
    gated_open(NO_LANE, 100);
    gated_start(&none, store, 's', 2);
    assert_int_equal(gated_join(&none), REDBUCKET_OK);
    gated_start_array(&both);
    assert_int_equal(gated_join(&both), REDBUCKET_OK);
    assert_int_equal(atomic_load(&gated.lanes[NO_LANE].begun), 2);
    /* One that keeps to one waits there. */
    gated_start_array(&one);
    gated_await_queued(&one, 1);
    assert_int_equal(atomic_load(&gated.lanes[LANE_A].begun), 1);
    gated_open(LANE_A, 100);
    gated_open(LANE_B, 100);
    assert_int_equal(gated_join(&one), REDBUCKET_OK);
    assert_int_equal(gated_join(&first[0]), REDBUCKET_OK);
    assert_int_equal(gated_join(&first[1]), REDBUCKET_OK);
    store->ops->close(store);
}

static void no_call_is_longer_than_the_store_takes_together(void **unused)
{
    struct redbucket_store *store = gated_make(GATED_LONG, 1, 4);
    struct gated_caller callers[11];

    (void)unused;
    for (unsigned i = 0; i < 11; i++) {
        gated_start(&callers[i], store, 'a', i);
        gated_await_begun(LANE_A, 1);
    }
    gated_await_queued(callers, 11);
    gated_open(LANE_A, 100);
    for (unsigned i = 0; i < 11; i++)
        assert_int_equal(gated_join(&callers[i]), REDBUCKET_OK);
    assert_int_equal(atomic_load(&gated.asked), 11);
    assert_true(atomic_load(&gated.lanes[LANE_A].begun) >= 4);
    for (unsigned i = 0; i < atomic_load(&gated.lanes[LANE_A].begun); i++)
        assert_true(atomic_load(&gated.lanes[LANE_A].lens[i]) <= 4);
    store->ops->close(store);
}

/* An array longer than that is a call all the same, its own. */
static void an_array_longer_than_that_goes_alone(void **unused)
{
    struct redbucket_store *store = gated_make(GATED_LONG, 1, 2);
    struct gated_caller first, array = {.store = store, .len = 3, .kind = 'a', .number = 20};

    (void)unused;
    gated_start(&first, store, 'a', 0);
    gated_await_begun(LANE_A, 1);
    gated_start_array(&array);
    gated_await_queued(&array, 1);
    gated_open(LANE_A, 100);
    assert_int_equal(gated_join(&first), REDBUCKET_OK);
    assert_int_equal(gated_join(&array), REDBUCKET_OK);
    assert_int_equal(atomic_load(&gated.lanes[LANE_A].lens[1]), 3);
    store->ops->close(store);
}

/* Who waits in a lane that nobody comes back from leaves it when his time has come; the lane goes
 * on when it does. */
static void time_ends_in_each_lane(void **unused)
{
    struct redbucket_store *store = gated_make(0.05, 1, 0);
    struct gated_caller stuck, waits, other;

    (void)unused;
    gated_start(&stuck, store, 'b', 0);
    gated_await_begun(LANE_B, 1);
    gated_start(&waits, store, 'b', 1);
    assert_int_equal(gated_join(&waits), REDBUCKET_ERROR_TIMEOUT);
    gated_open(LANE_A, 100);
    gated_start(&other, store, 'a', 2);
    assert_int_equal(gated_join(&other), REDBUCKET_OK);
    gated_open(LANE_B, 100);
    assert_int_equal(gated_join(&stuck), REDBUCKET_OK);
    gated_start(&waits, store, 'b', 3);
    assert_int_equal(gated_join(&waits), REDBUCKET_OK);
    assert_int_equal(atomic_load(&gated.lanes[LANE_B].begun), 2);
    store->ops->close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_that_stands_still_holds_nobody_else_up),
        cmocka_unit_test(lanes_are_gathered_apart),
        cmocka_unit_test(what_is_in_no_lane_goes_straight_through),
        cmocka_unit_test(no_call_is_longer_than_the_store_takes_together),
        cmocka_unit_test(an_array_longer_than_that_goes_alone),
        cmocka_unit_test(time_ends_in_each_lane),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
