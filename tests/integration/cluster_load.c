/* SPDX-License-Identifier: MIT */
#include "cluster_load.h"

#include "cluster_witness.h"
#include "host.h"
#include "processes.h"
#include "test.h"
#include "wire/slot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH    16
#define SEEN     ((size_t)LOAD_PROCESSES * LOAD_THIRDS)
#define STATUSES (REDBUCKET_ERROR_SERVER + 1)
#define PAUSE_S  0.004
#define GRACE_S  2.0
#define LOOK_S   (TEST_SANITIZED ? 3.0 : 1.0)

/* A server that takes longer for next to nothing has other things to do. */
#define SLOW_S 0.1

/* What one process was told of one third. */
struct seen {
    _Atomic double last_failure;
    _Atomic double resumed; /* the first answer since it was set to 0 */
    atomic_ulong failures;
    atomic_ulong answers;
};

struct shared {
    atomic_int ending;
    atomic_uint accepted[LOAD_KEYS];
    atomic_uint statuses[STATUSES];
    _Atomic double longest[LOAD_PROCESSES];
    struct seen seen[LOAD_PROCESSES][LOAD_THIRDS];
};

struct load {
    struct shared *shared;
    struct witness *witness;
    char texts[LOAD_KEYS][32];
    size_t third[LOAD_KEYS];
    char url[512];
    double began;
    size_t index; /* of the process that is being started */
    pid_t pids[LOAD_PROCESSES];
};

static struct seen *seen_at(const struct load *load, size_t i)
{
    return &load->shared->seen[i / LOAD_THIRDS][i % LOAD_THIRDS];
}

/* ---- What a process does -------------------------------------------------------------------- */

static void note(struct load *load, size_t key, const struct redbucket_request *request)
{
    struct seen *seen = &load->shared->seen[load->index][load->third[key]];

    (void)atomic_fetch_add(&load->shared->statuses[request->status], 1);
    if (request->status != REDBUCKET_OK) {
        atomic_store(&seen->last_failure, test_now());
        (void)atomic_fetch_add(&seen->failures, 1);
        return;
    }
    if (request->response.accepted)
        (void)atomic_fetch_add(&load->shared->accepted[key], 1);
    if (atomic_load(&seen->resumed) == 0.0)
        atomic_store(&seen->resumed, test_now());
    (void)atomic_fetch_add(&seen->answers, 1);
}

static void ask(struct load *load, struct redbucket_limiter *limiter, unsigned *seed)
{
    struct redbucket_key keys[BATCH];
    struct redbucket_request array[BATCH];
    size_t chosen[BATCH];
    size_t len = test_random(seed, 3) == 0 ? 1 : BATCH;

    for (size_t i = 0; i < len; i++) {
        chosen[i] = test_random(seed, LOAD_KEYS);
        keys[i] = (struct redbucket_key){.limit = "a", .key = load->texts[chosen[i]]};
        array[i] = (struct redbucket_request){.keys = &keys[i], .keys_len = 1, .cost = 1};
    }
    double began = test_now();

    if (redbucket_decide(limiter, array, len) != REDBUCKET_OK)
        test_pause(PAUSE_S);
    _Atomic double *longest = &load->shared->longest[load->index];

    atomic_store(longest, fmax(atomic_load(longest), test_now() - began));
    for (size_t i = 0; i < len; i++)
        note(load, chosen[i], &array[i]);
    test_pause(PAUSE_S);
}

static void ask_on(void *data)
{
    static const struct redbucket_limit limit = {
        .rate = LOAD_RATE, .burst = LOAD_BURST, .delay = LOAD_DELAY};
    struct load *load = data;
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    unsigned seed = (unsigned)load->index * 7919u + 1u;

    child_check(redbucket_store_open(load->url, &store, NULL) == REDBUCKET_OK);
    child_check(redbucket_limiter_create(store, &limiter, NULL) == REDBUCKET_OK);
    child_check(redbucket_limiter_add(limiter, "a", &limit, NULL) == REDBUCKET_OK);
    while (atomic_load(&load->shared->ending) == 0)
        ask(load, limiter, &seed);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

/* ---- Beginning ------------------------------------------------------------------------------ */

static unsigned slot_of(const char *key)
{
    unsigned char name[64];
    int len = snprintf((char *)name, sizeof name, "redbucket:a:%s", key);

    return rbk_slot_of(name, (size_t)len);
}

static void make_keys(struct load *load)
{
    int number = 0;

    for (size_t i = 0; i < LOAD_KEYS; i++) {
        do
            (void)snprintf(load->texts[i], sizeof load->texts[i], "load-%d", number++);
        while (i < LOAD_MOVING_KEYS && slot_of(load->texts[i]) >= LOAD_MOVING_SLOTS);
        load->third[i] = slot_of(load->texts[i]) * LOAD_THIRDS / RBK_SLOTS;
    }
}

static void flush(struct test_cluster *cluster)
{
    static struct test_cluster_view view;

    assert_true(test_cluster_look(cluster, 0, &view));
    for (size_t i = 0; i < cluster->nodes_len; i++)
        assert_true(view.master_of[i] != i || test_server_do(cluster->nodes[i], "FLUSHALL", NULL));
}

static bool all_answered(const struct load *load)
{
    for (size_t i = 0; i < SEEN; i++) {
        if (atomic_load(&seen_at(load, i)->answers) == 0)
            return false;
    }
    return true;
}

struct load *load_begin(struct test_cluster *cluster)
{
    struct load *load = calloc(1, sizeof *load);
    char query[64];
    double until = test_now() + 30;

    assert_non_null(load);
    load->shared = test_share(sizeof *load->shared);
    make_keys(load);
    flush(cluster);
    (void)snprintf(query, sizeof query, "timeout=%dms", (int)(LOAD_TIMEOUT * 1e3));
    test_cluster_url(cluster, TEST_BY_PORT, query, load->url, sizeof load->url);
    load->witness = witness_start(cluster);
    load->began = test_now();
    for (load->index = 0; load->index < LOAD_PROCESSES; load->index++)
        load->pids[load->index] = test_fork(ask_on, load);
    while (!all_answered(load)) {
        assert_true(test_now() < until);
        test_pause(0.005);
    }
    return load;
}

/* ---- While it goes on ----------------------------------------------------------------------- */

unsigned long load_failures(const struct load *load, size_t third)
{
    unsigned long failures = 0;

    for (size_t i = 0; i < LOAD_PROCESSES; i++)
        failures += atomic_load(&load->shared->seen[i][third].failures);
    return failures;
}

/* What a third's own master was late, while it was there. */
static double slowness(const struct load *load, size_t third)
{
    return witness_disturbed(load->witness, third) ? 0.0 : witness_longest(load->witness, third);
}

static double worst_slowness(const struct load *load)
{
    double worst = 2.0 * test_control_late();

    for (size_t i = 0; i < LOAD_THIRDS; i++)
        worst = fmax(worst, slowness(load, i));
    return worst;
}

/* One in a hundred may have met with what else goes on here. */
void load_check_unharmed(const struct load *load, size_t third)
{
    unsigned long failures = load_failures(load, third);
    unsigned long answers = 0;

    for (size_t i = 0; i < LOAD_PROCESSES; i++)
        answers += atomic_load(&load->shared->seen[i][third].answers);
    if (failures == 0)
        return;
    print_message("# %lu of %lu requests failed, where a plain one took %.2f s%s\n", failures,
                  failures + answers, witness_longest(load->witness, third),
                  witness_disturbed(load->witness, third) ? " or failed" : "");
    if (failures > answers / 100 && !witness_disturbed(load->witness, third) &&
        worst_slowness(load) < SLOW_S)
        fail_msg("%lu requests failed that have nothing to do with it", failures);
}

static double last_failure(const struct load *load)
{
    double last = 0;

    for (size_t i = 0; i < (size_t)LOAD_PROCESSES * LOAD_THIRDS; i++)
        last = fmax(
            last, atomic_load(&load->shared->seen[i / LOAD_THIRDS][i % LOAD_THIRDS].last_failure));
    return last;
}

/* Who is late on this machine for other reasons is late here as well. */
static void check_resumed(const struct load *load, const char *what, double served)
{
    double allowed = GRACE_S * TEST_PATIENCE + 2.0 * worst_slowness(load);

    for (size_t i = 0; i < SEEN; i++) {
        double resumed = atomic_load(&seen_at(load, i)->resumed);

        if (resumed == 0.0 || resumed > served + allowed)
            fail_msg("%s: process %zu had no answer within %.2f s", what, i / LOAD_THIRDS, allowed);
    }
}

void load_check_calm(struct load *load, const char *what, double since, double served)
{
    unsigned long failures = 0, before[LOAD_THIRDS];

    assert_true(served >= since);
    for (size_t i = 0; i < SEEN; i++)
        atomic_store(&seen_at(load, i)->resumed, 0.0);
    while (test_now() < served + GRACE_S)
        test_pause(0.005);
    for (size_t i = 0; i < LOAD_THIRDS; i++)
        before[i] = load_failures(load, i);
    test_pause(LOOK_S);
    for (size_t i = 0; i < LOAD_THIRDS; i++)
        failures += load_failures(load, i) - before[i];
    print_message("# %s: the cluster served after %.2f s, decisions failed until %.2f s\n", what,
                  served - since, fmax(last_failure(load) - since, 0.0));
    check_resumed(load, what, served);
    if (failures > 0 && worst_slowness(load) < SLOW_S)
        fail_msg("%s: %lu requests still fail", what, failures);
}

/* ---- The end -------------------------------------------------------------------------------- */

static void check_statuses(const struct load *load)
{
    for (size_t i = 1; i < STATUSES; i++) {
        unsigned count = atomic_load(&load->shared->statuses[i]);

        if (i != REDBUCKET_ERROR_TIMEOUT && i != REDBUCKET_ERROR_IO &&
            i != REDBUCKET_ERROR_UNAVAILABLE && count > 0)
            fail_msg("%u of %s", count, redbucket_status_name((enum redbucket_status)i));
    }
}

/* A master that was thought dead may have lost what one that is dead has. */
static double losses(const struct load *load, size_t third, const unsigned lost[LOAD_THIRDS])
{
    return lost[third] > 0 ? lost[third] : witness_disturbed(load->witness, third);
}

static double check_accepted(const struct load *load, double seconds,
                             const unsigned lost[LOAD_THIRDS])
{
    const double full = LOAD_BURST + 1 + LOAD_DELAY;
    double all = 0, most_over = 0;

    for (size_t i = 0; i < LOAD_KEYS; i++) {
        double accepted = atomic_load(&load->shared->accepted[i]);
        double once = full + LOAD_RATE * seconds;
        double bound = once + full * losses(load, load->third[i], lost);

        all += accepted;
        most_over = fmax(most_over, accepted - once);
        if (accepted > bound + 1e-6)
            fail_msg("%s: %.0f accepted, at most %.2f of which are allowed", load->texts[i],
                     accepted, bound);
    }
    print_message("# %.0f accepted in %.1f s, %.0f %% of what is allowed; of one key at most %.1f "
                  "more than one bucket allows\n",
                  all, seconds, 100 * all / (LOAD_KEYS * (full + LOAD_RATE * seconds)), most_over);
    assert_true(all > (worst_slowness(load) < SLOW_S ? 0.4 : 0.1) * LOAD_KEYS *
                          (full + LOAD_RATE * seconds));
    return most_over;
}

double load_end(struct load *load, const unsigned lost[LOAD_THIRDS])
{
    double longest = 0, over;

    atomic_store(&load->shared->ending, 1);
    for (size_t i = 0; i < LOAD_PROCESSES; i++)
        test_join(load->pids[i]);
    double seconds = test_now() - load->began;

    for (size_t i = 0; i < LOAD_PROCESSES; i++)
        longest = fmax(longest, atomic_load(&load->shared->longest[i]));
    check_statuses(load);
    over = check_accepted(load, seconds, lost);
    test_control_check(longest, LOAD_TIMEOUT * TEST_PATIENCE + worst_slowness(load));
    witness_stop(load->witness);
    test_unshare(load->shared, sizeof *load->shared);
    free(load);
    return over;
}
