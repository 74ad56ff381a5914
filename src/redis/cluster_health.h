/* SPDX-License-Identifier: MIT */
/*
 * What an operator wants to know of a cluster before relying on it.
 */
#ifndef RBK_REDIS_CLUSTER_HEALTH_H
#define RBK_REDIS_CLUSTER_HEALTH_H

#include "redis/nodes.h"

/* Asks for the map and then every master, and warns of slots that nobody serves, of masters that
 * have no replica or can't be reached, and of what rbk_health_ask warns of, once.
 * ERROR_UNAVAILABLE, or why there is no map, or why no master answers. */
enum redbucket_status rbk_cluster_check(struct rbk_nodes *nodes,
                                        const struct rbk_deadline *deadline,
                                        struct redbucket_health *health);

#endif
