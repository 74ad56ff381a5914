/* SPDX-License-Identifier: MIT */
/*
 * Which buckets of two zones lie in one hash slot of a cluster under a key format, by their names'
 * hash tags; known without asking anybody.
 */
#ifndef RBK_WIRE_COLOCATION_H
#define RBK_WIRE_COLOCATION_H

#include "redbucket/redbucket.h"
#include "wire/key_format.h"

/* What redbucket_store_colocation tells of a cluster, never ALWAYS. Only the zones of `a` and `b`
 * matter, which are at most REDBUCKET_ZONE_MAX long. */
enum redbucket_colocation rbk_colocation(const struct rbk_key_format *format,
                                         const struct rbk_key *a, const struct rbk_key *b);

#endif
