/* SPDX-License-Identifier: MIT */
/*
 * Deciding on a cluster: requests are cut by slot, parts of one slot share a call, and the calls of
 * all nodes fly together, round after round, until each request has ended.
 */
#ifndef RBK_REDIS_CLUSTER_H
#define RBK_REDIS_CLUSTER_H

#include "redis/nodes.h"
#include "redis/split.h"
#include "redis/volley.h"

/* As many requests as are decided together. */
#define RBK_CLUSTER_MAX 64u

/* What one thread works with; kept from batch to batch, since it is large. */
struct rbk_cluster_work;

/* NULL without memory. */
struct rbk_cluster_work *rbk_cluster_work_create(const struct rbk_redis_options *options);
void rbk_cluster_work_destroy(struct rbk_cluster_work *work);

/*
 * Decides up to RBK_CLUSTER_MAX requests that name limits (others are passed over), in their order.
 * Returns how many, at least one: those behind one that spans slots and shares one with it wait for
 * the next time. Permits that span slots are only taken in the first three quarters of the time, so
 * that there is some left for giving them back.
 */
size_t rbk_cluster_decide(struct rbk_nodes *nodes, struct rbk_cluster_work *work,
                          struct rbk_request *requests, size_t len,
                          const struct rbk_deadline *deadline);

#endif
