/* SPDX-License-Identifier: MIT */
/*
 * Walking through the buckets of a cluster: master after master, as they were when it began.
 */
#ifndef RBK_REDIS_CLUSTER_WALK_H
#define RBK_REDIS_CLUSTER_WALK_H

#include "redis/nodes.h"
#include "walk_step.h"

/* A step; see redbucket_walk_step. A master that fails is left out by the steps behind. */
enum redbucket_status rbk_cluster_walk(struct rbk_nodes *nodes, const struct rbk_deadline *deadline,
                                       struct rbk_walk *walk, const struct rbk_visit *visit,
                                       bool *done);

#endif
