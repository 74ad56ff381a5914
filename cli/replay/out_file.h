/* SPDX-License-Identifier: MIT */
/*
 * A file that is there whole or not at all: it is written under another name beside it, and takes
 * its name when all of it is on disk. What had the name before stays until then.
 *
 * A path that is no regular file (a terminal, a pipe, /dev/null) has no name to take, and is
 * written to as it is. "-" is standard output.
 */
#ifndef RBK_REPLAY_OUT_FILE_H
#define RBK_REPLAY_OUT_FILE_H

#include "redbucket/redbucket.h"

#include "span.h"

/* Whether a file could be made there, which is then removed again: to be told before long work and
 * not behind it. ERROR_SYSTEM with the reason, without the name. */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_out_file_check(const char *path,
                                                              struct redbucket_error *error);

/* Writes it. ERROR_SYSTEM, and what was there before is as it was. */
REDBUCKET_MUST_CHECK enum redbucket_status
rbk_out_file_write(const char *path, struct rbk_span bytes, struct redbucket_error *error);

#endif
