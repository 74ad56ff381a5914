/* SPDX-License-Identifier: MIT */
/*
 * Several limits together: all or nothing, the longest waits, the smallest remaining, and what each
 * operation leaves behind. Every claim here has its own limit, so that a mix-up of claims shows.
 */
#include "model/decide.h"
#include "test.h"

#include <float.h>
#include <math.h>

/* Of burst 2, 4 and 0: they reject from level 5, 5 and 1 on. */
static const struct rbk_limit wide = {.rate = 1, .burst = 2, .delay = 3};
static const struct rbk_limit even = {.rate = 2, .burst = 4, .delay = 1};
static const struct rbk_limit tight = {.rate = 4, .burst = 0, .delay = 0};

static struct rbk_claim claim(struct rbk_limit limit, double value)
{
    return (struct rbk_claim){.limit = limit,
                              .state = {value >= 0, 100, value},
                              .change = RBK_FORGET,
                              .verdict = {.delay = 77, .retry_after = 77, .remaining = 77}};
}

#define NO_BUCKET (-1.0)

static struct rbk_answer decide(enum rbk_operation operation, double cost, double now,
                                struct rbk_claim *claims, size_t len)
{
    struct rbk_ask ask = {.operation = operation, .cost = cost, .now = now};
    struct rbk_answer answer;

    memset(&answer, 0xa5, sizeof answer);
    rbk_decide(&ask, claims, len, &answer);
    return answer;
}

static void assert_kept(const struct rbk_claim *claim, double value)
{
    assert_int_equal(claim->change, RBK_KEEP);
    assert_int_equal(claim->state.exists, value >= 0);
    assert_same(claim->state.timestamp, 100.0);
    assert_same(claim->state.value, value);
}

static void assert_written(const struct rbk_claim *claim, double timestamp, double value)
{
    assert_int_equal(claim->change, RBK_WRITE);
    assert_true(claim->state.exists);
    assert_same(claim->state.timestamp, timestamp);
    assert_same(claim->state.value, value);
}

static void no_limit_accepts_at_once(void **unused)
{
    struct rbk_answer answer = decide(RBK_REQUEST, 1, 100, NULL, 0);

    (void)unused;
    assert_true(answer.accepted);
    assert_same(answer.delay, 0.0);
    assert_same(answer.retry_after, 0.0);
    assert_same(answer.reset_after, 0.0);
    assert_true(answer.remaining == INT64_MAX);
    assert_true(answer.decided == RBK_NONE);
}

static void an_accepted_request_takes_from_every_limit(void **unused)
{
    struct rbk_claim claims[] = {claim(wide, 1), claim(even, NO_BUCKET), claim(tight, NO_BUCKET)};
    struct rbk_answer answer = decide(RBK_REQUEST, 1, 100.5, claims, 3);

    (void)unused;
    assert_true(answer.accepted);
    assert_written(&claims[0], 100.5, 1 - 0.5 * wide.rate + 1);
    assert_written(&claims[1], 100.5, 1);
    assert_written(&claims[2], 100.5, 1);
    assert_int_equal(claims[0].verdict.remaining, 1);
    assert_int_equal(claims[1].verdict.remaining, 4);
    assert_int_equal(claims[2].verdict.remaining, 0);
    assert_int_equal(answer.remaining, 0);
    assert_same(answer.reset_after, 1.5 / wide.rate);
    assert_same(claims[1].verdict.reset_after, 1 / even.rate);
    assert_true(answer.decided == RBK_NONE);
}

static void the_longest_delay_decides(void **unused)
{
    struct rbk_claim claims[] = {claim(even, 5), claim(wide, 4), claim(tight, NO_BUCKET)};
    struct rbk_answer answer = decide(RBK_REQUEST, 1, 100, claims, 3);

    (void)unused;
    assert_true(answer.accepted);
    assert_same(claims[0].verdict.delay, 1 / even.rate);
    assert_same(claims[1].verdict.delay, 2 / wide.rate);
    assert_same(answer.delay, 2 / wide.rate);
    assert_true(answer.decided == 1);
    assert_written(&claims[0], 100, 6);
    assert_written(&claims[1], 100, 5);
}

static void one_limit_without_room_rejects_for_all(void **unused)
{
    struct rbk_claim claims[] = {claim(wide, 4), claim(tight, 1), claim(even, 1)};
    struct rbk_answer answer = decide(RBK_REQUEST, 1, 100, claims, 3);

    (void)unused;
    assert_false(answer.accepted);
    assert_same(answer.delay, 0.0);
    assert_same(answer.retry_after, 1 / tight.rate);
    assert_true(answer.decided == 1);
    assert_kept(&claims[0], 4);
    assert_kept(&claims[1], 1);
    assert_kept(&claims[2], 1);
}

/* Each limit answers for itself, as its bucket is: nothing was taken. */
static void verdicts_of_a_rejection_tell_of_untouched_buckets(void **unused)
{
    struct rbk_claim claims[] = {claim(wide, 4), claim(tight, 1), claim(even, NO_BUCKET)};

    (void)unused;
    (void)decide(RBK_REQUEST, 1, 100, claims, 3);
    assert_true(claims[0].verdict.accepted);
    assert_same(claims[0].verdict.delay, 2 / wide.rate);
    assert_same(claims[0].verdict.retry_after, 0.0);
    assert_same(claims[0].verdict.reset_after, 4 / wide.rate);
    assert_int_equal(claims[0].verdict.remaining, 0);
    assert_false(claims[1].verdict.accepted);
    assert_same(claims[1].verdict.delay, 0.0);
    assert_same(claims[1].verdict.retry_after, 1 / tight.rate);
    assert_true(claims[2].verdict.accepted);
    assert_int_equal(claims[2].verdict.remaining, 5);
    assert_same(claims[2].verdict.reset_after, 0.0);
}

static void the_longest_retry_decides_whatever_the_order(void **unused)
{
    for (int turned = 0; turned < 2; turned++) {
        struct rbk_claim claims[] = {claim(turned ? wide : tight, turned ? 6 : 1),
                                     claim(turned ? tight : wide, turned ? 1 : 6)};
        struct rbk_answer answer = decide(RBK_REQUEST, 1, 100, claims, 2);

        assert_false(answer.accepted);
        assert_same(answer.retry_after, 1 / wide.rate);
        assert_true(answer.decided == (turned ? 0 : 1));
        assert_int_equal(answer.remaining, 0);
        assert_same(answer.reset_after, 6 / wide.rate);
    }
    (void)unused;
}

static void of_equals_the_first_named_decides(void **unused)
{
    struct rbk_claim rejecting[] = {claim(even, NO_BUCKET), claim(wide, 6), claim(wide, 6)};
    struct rbk_claim delaying[] = {claim(even, NO_BUCKET), claim(wide, 4), claim(wide, 4)};

    (void)unused;
    assert_true(decide(RBK_REQUEST, 1, 100, rejecting, 3).decided == 1);
    assert_true(decide(RBK_REQUEST, 1, 100, delaying, 3).decided == 1);
}

static void never_outlasts_every_finite_wait(void **unused)
{
    struct rbk_claim claims[] = {claim(wide, 1000000), claim(tight, NO_BUCKET),
                                 claim(tight, NO_BUCKET)};
    struct rbk_answer answer = decide(RBK_REQUEST, 5, 100, claims, 3);

    (void)unused;
    assert_false(answer.accepted);
    assert_true(isinf(answer.retry_after));
    assert_true(answer.decided == 1);
    assert_true(isfinite(claims[0].verdict.retry_after));
}

static void a_peek_answers_as_a_request_and_changes_nothing(void **unused)
{
    struct rbk_claim peeked[] = {claim(wide, 3), claim(even, NO_BUCKET)};
    struct rbk_claim asked[] = {claim(wide, 3), claim(even, NO_BUCKET)};
    struct rbk_answer peek = decide(RBK_PEEK, 1, 100, peeked, 2);
    struct rbk_answer request = decide(RBK_REQUEST, 1, 100, asked, 2);

    (void)unused;
    assert_kept(&peeked[0], 3);
    assert_kept(&peeked[1], NO_BUCKET);
    assert_true(peek.accepted && request.accepted);
    assert_same(peek.delay, request.delay);
    assert_same(peek.reset_after, request.reset_after);
    assert_int_equal(peek.remaining, request.remaining);
    assert_true(peek.decided == 0 && request.decided == 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(peeked[i].verdict.remaining, asked[i].verdict.remaining);
}

static void what_is_imposed_is_accepted_without_waits(void **unused)
{
    static const enum rbk_operation imposed[] = {RBK_REFUND, RBK_CHARGE, RBK_RESET, RBK_GIVE_BACK};

    (void)unused;
    for (size_t i = 0; i < sizeof imposed / sizeof imposed[0]; i++) {
        struct rbk_claim claims[] = {claim(tight, 50), claim(wide, NO_BUCKET)};
        struct rbk_answer answer = decide(imposed[i], 1, 100, claims, 2);

        assert_true(answer.accepted);
        assert_same(answer.delay, 0.0);
        assert_same(answer.retry_after, 0.0);
        assert_true(answer.decided == RBK_NONE);
        assert_true(claims[0].verdict.accepted);
        assert_same(claims[0].verdict.delay, 0.0);
        assert_same(claims[0].verdict.retry_after, 0.0);
    }
}

static void a_refund_writes_what_is_there_alone(void **unused)
{
    struct rbk_claim claims[] = {claim(wide, 3), claim(even, NO_BUCKET)};
    struct rbk_answer answer = decide(RBK_REFUND, 2, 100.5, claims, 2);

    (void)unused;
    assert_written(&claims[0], 100.5, 0.5);
    assert_kept(&claims[1], NO_BUCKET);
    assert_same(answer.reset_after, 0.5 / wide.rate);
    assert_int_equal(answer.remaining, 2);
    assert_int_equal(claims[1].verdict.remaining, 5);
}

static void a_charge_writes_everything(void **unused)
{
    struct rbk_claim claims[] = {claim(wide, 3), claim(even, NO_BUCKET)};
    struct rbk_answer answer = decide(RBK_CHARGE, 20, 100, claims, 2);

    (void)unused;
    assert_written(&claims[0], 100, 23);
    assert_written(&claims[1], 100, 20);
    assert_same(answer.reset_after, 23 / wide.rate);
    assert_int_equal(answer.remaining, 0);
}

static void a_reset_forgets_what_is_there(void **unused)
{
    struct rbk_claim claims[] = {claim(wide, 3), claim(even, NO_BUCKET)};
    struct rbk_answer answer = decide(RBK_RESET, 0, 100, claims, 2);

    (void)unused;
    assert_int_equal(claims[0].change, RBK_FORGET);
    assert_false(claims[0].state.exists);
    assert_kept(&claims[1], NO_BUCKET);
    assert_same(answer.reset_after, 0.0);
    assert_int_equal(answer.remaining, 3);
}

static void giving_back_goes_by_when_it_was_taken(void **unused)
{
    struct rbk_claim claims[] = {claim(wide, 3), claim(even, 3), claim(tight, NO_BUCKET)};
    struct rbk_ask ask = {.operation = RBK_GIVE_BACK, .cost = 2, .taken_at = 99.5, .now = 100.25};
    struct rbk_answer answer;

    (void)unused;
    rbk_decide(&ask, claims, 3, &answer);
    assert_true(answer.accepted);
    assert_written(&claims[0], 100.25, 3 - 0.25 * wide.rate - (2 - 0.75 * wide.rate));
    assert_written(&claims[1], 100.25, 3 - 0.25 * even.rate - (2 - 0.75 * even.rate));
    assert_kept(&claims[2], NO_BUCKET);
}

/* The bucket was used at 100, by when what was taken at 95 had drained. */
static void giving_back_after_a_step_back_goes_by_the_buckets_time(void **unused)
{
    struct rbk_claim claims[] = {claim(tight, 1)};
    struct rbk_ask ask = {.operation = RBK_GIVE_BACK, .cost = 1, .taken_at = 95, .now = 95};
    struct rbk_answer answer;

    (void)unused;
    rbk_decide(&ask, claims, 1, &answer);
    assert_written(&claims[0], 100, 1);
}

static void reset_after_is_never_infinite(void **unused)
{
    struct rbk_claim claims[] = {claim((struct rbk_limit){1e-9, 0, 0}, 1e300)};
    struct rbk_answer answer = decide(RBK_REQUEST, 1, 100, claims, 1);

    (void)unused;
    assert_false(answer.accepted);
    assert_same(answer.reset_after, DBL_MAX);
    assert_same(answer.retry_after, DBL_MAX);
}

static void microseconds_round_up(void **unused)
{
    (void)unused;
    assert_true(rbk_microseconds(0) == 0);
    assert_true(rbk_microseconds(DBL_TRUE_MIN) == 1);
    assert_true(rbk_microseconds(1e-9) == 1);
    assert_true(rbk_microseconds(1e-6) == 1);
    assert_true(rbk_microseconds(1.1e-6) == 2);
    assert_true(rbk_microseconds(0.25) == 250000);
    assert_true(rbk_microseconds(1) == 1000000);
    assert_true(rbk_microseconds(1e9) == 1000000000000000);
    assert_true(rbk_microseconds(0.1) == 100000);
}

/* One unit in the last place more than a whole number of microseconds is one microsecond more, even
 * where the product in doubles rounds it away. */
static void microseconds_never_fall_short(void **unused)
{
    (void)unused;
    for (uint64_t whole = 1; whole < 100000; whole += 7) {
        double seconds = nextafter((double)whole / 1e6, INFINITY);

        assert_true((double)rbk_microseconds(seconds) / 1e6 >= seconds);
        assert_true(rbk_microseconds(seconds) == whole + 1);
        assert_true(rbk_microseconds((double)whole / 1e6) == whole);
    }
    for (double seconds = 1e-6; seconds < 9e9; seconds *= 1.0137)
        assert_true((double)rbk_microseconds(seconds) / 1e6 >= seconds);
}

static void microseconds_of_never_are_the_largest_number_alone(void **unused)
{
    (void)unused;
    assert_true(rbk_microseconds(INFINITY) == UINT64_MAX);
    assert_true(rbk_microseconds(1.8e13) == UINT64_C(18000000000000000000));
    assert_true(rbk_microseconds(18446744073709.0) < UINT64_MAX);
    assert_true(rbk_microseconds(18446744073709.552) == UINT64_MAX - 1);
    assert_true(rbk_microseconds(1e21) == UINT64_MAX - 1);
    assert_true(rbk_microseconds(DBL_MAX) == UINT64_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_limit_accepts_at_once),
        cmocka_unit_test(an_accepted_request_takes_from_every_limit),
        cmocka_unit_test(the_longest_delay_decides),
        cmocka_unit_test(one_limit_without_room_rejects_for_all),
        cmocka_unit_test(verdicts_of_a_rejection_tell_of_untouched_buckets),
        cmocka_unit_test(the_longest_retry_decides_whatever_the_order),
        cmocka_unit_test(of_equals_the_first_named_decides),
        cmocka_unit_test(never_outlasts_every_finite_wait),
        cmocka_unit_test(a_peek_answers_as_a_request_and_changes_nothing),
        cmocka_unit_test(what_is_imposed_is_accepted_without_waits),
        cmocka_unit_test(a_refund_writes_what_is_there_alone),
        cmocka_unit_test(a_charge_writes_everything),
        cmocka_unit_test(a_reset_forgets_what_is_there),
        cmocka_unit_test(giving_back_goes_by_when_it_was_taken),
        cmocka_unit_test(giving_back_after_a_step_back_goes_by_the_buckets_time),
        cmocka_unit_test(reset_after_is_never_infinite),
        cmocka_unit_test(microseconds_round_up),
        cmocka_unit_test(microseconds_never_fall_short),
        cmocka_unit_test(microseconds_of_never_are_the_largest_number_alone),
    };

    return cmocka_run_group_tests_name("decide", tests, NULL, NULL);
}
