/* SPDX-License-Identifier: MIT */
/*
 * Connections of its own, which give up soon: one node that stands still must not keep the others
 * from being asked.
 */
#include "cluster_probe.h"

#include "processes.h"

#include <stdio.h>
#include <string.h>

#define KEYS       48
#define PATIENCE_S 0.1
#define AWAIT_S    30.0
#define PAUSE_S    0.01

/* One round. */
struct probe {
    const struct test_cluster *cluster;
    struct test_client *clients[TEST_CLUSTER_NODES];
    bool bad[TEST_CLUSTER_NODES];
    size_t last; /* who took the last key */
};

static bool connect_to(struct probe *probe, size_t index)
{
    const struct test_server *node = probe->cluster->nodes[index];
    redisReply *reply;

    if (probe->clients[index] != NULL)
        return true;
    probe->clients[index] = test_client_connect(node->port);
    if (probe->clients[index] == NULL)
        return false;
    test_client_patience(probe->clients[index], PATIENCE_S);
    if (node->password[0] == '\0')
        return true;
    reply = test_client_ask(probe->clients[index], "AUTH", node->password, NULL);
    freeReplyObject(reply);
    return reply != NULL;
}

static bool takes(struct probe *probe, size_t index, const char *name)
{
    redisReply *reply = NULL;
    bool taken;

    if (probe->bad[index])
        return false;
    if (connect_to(probe, index))
        reply = test_client_ask(probe->clients[index], "SET", name, "1", "EX", "60", NULL);
    probe->bad[index] = reply == NULL;
    taken = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return taken;
}

static bool is_taken(struct probe *probe, const char *name)
{
    for (size_t i = 0; i < probe->cluster->nodes_len; i++) {
        size_t index = (probe->last + i) % probe->cluster->nodes_len;

        if (takes(probe, index, name)) {
            probe->last = index;
            return true;
        }
    }
    return false;
}

unsigned test_cluster_probe(const struct test_cluster *cluster)
{
    struct probe probe = {.cluster = cluster};
    unsigned refused = 0;
    char name[32];

    for (int i = 0; i < KEYS; i++) {
        snprintf(name, sizeof name, "probe-%d", i);
        refused += !is_taken(&probe, name);
    }
    for (size_t i = 0; i < cluster->nodes_len; i++)
        test_client_close(probe.clients[i]);
    return refused;
}

double test_cluster_await(const struct test_cluster *cluster)
{
    double until = test_now() + AWAIT_S;

    while (test_cluster_probe(cluster) > 0) {
        if (test_now() > until)
            return -1;
        test_pause(PAUSE_S);
    }
    return test_now();
}
