/* SPDX-License-Identifier: MIT */
/*
 * Programs that use a cluster from several processes and threads: children have connections of
 * their own, threads share those to each node, and one reads the map while others use it.
 */
#include "clustered.h"
#include "host.h"
#include "processes.h"

#include <pthread.h>
#include <stdio.h>

#define CHILDREN 6
#define THREADS  12

/* Next to nothing drains while a test runs. */
#define SLOW 1e-6

static void limit(struct clustered *clustered, const char *name, double burst)
{
    clustered_limit(clustered, name, (struct redbucket_limit){.rate = SLOW, .burst = burst});
}

static void ask_fifty_times(void *data)
{
    struct clustered *clustered = data;
    char key[32];

    for (int i = 0; i < 50; i++) {
        (void)snprintf(key, sizeof key, "fork-%d", i);
        child_check(clustered_request(clustered, "a", key, NULL) == REDBUCKET_OK);
    }
}

/* The parent's connections are still the parent's, and a child has its own. */
static void children_go_on_with_connections_of_their_own(void **state)
{
    struct clustered *clustered = *state;
    pid_t children[CHILDREN];
    char key[32];

    limit(clustered, "a", 1000);
    ask_fifty_times(clustered);
    for (size_t i = 0; i < CHILDREN; i++)
        children[i] = test_fork(ask_fifty_times, clustered);
    ask_fifty_times(clustered);
    for (size_t i = 0; i < CHILDREN; i++)
        test_join(children[i]);
    ask_fifty_times(clustered);
    for (int i = 0; i < 50; i++) {
        (void)snprintf(key, sizeof key, "fork-%d", i);
        double value = clustered_value(clustered, "a", key);

        assert_true(value > CHILDREN + 3 - 0.001 && value <= CHILDREN + 3);
    }
}

static struct {
    struct clustered *clustered;
    pthread_t ids[THREADS];
    atomic_bool ending;
    atomic_int accepted;
    atomic_int rejected;
    atomic_int failed;
} threads;

/* Each of twenty keys has room for ten. */
#define THREAD_KEYS 20
#define THREAD_ROOM 10

static void ask_as_thread(int number)
{
    struct redbucket_response response = {.accepted = false};
    char key[32];

    (void)snprintf(key, sizeof key, "thread-%d", number % THREAD_KEYS);
    if (clustered_request(threads.clustered, "a", key, &response) != REDBUCKET_OK)
        (void)atomic_fetch_add(&threads.failed, 1);
    else
        (void)atomic_fetch_add(response.accepted ? &threads.accepted : &threads.rejected, 1);
}

static void start_threads(struct clustered *clustered, void *(*body)(void *data))
{
    memset(&threads, 0, sizeof threads);
    threads.clustered = clustered;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads.ids[i], NULL, body, NULL), 0);
}

static void join_threads(void)
{
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads.ids[i], NULL);
}

static void *ask_a_hundred_times(void *data)
{
    (void)data;
    for (int i = 0; i < 100; i++)
        ask_as_thread(i);
    return NULL;
}

static long long connections(const struct clustered *clustered)
{
    long long most = 0;

    for (size_t i = 0; i < clustered->cluster->nodes_len; i++) {
        long long now = test_server_info(clustered->cluster->nodes[i], "connected_clients");

        most = now > most ? now : most;
    }
    return most;
}

static void threads_share_connections_to_each_node(void **state)
{
    struct clustered *clustered = *state;
    long long before;

    clustered_again(clustered, "connections=3");
    limit(clustered, "a", THREAD_ROOM - 1);
    before = connections(clustered);
    start_threads(clustered, ask_a_hundred_times);
    join_threads();
    assert_int_equal(threads.failed, 0);
    assert_int_equal(threads.accepted, THREAD_KEYS * THREAD_ROOM);
    assert_int_equal(threads.rejected, THREADS * 100 - THREAD_KEYS * THREAD_ROOM);
    assert_true(connections(clustered) <= before + 3);
}

static void *ask_to_the_end(void *data)
{
    (void)data;
    for (int i = 0; !atomic_load(&threads.ending); i++) {
        ask_as_thread(i);
        test_pause(0.001);
    }
    return NULL;
}

/* One reads the map anew while others use it. */
static void threads_go_on_while_slots_move(void **state)
{
    struct clustered *clustered = *state;
    unsigned slots[THREAD_KEYS];

    limit(clustered, "a", THREAD_ROOM - 1);
    start_threads(clustered, ask_to_the_end);
    for (int i = 0; i < THREAD_KEYS; i++) {
        char key[32];

        (void)snprintf(key, sizeof key, "thread-%d", i);
        size_t from = clustered_node(clustered, "a", key, &slots[i]);
        size_t to = (from + 1) % TEST_CLUSTER_MASTERS;

        assert_true(test_cluster_migrate(clustered->cluster, slots[i], slots[i], to));
        test_pause(0.02);
        assert_true(test_cluster_migrate(clustered->cluster, slots[i], slots[i], from));
    }
    atomic_store(&threads.ending, true);
    join_threads();
    print_message("# %d accepted, %d rejected, %d failed\n", threads.accepted, threads.rejected,
                  threads.failed);
    assert_int_equal(threads.failed, 0);
    assert_int_equal(threads.accepted, THREAD_KEYS * THREAD_ROOM);
    assert_true(test_cluster_settle(clustered->cluster));
}

int main(void)
{
    enum { HERE = CLUSTERED_UNTAGGED | CLUSTERED_STRUCT | CLUSTERED_REDIS };
    static const struct clustered_case cases[] = {
        CLUSTERED(HERE, children_go_on_with_connections_of_their_own),
        CLUSTERED(HERE, threads_share_connections_to_each_node),
        CLUSTERED(HERE, threads_go_on_while_slots_move),
    };

    return clustered_run("cluster_programs", cases, sizeof cases / sizeof cases[0]);
}
