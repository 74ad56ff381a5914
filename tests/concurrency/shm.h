/* SPDX-License-Identifier: MIT */
/*
 * The file behind a shm: store, from outside: where it is, what is in it, and what opening says of
 * it.
 */
#ifndef TEST_SHM_H
#define TEST_SHM_H

#include "redbucket/redbucket.h"
#include "shm_file.h"

/* A store's URL and its file, which isn't there yet. */
struct shm_place {
    char url[160];
    char path[256];
};

void shm_place_make(struct shm_place *place);

/* Opens the store, with a query of "" or "?size=64k" and the like. */
enum redbucket_status shm_open_store(const struct shm_place *place, const char *query,
                                     struct redbucket_store **store, struct redbucket_error *error);

/* Makes a good store there, of 64k, with one bucket in it that keeps key "k" out. */
void shm_make_good(const struct shm_place *place);

/* Fails the test unless opening is refused with this status and a message that has `words`. */
void shm_expect(const struct shm_place *place, const char *query, enum redbucket_status status,
                const char *words);

/* Overwrites bytes of the file. */
void shm_patch(const struct shm_place *place, size_t offset, const void *bytes, size_t len);

#endif
