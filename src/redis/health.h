/* SPDX-License-Identifier: MIT */
/*
 * What an operator wants to know of a server before relying on it.
 */
#ifndef RBK_REDIS_HEALTH_H
#define RBK_REDIS_HEALTH_H

#include "redis/method.h"

/* Asks the server behind the connection, and warns of settings by which it loses state. What it
 * refuses to tell is not warned of. */
enum redbucket_status rbk_health_ask(struct rbk_use *use, struct redbucket_health *health);

/* How many replicas follow it now, -1 when it doesn't say. */
enum redbucket_status rbk_health_count_replicas(struct rbk_use *use, int *replicas);

#endif
