/* SPDX-License-Identifier: MIT */
/*
 * Some of the buckets of one server: a SCAN, then a look at what it named, and at the clock.
 *
 *   SCAN CURSOR MATCH PATTERN COUNT N
 *   GETRANGE NAME 0 LAST      for each name
 *   TIME
 *   TYPE NAME                 for each that looked empty
 *
 * GETRANGE is safe for any type, and takes no more than a state may have of a value of any length.
 * What others do between the commands may show: a bucket that is gone by then is passed over.
 */
#ifndef RBK_REDIS_SCAN_H
#define RBK_REDIS_SCAN_H

#include "redis/method.h"
#include "walk_step.h"

/* Keys that a server goes through for one SCAN. */
#define RBK_SCAN_BATCH 128u

/* One name and what was found under it. */
struct rbk_scanned {
    size_t begin; /* in `names` */
    size_t len;
    bool there;
    enum redbucket_status status;
    struct rbk_state state;
};

struct rbk_scan {
    const struct rbk_redis_options *options;
    unsigned char *names;
    struct rbk_scanned *found;
    size_t len;
    double now;
};

/* Goes on from walk->cursor, and sets it: 0 is the beginning and the end. Ended by rbk_scan_fini,
 * whatever the status is. */
enum redbucket_status rbk_scan_step(struct rbk_use *use, struct rbk_walk *walk,
                                    struct rbk_scan *scan);

/* Tells of what was found. No connection need be lent. */
void rbk_scan_tell(const struct rbk_scan *scan, const struct rbk_walk *walk,
                   const struct rbk_visit *visit);

void rbk_scan_fini(struct rbk_scan *scan);

/* All of it for one pool: borrows a connection, gives it back, and tells. *done is set when the
 * server has been gone through. */
enum redbucket_status rbk_scan_pool(struct rbk_pool *pool, const struct rbk_deadline *deadline,
                                    struct rbk_walk *walk, const struct rbk_visit *visit,
                                    bool *done);

#endif
