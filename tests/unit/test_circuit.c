/* SPDX-License-Identifier: MIT */
/*
 * The circuit breaker with time and randomness moved by hand.
 */
#include "redis/circuit.h"
#include "test.h"

#define EARLIEST UINT32_MAX /* the random number that shortens a pause most */
#define LATEST   0u

static struct rbk_circuit circuit_open_at(double now)
{
    struct rbk_circuit circuit = {.open = false};

    rbk_circuit_fail(&circuit, RBK_CIRCUIT_NO_PROBE, now, LATEST);
    return circuit;
}

/* Lets the probe through that must be due at `now`. */
static unsigned probe(struct rbk_circuit *circuit, double now)
{
    unsigned ticket = RBK_CIRCUIT_NO_PROBE;

    assert_true(rbk_circuit_admit(circuit, now, &ticket));
    assert_int_not_equal(ticket, RBK_CIRCUIT_NO_PROBE);
    return ticket;
}

static void expect_refusal(struct rbk_circuit *circuit, double now)
{
    unsigned ticket = 77;

    assert_false(rbk_circuit_admit(circuit, now, &ticket));
    assert_int_equal(ticket, 77);
}

static void test_closed_lets_everybody_through(void **state)
{
    struct rbk_circuit circuit = {.open = false};

    (void)state;
    for (int i = 0; i < 3; i++) {
        unsigned ticket = 77;

        assert_true(rbk_circuit_admit(&circuit, i, &ticket));
        assert_int_equal(ticket, RBK_CIRCUIT_NO_PROBE);
    }
}

static void test_failure_opens_it_for_at_most_a_tenth_of_a_second(void **state)
{
    struct rbk_circuit circuit = circuit_open_at(1000.0);

    (void)state;
    assert_true(RBK_CIRCUIT_FIRST <= 0.1);
    assert_true(circuit.open);
    expect_refusal(&circuit, 1000.0);
    expect_refusal(&circuit, 1000.0 + RBK_CIRCUIT_FIRST * 0.999);
    (void)probe(&circuit, 1000.0 + RBK_CIRCUIT_FIRST);
}

static void test_chance_shortens_a_pause_by_a_quarter_at_most(void **state)
{
    (void)state;
    for (uint32_t random = 0;; random += EARLIEST / 4) {
        struct rbk_circuit circuit = {.open = false};

        rbk_circuit_fail(&circuit, RBK_CIRCUIT_NO_PROBE, 0.0, random);
        assert_true(circuit.until >= RBK_CIRCUIT_FIRST * 0.75);
        assert_true(circuit.until <= RBK_CIRCUIT_FIRST);
        if (random > EARLIEST - EARLIEST / 4)
            break;
    }
    struct rbk_circuit early = {.open = false};
    struct rbk_circuit late = {.open = false};

    rbk_circuit_fail(&early, RBK_CIRCUIT_NO_PROBE, 0.0, EARLIEST);
    rbk_circuit_fail(&late, RBK_CIRCUIT_NO_PROBE, 0.0, LATEST);
    assert_true(early.until < late.until * 0.76);
}

static void test_pauses_double_up_to_a_second(void **state)
{
    struct rbk_circuit circuit = circuit_open_at(0.0);
    double pause = RBK_CIRCUIT_FIRST;

    (void)state;
    for (int i = 0; i < 20; i++) {
        double now = circuit.until;

        rbk_circuit_fail(&circuit, probe(&circuit, now), now, LATEST);
        pause = pause * 2 < RBK_CIRCUIT_LONGEST ? pause * 2 : RBK_CIRCUIT_LONGEST;
        assert_true(circuit.until - now > pause * 0.9999 && circuit.until - now < pause * 1.0001);
    }
    assert_true(RBK_CIRCUIT_LONGEST <= 1.0);
}

static void test_one_probe_at_a_time(void **state)
{
    struct rbk_circuit circuit = circuit_open_at(0.0);
    unsigned ticket = probe(&circuit, 1.0);

    (void)state;
    expect_refusal(&circuit, 1.0);
    expect_refusal(&circuit, 1000.0);
    rbk_circuit_leave(&circuit, ticket);
    ticket = probe(&circuit, 1000.0);
    expect_refusal(&circuit, 1000.0);
    rbk_circuit_fail(&circuit, ticket, 1000.0, LATEST);
    expect_refusal(&circuit, 1000.0);
}

static void test_success_closes_it_and_forgets_the_pauses(void **state)
{
    struct rbk_circuit circuit = circuit_open_at(0.0);

    (void)state;
    for (int i = 0; i < 10; i++)
        rbk_circuit_fail(&circuit, probe(&circuit, circuit.until), circuit.until, LATEST);
    (void)probe(&circuit, circuit.until);
    rbk_circuit_succeed(&circuit);
    test_closed_lets_everybody_through(NULL);
    assert_false(circuit.open);
    rbk_circuit_fail(&circuit, RBK_CIRCUIT_NO_PROBE, 500.0, LATEST);
    assert_true(circuit.until <= 500.0 + RBK_CIRCUIT_FIRST);
}

/* Whoever had asked before it opened says nothing new. */
static void test_late_failures_change_nothing(void **state)
{
    struct rbk_circuit circuit = circuit_open_at(0.0);
    double until = circuit.until;

    (void)state;
    rbk_circuit_fail(&circuit, RBK_CIRCUIT_NO_PROBE, 0.01, LATEST);
    assert_same(circuit.until, until);

    unsigned ticket = probe(&circuit, until);

    rbk_circuit_fail(&circuit, RBK_CIRCUIT_NO_PROBE, until, LATEST);
    rbk_circuit_leave(&circuit, RBK_CIRCUIT_NO_PROBE);
    assert_same(circuit.until, until);
    assert_same(circuit.pause, RBK_CIRCUIT_FIRST);
    expect_refusal(&circuit, 1000.0);
    rbk_circuit_fail(&circuit, ticket, until, LATEST);
    assert_same(circuit.pause, RBK_CIRCUIT_FIRST * 2);
}

/* A probe that the circuit closed and opened without is nobody's any more. */
static void test_an_old_probe_is_none(void **state)
{
    struct rbk_circuit circuit = circuit_open_at(0.0);
    unsigned old = probe(&circuit, 1.0);

    (void)state;
    rbk_circuit_succeed(&circuit);
    rbk_circuit_fail(&circuit, RBK_CIRCUIT_NO_PROBE, 2.0, LATEST);

    unsigned ticket = probe(&circuit, 3.0);

    assert_int_not_equal(ticket, old);
    rbk_circuit_fail(&circuit, old, 3.0, LATEST);
    rbk_circuit_leave(&circuit, old);
    expect_refusal(&circuit, 3.0);
    assert_same(circuit.pause, RBK_CIRCUIT_FIRST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_lets_everybody_through),
        cmocka_unit_test(test_failure_opens_it_for_at_most_a_tenth_of_a_second),
        cmocka_unit_test(test_chance_shortens_a_pause_by_a_quarter_at_most),
        cmocka_unit_test(test_pauses_double_up_to_a_second),
        cmocka_unit_test(test_one_probe_at_a_time),
        cmocka_unit_test(test_success_closes_it_and_forgets_the_pauses),
        cmocka_unit_test(test_late_failures_change_nothing),
        cmocka_unit_test(test_an_old_probe_is_none),
    };

    return cmocka_run_group_tests_name("circuit", tests, NULL, NULL);
}
