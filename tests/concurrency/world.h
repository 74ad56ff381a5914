/* SPDX-License-Identifier: MIT */
/*
 * A shm: store of which every key is known: for one request, what each bucket is before it and what
 * it is after, and all bytes of the store from before, to go back to.
 */
#ifndef TEST_WORLD_H
#define TEST_WORLD_H

#include "redbucket/redbucket.h"

#define WORLD_KNOWN 150
#define WORLD_NOW   100.0

struct known {
    struct redbucket_key key;
    struct redbucket_state before;
    struct redbucket_state after;
};

/* The request is of the first keys known. Limits: "a" and "b" let 11 in and drain one a second,
 * "once" lets one in. */
struct world {
    char url[128];
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    struct known known[WORLD_KNOWN];
    size_t known_len;
    struct redbucket_request request;
    struct redbucket_key keys[4];
    enum redbucket_status status; /* of the request, when nobody is killed */
    unsigned char *bytes;         /* all of the store's file */
    unsigned char *image;         /* the same before the request */
    size_t size;
    uint64_t accepted; /* counted before the request */
    uint64_t evicted;
};

/* Opens a store of its own with the query of a URL. */
void world_open(struct world *world, const char *query);
void world_close(struct world *world);

/* Makes a key known and returns its index: a short one by its number, or piece of a long text. */
size_t world_know(struct world *world, const char *limit, unsigned number);
size_t world_know_long(struct world *world, const char *limit, size_t from, size_t len);

/* The first number from `number` on whose short key may lie in just those two pages that the first
 * key known may lie in. */
unsigned world_twin(struct world *world, const char *limit, unsigned number);

/* Takes `cost` from a known key's bucket. */
void world_take(struct world *world, size_t known, double cost, double now);

/* The shard of a known key. */
unsigned world_shard(struct world *world, size_t known);

/* Sets the request, and finds out what is before it and after; then it is before. */
void world_settle(struct world *world, enum redbucket_operation operation, size_t keys_len);

/* Does the request; the work that is killed. `world` is a struct world. Ends the process when it
 * fails otherwise than it should. */
void world_request(void *world);

/* Fails the test unless all is as it was before or as it is after, for each bucket by itself, the
 * table is whole and of use; and goes back to before. */
void world_check(struct world *world);

/* Keeps the present bytes as what to go back to. */
void world_keep(struct world *world);
void world_return(struct world *world);

#endif
