/* SPDX-License-Identifier: MIT */
/*
 * Commands as bytes to send, in a buffer that grows. Arguments are bytes with a length, whatever is
 * in them.
 */
#ifndef RBK_REDIS_OUTGOING_H
#define RBK_REDIS_OUTGOING_H

#include "redbucket/redbucket.h"
#include "wire/reply.h"

/* Zeros are an empty one. */
struct rbk_outgoing {
    unsigned char *bytes;
    size_t len;
    size_t size;
};

/* Replaces what is in it. ERROR_MEMORY, also for what no memory would hold. */
enum redbucket_status rbk_outgoing_set(struct rbk_outgoing *outgoing,
                                       const struct rbk_command *commands, size_t commands_len);

/* Empties it, and gives back the memory that an unusually long one took. */
void rbk_outgoing_clear(struct rbk_outgoing *outgoing);

void rbk_outgoing_free(struct rbk_outgoing *outgoing);

#endif
