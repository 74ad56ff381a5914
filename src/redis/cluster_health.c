/* SPDX-License-Identifier: MIT */
/*
 * Asking the masters of a cluster, one after the other. What one of them says stands for all but
 * for its warnings, which are gathered.
 */
#include "redis/cluster_health.h"

#include "redis/health.h"

#include <stdio.h>
#include <string.h>

static void warn(struct redbucket_health *health, const char *what)
{
    for (size_t i = 0; i < health->warnings_len; i++) {
        if (strcmp(health->warnings[i], what) == 0)
            return;
    }
    if (health->warnings_len < REDBUCKET_WARNINGS_MAX)
        (void)snprintf(health->warnings[health->warnings_len++], REDBUCKET_WARNING_SIZE, "%s",
                       what);
}

static enum redbucket_status ask_master(struct rbk_nodes *nodes, const struct rbk_place *place,
                                        const struct rbk_deadline *deadline,
                                        struct redbucket_health *health)
{
    struct rbk_node *node = rbk_nodes_at(nodes, place);
    struct rbk_use use = {.deadline = deadline};
    enum redbucket_status status;

    if (node == NULL)
        return REDBUCKET_ERROR_MEMORY;
    use.pool = &node->pool;
    status = rbk_pool_take(&node->pool, deadline, &use.peer);
    if (status == REDBUCKET_OK) {
        status = rbk_health_ask(&use, health);
        rbk_pool_give(&node->pool, use.peer, status, use.usable);
    }
    if (status != REDBUCKET_OK)
        rbk_nodes_blame(nodes, node);
    return status;
}

static void warn_of_silence(const struct rbk_nodes *nodes, struct redbucket_health *health)
{
    char text[REDBUCKET_WARNING_SIZE];
    struct redbucket_error error;

    rbk_nodes_failure(nodes, &error);
    (void)snprintf(text, sizeof text, "a master can't be used: %.*s", (int)sizeof text - 40,
                   error.message);
    warn(health, text);
}

static void warn_of_gaps(const struct rbk_topology *topology, struct redbucket_health *health)
{
    char text[REDBUCKET_WARNING_SIZE];
    size_t gaps = 0;

    for (size_t i = 0; i < RBK_SLOTS; i++)
        gaps += topology->owner[i] == RBK_NO_OWNER;
    if (gaps == 0)
        return;
    (void)snprintf(text, sizeof text, "%zu of %u slots are served by nobody: their keys fail", gaps,
                   RBK_SLOTS);
    warn(health, text);
}

static void warn_of_failover(const struct rbk_topology *topology, struct redbucket_health *health)
{
    size_t replicas = topology->places_len - topology->masters_len;
    char text[REDBUCKET_WARNING_SIZE];

    (void)snprintf(
        text, sizeof text, "%zu masters have %zu replicas: %s", topology->masters_len, replicas,
        replicas < topology->masters_len ? "one that dies without one takes its buckets along"
                                         : "a failover loses what its replica hasn't received");
    warn(health, text);
}

static enum redbucket_status ask_all(struct rbk_nodes *nodes, const struct rbk_topology *topology,
                                     const struct rbk_deadline *deadline,
                                     struct redbucket_health *health)
{
    enum redbucket_status status = REDBUCKET_ERROR_UNAVAILABLE;
    double slowest = 0.0;

    for (size_t i = 0; i < topology->masters_len; i++) {
        struct redbucket_health one = {.size = sizeof one};
        enum redbucket_status asked = ask_master(nodes, &topology->places[i], deadline, &one);

        if (asked != REDBUCKET_OK) {
            status = status == REDBUCKET_OK ? status : asked;
            warn_of_silence(nodes, health);
            continue;
        }
        status = REDBUCKET_OK;
        slowest = one.round_trip > slowest ? one.round_trip : slowest;
        memcpy(health->server, one.server, sizeof health->server);
        memcpy(health->method, one.method, sizeof health->method);
        for (size_t j = 0; j < one.warnings_len; j++)
            warn(health, one.warnings[j]);
    }
    health->round_trip = slowest;
    return status;
}

enum redbucket_status rbk_cluster_check(struct rbk_nodes *nodes,
                                        const struct rbk_deadline *deadline,
                                        struct redbucket_health *health)
{
    struct rbk_topology topology;
    enum redbucket_status status;

    rbk_topology_init(&topology);
    status = rbk_nodes_ask(nodes, deadline, &topology);
    if (status == REDBUCKET_OK)
        status = ask_all(nodes, &topology, deadline, health);
    if (status == REDBUCKET_OK) {
        warn_of_gaps(&topology, health);
        warn_of_failover(&topology, health);
    }
    rbk_topology_fini(&topology);
    return status;
}
