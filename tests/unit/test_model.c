/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of one bucket, by exact numbers. Rates and times are such that every expression is
 * exact in a double, or is written here in the very order that the model prescribes, so that
 * results are compared to the last bit.
 */
#include "model/bucket.h"
#include "test.h"

#include <float.h>
#include <math.h>

/* Four a second: a quarter of a second drains one. Rejects from burst + 1 + delay = 6 on. */
static const struct rbk_limit four = {.rate = 4, .burst = 2, .delay = 3};

/* At this rate the tick is worth one request exactly. */
static const struct rbk_limit tick_is_one = {.rate = 500000, .burst = 0, .delay = 3};

static struct rbk_state at(double timestamp, double value)
{
    return (struct rbk_state){true, timestamp, value};
}

static const struct rbk_state nothing = {.exists = false, .timestamp = NAN, .value = NAN};

static struct rbk_judgement judge(const struct rbk_limit *limit, struct rbk_state state,
                                  double cost, double now)
{
    struct rbk_judgement judgement;

    rbk_judge(limit, &state, cost, now, &judgement);
    return judgement;
}

static double level(const struct rbk_limit *limit, struct rbk_state state, double now)
{
    return rbk_level(limit, &state, now);
}

static void a_state_is_readable_when_both_numbers_are_finite(void **unused)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    struct rbk_state good = at(-DBL_MAX, DBL_MAX);

    (void)unused;
    assert_true(rbk_state_readable(&good));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct rbk_state timestamp = at(bad[i], 1);
        struct rbk_state value = at(1, bad[i]);

        assert_false(rbk_state_readable(&timestamp));
        assert_false(rbk_state_readable(&value));
    }
    assert_true(rbk_state_readable(&nothing));
}

static void no_state_is_level_zero(void **unused)
{
    (void)unused;
    assert_same(level(&four, nothing, 100), 0.0);
}

static void a_level_drains_by_the_rate_times_the_time(void **unused)
{
    (void)unused;
    assert_same(level(&four, at(100, 5), 100), 5.0);
    assert_same(level(&four, at(100, 5), 100.25), 5 - 0.25 * four.rate);
    assert_same(level(&four, at(100, 5), 101), 5 - 1 * four.rate);
}

static void a_level_never_falls_below_zero(void **unused)
{
    (void)unused;
    assert_same(level(&four, at(100, 5), 100 + 5 / four.rate), 0.0);
    assert_same(level(&four, at(100, 5), 1e9), 0.0);
}

static void a_clock_that_steps_back_drains_nothing(void **unused)
{
    (void)unused;
    assert_same(level(&four, at(100, 5), 99.75), 5.0);
    assert_same(level(&four, at(100, 5), -1e300), 5.0);
}

static void a_negative_value_counts_as_zero(void **unused)
{
    (void)unused;
    assert_same(level(&four, at(100, -50), 100), 0.0);
    assert_same(level(&four, at(100, -50), 99), 0.0);
    assert_true(judge(&four, at(100, -50), four.burst + 1, 100).accepted);
    assert_true(judge(&four, at(100, -50), four.burst + 1, 100).delay == 0);
    assert_false(judge(&four, at(100, -50), four.burst + 1 + four.delay + 0.01, 100).accepted);
}

/* Within one tick of burst + 1 a request passes at once, beyond it waits. */
static void the_bound_of_at_once_is_burst_and_one_and_the_tick(void **unused)
{
    const struct rbk_limit *limit = &tick_is_one;
    double slack = limit->rate * RBK_TICK;
    double bound = limit->burst + 1 + slack;
    struct rbk_judgement within = judge(limit, nothing, bound, 0);
    struct rbk_judgement beyond = judge(limit, nothing, nextafter(bound, INFINITY), 0);

    (void)unused;
    assert_same(slack, 1.0);
    assert_same(within.room, -slack);
    assert_true(within.accepted);
    assert_same(within.delay, 0.0);
    assert_true(beyond.accepted);
    assert_same(beyond.delay, (nextafter(bound, INFINITY) - limit->burst - 1) / limit->rate);
}

static void the_bound_of_delay_is_burst_and_one_and_delay_and_the_tick(void **unused)
{
    const struct rbk_limit *limit = &tick_is_one;
    double slack = limit->rate * RBK_TICK;
    double bound = limit->burst + 1 + limit->delay + slack;
    struct rbk_judgement within = judge(limit, at(7, 1), bound - 1, 7);
    struct rbk_judgement beyond = judge(limit, at(7, 1), nextafter(bound, INFINITY) - 1, 7);

    (void)unused;
    assert_true(within.accepted);
    assert_same(within.delay, (limit->delay + slack) / limit->rate);
    assert_same(within.retry_after, 0.0);
    assert_false(beyond.accepted);
    assert_same(beyond.delay, 0.0);
}

/* Where the tick is no whole number: just inside of it and just outside. */
static void the_tick_is_two_microseconds_of_the_rate(void **unused)
{
    double full = four.burst + 1 + four.delay;

    (void)unused;
    assert_true(judge(&four, at(0, full - 1 + 1.999e-6 * four.rate), 1, 0).accepted);
    assert_false(judge(&four, at(0, full - 1 + 2.001e-6 * four.rate), 1, 0).accepted);
    assert_true(judge(&four, at(0, four.burst + 1.999e-6 * four.rate), 1, 0).delay == 0);
    assert_true(judge(&four, at(0, four.burst + 2.001e-6 * four.rate), 1, 0).delay > 0);
}

static void a_delay_is_what_has_to_drain_first(void **unused)
{
    struct rbk_judgement judgement = judge(&four, at(100, four.burst + 2), 1, 100);

    (void)unused;
    assert_true(judgement.accepted);
    assert_same(judgement.level, four.burst + 2);
    assert_same(judgement.room, -2.0);
    assert_same(judgement.delay, 2 / four.rate);
    /* Never -0: that would print as such. */
    assert_same(judge(&four, at(100, four.burst), 1, 100).delay, 0.0);
    assert_same(judge(&four, nothing, 1, 100).delay, 0.0);
}

static void a_rejection_says_when_there_is_room(void **unused)
{
    double full = four.burst + 1 + four.delay;

    (void)unused;
    assert_same(judge(&four, at(100, full), 1, 100).retry_after, 1 / four.rate);
    assert_same(judge(&four, at(100, full), 3, 100.25).retry_after, 2 / four.rate);
    assert_same(judge(&four, at(100, full), 1, 100).delay, 0.0);
}

static void a_clock_that_steps_back_waits_until_it_was(void **unused)
{
    double full = four.burst + 1 + four.delay;

    (void)unused;
    assert_same(judge(&four, at(100, full), 1, 97.5).retry_after, 2.5 + 1 / four.rate);
}

static void a_cost_that_never_fits_waits_for_ever(void **unused)
{
    double full = four.burst + 1 + four.delay;
    double within = full + 1.5e-6 * four.rate;
    double beyond = full + 2.5e-6 * four.rate;
    struct rbk_state filled = at(0, 1);

    (void)unused;
    assert_true(judge(&four, nothing, within, 0).accepted);
    assert_true(isfinite(judge(&four, filled, within, 0).retry_after));
    assert_false(judge(&four, nothing, beyond, 0).accepted);
    assert_true(isinf(judge(&four, nothing, beyond, 0).retry_after));
    assert_true(isinf(judge(&four, filled, beyond, 0).retry_after));
    assert_true(isinf(rbk_retry_after(&four, &filled, beyond, 0)));
}

static void retry_after_of_an_accepted_request_is_zero(void **unused)
{
    struct rbk_state filled = at(0, 1);

    (void)unused;
    assert_same(rbk_retry_after(&four, &filled, 1, 0), 0.0);
    assert_same(rbk_retry_after(&four, &nothing, 1, 0), 0.0);
}

/* Ordinary limits need no raising: the tick covers what doubles lose. */
static void retry_after_is_the_models_where_that_is_enough(void **unused)
{
    struct rbk_state filled = at(1.7e9, four.burst + 1 + four.delay);

    (void)unused;
    assert_same(rbk_retry_after(&four, &filled, 1, 1.7e9), 1 / four.rate);
}

/* A burst so large that its last place outweighs the tick, and a moment that rounds. */
static void retry_after_is_raised_where_doubles_fall_short(void **unused)
{
    const struct rbk_limit slow = {
        .rate = 1.5189775025886372e-09, .burst = 126.5860691958202, .delay = 0};
    double now = 626445658.5402611;
    struct rbk_state full = at(now, slow.burst + 1);
    double model = judge(&slow, full, 1, now).retry_after;
    double announced = rbk_retry_after(&slow, &full, 1, now);

    (void)unused;
    assert_false(judge(&slow, full, 1, now + model).accepted);
    assert_true(announced > model);
    assert_true(judge(&slow, full, 1, now + announced).accepted);
    /* By no more than the level's last place takes to drain. */
    assert_true(announced - model <= (nextafter(full.value, INFINITY) - full.value) / slow.rate);
}

static void extremes_stay_finite(void **unused)
{
    const struct rbk_limit slowest = {.rate = 1e-9, .burst = 0, .delay = 0};
    const struct rbk_limit fastest = {.rate = 1e12, .burst = 1e12, .delay = 0};
    struct rbk_state huge = at(100, 1e300);
    struct rbk_state largest = at(DBL_MAX, DBL_MAX);
    struct rbk_state long_ago = at(-DBL_MAX, DBL_MAX);

    (void)unused;
    assert_false(judge(&slowest, huge, 1, 100).accepted);
    assert_same(judge(&slowest, huge, 1, 100).retry_after, DBL_MAX);
    assert_same(rbk_retry_after(&slowest, &huge, 1, 100), DBL_MAX);
    assert_true(isfinite(rbk_retry_after(&fastest, &huge, 1, 100)));
    assert_same(rbk_retry_after(&slowest, &largest, 1e12, -DBL_MAX), INFINITY);
    assert_same(rbk_retry_after(&fastest, &largest, 1e12, -DBL_MAX), DBL_MAX);
    assert_same(level(&slowest, long_ago, DBL_MAX), 0.0);
    assert_same(level(&slowest, long_ago, -DBL_MAX), DBL_MAX);
    assert_true(isfinite(judge(&fastest, largest, 1e12, 0).room));
    /* The longest legal delay. */
    assert_same(judge(&(struct rbk_limit){1e-9, 0, 1e12}, nothing, 1e12, 0).delay,
                (1e12 - 1) / 1e-9);
}

static void remaining_counts_whole_requests_at_once(void **unused)
{
    (void)unused;
    assert_int_equal(rbk_remaining(&four, 0), 3);
    assert_int_equal(rbk_remaining(&four, 0.5), 2);
    assert_int_equal(rbk_remaining(&four, 1), 2);
    assert_int_equal(rbk_remaining(&four, 2), 1);
    assert_int_equal(rbk_remaining(&four, 3), 0);
    assert_int_equal(rbk_remaining(&four, 6), 0);
    assert_int_equal(rbk_remaining(&four, 1e300), 0);
}

static void remaining_counts_with_the_tick(void **unused)
{
    double slack = four.rate * RBK_TICK;
    const struct rbk_limit fastest = {.rate = 1e12, .burst = 1e12, .delay = 0};

    (void)unused;
    assert_int_equal(rbk_remaining(&four, 2 + 0.9 * slack), 1);
    assert_int_equal(rbk_remaining(&four, 2 + 1.1 * slack), 0);
    assert_int_equal(rbk_remaining(&tick_is_one, 0), 2);
    assert_int_equal(rbk_remaining(&fastest, 0), 1000000000000 + 1 + 2000000);
}

static void assert_state(struct rbk_state state, double timestamp, double value)
{
    assert_true(state.exists);
    assert_same(state.timestamp, timestamp);
    assert_same(state.value, value);
}

static void taking_keeps_the_later_timestamp(void **unused)
{
    struct rbk_state filled = at(100, 2);

    (void)unused;
    assert_state(rbk_take(&nothing, 0, 1.5, 50), 50, 1.5);
    assert_state(rbk_take(&filled, 1, 1.5, 100.25), 100.25, 2.5);
    assert_state(rbk_take(&filled, 2, 1.5, 99), 100, 3.5);
}

static void a_refund_gives_back_and_never_below_zero(void **unused)
{
    struct rbk_state filled = at(100, 2);

    (void)unused;
    assert_state(rbk_refund(&four, &filled, 0.5, 100), 100, 1.5);
    assert_state(rbk_refund(&four, &filled, 0.5, 100.25), 100.25, 2 - 0.25 * four.rate - 0.5);
    assert_state(rbk_refund(&four, &filled, 0.5, 99), 100, 1.5);
    assert_state(rbk_refund(&four, &filled, 3, 100), 100, 0);
    assert_state(rbk_refund(&four, &filled, 1, 200), 200, 0);
    assert_false(rbk_refund(&four, &nothing, 1, 100).exists);
}

static void a_charge_passes_every_bound_but_the_last(void **unused)
{
    struct rbk_state filled = at(100, 2);
    struct rbk_state full = at(100, RBK_FULL - 1);

    (void)unused;
    assert_state(rbk_charge(&four, &nothing, 1000, 100), 100, 1000);
    assert_state(rbk_charge(&four, &filled, 1000, 100.25), 100.25, 2 - 0.25 * four.rate + 1000);
    assert_state(rbk_charge(&four, &filled, 1000, 99), 100, 1002);
    assert_state(rbk_charge(&four, &full, 1, 100), 100, 1e15);
    assert_state(rbk_charge(&four, &full, 1e12, 100), 100, 1e15);
}

static void giving_back_leaves_out_what_can_have_drained(void **unused)
{
    struct rbk_state taken = at(100, 5);

    (void)unused;
    assert_same(rbk_give_back_cost(&four, &taken, 3, 100, 100), 3.0);
    assert_same(rbk_give_back_cost(&four, &taken, 3, 100, 100.5), 3 - 0.5 * four.rate);
    assert_same(rbk_give_back_cost(&four, &taken, 3, 100, 100.75), 0.0);
    assert_same(rbk_give_back_cost(&four, &taken, 3, 100, 1e9), 0.0);
    assert_same(rbk_give_back_cost(&four, &nothing, 3, 100, 100.5), 3 - 0.5 * four.rate);
}

/* The bucket has drained up to its own timestamp, whatever the clock says meanwhile. */
static void giving_back_goes_by_the_buckets_time_when_the_clock_stepped_back(void **unused)
{
    struct rbk_state taken = at(100, 5);
    struct rbk_state used_since = at(100.5, 5);

    (void)unused;
    assert_same(rbk_give_back_cost(&four, &taken, 3, 100, 90), 3.0);
    assert_same(rbk_give_back_cost(&four, &used_since, 3, 100, 90), 3 - 0.5 * four.rate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_is_readable_when_both_numbers_are_finite),
        cmocka_unit_test(no_state_is_level_zero),
        cmocka_unit_test(a_level_drains_by_the_rate_times_the_time),
        cmocka_unit_test(a_level_never_falls_below_zero),
        cmocka_unit_test(a_clock_that_steps_back_drains_nothing),
        cmocka_unit_test(a_negative_value_counts_as_zero),
        cmocka_unit_test(the_bound_of_at_once_is_burst_and_one_and_the_tick),
        cmocka_unit_test(the_bound_of_delay_is_burst_and_one_and_delay_and_the_tick),
        cmocka_unit_test(the_tick_is_two_microseconds_of_the_rate),
        cmocka_unit_test(a_delay_is_what_has_to_drain_first),
        cmocka_unit_test(a_rejection_says_when_there_is_room),
        cmocka_unit_test(a_clock_that_steps_back_waits_until_it_was),
        cmocka_unit_test(a_cost_that_never_fits_waits_for_ever),
        cmocka_unit_test(retry_after_of_an_accepted_request_is_zero),
        cmocka_unit_test(retry_after_is_the_models_where_that_is_enough),
        cmocka_unit_test(retry_after_is_raised_where_doubles_fall_short),
        cmocka_unit_test(extremes_stay_finite),
        cmocka_unit_test(remaining_counts_whole_requests_at_once),
        cmocka_unit_test(remaining_counts_with_the_tick),
        cmocka_unit_test(taking_keeps_the_later_timestamp),
        cmocka_unit_test(a_refund_gives_back_and_never_below_zero),
        cmocka_unit_test(a_charge_passes_every_bound_but_the_last),
        cmocka_unit_test(giving_back_leaves_out_what_can_have_drained),
        cmocka_unit_test(giving_back_goes_by_the_buckets_time_when_the_clock_stepped_back),
    };

    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
