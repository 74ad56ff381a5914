/* SPDX-License-Identifier: MIT */
/*
 * The requests of a replay, kept to be gone through again and again: when, at what cost, and for
 * each limit the hash of its key. In memory as long as they are few, and then in a file without a
 * name in $TMPDIR or /tmp, so that memory is bounded whatever the log.
 *
 * Keys are told apart by 64 bits of hash: of a million keys two are taken for one once in 37
 * million logs.
 */
#ifndef RBK_REPLAY_SPOOL_H
#define RBK_REPLAY_SPOOL_H

#include "redbucket/redbucket.h"

#include <stddef.h>
#include <stdint.h>

/* How many bytes are kept in memory. */
#define RBK_SPOOL_BYTES ((size_t)48 << 20)

/* A request: hashes[i] is that of its key under limit i, and 0 where it names none. */
struct rbk_spool_record {
    double time_s;
    double cost;
    uint64_t hashes[];
};

struct rbk_spool;

/* For requests of so many limits, with so many bytes in memory. NULL when memory is out. */
struct rbk_spool *rbk_spool_create(size_t limits, size_t bytes);

/* NULL does nothing. */
void rbk_spool_destroy(struct rbk_spool *spool);

/* Adds a request. ERROR_SYSTEM when the file can't be made or written. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_spool_add(struct rbk_spool *spool, double time_s,
                                                         double cost, const uint64_t *hashes,
                                                         struct redbucket_error *error);

/* How many there are. */
uint64_t rbk_spool_len(const struct rbk_spool *spool);

/* Begins at the first one. */
void rbk_spool_rewind(struct rbk_spool *spool);

/* The next request, which lives until the next call; NULL at the end, or when the file can't be
 * read, which rbk_spool_failed tells. */
const struct rbk_spool_record *rbk_spool_next(struct rbk_spool *spool);

/* 0, or the errno of a read. */
int rbk_spool_failed(const struct rbk_spool *spool);

#endif
