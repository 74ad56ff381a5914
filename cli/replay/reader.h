/* SPDX-License-Identifier: MIT */
/*
 * Reads the files of a replay line by line and makes steps of the lines. Nothing in a file stops
 * it: a line that makes no step is a fault, a file that can't be read is reported, and the next one
 * follows.
 */
#ifndef RBK_REPLAY_READER_H
#define RBK_REPLAY_READER_H

#include "arguments.h"
#include "engine.h"
#include "faults.h"

/* Reads all files. Returns CLI_DONE; CLI_STORE when a file could not be read to its end, or memory
 * is out; CLI_USAGE when --format auto found what the keys don't go with. Messages are printed. */
int rbk_replay_read(const struct rbk_replay_arguments *arguments, struct rbk_engine *engine,
                    struct rbk_faults *faults);

#endif
