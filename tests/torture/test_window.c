/* SPDX-License-Identifier: MIT */
/*
 * The counter of windows against counting all of them, one by one.
 */
#include "fault_weather.h"
#include "test.h"
#include "window.h"

#include <math.h>

#define LEN_MAX 40

/* The largest cost - rate * length of all windows from a beginning to an end. */
static double count_all(const struct grant *grants, size_t len, double rate)
{
    double most = 0.0;

    for (size_t i = 0; i < len; i++) {
        for (size_t j = 0; j < len; j++) {
            double cost = 0.0;

            for (size_t k = 0; k < len; k++) {
                if (grants[k].begin >= grants[i].begin && grants[k].end <= grants[j].end)
                    cost += grants[k].cost;
            }
            if (grants[j].end >= grants[i].begin)
                most = fmax(most, cost - rate * (grants[j].end - grants[i].begin));
        }
    }
    return most;
}

static void test_is_the_fullest_of_all(void **state)
{
    struct test_chance chance = test_chance_begin(1);

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct grant grants[LEN_MAX];
        size_t len = test_chance_below(&chance, LEN_MAX + 1);
        double rate = test_chance_below(&chance, 40) / 4.0;
        struct fullest fullest;

        for (size_t i = 0; i < len; i++) {
            grants[i].begin = test_chance_below(&chance, 100) / 8.0;
            grants[i].end = grants[i].begin + test_chance_below(&chance, 16) / 8.0;
            grants[i].cost = 1 + test_chance_below(&chance, 3);
        }
        window_fullest(grants, len, rate, &fullest);
        assert_true(fabs(fullest.excess - count_all(grants, len, rate)) < 1e-9);
        assert_true(fabs(fullest.cost - rate * fullest.length - fullest.excess) < 1e-9);
    }
}

/* A call that took long may have been taken at any time of it: it is in no window that is shorter.
 */
static void test_what_took_long_counts_for_long(void **state)
{
    struct grant grants[] = {{0.0, 1.0, 1}, {0.0, 1.0, 1}, {0.5, 0.5, 1}};
    struct fullest fullest;

    (void)state;
    window_fullest(grants, 3, 10.0, &fullest);
    assert_same(fullest.excess, 1.0);
    window_fullest(grants, 3, 1.0, &fullest);
    assert_same(fullest.excess, 2.0);
    assert_same(fullest.length, 1.0);
    assert_same(fullest.cost, 3.0);
}

static void test_of_nothing_is_nothing(void **state)
{
    struct fullest fullest = {.excess = 1.0};

    (void)state;
    window_fullest(NULL, 0, 1.0, &fullest);
    assert_true(fullest.excess == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_the_fullest_of_all),
        cmocka_unit_test(test_what_took_long_counts_for_long),
        cmocka_unit_test(test_of_nothing_is_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
