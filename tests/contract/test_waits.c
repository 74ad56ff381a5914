/* SPDX-License-Identifier: MIT */
/*
 * Retry times, over the whole range of limits, costs and times: waiting as long as was said always
 * succeeds, in seconds and in microseconds, and waiting less never does.
 *
 * "Less" is 2 ms and two parts in a million less, and where the bucket is so deep and slow that the
 * last place of its level takes longer than that to drain, as much less as two of these places: a
 * double can't tell such a level from a lower one.
 */
#include "cases.h"
#include "inside.h"
#include "random.h"

#include <math.h>

/* A key in some state of a random limit: used for a while, or charged far beyond what it holds. */
struct waiting {
    struct redbucket_limit limit;
    struct redbucket_limiter *limiter;
    double now;
};

static struct redbucket_request decide(const struct waiting *waiting,
                                       enum redbucket_operation operation, double cost, double now)
{
    struct redbucket_key key = {.limit = "a", .key = "k"};
    struct redbucket_request request = {
        .operation = operation, .keys = &key, .keys_len = 1, .cost = cost};

    assert_int_equal(redbucket_decide_at(waiting->limiter, &request, 1, now), REDBUCKET_OK);
    request.keys = NULL;
    return request;
}

static bool would_pass(const struct waiting *waiting, double cost, double now)
{
    return decide(waiting, REDBUCKET_PEEK, cost, now).response.accepted;
}

static void begin_round(struct test_case *test, struct random *random, struct waiting *waiting)
{
    waiting->limit = random_limit(random);
    waiting->limiter = test_limiter(test->store, &waiting->limit);
    waiting->now = random_time(random);
    for (unsigned i = random_below(random, 8); i > 0; i--) {
        (void)decide(waiting, REDBUCKET_REQUEST, random_cost(random, &waiting->limit),
                     waiting->now);
        waiting->now += random_gap(random, &waiting->limit);
    }
    if (random_one_in(random, 3)) {
        double most = capacity(&waiting->limit) * 5;

        (void)decide(waiting, REDBUCKET_CHARGE, random_log(random, 1e-3, most < 1e12 ? most : 1e12),
                     waiting->now);
    }
    if (random_one_in(random, 4))
        waiting->now -= random_gap(random, &waiting->limit);
}

static void end_round(struct waiting *waiting)
{
    (void)decide(waiting, REDBUCKET_RESET, 0, waiting->now);
    redbucket_limiter_destroy(waiting->limiter);
}

/* Seconds that the last place of the bucket's level takes to drain, and the last place of the time
 * itself: gaps of slow limits lead far beyond any clock. */
static double last_place(const struct waiting *waiting, const struct redbucket_response *response)
{
    double level = response->reset_after * waiting->limit.rate;
    double deepest = fmax(level, capacity(&waiting->limit)) + waiting->limit.rate * 2e-6;

    return ulp(deepest) / waiting->limit.rate + ulp(fabs(waiting->now) + 1);
}

static void waiting_retry_after_always_succeeds(void **state)
{
    struct random random;
    unsigned rejected = 0;

    random_begin(&random, 8000);
    while (random_next_round(&random)) {
        struct waiting waiting;

        begin_round(*state, &random, &waiting);
        for (int i = 0; i < 4; i++) {
            double cost = random_cost(&random, &waiting.limit);
            struct redbucket_response response =
                decide(&waiting, REDBUCKET_REQUEST, cost, waiting.now).response;
            double wait = response.retry_after;
            double microseconds = (double)response.retry_after_us / 1e6;

            if (response.accepted || !isfinite(wait))
                continue;
            HOLDS(&random, wait > 0 && response.retry_after_us > 0);
            HOLDS(&random, would_pass(&waiting, cost, waiting.now + wait));
            HOLDS(&random, would_pass(&waiting, cost, waiting.now + wait * 1.5));
            if (response.retry_after_us < (uint64_t)1 << 53)
                HOLDS(&random, would_pass(&waiting, cost, waiting.now + microseconds));
            rejected++;
        }
        end_round(&waiting);
    }
    assert_true(rejected > 4000);
}

static void waiting_less_never_succeeds(void **state)
{
    struct random random;
    unsigned plain = 0, deep = 0;

    random_begin(&random, 8000);
    while (random_next_round(&random)) {
        struct waiting waiting;

        begin_round(*state, &random, &waiting);

        double cost = random_cost(&random, &waiting.limit);
        struct redbucket_response response =
            decide(&waiting, REDBUCKET_REQUEST, cost, waiting.now).response;
        double wait = response.retry_after;

        if (!response.accepted && isfinite(wait)) {
            double place = last_place(&waiting, &response);
            bool coarse = place > 2.5e-4;
            double less = 2e-3 + 2e-6 * wait + (coarse ? 2 * place : 0);

            if (wait > less) {
                HOLDS(&random, !would_pass(&waiting, cost, waiting.now + (wait - less)));
                HOLDS(&random, !would_pass(&waiting, cost, waiting.now + (wait - less) / 2));
                plain += !coarse;
                deep += coarse;
            }
        }
        end_round(&waiting);
    }
    assert_true(plain > 500 && deep > 100);
}

/* The model's own figure, in long doubles: never less, and hardly more. */
static void retry_after_is_what_has_to_drain(void **state)
{
    struct random random;
    unsigned compared = 0;

    random_begin(&random, 8000);
    while (random_next_round(&random)) {
        struct waiting waiting;

        begin_round(*state, &random, &waiting);

        double cost = random_cost(&random, &waiting.limit);
        struct redbucket_key key = {.limit = "a", .key = "k"};
        struct redbucket_response response =
            decide(&waiting, REDBUCKET_REQUEST, cost, waiting.now).response;
        struct redbucket_state stored;

        assert_int_equal(redbucket_read(waiting.limiter, &key, &stored), REDBUCKET_OK);
        if (!response.accepted && isfinite(response.retry_after)) {
            long double over =
                (long double)stored.value + cost - waiting.limit.burst - 1 - waiting.limit.delay;
            long double exact = over / waiting.limit.rate + stored.timestamp - waiting.now;
            double near = 4 * last_place(&waiting, &response);

            HOLDS(&random, response.retry_after >= exact - near - 1e-15L * exact);
            HOLDS(&random, response.retry_after <= exact + near + 2e-6 + 1e-6L * exact);
            compared++;
        }
        end_round(&waiting);
    }
    assert_true(compared > 2000);
}

static void never_is_said_of_what_never_fits_and_of_nothing_else(void **state)
{
    struct random random;
    unsigned never = 0, ever = 0;

    random_begin(&random, 4000);
    while (random_next_round(&random)) {
        struct waiting waiting;

        begin_round(*state, &random, &waiting);

        double most = capacity(&waiting.limit);
        double cost = random_one_in(&random, 2)
                          ? random_cost(&random, &waiting.limit)
                          : most + waiting.limit.rate * 2.01e-6 + 8 * ulp(most);

        if (cost <= 1e12) {
            struct redbucket_response response =
                decide(&waiting, REDBUCKET_REQUEST, cost, waiting.now).response;
            bool fits = would_pass(&waiting, cost, 1e300);

            HOLDS(&random, response.accepted || isinf(response.retry_after) == !fits);
            HOLDS(&random, response.accepted || (response.retry_after_us == UINT64_MAX) == !fits);
            HOLDS(&random, cost > most - 2 * ulp(most) || fits);
            never += !fits;
            ever += fits && !response.accepted;
        }
        end_round(&waiting);
    }
    assert_true(never > 500 && ever > 500);
}

int main(void)
{
    static const struct case_entry properties[] = {
        CASE(waiting_retry_after_always_succeeds),
        CASE(waiting_less_never_succeeds),
        CASE(retry_after_is_what_has_to_drain),
        CASE(never_is_said_of_what_never_fits_and_of_nothing_else),
    };

    return cases_run("waits", "64k", properties, sizeof properties / sizeof properties[0]);
}
