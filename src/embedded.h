/* SPDX-License-Identifier: MIT */
/*
 * Deciding on a table, whatever memory it lies in: what the embedded stores share.
 *
 * Each shard of the table has a lock. A request takes the locks of all its keys' shards in
 * ascending order, so that no two requests wait for each other, and holds them from the first read
 * to the last write. Whoever gets a lock looks first whether the last holder died in the middle of
 * a change, and undoes it.
 */
#ifndef RBK_EMBEDDED_H
#define RBK_EMBEDDED_H

#include "deadline.h"
#include "store.h"
#include "table/table.h"

struct rbk_embedded {
    struct redbucket_store store;

    /* Where `grow` is NULL: immutable. Else another one after growing, guarded by the lock. */
    struct rbk_table *table;

    /* OK, or ERROR_TIMEOUT once *waited, which it adds to, is the store's timeout, or
     * ERROR_SYSTEM. On a fiber also ERROR_CONFLICT: somebody holds it for longer than usual, and
     * other locks are not to be held meanwhile. */
    enum redbucket_status (*lock)(struct rbk_embedded *embedded, unsigned shard, double *waited);
    void (*unlock)(struct rbk_embedded *embedded, unsigned shard);

    /* Adds 1 for each other table that it has moved to; guarded by the lock. */
    uint64_t generation;

    /* Makes room for more buckets, all shards locked; false when there is no memory. NULL for a
     * store of fixed size. */
    bool (*grow)(struct rbk_embedded *embedded, double now);
};

/* Implementations of struct rbk_store_ops; `store` is the first member of a struct rbk_embedded. */
void rbk_embedded_decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                         struct rbk_batch *batch);
enum redbucket_status rbk_embedded_read(struct redbucket_store *store, const struct rbk_key *key,
                                        struct rbk_state *state);
enum redbucket_status rbk_embedded_statistics(struct redbucket_store *store,
                                              struct redbucket_statistics *statistics);
enum redbucket_status rbk_embedded_walk(struct redbucket_store *store, struct rbk_walk *walk,
                                        const struct rbk_visit *visit, bool *done);
size_t rbk_embedded_key_max(const struct redbucket_store *store);
unsigned rbk_embedded_enroll(struct redbucket_store *store, const struct rbk_key *zone);
enum redbucket_status rbk_embedded_zones(struct redbucket_store *store,
                                         struct redbucket_zone_statistics *zones, size_t *len);

/* Takes a shard's lock for something that isn't a decision, and puts it right if its last holder
 * died. */
enum redbucket_status rbk_embedded_lock(struct rbk_embedded *embedded, unsigned shard);

/* Seconds by the clock of embedded stores, CLOCK_BOOTTIME: nobody can set it, it runs on while the
 * machine sleeps, and all processes of one boot see the same. */
double rbk_embedded_now(void);

/* A secret for a table's hash. False when the system has no randomness to give. */
bool rbk_embedded_secret(uint64_t secret[2]);

#endif
