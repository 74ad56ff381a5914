/* SPDX-License-Identifier: MIT */
#include "cluster_witness.h"

#include "processes.h"
#include "test.h"
#include "wire/slot.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#define PAUSE_S    0.005
#define PATIENCE_S 1.0

struct seen {
    _Atomic double longest;
    atomic_bool disturbed;
};

struct witness {
    int ports[TEST_CLUSTER_MASTERS];
    char keys[TEST_CLUSTER_MASTERS][32];
    struct seen seen[TEST_CLUSTER_MASTERS];
    atomic_bool ending;
    pid_t pid;
};

/* A key that nobody writes, near the middle of a third. */
static unsigned find_key(size_t third, char key[32])
{
    unsigned middle = (2 * (unsigned)third + 1) * RBK_SLOTS / 6;

    for (int i = 0;; i++) {
        int len = snprintf(key, 32, "witness-%d", i);
        unsigned slot = rbk_slot_of((const unsigned char *)key, (size_t)len);

        if (slot >= middle && slot < middle + 100)
            return slot;
    }
}

static void look(struct witness *witness, size_t third, struct test_client **client)
{
    struct seen *seen = &witness->seen[third];
    double began = test_now();
    redisReply *reply = NULL;

    if (*client == NULL)
        *client = test_client_connect(witness->ports[third]);
    if (*client != NULL) {
        test_client_patience(*client, PATIENCE_S);
        reply = test_client_ask(*client, "GET", witness->keys[third], NULL);
    }
    atomic_store(&seen->longest, fmax(atomic_load(&seen->longest), test_now() - began));
    if (reply == NULL || reply->type != REDIS_REPLY_NIL)
        atomic_store(&seen->disturbed, true);
    if (reply == NULL) {
        test_client_close(*client);
        *client = NULL;
    }
    freeReplyObject(reply);
}

static void look_on(void *data)
{
    struct test_client *clients[TEST_CLUSTER_MASTERS] = {NULL};
    struct witness *witness = data;

    for (size_t i = 0; !atomic_load(&witness->ending); i++) {
        look(witness, i % TEST_CLUSTER_MASTERS, &clients[i % TEST_CLUSTER_MASTERS]);
        test_pause(PAUSE_S);
    }
    for (size_t i = 0; i < TEST_CLUSTER_MASTERS; i++)
        test_client_close(clients[i]);
}

struct witness *witness_start(struct test_cluster *cluster)
{
    struct witness *witness = test_share(sizeof *witness);

    for (size_t i = 0; i < TEST_CLUSTER_MASTERS; i++) {
        size_t owner = test_cluster_owner(cluster, find_key(i, witness->keys[i]));

        assert_true(owner < TEST_CLUSTER_NODES);
        witness->ports[i] = cluster->nodes[owner]->port;
    }
    witness->pid = test_fork(look_on, witness);
    return witness;
}

void witness_stop(struct witness *witness)
{
    atomic_store(&witness->ending, true);
    test_join(witness->pid);
    test_unshare(witness, sizeof *witness);
}

double witness_longest(const struct witness *witness, size_t third)
{
    return atomic_load(&witness->seen[third].longest);
}

bool witness_disturbed(const struct witness *witness, size_t third)
{
    return atomic_load(&witness->seen[third].disturbed);
}
