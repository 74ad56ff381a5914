/* SPDX-License-Identifier: MIT */
/*
 * Leases of several processes under whatever requests come, on a network that is slow and that
 * fails, with processes that are killed: what is admitted is within the bound, and what the server
 * knows of is never less than what was admitted.
 */
#include "lease_witness.h"
#include "leased.h"
#include "test.h"

#define PROCESSES 4

static uint64_t chance;
static struct lease_witness witness;
static struct redbucket_store *processes[PROCESSES];
static unsigned served;
static bool alone; /* one process asks, is never killed, and uses all it gets */

static unsigned draw(unsigned below)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chance >> 33) % below;
}

/* Some calls fail, before the server has done anything or after it. */
static void decide_or_fail(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                           struct rbk_batch *batch)
{
    unsigned what = draw(20);

    if (what > 0)
        model_store_decide(store, requests, len, batch);
    if (what <= 1)
        rbk_requests_fail(requests, len, REDBUCKET_ERROR_TIMEOUT);
}

/* A process that is killed gives nothing back. */
static void kill_process(unsigned number)
{
    enum redbucket_status status = model_store.status;

    model_store_ops.decide = model_store_decide;
    model_store.status = REDBUCKET_ERROR_UNAVAILABLE;
    redbucket_store_close(processes[number]);
    model_store.status = status;
    model_store_ops.decide = decide_or_fail;
    processes[number] = leased_join();
}

/* Whoever gives a permit back doesn't use it, whatever becomes of that. */
static void give_back(struct redbucket_store *store, const struct model_ask *taken)
{
    struct model_ask ask;

    (void)leased_ask(&ask, RBK_GIVE_BACK, taken->request.ask.cost, witness.limit, "a");
    ask.request.ask.taken_at = taken->request.ask.now;
    (void)model_send(store, &ask);
    witness_take_off(&witness);
}

static void request(struct redbucket_store *store)
{
    static const double costs[] = {1, 1, 1, 1, 2, 0.5, 3};
    double cost = costs[draw(7)];
    struct model_ask ask;
    double at = model_store.now;

    if (!model_send(store, leased_ask(&ask, RBK_REQUEST, cost, witness.limit, "a")))
        return;
    served += ask.request.here;
    witness_add(&witness,
                &(struct admitted){.at = ask.request.here ? at : ask.request.ask.now,
                                   .after = (ask.request.here ? at : ask.request.ask.now) +
                                            ask.request.answer.delay,
                                   .taken = ask.request.ask.now,
                                   .cost = cost});
    if (draw(16) == 0 && !alone)
        give_back(store, &ask);
}

static void step(void)
{
    unsigned number = alone ? 0 : draw(PROCESSES);
    struct redbucket_store *store = processes[draw(3) == 0 ? number : 0];
    struct model_ask ask;

    model_store.travel = draw(4) == 0 ? draw(3) * 0.004 : 0.0;
    model_store_pass(draw(40) == 0 ? draw(12) * 0.1 : draw(10) * 0.001);
    if (draw(100) == 0)
        model_store_pass(draw(60));
    switch (draw(40)) {
    case 0:
        if (!alone)
            kill_process(number);
        break;
    case 1:
        (void)model_send(store, leased_ask(&ask, RBK_PEEK, 1, witness.limit, "a"));
        break;
    case 2:
        (void)model_send(store, leased_ask(&ask, RBK_CHARGE, 1, witness.limit, "a"));
        break;
    case 3:
        (void)leased_request(store, 1, leased_large, "b");
        break;
    default:
        request(store);
    }
}

static void play(unsigned seed)
{
    static const double rates[] = {0.2, 1, 5, 40, 160}, bursts[] = {0, 2, 5, 12, 40, 80};
    struct rbk_limit limit = {
        .rate = rates[seed % 5], .burst = bursts[seed % 6], .delay = seed % 7 / 3 * 15};

    chance = seed;
    alone = seed % 4 == 0;
    leased_begin(seed % 2 == 0);
    witness_begin(&witness, &limit, leased_terms.time);
    witness.slack += 0.02; /* twice the longest way to the server */
    model_store_ops.decide = decide_or_fail;
    for (unsigned i = 0; i < PROCESSES; i++)
        processes[i] = leased_join();
    for (int i = 0; i < 600; i++)
        step();
    for (unsigned i = 0; i < PROCESSES; i++)
        redbucket_store_close(processes[i]);
}

static void the_bound_holds_whatever_comes(void **unused)
{
    (void)unused;
    served = 0;
    for (unsigned seed = 1; seed <= 300; seed++) {
        play(seed);
        assert_true(witness_bound_holds(&witness));
        assert_true(!alone || witness_delays_hold(&witness));
        assert_true(leased_level(witness.limit, 'a') >=
                    witness_level(&witness, model_store.now) - 1e-3);
    }
    assert_true(served > 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_holds_whatever_comes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
