/* SPDX-License-Identifier: MIT */
/*
 * The walk keeps the places of the masters: a map that changes on the way changes nothing for it.
 * Slots that move meanwhile are seen at either end or at both, or, with bad luck, at none.
 */
#include "redis/cluster_walk.h"

#include "redis/scan.h"

#include <stdlib.h>
#include <string.h>

static enum redbucket_status
find_masters(struct rbk_nodes *nodes, const struct rbk_deadline *deadline, struct rbk_walk *walk)
{
    struct rbk_topology topology;
    enum redbucket_status status;

    rbk_topology_init(&topology);
    status = rbk_nodes_ask(nodes, deadline, &topology);
    if (status == REDBUCKET_OK) {
        walk->memory = calloc(topology.masters_len + 1, sizeof topology.places[0]);
        if (walk->memory == NULL)
            status = REDBUCKET_ERROR_MEMORY;
    }
    if (status == REDBUCKET_OK && topology.masters_len > 0) {
        memcpy(walk->memory, topology.places, topology.masters_len * sizeof topology.places[0]);
        walk->nodes_len = topology.masters_len;
    }
    rbk_topology_fini(&topology);
    return status;
}

static enum redbucket_status ask_master(struct rbk_nodes *nodes,
                                        const struct rbk_deadline *deadline, struct rbk_walk *walk,
                                        const struct rbk_visit *visit, bool *done)
{
    const struct rbk_place *places = walk->memory;
    struct rbk_node *node = rbk_nodes_at(nodes, &places[walk->node]);
    enum redbucket_status status;

    *done = true;
    if (node == NULL)
        return REDBUCKET_ERROR_MEMORY;
    status = rbk_scan_pool(&node->pool, deadline, walk, visit, done);
    if (status != REDBUCKET_OK)
        rbk_nodes_blame(nodes, node);
    return status;
}

enum redbucket_status rbk_cluster_walk(struct rbk_nodes *nodes, const struct rbk_deadline *deadline,
                                       struct rbk_walk *walk, const struct rbk_visit *visit,
                                       bool *done)
{
    enum redbucket_status status = REDBUCKET_OK;
    bool master_done = false;

    *done = true;
    if (walk->memory == NULL)
        status = find_masters(nodes, deadline, walk);
    if (status != REDBUCKET_OK || walk->node >= walk->nodes_len)
        return status;
    status = ask_master(nodes, deadline, walk, visit, &master_done);
    if (master_done) {
        walk->node++;
        walk->cursor = 0;
    }
    *done = walk->node >= walk->nodes_len;
    return status;
}
