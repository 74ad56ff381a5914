/* SPDX-License-Identifier: MIT */
/*
 * Requests whose limits lie in different slots, on different nodes: taken one after another, and
 * given back. Neither limit admits more than it may; a rejection by one leaves the other no emptier
 * than it would have been; and who is killed between the two steps loses his own permit and no
 * more.
 */
#include "clustered.h"
#include "processes.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define PROCESSES 8
#define SECONDS   3.0
#define KILLS     40

/* Next to nothing drains while a test runs. */
#define SLOW 1e-6

static const char *const orders[] = {"a b", "b a"};

/* A key whose buckets in the zones a and b are on different nodes. */
static void key_apart(const struct clustered *clustered, char key[48])
{
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, 48, "apart-%d", i);
        if (clustered_node(clustered, "a", key, NULL) != clustered_node(clustered, "b", key, NULL))
            return;
    }
    fail();
}

static void limit(struct clustered *clustered, const char *name, double rate, double burst)
{
    clustered_limit(clustered, name, (struct redbucket_limit){.rate = rate, .burst = burst});
}

/* ---- One after another ---------------------------------------------------------------------- */

/* Whichever rejects, and in whatever order they are named. */
static void a_rejection_leaves_the_other_as_it_was(void **state)
{
    static const char *const names[] = {"a", "b"};
    struct clustered *clustered = *state;
    struct redbucket_response response;
    char key[48];

    key_apart(clustered, key);
    limit(clustered, "a", SLOW, 4);
    limit(clustered, "b", SLOW, 4);
    for (size_t full = 0; full < 2; full++) {
        clustered_flush(clustered);
        for (int i = 0; i < 5; i++)
            assert_int_equal(clustered_request(clustered, names[full], key, NULL), REDBUCKET_OK);
        assert_int_equal(clustered_request(clustered, names[1 - full], key, NULL), REDBUCKET_OK);
        for (int i = 0; i < 20; i++) {
            assert_int_equal(clustered_request(clustered, orders[i % 2], key, &response),
                             REDBUCKET_OK);
            assert_false(response.accepted);
            assert_int_equal(response.decided, i % 2 == 0 ? full : 1 - full);
            assert_int_equal(response.remaining, 0);
            assert_true(response.retry_after > 0.99 / SLOW && response.retry_after < 1.0 / SLOW);
            double value = clustered_value(clustered, names[1 - full], key);

            /* What drains in half a minute. */
            assert_true(value > 1.0 - 30 * SLOW && value < 1.0 + 30 * SLOW);
        }
    }
}

/* A bucket that is empty is none the fuller for it, and one that drains goes on draining. */
static void what_is_given_back_drains_as_ever(void **state)
{
    struct clustered *clustered = *state;
    struct redbucket_response response;
    char key[48];

    key_apart(clustered, key);
    limit(clustered, "a", 10, 4);
    limit(clustered, "b", SLOW, 0);
    assert_int_equal(clustered_request(clustered, "b", key, NULL), REDBUCKET_OK);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(clustered_request(clustered, orders[i % 2], key, &response), REDBUCKET_OK);
        assert_false(response.accepted);
        assert_int_equal(clustered_request(clustered, "a", key, &response), REDBUCKET_OK);
        if (i < 5)
            assert_true(response.accepted);
    }
    double value = clustered_value(clustered, "a", key);

    assert_true(value > 3.0 && value <= 5.0 + 1e-6);
}

/* The longest of all that reject, and the longest delay of all that accept, wherever they are. */
static void the_answer_is_of_all_together(void **state)
{
    struct clustered *clustered = *state;
    struct redbucket_response response;
    char key[48];

    key_apart(clustered, key);
    clustered_limit(clustered, "a", (struct redbucket_limit){.rate = 0.5, .burst = 0, .delay = 2});
    clustered_limit(clustered, "b", (struct redbucket_limit){.rate = 0.1, .burst = 1, .delay = 1});
    for (int i = 0; i < 3; i++) {
        static const double delays[] = {0, 2, 10};

        assert_int_equal(clustered_request(clustered, orders[i % 2], key, &response), REDBUCKET_OK);
        assert_true(response.accepted);
        assert_true(fabs(response.delay - delays[i]) < 0.3 * TEST_PATIENCE);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(clustered_request(clustered, orders[i], key, &response), REDBUCKET_OK);
        assert_false(response.accepted);
        assert_int_equal(response.decided, 1 - i);
        assert_true(fabs(response.retry_after - 10) < 0.3 * TEST_PATIENCE);
    }
}

/* ---- Together ------------------------------------------------------------------------------- */

/* What they were told, in memory that they share. */
struct told {
    atomic_int ending;
    atomic_uint accepted;
    atomic_uint rejected;
    atomic_uint failed;
};

struct crowd {
    struct clustered *clustered;
    char key[48];
    double rate[2];
    double burst[2];
    unsigned seed;
    struct told *told;
};

/* A store of one's own, as another program would have. */
static void open_own(struct clustered *clustered, const struct crowd *crowd)
{
    child_check(redbucket_limiter_create(clustered->store, &clustered->limiter, NULL) ==
                REDBUCKET_OK);
    for (int i = 0; i < 2; i++) {
        const struct redbucket_limit its = {.rate = crowd->rate[i], .burst = crowd->burst[i]};

        child_check(redbucket_limiter_add(clustered->limiter, i == 0 ? "a" : "b", &its, NULL) ==
                    REDBUCKET_OK);
    }
}

static void ask_on(void *data)
{
    const struct crowd *crowd = data;
    struct clustered own = *crowd->clustered;
    struct redbucket_response response;

    own.store = clustered_open(&own, "");
    open_own(&own, crowd);
    for (unsigned i = crowd->seed; atomic_load(&crowd->told->ending) == 0; i++) {
        if (clustered_request(&own, orders[i % 2], crowd->key, &response) != REDBUCKET_OK)
            (void)atomic_fetch_add(&crowd->told->failed, 1);
        else
            (void)atomic_fetch_add(
                response.accepted ? &crowd->told->accepted : &crowd->told->rejected, 1);
    }
    redbucket_limiter_destroy(own.limiter);
    redbucket_store_close(own.store);
}

static void add_limits(struct crowd *crowd)
{
    limit(crowd->clustered, "a", crowd->rate[0], crowd->burst[0]);
    limit(crowd->clustered, "b", crowd->rate[1], crowd->burst[1]);
}

static void start_crowd(struct crowd *crowd, pid_t pids[PROCESSES])
{
    for (size_t i = 0; i < PROCESSES; i++) {
        crowd->seed = (unsigned)i;
        pids[i] = test_fork(ask_on, crowd);
    }
}

static void end_crowd(struct crowd *crowd, const pid_t pids[PROCESSES])
{
    atomic_store(&crowd->told->ending, 1);
    for (size_t i = 0; i < PROCESSES; i++)
        test_join(pids[i]);
}

/* Returns how long they asked. */
static double run_crowd(struct crowd *crowd)
{
    double began = test_now();
    pid_t pids[PROCESSES];

    crowd->told = test_share(sizeof *crowd->told);
    start_crowd(crowd, pids);
    test_pause(SECONDS);
    end_crowd(crowd, pids);
    assert_int_equal(crowd->told->failed, 0);
    return test_now() - began;
}

static double bound(const struct crowd *crowd, int index, double seconds)
{
    return crowd->burst[index] + 1 + crowd->rate[index] * seconds;
}

static void eight_processes_exceed_neither_limit(void **state)
{
    /* The first is the tighter, then the second; then both alike. */
    static const double rates[][2] = {{20, 60}, {60, 20}};
    struct clustered *clustered = *state;

    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct crowd crowd = {.clustered = clustered,
                              .rate = {rates[i][0], rates[i][1]},
                              .burst = {rates[i][0] / 2, rates[i][1] / 2}};
        double seconds, least;

        clustered_flush(clustered);
        clustered_again(clustered, "");
        key_apart(clustered, crowd.key);
        add_limits(&crowd);
        seconds = run_crowd(&crowd);
        least = fmin(bound(&crowd, 0, seconds), bound(&crowd, 1, seconds));
        unsigned accepted = crowd.told->accepted;

        print_message("# %u of at most %.1f accepted, %u rejected\n", accepted, least,
                      crowd.told->rejected);
        assert_true(accepted <= bound(&crowd, 0, seconds) + 1e-6);
        assert_true(accepted <= bound(&crowd, 1, seconds) + 1e-6);
        assert_true(accepted >= 0.6 * least);
        assert_true(crowd.told->rejected > 10);
        test_unshare(crowd.told, sizeof *crowd.told);
    }
}

/* Nothing drains: each permit that was told is in both buckets, and nothing else is. */
static void eight_processes_leave_what_they_took_and_no_more(void **state)
{
    struct clustered *clustered = *state;
    struct crowd crowd = {.clustered = clustered, .rate = {SLOW, SLOW}, .burst = {1e6, 99}};
    double values[2];

    key_apart(clustered, crowd.key);
    add_limits(&crowd);
    (void)run_crowd(&crowd);
    double accepted = crowd.told->accepted;
    double turned = crowd.told->rejected;

    assert_int_equal((int)accepted, 100);
    values[0] = clustered_value(clustered, "a", crowd.key);
    values[1] = clustered_value(clustered, "b", crowd.key);
    /* Both have drained for some seconds; what is given back may be less by what could drain. */
    assert_true(values[0] >= accepted - 60 * SLOW);
    assert_true(values[0] <= accepted + turned * SLOW + 1e-6);
    assert_true(values[1] >= accepted - 60 * SLOW && values[1] <= accepted + 1e-6);
    test_unshare(crowd.told, sizeof *crowd.told);
}

/* ---- While slots move ----------------------------------------------------------------------- */

/* The slot of one limit's bucket goes there and back, and the other's master is relieved. */
static void rearrange(struct clustered *clustered, const char *key)
{
    size_t replica;
    unsigned slot;

    for (int i = 0; i < 20; i++) {
        size_t from = clustered_node(clustered, i % 2 == 0 ? "a" : "b", key, &slot);
        size_t to = (from + 1 + (size_t)i / 2 % 2) % TEST_CLUSTER_MASTERS;

        assert_true(test_cluster_slot_open(clustered->cluster, slot, from, to));
        test_pause(0.01);
        assert_true(test_cluster_slot_move(clustered->cluster, slot, from, to, -1) >= 0);
        test_pause(0.01);
        assert_true(test_cluster_slot_close(clustered->cluster, slot, from, to));
        test_pause(0.01);
        assert_true(test_cluster_migrate(clustered->cluster, slot, slot, from));
    }
    size_t master = clustered_node(clustered, "b", key, NULL);

    assert_true(test_cluster_settle(clustered->cluster));
    replica = test_cluster_replica(clustered->cluster, master);
    assert_true(test_cluster_promote(clustered->cluster, replica));
    assert_true(test_cluster_settle(clustered->cluster));
    assert_true(test_cluster_promote(clustered->cluster, master));
    assert_true(test_cluster_settle(clustered->cluster));
}

/* Nobody is refused for it, and what was told is what is stored. */
static void permits_of_two_slots_are_right_while_slots_move(void **state)
{
    struct clustered *clustered = *state;
    struct crowd crowd = {.clustered = clustered, .rate = {SLOW, SLOW}, .burst = {1e9, 1e9}};
    pid_t pids[PROCESSES];

    crowd.told = test_share(sizeof *crowd.told);
    key_apart(clustered, crowd.key);
    add_limits(&crowd);
    start_crowd(&crowd, pids);
    rearrange(clustered, crowd.key);
    end_crowd(&crowd, pids);
    double accepted = crowd.told->accepted;
    double a = clustered_value(clustered, "a", crowd.key);
    double b = clustered_value(clustered, "b", crowd.key);

    print_message("# %.0f accepted, %u failed; stored %.3f and %.3f\n", accepted,
                  crowd.told->failed, a, b);
    assert_true(accepted > 1000);
    assert_int_equal(crowd.told->rejected, 0);
    assert_int_equal(crowd.told->failed, 0);
    assert_true(fabs(a - accepted) < 0.01);
    assert_true(fabs(b - accepted) < 0.01);
    test_unshare(crowd.told, sizeof *crowd.told);
}

/* ---- Killed in between ---------------------------------------------------------------------- */

static void who_is_killed_in_between_loses_his_own_permit_alone(void **state)
{
    struct clustered *clustered = *state;
    struct crowd crowd = {.clustered = clustered, .rate = {SLOW, SLOW}, .burst = {1e9, 1e9}};
    unsigned seed = 20240611;
    double between = 0;

    crowd.told = test_share(sizeof *crowd.told);
    key_apart(clustered, crowd.key);
    add_limits(&crowd);
    for (unsigned i = 1; i <= KILLS; i++) {
        unsigned told = crowd.told->accepted;

        crowd.seed = i;
        pid_t pid = test_fork(ask_on, &crowd);

        while (crowd.told->accepted < told + 3)
            test_pause(0.001);
        test_pause(1e-6 * test_random(&seed, 5000));
        test_kill(pid);
        /* What it had sent may still be on its way. */
        test_pause(0.002);
        told = crowd.told->accepted;
        double a = clustered_value(clustered, "a", crowd.key);
        double b = clustered_value(clustered, "b", crowd.key);

        assert_true(a >= told - 1e-3 && a <= told + i + 1e-3);
        assert_true(b >= told - 1e-3 && b <= told + i + 1e-3);
        assert_true(fabs(a - b) <= i + 1e-3);
        between = fmax(between, fabs(a - b));
    }
    assert_int_equal(crowd.told->rejected + crowd.told->failed, 0);
    print_message("# of %d kills %.0f came between the two steps\n", KILLS, between);
    test_unshare(crowd.told, sizeof *crowd.told);
}

/* The one that accepts is left no fuller than by one permit for each of the dead. */
static void who_is_killed_giving_back_loses_his_own_permit_alone(void **state)
{
    struct clustered *clustered = *state;
    struct crowd crowd = {.clustered = clustered, .rate = {SLOW, SLOW}, .burst = {1e9, 0}};
    unsigned seed = 20240612;

    crowd.told = test_share(sizeof *crowd.told);
    key_apart(clustered, crowd.key);
    add_limits(&crowd);
    assert_int_equal(clustered_request(clustered, "a b", crowd.key, NULL), REDBUCKET_OK);
    for (unsigned i = 1; i <= KILLS / 2; i++) {
        unsigned turned = crowd.told->rejected;

        crowd.seed = i;
        pid_t pid = test_fork(ask_on, &crowd);

        while (crowd.told->rejected < turned + 3)
            test_pause(0.001);
        test_pause(1e-6 * test_random(&seed, 5000));
        test_kill(pid);
        test_pause(0.002);
        double a = clustered_value(clustered, "a", crowd.key);

        assert_true(a >= 1 - 1e-3 && a <= 1 + i + 1e-3);
    }
    assert_int_equal(crowd.told->accepted + crowd.told->failed, 0);
    test_unshare(crowd.told, sizeof *crowd.told);
}

int main(void)
{
    enum { HERE = CLUSTERED_UNTAGGED | CLUSTERED_STRUCT };
    static const struct clustered_case cases[] = {
        CLUSTERED(CLUSTERED_UNTAGGED, a_rejection_leaves_the_other_as_it_was),
        CLUSTERED(CLUSTERED_UNTAGGED, what_is_given_back_drains_as_ever),
        CLUSTERED(CLUSTERED_UNTAGGED, the_answer_is_of_all_together),
        CLUSTERED(HERE, eight_processes_exceed_neither_limit),
        CLUSTERED(HERE | CLUSTERED_REDIS, eight_processes_leave_what_they_took_and_no_more),
        CLUSTERED(HERE, permits_of_two_slots_are_right_while_slots_move),
        CLUSTERED(HERE, who_is_killed_in_between_loses_his_own_permit_alone),
        CLUSTERED(HERE | CLUSTERED_REDIS, who_is_killed_giving_back_loses_his_own_permit_alone),
    };

    return clustered_run("cluster_steps", cases, sizeof cases / sizeof cases[0]);
}
