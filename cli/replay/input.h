/* SPDX-License-Identifier: MIT */
/*
 * The bytes of one file, of standard input, or of what gzip made of either; the first bytes tell,
 * not the name. What can be read before a fault is given out before the fault is reported.
 */
#ifndef RBK_REPLAY_INPUT_H
#define RBK_REPLAY_INPUT_H

#include "redbucket/redbucket.h"

#include <stddef.h>
#include <stdint.h>

struct rbk_input;

/* Opens a file, or standard input for "-". ERROR_SYSTEM with the reason, without the name. */
REDBUCKET_MUST_CHECK enum redbucket_status
rbk_input_open(const char *path, struct rbk_input **input, struct redbucket_error *error);

/* NULL does nothing. Standard input stays open. */
void rbk_input_close(struct rbk_input *input);

/* Reads up to `size` bytes, at least one; *got is 0 at the end alone. ERROR_SYSTEM when no more can
 * be read, or when a gzip file is damaged or cut off. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_input_read(struct rbk_input *input, char *bytes,
                                                          size_t size, size_t *got,
                                                          struct redbucket_error *error);

/* How many bytes of the file itself were read so far; compressed ones where it is compressed. */
uint64_t rbk_input_consumed(const struct rbk_input *input);

#endif
