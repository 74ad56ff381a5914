/* SPDX-License-Identifier: MIT */
/*
 * The checker that tests of concurrent requests rely on: it finds the row where there is one, and
 * refuses every history that somebody has doctored.
 */
#include "../contract/random.h"
#include "../integration/linear.h"
#include "test.h"

#define WHOLE ((uint64_t)1 << 40)

/* A request of cost 1 for the first bucket, which has room for 3, that was told how many are left.
 */
static struct linear_step told(uint64_t begun, uint64_t ended, int64_t left)
{
    return (struct linear_step){
        .operation = REDBUCKET_REQUEST,
        .cost = 1,
        .buckets = {0},
        .len = 1,
        .begun = begun,
        .ended = ended,
        .accepted = true,
        .decided = REDBUCKET_NONE,
        .remaining = left,
        .verdicts = {{.accepted = true, .remaining = left}},
    };
}

/* Two requests of two threads. */
static bool two_hold(struct linear_step first, struct linear_step second)
{
    struct linear_history history = {.len = {1, 1}};

    history.steps[0][0] = first;
    history.steps[1][0] = second;
    return linear_holds(&history);
}

static void who_had_ended_comes_first(void **state)
{
    (void)state;
    assert_true(two_hold(told(1, 2, 2), told(3, 4, 1)));
    assert_false(two_hold(told(1, 2, 1), told(3, 4, 2)));
}

static void who_met_may_come_either_way(void **state)
{
    (void)state;
    assert_true(two_hold(told(1, 3, 2), told(2, 4, 1)));
    assert_true(two_hold(told(1, 3, 1), told(2, 4, 2)));
    assert_false(two_hold(told(1, 3, 2), told(2, 4, 2)));
    assert_false(two_hold(told(1, 3, 1), told(2, 4, 1)));
}

/* What one has seen, nobody who begins later may not. */
static void what_was_seen_stays(void **state)
{
    struct linear_history history = {.len = {1, 1, 1}};
    struct linear_step peek = told(2, 3, 1);

    (void)state;
    peek.operation = REDBUCKET_PEEK;
    history.steps[0][0] = told(1, 9, 2);
    history.steps[1][0] = peek; /* sees the request */
    history.steps[2][0] = peek;
    history.steps[2][0].begun = 4;
    history.steps[2][0].ended = 5;
    assert_true(linear_holds(&history));
    history.steps[2][0].remaining = 2; /* doesn't */
    history.steps[2][0].verdicts[0].remaining = 2;
    assert_false(linear_holds(&history));
    /* The other way round, the request comes between them. */
    history.steps[2][0] = peek;
    history.steps[2][0].begun = 4;
    history.steps[2][0].ended = 5;
    history.steps[1][0].remaining = 2;
    history.steps[1][0].verdicts[0].remaining = 2;
    assert_true(linear_holds(&history));
}

static void a_thread_has_its_order(void **state)
{
    struct linear_history history = {.len = {2}};

    (void)state;
    /* As in an array, which begins and ends at once. */
    history.steps[0][0] = told(1, 2, 2);
    history.steps[0][1] = told(1, 2, 1);
    assert_true(linear_holds(&history));
    history.steps[0][0] = told(1, 2, 1);
    history.steps[0][1] = told(1, 2, 2);
    assert_false(linear_holds(&history));
}

/* ---- By chance ------------------------------------------------------------------------------ */

static void choose(struct random *random, struct linear_step *step)
{
    unsigned limit = random_below(random, LINEAR_LIMITS);

    *step = (struct linear_step){
        .operation = random_one_in(random, 2)
                         ? REDBUCKET_REQUEST
                         : (enum redbucket_operation)random_below(random, 1 + REDBUCKET_GIVE_BACK),
        .cost = 1 + random_below(random, 3),
        .len = 1 + random_below(random, LINEAR_LIMITS)};
    for (size_t i = 0; i < step->len; i++)
        step->buckets[i] = (unsigned)((limit + i) % LINEAR_LIMITS) * LINEAR_KEYS +
                           random_below(random, LINEAR_KEYS);
}

/* A row of threads' steps, decided in that row; each lasts for up to `reach` places before and
 * behind its own, as far as its thread's others let it. */
static void make(struct random *random, unsigned reach, struct linear_history *history)
{
    struct linear_machine machine = {{0}};
    uint64_t before[LINEAR_THREADS] = {0};

    memset(history, 0, sizeof *history);
    for (uint64_t place = 1; place <= 12; place++) {
        size_t thread = random_below(random, LINEAR_THREADS);
        struct linear_step *step = &history->steps[thread][history->len[thread]];
        uint64_t at = WHOLE + 1000 * place;

        if (history->len[thread] == LINEAR_STEPS)
            continue;
        history->len[thread]++;
        choose(random, step);
        linear_decide(&machine, step);
        step->begun = at - 1 - random_below(random, 1 + reach * 1000);
        if (step->begun <= before[thread])
            step->begun = before[thread] + 1;
        /* Not beyond the place of whatever this thread does next, which is at least one further. */
        step->ended = at + 1 + random_below(random, reach > 0 ? 998 : 1);
        before[thread] = step->ended;
    }
}

static void a_row_that_was_there_is_found(void **state)
{
    struct linear_history history;
    struct random random;

    (void)state;
    random_begin(&random, 2000);
    while (random_next_round(&random)) {
        make(&random, random_below(&random, 6), &history);
        HOLDS(&random, linear_holds(&history));
    }
}

static void doctor(struct random *random, struct linear_step *step)
{
    size_t claim = random_below(random, (unsigned)step->len);

    switch (random_below(random, 5)) {
    case 0:
        step->accepted = !step->accepted;
        break;
    case 1:
        step->remaining += random_one_in(random, 2) ? 1 : -1;
        break;
    case 2:
        step->verdicts[claim].accepted = !step->verdicts[claim].accepted;
        break;
    case 3:
        step->verdicts[claim].wait += random_one_in(random, 2) ? 1.0 : -1.0;
        break;
    default:
        step->verdicts[claim].remaining += random_one_in(random, 2) ? 1 : -1;
        break;
    }
}

/* One answer is another than it was, where nobody met: so nothing explains it. */
static void a_doctored_answer_is_refused(void **state)
{
    struct linear_history history;
    struct random random;

    (void)state;
    random_begin(&random, 2000);
    while (random_next_round(&random)) {
        size_t thread = 0;

        make(&random, 0, &history);
        while (history.len[thread] == 0)
            thread++;
        HOLDS(&random, linear_holds(&history));
        doctor(&random,
               &history.steps[thread][random_below(&random, (unsigned)history.len[thread])]);
        HOLDS(&random, !linear_holds(&history));
    }
}

/* The same of an answer that comes with others: a permit more than there was. */
static void one_accepted_too_many_is_refused(void **state)
{
    struct linear_history history = {.len = {1, 1, 1, 1}};

    (void)state;
    for (size_t i = 0; i < 3; i++)
        history.steps[i][0] = told(1 + i, 10 + i, 2 - (int64_t)i);
    history.steps[3][0] = told(5, 14, 0);
    assert_false(linear_holds(&history));
    history.steps[3][0].accepted = false;
    history.steps[3][0].decided = 0;
    history.steps[3][0].verdicts[0] = (struct linear_verdict){.wait = 0.5};
    assert_true(linear_holds(&history));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_had_ended_comes_first),
        cmocka_unit_test(who_met_may_come_either_way),
        cmocka_unit_test(what_was_seen_stays),
        cmocka_unit_test(a_thread_has_its_order),
        cmocka_unit_test(a_row_that_was_there_is_found),
        cmocka_unit_test(a_doctored_answer_is_refused),
        cmocka_unit_test(one_accepted_too_many_is_refused),
    };

    return cmocka_run_group_tests_name("linear", tests, NULL, NULL);
}
