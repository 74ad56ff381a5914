/* SPDX-License-Identifier: MIT */
/*
 * Steps leave the reorder in order of time, as a sort would have them, and are shown in the order
 * read; memory stays within the bounds whatever the times are.
 */
#include "../../cli/replay/held.h"
#include "../../cli/replay/reorder.h"
#include "../test.h"

#include <stdlib.h>

/* What a step without keys takes in memory. */
#define ROUNDED \
    ((sizeof(struct rbk_step) + RBK_STEP_POOL_UNIT - 1) / RBK_STEP_POOL_UNIT * RBK_STEP_POOL_UNIT)

static struct rbk_step *step_at(double time_s, uint64_t number)
{
    static struct rbk_step_pool pool;
    static const struct rbk_step_keys none;
    struct rbk_step *step = rbk_step_create(&pool, &none, false);

    assert_non_null(step);
    step->time_s = time_s;
    step->number = number;
    return step;
}

static struct rbk_reorder *reorder_of(double window_s, size_t steps)
{
    const struct rbk_reorder_bounds bounds = {window_s, steps, SIZE_MAX};
    struct rbk_reorder *reorder = rbk_reorder_create(&bounds);

    assert_non_null(reorder);
    return reorder;
}

static void put(struct rbk_reorder *reorder, double time_s, uint64_t number)
{
    assert_false(rbk_reorder_late(reorder, time_s));
    assert_int_equal(rbk_reorder_put(reorder, step_at(time_s, number)), REDBUCKET_OK);
}

static void assert_leaves(struct rbk_step *step, double time_s, uint64_t number)
{
    assert_non_null(step);
    assert_same(step->time_s, time_s);
    assert_int_equal(step->number, number);
    rbk_step_destroy(step);
}

static void equal_times_leave_in_the_order_read(void **state)
{
    struct rbk_reorder *reorder = reorder_of(300, 1000);

    (void)state;
    for (uint64_t number = 0; number < 100; number++)
        put(reorder, number % 2 ? 7 : 6, number);
    assert_null(rbk_reorder_take_due(reorder));
    for (uint64_t number = 0; number < 100; number += 2)
        assert_leaves(rbk_reorder_take(reorder), 6, number);
    for (uint64_t number = 1; number < 100; number += 2)
        assert_leaves(rbk_reorder_take(reorder), 7, number);
    assert_null(rbk_reorder_take(reorder));
    rbk_reorder_destroy(reorder);
}

static void zero_is_one_moment_whatever_its_sign(void **state)
{
    struct rbk_reorder *reorder = reorder_of(300, 1000);

    (void)state;
    put(reorder, -0.0, 0);
    put(reorder, 5, 1);
    put(reorder, 0.0, 2);
    put(reorder, 6, 3);
    put(reorder, -0.0, 4);
    for (uint64_t number = 0; number <= 4; number += 2) {
        struct rbk_step *step = rbk_reorder_take(reorder);

        assert_non_null(step);
        assert_int_equal(step->number, number);
        rbk_step_destroy(step);
    }
    rbk_reorder_destroy(reorder);
}

static void a_step_waits_for_as_long_as_the_window(void **state)
{
    struct rbk_reorder *reorder = reorder_of(10, 1000);

    (void)state;
    put(reorder, 100, 0);
    put(reorder, 110, 1);
    assert_null(rbk_reorder_take_due(reorder)); /* one of 100 may still come */
    put(reorder, 100, 2);
    put(reorder, 111, 3);
    assert_leaves(rbk_reorder_take_due(reorder), 100, 0);
    assert_leaves(rbk_reorder_take_due(reorder), 100, 2);
    assert_null(rbk_reorder_take_due(reorder));
    assert_true(rbk_reorder_late(reorder, 100));
    assert_false(rbk_reorder_late(reorder, 101));
    rbk_reorder_destroy(reorder);
}

static void without_a_window_steps_leave_at_once_and_a_step_back_is_late(void **state)
{
    struct rbk_reorder *reorder = reorder_of(0, 1000);

    (void)state;
    put(reorder, 5, 0);
    put(reorder, 6, 1);
    assert_leaves(rbk_reorder_take_due(reorder), 5, 0);
    assert_true(rbk_reorder_late(reorder, 5));
    assert_false(rbk_reorder_late(reorder, 6));
    rbk_reorder_destroy(reorder);
}

static void too_many_steps_leave_before_their_time(void **state)
{
    struct rbk_reorder *reorder = reorder_of(300, 3);

    (void)state;
    put(reorder, 4, 0);
    put(reorder, 2, 1);
    put(reorder, 3, 2);
    assert_null(rbk_reorder_take_due(reorder));
    put(reorder, 5, 3);
    assert_leaves(rbk_reorder_take_due(reorder), 2, 1);
    assert_null(rbk_reorder_take_due(reorder));
    assert_true(rbk_reorder_late(reorder, 1)); /* 2 has left */
    assert_false(rbk_reorder_late(reorder, 2));
    rbk_reorder_destroy(reorder);
}

static void too_many_bytes_do_the_same(void **state)
{
    const struct rbk_reorder_bounds bounds = {300, 1000, 3 * ROUNDED};
    struct rbk_reorder *reorder = rbk_reorder_create(&bounds);

    (void)state;
    assert_non_null(reorder);
    for (uint64_t number = 0; number < 3; number++)
        put(reorder, (double)number, number);
    assert_null(rbk_reorder_take_due(reorder));
    put(reorder, 3, 3);
    assert_leaves(rbk_reorder_take_due(reorder), 0, 0);
    assert_null(rbk_reorder_take_due(reorder));
    rbk_reorder_destroy(reorder);
}

static int by_time_and_number(const void *a, const void *b)
{
    const struct rbk_step *one = *(struct rbk_step *const *)a;
    const struct rbk_step *other = *(struct rbk_step *const *)b;

    if (one->time_s != other->time_s)
        return one->time_s < other->time_s ? -1 : 1;
    return one->number < other->number ? -1 : one->number > other->number;
}

/* Random traffic, up to 60 s out of order, against a sort. */
static void what_leaves_is_what_a_sort_gives(void **state)
{
    enum { STEPS = 20000 };
    static struct rbk_step *expected[STEPS];
    struct rbk_reorder *reorder = reorder_of(60, 1000000);
    unsigned seed = 7;
    size_t left = 0;

    (void)state;
    for (size_t i = 0; i < STEPS; i++) {
        const double time_s = (double)(i / 10 + (size_t)(rand_r(&seed) % 60));

        expected[i] = step_at(time_s, i);
        put(reorder, time_s, i);
    }
    qsort(expected, STEPS, sizeof(expected[0]), by_time_and_number);
    for (struct rbk_step *step; (step = rbk_reorder_take_due(reorder)); left++)
        assert_leaves(step, expected[left]->time_s, expected[left]->number);
    assert_true(left > STEPS / 2);
    for (struct rbk_step *step; (step = rbk_reorder_take(reorder)); left++)
        assert_leaves(step, expected[left]->time_s, expected[left]->number);
    assert_int_equal(left, STEPS);
    for (size_t i = 0; i < STEPS; i++)
        rbk_step_destroy(expected[i]);
    rbk_reorder_destroy(reorder);
}

/* The same taken out while it goes in, as a replay does: nothing earlier ever follows. */
static void nothing_earlier_leaves_later(void **state)
{
    struct rbk_reorder *reorder = reorder_of(20, 50);
    unsigned seed = 11;
    double left_s = -1;
    int late = 0;

    (void)state;
    for (uint64_t number = 0; number < 20000; number++) {
        const double time_s = (double)(number / 10 + (uint64_t)(rand_r(&seed) % 40));
        struct rbk_step *step;

        if (rbk_reorder_late(reorder, time_s))
            late++;
        else
            put(reorder, time_s, number);
        while ((step = rbk_reorder_take_due(reorder))) {
            assert_true(step->time_s >= left_s);
            left_s = step->time_s;
            rbk_step_destroy(step);
        }
    }
    assert_true(late > 0);
    rbk_reorder_destroy(reorder);
}

static struct rbk_step *add(struct rbk_held *held)
{
    struct rbk_step *step = step_at(0, 0);

    assert_int_equal(rbk_held_add(held, step), REDBUCKET_OK);
    return step;
}

static void assert_shown(struct rbk_held *held, struct rbk_step *expected)
{
    struct rbk_step *step = rbk_held_take(held);

    assert_ptr_equal(step, expected);
    rbk_step_destroy(step);
}

static void answers_are_held_until_those_before_them_are_there(void **state)
{
    struct rbk_held *held = rbk_held_create(8, SIZE_MAX);
    struct rbk_step *steps[4];

    (void)state;
    assert_non_null(held);
    for (int i = 0; i < 4; i++)
        steps[i] = add(held);
    assert_int_equal(steps[3]->number, 3);
    steps[2]->result = RBK_STEP_DECIDED;
    assert_null(rbk_held_take(held));
    steps[0]->result = RBK_STEP_DECIDED;
    assert_shown(held, steps[0]);
    assert_null(rbk_held_take(held));
    rbk_held_forget(held, steps[1]);
    rbk_step_destroy(steps[1]);
    assert_shown(held, steps[2]);
    assert_null(rbk_held_take(held));
    steps[3]->result = RBK_STEP_DECIDED;
    assert_shown(held, steps[3]);
    assert_null(rbk_held_take(held));
    rbk_held_destroy(held);
}

static void what_is_held_is_bounded_and_grows_only_as_it_must(void **state)
{
    struct rbk_held *held = rbk_held_create(4096, SIZE_MAX);
    static struct rbk_step *steps[4096];

    (void)state;
    assert_non_null(held);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4096; i++) {
            assert_false(rbk_held_full(held));
            steps[i] = add(held);
        }
        assert_true(rbk_held_full(held));
        for (int i = 4095; i >= 0; i--)
            steps[i]->result = RBK_STEP_DECIDED;
        for (int i = 0; i < 4096; i++)
            assert_shown(held, steps[i]);
    }
    rbk_held_destroy(held);
}

static void bytes_fill_it_as_well(void **state)
{
    struct rbk_held *held = rbk_held_create(8, 2 * ROUNDED);
    struct rbk_step *steps[3];

    (void)state;
    assert_non_null(held);
    for (int i = 0; i < 3; i++) {
        assert_false(rbk_held_full(held));
        steps[i] = add(held);
        steps[i]->result = RBK_STEP_DECIDED;
    }
    assert_true(rbk_held_full(held));
    assert_shown(held, steps[0]);
    assert_false(rbk_held_full(held));
    steps[0] = add(held);
    assert_true(rbk_held_full(held));
    rbk_held_forget(held, steps[0]);
    assert_false(rbk_held_full(held));
    rbk_step_destroy(steps[0]);
    rbk_held_destroy(held); /* with two answers that nobody took */
}

static void steps_are_made_of_those_that_are_done(void **state)
{
    static char long_key[1000];
    struct rbk_step_pool pool = {0};
    struct rbk_step_keys keys = {.limits = {"ip"}, .keys = {{"192.0.2.7", 9}}, .len = 1};
    struct rbk_step *first = rbk_step_create(&pool, &keys, true);
    struct rbk_step *second;

    (void)state;
    assert_non_null(first);
    first->result = RBK_STEP_DECIDED;
    first->states[0].exists = true;
    rbk_step_recycle(&pool, first);
    second = rbk_step_create(&pool, &keys, true);
    assert_ptr_equal(second, first);
    assert_int_equal(second->result, RBK_STEP_WAITS);
    assert_false(second->states[0].exists);
    assert_memory_equal(second->keys[0].key, "192.0.2.7", 9);
    keys.keys[0] = (struct rbk_span){long_key, sizeof(long_key)};
    first = rbk_step_create(&pool, &keys, false);
    assert_non_null(first);
    assert_null(first->states);
    assert_true(first->size >= sizeof(*first) + sizeof(first->keys[0]) + sizeof(long_key));
    rbk_step_recycle(&pool, first);
    rbk_step_recycle(&pool, second);
    rbk_step_pool_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_times_leave_in_the_order_read),
        cmocka_unit_test(zero_is_one_moment_whatever_its_sign),
        cmocka_unit_test(a_step_waits_for_as_long_as_the_window),
        cmocka_unit_test(without_a_window_steps_leave_at_once_and_a_step_back_is_late),
        cmocka_unit_test(too_many_steps_leave_before_their_time),
        cmocka_unit_test(too_many_bytes_do_the_same),
        cmocka_unit_test(what_leaves_is_what_a_sort_gives),
        cmocka_unit_test(nothing_earlier_leaves_later),
        cmocka_unit_test(answers_are_held_until_those_before_them_are_there),
        cmocka_unit_test(what_is_held_is_bounded_and_grows_only_as_it_must),
        cmocka_unit_test(bytes_fill_it_as_well),
        cmocka_unit_test(steps_are_made_of_those_that_are_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
