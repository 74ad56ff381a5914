/* SPDX-License-Identifier: MIT */
/*
 * Threads that ask a cluster at the same time: those of one node share calls, and those of a node
 * that stands still hold up nobody else.
 */
#include "clustered.h"
#include "host.h"
#include "processes.h"

#include <pthread.h>
#include <stdio.h>

#define CROWD  24
#define EACH   60
#define A_NODE 6 /* threads that ask each node */

/* Next to nothing drains while a test runs. */
#define SLOW 1e-6

/* Far below the timeout of a test, far above what a call takes. */
#define SOON 0.15

struct asker {
    pthread_t id;
    struct clustered *clustered;
    size_t node;
    char key[48];
    int accepted;
    int rejected;
    int failed;
    double longest; /* of its calls, seconds */
};

static atomic_bool ending;

static void limit(struct clustered *clustered, const char *name, double burst)
{
    clustered_limit(clustered, name, (struct redbucket_limit){.rate = SLOW, .burst = burst});
}

static void ask(struct asker *asker)
{
    struct redbucket_response response = {.accepted = false};
    double began = test_now();
    enum redbucket_status status = clustered_request(asker->clustered, "a", asker->key, &response);
    double took = test_now() - began;

    asker->longest = took > asker->longest ? took : asker->longest;
    asker->failed += status != REDBUCKET_OK;
    asker->accepted += status == REDBUCKET_OK && response.accepted;
    asker->rejected += status == REDBUCKET_OK && !response.accepted;
}

static void *ask_each(void *data)
{
    for (int i = 0; i < EACH; i++)
        ask(data);
    return NULL;
}

static void *ask_on(void *data)
{
    while (!atomic_load(&ending)) {
        ask(data);
        test_pause(0.002);
    }
    return NULL;
}

static void start(struct asker *askers, size_t len, void *(*body)(void *data))
{
    atomic_store(&ending, false);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(pthread_create(&askers[i].id, NULL, body, &askers[i]), 0);
}

static void join(struct asker *askers, size_t len)
{
    atomic_store(&ending, true);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(pthread_join(askers[i].id, NULL), 0);
}

/* Calls of the script that all masters have run. */
static long long calls(const struct clustered *clustered)
{
    long long sum = 0;

    for (size_t i = 0; i < TEST_CLUSTER_MASTERS; i++)
        sum += test_server_calls(clustered->cluster->nodes[i], "evalsha");
    return sum;
}

/* All buckets are in one slot: who comes while two calls are under way goes with the next. */
static void a_crowd_shares_calls(void **state)
{
    struct clustered *clustered = *state;
    struct asker askers[CROWD] = {{.node = 0}};
    long long before;
    int accepted = 0;

    limit(clustered, "a", CROWD * EACH);
    for (int i = 0; i < CROWD; i++) {
        askers[i].clustered = clustered;
        (void)snprintf(askers[i].key, sizeof askers[i].key, "crowd-%d", i % 3);
    }
    ask(&askers[0]);
    before = calls(clustered);
    start(askers, CROWD, ask_each);
    join(askers, CROWD);
    for (int i = 0; i < CROWD; i++)
        accepted += askers[i].accepted;
    print_message("# %lld calls for %d requests\n", calls(clustered) - before, CROWD * EACH);
    assert_int_equal(accepted, CROWD * EACH + 1);
    assert_true(calls(clustered) - before < CROWD * EACH / 2);
    for (int i = 0; i < 3; i++)
        accepted -= (int)(clustered_value(clustered, "a", askers[i].key) + 0.5);
    assert_int_equal(accepted, 0);
}

/* By node, in slots of their own. */
static void prepare(struct clustered *clustered, struct asker *askers)
{
    for (size_t i = 0; i < (size_t)A_NODE * TEST_CLUSTER_MASTERS; i++) {
        char prefix[16];

        (void)snprintf(prefix, sizeof prefix, "still-%zu", i);
        askers[i].clustered = clustered;
        askers[i].node = i % TEST_CLUSTER_MASTERS;
        clustered_key_at(clustered, "a", askers[i].node, prefix, askers[i].key);
        ask(&askers[i]);
        assert_int_equal(askers[i].failed, 0);
        askers[i].longest = 0.0;
    }
}

/* Not for so long that the cluster would have the node replaced; and long enough that it is tried
 * again, by who asks it, and by nobody else. */
static void a_node_that_stands_still_holds_up_who_asks_it(void **state)
{
    enum { LEN = A_NODE * TEST_CLUSTER_MASTERS };

    struct clustered *clustered = *state;
    struct asker askers[LEN] = {{.node = 0}};

    clustered_again(clustered, "timeout=400ms");
    limit(clustered, "a", 1e6);
    prepare(clustered, askers);
    test_control_start();
    start(askers, LEN, ask_on);
    test_pause(0.1);
    assert_true(test_cluster_freeze(clustered->cluster, 0));
    test_pause(1.1);
    assert_true(test_cluster_thaw(clustered->cluster, 0));
    join(askers, LEN);
    for (size_t i = 0; i < LEN; i++) {
        bool still = askers[i].node == 0;

        test_control_check(askers[i].longest, still ? 0.4 : SOON);
        assert_int_equal(askers[i].failed > 0, still);
        assert_true(askers[i].accepted > 20 || still);
    }
    test_control_stop();
    assert_true(test_cluster_settle(clustered->cluster));
}

int main(void)
{
    static const struct clustered_case cases[] = {
        CLUSTERED(CLUSTERED_TAGGED, a_crowd_shares_calls),
        CLUSTERED(CLUSTERED_UNTAGGED | CLUSTERED_STRUCT,
                  a_node_that_stands_still_holds_up_who_asks_it),
    };

    return clustered_run("cluster_gather", cases, sizeof cases / sizeof cases[0]);
}
