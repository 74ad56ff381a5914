/* SPDX-License-Identifier: MIT */
/*
 * Replies out of bytes as they come, by hiredis, which is known in reader.c alone.
 *
 * A reply is bounded in bytes, elements and depth (connection.h), also one that only announces to
 * be more. Replies lie in memory that the reader owns, until it is reset.
 */
#ifndef RBK_REDIS_READER_H
#define RBK_REDIS_READER_H

#include "redbucket/redbucket.h"
#include "wire/reply.h"

struct rbk_reader;

/* NULL when out of memory. */
struct rbk_reader *rbk_reader_create(void);

/* NULL does nothing. */
void rbk_reader_destroy(struct rbk_reader *reader);

/* Gives the replies up. Only between calls, when nothing is half read. */
void rbk_reader_reset(struct rbk_reader *reader);

/* Takes bytes. ERROR_MEMORY, and then the reader is of no use. */
enum redbucket_status rbk_reader_feed(struct rbk_reader *reader, const void *bytes, size_t len);

/*
 * Takes the next reply out, when it is complete. ERROR_PROTOCOL for what is no reply or too much,
 * ERROR_MEMORY; and then the reader is of no use.
 */
enum redbucket_status rbk_reader_next(struct rbk_reader *reader, struct rbk_reply *reply,
                                      bool *complete);

/* True when everything fed was taken out. */
bool rbk_reader_empty(const struct rbk_reader *reader);

/* Why rbk_reader_next failed, in a few words. */
const char *rbk_reader_failure(const struct rbk_reader *reader);

#endif
