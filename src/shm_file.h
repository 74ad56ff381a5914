/* SPDX-License-Identifier: MIT */
/*
 * The file behind a shm: store: found or made without a race, checked, and mapped.
 *
 * It is made under no name, in full, and then linked to its name, which only one maker can; so
 * whoever finds the name finds a finished file. docs/shm.md draws its layout.
 *
 * Invariant: what is mapped belongs to us or to root, is of this format, size, boot and clock, and
 * has all its space allocated.
 */
#ifndef RBK_SHM_FILE_H
#define RBK_SHM_FILE_H

#include "redbucket/redbucket.h"
#include "table/table.h"

#include <pthread.h>

#define RBK_SHM_BOOT_LEN 36 /* a UUID as text */

/* A cache line each. */
struct rbk_shm_lock {
    _Alignas(64) pthread_mutex_t mutex;
};

struct rbk_shm_header {
    uint64_t magic;
    uint64_t format;
    uint64_t size;
    uint64_t clock;          /* which clock stamps the buckets */
    uint64_t time_namespace; /* whose offset that clock has */
    char boot[RBK_SHM_BOOT_LEN + 4];
    unsigned char pad[432];
    struct rbk_shm_lock locks[RBK_TABLE_SHARDS_MAX];
    unsigned char end[3584]; /* to whole pages */
};

/* What is asked for; 0 where the URL doesn't say. */
struct rbk_shm_wanted {
    const char *name;
    size_t size;
    unsigned mode;
    double timeout; /* seconds to wait for another process that replaces an old file */
    bool no_other;  /* than one that is there: nothing is made, nothing is removed */
};

struct rbk_shm_file {
    struct rbk_shm_header *header;
    void *table;
    size_t size;
    size_t table_size;
};

enum redbucket_status rbk_shm_file_open(const struct rbk_shm_wanted *wanted,
                                        struct rbk_shm_file *file, struct redbucket_error *error);

/* Unmaps; the file stays. */
void rbk_shm_file_close(struct rbk_shm_file *file);

#endif
