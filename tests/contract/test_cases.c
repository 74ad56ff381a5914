/* SPDX-License-Identifier: MIT */
/*
 * Faults that other rate limiters had, each tried here on every embedded store: times, numbers,
 * bounds, several limits at once. A case stands for its whole kind; the number in front of a test's
 * name is the case's. Keys, states, limiters and threads are in test_cases_keys.c;
 * tests/README.md has all of them, and where the others are.
 */
#include "cases.h"

#include <math.h>

static void T01b_two_clocks_half_a_second_apart_admit_ten(void **state)
{
    struct redbucket_key key = {.limit = "a", .key = "k"};
    unsigned accepted = 0;

    add_limit(*state, "a", (struct redbucket_limit){.rate = 10, .burst = 9});
    for (int i = 0; i < 18; i++) {
        struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1};

        assert_int_equal(redbucket_decide_at(((struct test_case *)*state)->limiter, &request, 1,
                                             i % 2 == 0 ? 100.0 : 99.5),
                         REDBUCKET_OK);
        accepted += request.response.accepted;
    }
    assert_int_equal(accepted, 10);
    rejects(*state, 100, K, 0.1);
    rejects(*state, 99.5, K, 0.6);
    assert_same(state_of(*state, "a", "k").timestamp, 100.0);
}

static void T02b_spacing_below_a_millisecond_counts(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 3000});
    for (int i = 0; i < 10; i++)
        accepts(*state, 5000 + 0.00034 * i, K, 0);
}

static void T03a_one_interval_is_enough(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 10.0 / 13});
    accepts(*state, 0, K, 0);
    accepts(*state, 1.3, K, 0);
}

static void T03c_a_client_paced_at_the_rate_always_passes(void **state)
{
    static const double times[] = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};

    add_limit(*state, "a", (struct redbucket_limit){.rate = 10});
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        accepts(*state, times[i], K, 0);
}

static void T03d_sleeping_retry_after_is_enough_at_an_epochs_time(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 10});
    accepts(*state, 1700000000.0, K, 0);
    accepts(*state, 1700000000.1, K, 0);
    accepts(*state, 1700000000.2005, K, 0);
}

static void T04_ten_idle_years_overflow_nothing(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 1000, .expiry = 4e8});
    accepts(*state, 0, K, 0);
    accepts(*state, 315360000, K, 0);
    rejects(*state, 315360000, K, 0.001);
}

static void T05_times_pass_2038_and_32_bits(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 1});
    accepts(*state, 2147483647.0, K, 0);
    rejects(*state, 2147483647.5, K, 0.5);
    accepts(*state, 2147483648.25, K, 0);
    accepts(*state, 4294967296.5, K, 0);
    accepts(*state, 5102444800.0, K, 0);
}

static void N01_intervals_below_a_millisecond_limit(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 2000});
    accepts(*state, 0, K, 0);
    rejects(*state, 0.0004, K, 9.999999999999998e-05);
    accepts(*state, 0.00051, K, 0);
    rejects(*state, 0.0009, K, 0.00011);
}

static void N02_6000_a_second_limits(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 6000, .burst = 6000});
    accepts_so_many(*state, 6001, 10);
    rejects(*state, 10, K, 1 / 6000.0);
    accepts(*state, 10.00025, K, 0);
}

static void N03_rates_above_the_clocks_resolution_limit(void **state)
{
    const double rate = 1.5e9;

    add_limit(*state, "a", (struct redbucket_limit){.rate = rate});
    accepts_so_many(*state, (unsigned)(rate * 2e-6), 1);
    accepts(*state, 1.000001, K, 0);
}

static void N04_a_rate_below_one_is_no_zero(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 0.1});
    accepts(*state, 0, K, 0);
    rejects(*state, 1.1, K, 8.9);
    rejects(*state, 9.9, K, 0.09999999999999787);
    accepts(*state, 10.01, K, 0);
}

static void refuses(struct test_case *test, struct redbucket_limit limit)
{
    assert_int_equal(redbucket_limiter_add(test->limiter, "a", &limit, NULL),
                     REDBUCKET_ERROR_LIMIT);
    assert_int_equal(redbucket_limiter_count(test->limiter), 0);
}

static void N06_rate_zero_is_refused(void **state)
{
    refuses(*state, (struct redbucket_limit){.rate = 0});
    refuses(*state, (struct redbucket_limit){.rate = -1});
    refuses(*state, (struct redbucket_limit){.rate = -0.0});
}

static void N08_a_burst_beyond_doubles_is_refused(void **state)
{
    refuses(*state, (struct redbucket_limit){.rate = 1, .burst = 9007199254740992});
    refuses(*state, (struct redbucket_limit){.rate = 1, .burst = 1e18});
    refuses(*state, (struct redbucket_limit){.rate = 1, .burst = 1e308, .delay = 1e308});
}

static void N10_a_wait_of_ages_is_a_number(void **state)
{
    struct test_case *test = *state;
    struct redbucket_request request = {.keys = &(struct redbucket_key){"a", "k"}, .keys_len = 1};

    refuses(test, (struct redbucket_limit){.rate = 1e-12, .delay = 1});
    add_limit(test, "a", (struct redbucket_limit){.rate = 1e-9, .delay = 1});
    accepts(test, 0, K, 0);
    accepts(test, 0, K, 1 / 1e-9);
    rejects(test, 0, K, 1 / 1e-9);
    /* The longest wait of all: of 1e12 requests at the slowest rate, in 64 bits of microseconds. */
    request.cost = 1e12;
    request.operation = REDBUCKET_CHARGE;
    assert_int_equal(redbucket_decide_at(test->limiter, &request, 1, 0), REDBUCKET_OK);
    assert_true(request.response.reset_after > 9.9e20 && request.response.reset_after < 1.1e21);
    assert_true(request.response.reset_after_us == UINT64_MAX - 1);
}

static void C02_an_expiry_that_is_none_is_refused(void **state)
{
    refuses(*state, (struct redbucket_limit){.rate = 1, .expiry = -5});
    refuses(*state, (struct redbucket_limit){.rate = 1, .expiry = NAN});
    refuses(*state, (struct redbucket_limit){.rate = 1, .expiry = INFINITY});
    add_limit(*state, "a", (struct redbucket_limit){.rate = 1, .expiry = 0});
    add_limit(*state, "b", (struct redbucket_limit){.rate = 1, .expiry = 0.25});
}

static void B01_burst_and_one_pass_at_once(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 1, .burst = 2});
    accepts_so_many(*state, 3, 0);
    rejects(*state, 0, K, 1);
    accepts(*state, 1.001, K, 0);
    rejects(*state, 1.001, K, 0.999);
}

static void B02_119_pass_in_the_first_minute_of_60_a_minute(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 1, .burst = 59});
    accepts_so_many(*state, 60, 0);
    rejects(*state, 0, K, 1);
    for (int second = 1; second < 60; second++)
        accepts(*state, second + 0.001, K, 0);
    rejects(*state, 59.5, K, 0.5);
}

static void B03_six_a_minute_is_one_in_ten_seconds(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 6.0 / 60});
    accepts(*state, 0, K, 0);
    rejects(*state, 0.5, K, 9.499999999999998);
    accepts(*state, 10.001, K, 0);
}

static void B05_burst_and_delay_have_fractions(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 2, .burst = 0.5, .delay = 0.5});
    accepts(*state, 0, K, 0);
    accepts(*state, 0, K, 0.25);
    rejects(*state, 0, K, 0.5);
}

static void B06_a_delay_is_never_negative(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 5, .burst = 2, .delay = 2});
    accepts(*state, 0, K, 0);
    accepts_so_many(*state, 3, 10);
    accepts(*state, 10, K, 0.2);
    accepts(*state, 10, K, 0.4);
    rejects(*state, 10, K, 0.2);
}

/* limit_req with burst=12 delay=8 at 5r/s. */
static void B09_burst_and_delay_map_to_nginx(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 5, .burst = 8, .delay = 4});
    accepts_so_many(*state, 9, 0);
    for (int waiting = 1; waiting <= 4; waiting++)
        accepts(*state, 0, K, waiting / 5.0);
    rejects(*state, 0, K, 0.2);
}

/* M01 and M02 are about the same requests in either order of names. */
static void one_abuser_and_ten_others(struct test_case *test, bool turned)
{
    char key[] = "u0";

    for (int i = 0; i < 20; i++) {
        struct redbucket_key user = {.limit = "user", .key = "alice"};
        struct redbucket_key all = {.limit = "glob", .key = "g"};

        if (i == 0)
            accepts(test, 0, KEYS(turned ? all : user, turned ? user : all), 0);
        else
            rejects(test, 0, KEYS(turned ? all : user, turned ? user : all), 1);
    }
    for (int i = 0; i < 10; i++, key[1]++) {
        struct redbucket_key user = {.limit = "user", .key = key};
        struct redbucket_key all = {.limit = "glob", .key = "g"};

        if (i < 9)
            accepts(test, 0, KEYS(turned ? all : user, turned ? user : all), 0);
        else
            rejects(test, 0, KEYS(turned ? all : user, turned ? user : all), 0.1);
    }
}

static void M01_an_abuser_uses_up_nothing_shared(void **state)
{
    add_limit(*state, "user", (struct redbucket_limit){.rate = 1});
    add_limit(*state, "glob", (struct redbucket_limit){.rate = 10, .burst = 9});
    one_abuser_and_ten_others(*state, false);
}

static void M02_the_order_of_limits_is_nothing(void **state)
{
    add_limit(*state, "glob", (struct redbucket_limit){.rate = 10, .burst = 9});
    add_limit(*state, "user", (struct redbucket_limit){.rate = 1});
    one_abuser_and_ten_others(*state, true);
}

static void assert_state(struct redbucket_state state, double timestamp, double value)
{
    assert_true(state.exists);
    assert_same(state.timestamp, timestamp);
    assert_same(state.value, value);
}

static void M03_a_rejection_leaves_every_state(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 1});
    add_limit(*state, "b", (struct redbucket_limit){.rate = 1, .burst = 4});
    accepts(*state, 10, KEYS({"a", "x"}, {"b", "y"}), 0);
    rejects(*state, 10.5, KEYS({"a", "x"}, {"b", "y"}), 0.5);
    assert_state(state_of(*state, "a", "x"), 10, 1);
    assert_state(state_of(*state, "b", "y"), 10, 1);
    accepts(*state, 10.5, KEYS({"b", "y"}), 0);
    assert_state(state_of(*state, "b", "y"), 10.5, 1 - 0.5 + 1);
}

static void M04_rejections_extend_nothing(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 5});
    accepts(*state, 0, K, 0);
    for (int i = 1; i < 9; i++) {
        rejects(*state, 0.21 * i - 0.1, K, 0.0899999999999999);
        accepts(*state, 0.21 * i, K, 0);
    }
}

static void M05_a_rejection_moves_no_timestamp(void **state)
{
    add_limit(*state, "a", (struct redbucket_limit){.rate = 1});
    accepts(*state, 0, K, 0);
    rejects(*state, 0.5, K, 0.5);
    rejects(*state, 0.9, K, 0.1);
    accepts(*state, 1.001, K, 0);
}

static void M10_what_never_fits_has_no_retry_time(void **state)
{
    struct test_case *test = *state;
    struct redbucket_key key = {.limit = "a", .key = "k"};
    struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 8};

    add_limit(test, "a", (struct redbucket_limit){.rate = 1, .burst = 4, .delay = 2});
    assert_int_equal(redbucket_decide_at(test->limiter, &request, 1, 0), REDBUCKET_OK);
    assert_false(request.response.accepted);
    assert_true(isinf(request.response.retry_after));
    assert_true(request.response.retry_after_us == UINT64_MAX);
    request.cost = 7;
    assert_int_equal(redbucket_decide_at(test->limiter, &request, 1, 0), REDBUCKET_OK);
    assert_true(request.response.accepted);
    assert_same(request.response.delay, 2.0);
}

int main(void)
{
    static const struct case_entry cases[] = {
        CASE(T01b_two_clocks_half_a_second_apart_admit_ten),
        CASE(T02b_spacing_below_a_millisecond_counts),
        CASE(T03a_one_interval_is_enough),
        CASE(T03c_a_client_paced_at_the_rate_always_passes),
        CASE(T03d_sleeping_retry_after_is_enough_at_an_epochs_time),
        CASE(T04_ten_idle_years_overflow_nothing),
        CASE(T05_times_pass_2038_and_32_bits),
        CASE(N01_intervals_below_a_millisecond_limit),
        CASE(N02_6000_a_second_limits),
        CASE(N03_rates_above_the_clocks_resolution_limit),
        CASE(N04_a_rate_below_one_is_no_zero),
        CASE(N06_rate_zero_is_refused),
        CASE(N08_a_burst_beyond_doubles_is_refused),
        CASE(N10_a_wait_of_ages_is_a_number),
        CASE(C02_an_expiry_that_is_none_is_refused),
        CASE(B01_burst_and_one_pass_at_once),
        CASE(B02_119_pass_in_the_first_minute_of_60_a_minute),
        CASE(B03_six_a_minute_is_one_in_ten_seconds),
        CASE(B05_burst_and_delay_have_fractions),
        CASE(B06_a_delay_is_never_negative),
        CASE(B09_burst_and_delay_map_to_nginx),
        CASE(M01_an_abuser_uses_up_nothing_shared),
        CASE(M02_the_order_of_limits_is_nothing),
        CASE(M03_a_rejection_leaves_every_state),
        CASE(M04_rejections_extend_nothing),
        CASE(M05_a_rejection_moves_no_timestamp),
        CASE(M10_what_never_fits_has_no_retry_time),
    };

    return cases_run("cases", "64k", cases, sizeof cases / sizeof cases[0]);
}
