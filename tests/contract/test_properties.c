/* SPDX-License-Identifier: MIT */
/*
 * What holds for any limit and any traffic, tried on random ones, on every embedded store, with a
 * slow obvious reference beside. random.h says how to repeat a failure; test_waits.c is about retry
 * times, test_together.c about several limits in one request.
 */
#include "cases.h"
#include "inside.h"
#include "random.h"
#include "reference.h"

#include <math.h>
#include <stdlib.h>

/* A round: a random limit on a key that nobody has used. */
static struct redbucket_limiter *begin_round(struct test_case *test,
                                             const struct redbucket_limit *limit)
{
    return test_limiter(test->store, limit);
}

static struct redbucket_request decide(struct redbucket_limiter *limiter,
                                       enum redbucket_operation operation, const char *key,
                                       double cost, double now)
{
    struct redbucket_key named = {.limit = "a", .key = key};
    struct redbucket_request request = {
        .operation = operation, .keys = &named, .keys_len = 1, .cost = cost};

    assert_int_equal(redbucket_decide_at(limiter, &request, 1, now), REDBUCKET_OK);
    request.keys = NULL;
    return request;
}

static struct redbucket_response ask(struct redbucket_limiter *limiter, const char *key,
                                     double cost, double now)
{
    return decide(limiter, REDBUCKET_REQUEST, key, cost, now).response;
}

static struct redbucket_state state_now(struct redbucket_limiter *limiter, const char *key)
{
    struct redbucket_key named = {.limit = "a", .key = key};
    struct redbucket_state state;

    assert_int_equal(redbucket_read(limiter, &named, &state), REDBUCKET_OK);
    return state;
}

static void end_round(struct redbucket_limiter *limiter)
{
    (void)decide(limiter, REDBUCKET_RESET, "k", 0, 0);
    (void)decide(limiter, REDBUCKET_RESET, "other", 0, 0);
    redbucket_limiter_destroy(limiter);
}

/* The next moment: later, or by a clock that steps back a bit earlier than the last. */
static double next_time(struct random *random, const struct redbucket_limit *limit, double now)
{
    if (random_one_in(random, 6))
        return now - random_gap(random, limit);
    return now + random_gap(random, limit);
}

/* True when the answer is the reference's, or the reference is in doubt itself. */
static bool as_the_reference(const struct reference *reference, double cost, double now,
                             const struct redbucket_response *response)
{
    long double doubt = reference_doubt(reference, cost);
    long double excess = reference_excess(reference, cost, now);
    long double over = reference_level(reference, now) + cost - reference->limit.burst - 1;
    long double delay = over / reference->limit.rate;

    if (fabsl(excess) <= doubt)
        return true;
    if (response->accepted != (excess < 0))
        return false;
    if (!response->accepted || fabsl(over - reference->limit.rate * 2e-6L) <= doubt)
        return true;
    if (over <= reference->limit.rate * 2e-6L)
        return response->delay <= 0;
    return fabsl(response->delay - delay) <= doubt / reference->limit.rate + 1e-15L * delay;
}

static void no_window_gets_more_than_the_bound(void **state)
{
    struct random random;
    unsigned accepted = 0, rejected = 0;

    random_begin(&random, 400);
    while (random_next_round(&random)) {
        struct reference reference = {.limit = random_limit(&random)};
        struct redbucket_limiter *limiter = begin_round(*state, &reference.limit);
        double now = random_time(&random);

        for (int i = 0; i < 120; i++) {
            double cost = random_cost(&random, &reference.limit);
            struct redbucket_response response = ask(limiter, "k", cost, now);

            HOLDS(&random, as_the_reference(&reference, cost, now, &response));
            if (response.accepted)
                (void)reference_take(&reference, cost, now);
            accepted += response.accepted;
            rejected += !response.accepted;
            now = next_time(&random, &reference.limit, now);
        }
        HOLDS(&random, reference_within_bound(&reference));
        end_round(limiter);
    }
    /* Traffic that is all accepted, or all rejected, would show nothing. */
    assert_true(accepted > rejected / 4 && rejected > accepted / 10);
}

/* A client that asks again just when it was told to, at the rate, for long. */
static void pacing_by_retry_after_stays_within_the_bound(void **state)
{
    struct random random;

    random_begin(&random, 100);
    while (random_next_round(&random)) {
        struct reference reference = {.limit = random_limit(&random)};
        struct redbucket_limiter *limiter = begin_round(*state, &reference.limit);
        double now = random_time(&random);
        double cost = random_cost(&random, &reference.limit);

        for (int i = 0; i < 240; i++) {
            struct redbucket_response response = ask(limiter, "k", cost, now);

            if (response.accepted)
                (void)reference_take(&reference, cost, now);
            else if (isfinite(response.retry_after))
                now += response.retry_after;
        }
        HOLDS(&random, reference_within_bound(&reference));
        end_round(limiter);
    }
}

/* Of the whole table, not one byte may change, nor by a peek. */
static void a_rejection_changes_no_byte(void **state)
{
    struct test_case *test = *state;
    struct random random;
    unsigned rejected = 0;

    random_begin(&random, 30);
    while (random_next_round(&random)) {
        struct redbucket_limit limit = random_limit(&random);
        struct redbucket_limiter *limiter = begin_round(test, &limit);
        double now = random_time(&random);

        for (int i = 0; i < 10; i++) {
            void *buckets = test_copy_buckets(test->store);
            double cost = random_cost(&random, &limit);

            (void)decide(limiter, REDBUCKET_PEEK, "k", cost, now);

            bool accepted = ask(limiter, "k", cost, now).accepted;

            HOLDS(&random, test_same_buckets(test->store, buckets) == !accepted);
            rejected += !accepted;
            free(buckets);
            now = next_time(&random, &limit, now);
        }
        end_round(limiter);
    }
    assert_true(rejected > 50);
}

/* A request split in two at one instant is one of the sum, where both fit. */
static void two_parts_are_one_whole(void **state)
{
    struct random random;
    unsigned compared = 0;

    random_begin(&random, 2000);
    while (random_next_round(&random)) {
        struct redbucket_limit limit = random_limit(&random);
        struct redbucket_limiter *limiter = begin_round(*state, &limit);
        double now = random_time(&random);

        for (int i = 0; i < 5; i++) {
            double cost = random_cost(&random, &limit);

            (void)ask(limiter, "k", cost, now);
            (void)ask(limiter, "other", cost, now);
            now = next_time(&random, &limit, now);
        }

        double one = random_cost(&random, &limit) / 4, two = random_cost(&random, &limit) / 3;

        if (one >= 1e-3 && two >= 1e-3 && ask(limiter, "other", one + two, now).accepted) {
            struct redbucket_state whole = state_now(limiter, "other"), parts;
            bool fits =
                ask(limiter, "k", one, now).accepted && ask(limiter, "k", two, now).accepted;

            parts = state_now(limiter, "k");
            HOLDS(&random, !fits || test_bits(parts.timestamp) == test_bits(whole.timestamp));
            HOLDS(&random, !fits || fabs(parts.value - whole.value) <= 2 * ulp(whole.value));
            compared += fits;
        }
        end_round(limiter);
    }
    assert_true(compared > 200);
}

/* Whole parts of powers of two, so that nothing rounds and each decision is exact. */
static struct redbucket_limit exact_limit(struct random *random)
{
    return (struct redbucket_limit){
        .rate = ldexp(1 + random_below(random, 15), (int)random_below(random, 12) - 6),
        .burst = random_below(random, 8),
        .delay = random_below(random, 4) * 0.5,
    };
}

static double exact_gap(struct random *random, const struct redbucket_limit *limit)
{
    double most = capacity(limit) / limit->rate;

    return ldexp(floor(ldexp(random_even(random, 0, most), 20)), -20);
}

/* The same unit requests, by a clock that steps back and by one that stands still instead: at no
 * moment has the first admitted more. */
static void a_clock_that_steps_back_gives_nothing(void **state)
{
    struct random random;
    unsigned steps_back = 0;

    random_begin(&random, 300);
    while (random_next_round(&random)) {
        struct redbucket_limit limit = exact_limit(&random);
        struct redbucket_limiter *limiter = begin_round(*state, &limit);
        double now = random_below(&random, 1000000), latest = now;
        unsigned stepping = 0, standing = 0;

        for (int i = 0; i < 100; i++) {
            double gap = exact_gap(&random, &limit) * 0.5;

            steps_back += now < latest;
            stepping += ask(limiter, "k", 1, now).accepted;
            standing += ask(limiter, "other", 1, latest).accepted;
            HOLDS(&random, stepping <= standing);
            now = random_one_in(&random, 3) ? now - gap : now + gap;
            latest = now > latest ? now : latest;
        }
        end_round(limiter);
    }
    assert_true(steps_back > 300);
}

struct permit {
    unsigned index;
    double cost;
    double taken_at;
    bool open;
};

/* Gives back a permit, whole or in part, of which only the rest then counts as taken. */
static void give_back(struct redbucket_limiter *limiter, struct random *random,
                      struct reference *reference, struct permit *permit, double now)
{
    struct redbucket_key key = {.limit = "a", .key = "k"};
    double part = random_one_in(random, 2) ? permit->cost : permit->cost * 0.5;
    struct redbucket_request request = {.operation = REDBUCKET_GIVE_BACK,
                                        .keys = &key,
                                        .keys_len = 1,
                                        .cost = part,
                                        .taken_at = permit->taken_at};

    permit->open = false;
    if (part < 1e-3)
        return;
    assert_int_equal(redbucket_decide_at(limiter, &request, 1, now), REDBUCKET_OK);
    reference->taken[permit->index].cost -= part;
    reference->latest = reference_time(reference, now);
}

/* What was given back wasn't used; what was used is within the bound, whatever was given back. */
static void giving_back_never_breaks_the_bound(void **state)
{
    struct random random;
    unsigned given_back = 0;

    random_begin(&random, 600);
    while (random_next_round(&random)) {
        struct reference reference = {.limit = random_limit(&random)};
        struct redbucket_limiter *limiter = begin_round(*state, &reference.limit);
        struct permit permits[4] = {{.open = false}};
        double now = random_time(&random);

        for (int i = 0; i < 120; i++) {
            struct permit *permit = &permits[random_below(&random, 4)];
            double cost = random_cost(&random, &reference.limit);

            if (permit->open && random_one_in(&random, 2)) {
                give_back(limiter, &random, &reference, permit, now);
                given_back++;
            }

            struct redbucket_response response = ask(limiter, "k", cost, now);

            if (response.accepted)
                *permit = (struct permit){reference_take(&reference, cost, now), cost,
                                          response.time, true};
            now = next_time(&random, &reference.limit, now);
        }
        HOLDS(&random, reference_within_bound(&reference));
        end_round(limiter);
    }
    assert_true(given_back > 2000);
}

/* True where burst + 1 - level and the tick is so near to a whole number that a last place
 * decides. */
static bool near_a_whole(const struct redbucket_limit *limit, double level)
{
    long double spare = (long double)limit->burst + 1 - level + limit->rate * 2e-6L;

    return fabsl(spare - roundl(spare)) <= 8 * ulp(limit->burst + 1 + limit->rate * 2e-6);
}

static void remaining_is_how_many_pass_at_once(void **state)
{
    struct random random;
    unsigned compared = 0;

    random_begin(&random, 1000);
    while (random_next_round(&random)) {
        struct redbucket_limit limit = random_limit(&random);
        struct redbucket_limiter *limiter = begin_round(*state, &limit);
        struct redbucket_response response = {.remaining = 0};
        double now = random_time(&random);

        for (int i = 0; i < 6; i++) {
            now = next_time(&random, &limit, now);
            response = ask(limiter, "k", random_cost(&random, &limit), now);
        }

        double level = response.reset_after * limit.rate;
        int64_t remaining = response.remaining;

        if (remaining <= 200 && !near_a_whole(&limit, level)) {
            while (remaining-- > 0) {
                response = ask(limiter, "k", 1, now);
                HOLDS(&random, response.accepted && response.delay <= 0);
                HOLDS(&random, response.remaining == remaining);
            }
            response = ask(limiter, "k", 1, now);
            HOLDS(&random, !response.accepted || response.delay > 0);
            compared++;
        }
        end_round(limiter);
    }
    assert_true(compared > 300);
}

/* All that a request gives back at once is as if it had never been. */
static void what_is_given_back_at_once_was_never_taken(void **state)
{
    struct random random;

    random_begin(&random, 300);
    while (random_next_round(&random)) {
        struct redbucket_limit limit = exact_limit(&random);
        struct redbucket_limiter *limiter = begin_round(*state, &limit);
        double now = random_below(&random, 1000000);

        for (int i = 0; i < 30; i++) {
            struct redbucket_response plain = ask(limiter, "k", 1, now);
            struct redbucket_response unused = ask(limiter, "other", 1, now);

            HOLDS(&random, plain.accepted == unused.accepted);
            HOLDS(&random, test_bits(plain.delay) == test_bits(unused.delay));
            if (unused.accepted && random_one_in(&random, 2)) {
                struct redbucket_key key = {.limit = "a", .key = "other"};
                struct redbucket_request back = {.operation = REDBUCKET_GIVE_BACK,
                                                 .keys = &key,
                                                 .keys_len = 1,
                                                 .cost = 1,
                                                 .taken_at = unused.time};

                assert_int_equal(redbucket_decide_at(limiter, &back, 1, now), REDBUCKET_OK);
                HOLDS(&random, ask(limiter, "other", 1, now).accepted);
            }
            now += exact_gap(&random, &limit);
        }
        end_round(limiter);
    }
}

int main(void)
{
    static const struct case_entry properties[] = {
        CASE(no_window_gets_more_than_the_bound),
        CASE(pacing_by_retry_after_stays_within_the_bound),
        CASE(a_rejection_changes_no_byte),
        CASE(two_parts_are_one_whole),
        CASE(a_clock_that_steps_back_gives_nothing),
        CASE(giving_back_never_breaks_the_bound),
        CASE(what_is_given_back_at_once_was_never_taken),
        CASE(remaining_is_how_many_pass_at_once),
    };

    return cases_run("properties", "64k", properties, sizeof properties / sizeof properties[0]);
}
