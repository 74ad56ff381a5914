/* SPDX-License-Identifier: MIT */
/*
 * Every order in which three processes can ask, be decided, hear of it, spend, give back, be
 * killed, close or fail, while time goes by: with the real steps of leases, in front of the model.
 *
 * A world that has been seen is not gone on with: many orders come to the same.
 */
#include "lease_world.h"
#include "processes.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static struct lease_witness witness;
static unsigned long ends;

#define SEEN_SIZE ((size_t)1 << 21)

static uint64_t *seen;
static size_t seen_len;

/* True the first time. */
static bool see(uint64_t hash)
{
    size_t at = hash % SEEN_SIZE;

    for (; seen[at] != 0; at = (at + 1) % SEEN_SIZE) {
        if (seen[at] == hash)
            return false;
    }
    seen[at] = hash;
    assert_true(++seen_len < SEEN_SIZE / 2);
    return true;
}

/* ---- What must hold ----------------------------------------------------------------------------
 */

static void check(bool over)
{
    double level = rbk_level(&world_limit, &world.states[0], model_store.now);
    double known;

    witness_begin(&witness, &world_limit, leased_terms.time);
    for (size_t i = 0; i < world.history_len; i++)
        witness_add(&witness, &world.history[i]);
    assert_true(witness_bound_holds(&witness));
    known = witness_level(&witness, model_store.now);
    /* Nothing is invented: all that was admitted is known to the server. */
    assert_true(level >= known - 1e-6);
    /* Nothing is lost, but by those who were killed, by failures, and by what may have drained. */
    if (over)
        assert_true(level <=
                    known + world.killed + world_limit.rate * world.elapsed * world.taken + 1e-6);
}

static void go_on(unsigned depth)
{
    bool over = true;

    world_set_clocks();
    check(false);
    if (!see(world_hash()))
        return;
    assert_true(depth < DEPTH_MAX);
    world_keep(depth);
    for (unsigned i = 0; i < PROCESSES * STEPS; i++) {
        if (!world_step(i / STEPS, i % STEPS))
            continue;
        over = false;
        go_on(depth + 1);
        world_go_back(depth);
        world_set_clocks();
    }
    if (!over && world.ticks > 0) {
        world.ticks--;
        world.elapsed += world.tick;
        go_on(depth + 1);
        world_go_back(depth);
        world_set_clocks();
    }
    if (!over)
        return;
    ends++;
    for (unsigned i = 0; i < PROCESSES; i++)
        world_close(i);
    check(true);
}

static int make_memory(void **state)
{
    seen = calloc(SEEN_SIZE, sizeof *seen);
    return seen == NULL ? -1 : world_setup(state);
}

static int free_memory(void **state)
{
    free(seen);
    return world_teardown(state);
}

/* Under sanitizers, the same with less time going by: orders are fewer then. */
static void begin(const struct rbk_limit *limit, unsigned ticks, double tick, unsigned others)
{
    memset(seen, 0, SEEN_SIZE * sizeof *seen);
    seen_len = 0;
    ends = 0;
    world_served = 0;
    world_begin(limit, 2, others);
    world.ticks = TEST_SANITIZED ? 1 : ticks;
    world.tick = tick;
}

static void go(const char *what)
{
    go_on(0);
    (void)fprintf(stderr, "# %s: %zu worlds, %lu ends\n", what, seen_len, ends);
    assert_true(ends > 20);
    assert_true(world_served > 100);
}

/* Room for all three to hold some. */
static const struct rbk_limit roomy = {.rate = 1, .burst = 11};

static void while_time_goes_by(void **unused)
{
    (void)unused;
    begin(&roomy, 2, 0.6, 0);
    go("time");
}

static void with_one_killed(void **unused)
{
    (void)unused;
    begin(&roomy, 1, 0.6, 0);
    world.kills = 1;
    go("killed");
}

static void with_calls_that_fail(void **unused)
{
    (void)unused;
    begin(&roomy, 1, 0.6, 0);
    world.failures = 1;
    go("failing");
}

static void with_leases_that_nobody_uses(void **unused)
{
    (void)unused;
    begin(&roomy, 1, 0.6, 1);
    go("idle");
}

/* All three want more than there is. */
static void with_too_little_for_all(void **unused)
{
    (void)unused;
    begin(&(struct rbk_limit){.rate = 1, .burst = 5}, 2, 0.6, 0);
    go("scarce");
}

/* Whatever is held or on its way has long been over when there is room again. */
static void with_a_long_time_between(void **unused)
{
    (void)unused;
    begin(&(struct rbk_limit){.rate = 0.25, .burst = 2}, 1, 20, 0);
    go("late");
}

/* Of what is held, a part has drained. */
static void with_leases_that_drain(void **unused)
{
    (void)unused;
    begin(&(struct rbk_limit){.rate = 1, .burst = 5}, 1, 1.5, 0);
    world.closes = 1;
    go("draining");
}

static void with_delays(void **unused)
{
    (void)unused;
    begin(&(struct rbk_limit){.rate = 1, .burst = 2, .delay = 9}, 2, 0.6, 0);
    go("delays");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(while_time_goes_by),       cmocka_unit_test(with_one_killed),
        cmocka_unit_test(with_calls_that_fail),     cmocka_unit_test(with_leases_that_nobody_uses),
        cmocka_unit_test(with_a_long_time_between), cmocka_unit_test(with_leases_that_drain),
        cmocka_unit_test(with_too_little_for_all),  cmocka_unit_test(with_delays),
    };

    return cmocka_run_group_tests(tests, make_memory, free_memory);
}
