/* SPDX-License-Identifier: MIT */
/*
 * The other end of tests/torture/world.c: a store behind a bad network, in a process of its own.
 */
#ifndef TORTURE_BEHIND_H
#define TORTURE_BEHIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BEHIND_LINE 1024

struct behind;

/* Starts `program` with a store and a seed; its URL in `url`, of BEHIND_LINE bytes. Ends this
 * program when it doesn't start, with status 77 when there is no such server here. */
struct behind *behind_start(const char *program, const char *store, uint64_t seed, char *url);

/* Ends it. */
void behind_stop(struct behind *behind);

/* Says a line, and returns what it answers, until the next line. */
__attribute__((format(printf, 2, 3))) const char *behind_ask(struct behind *behind,
                                                             const char *format, ...);

/* The value of a state there; false when there is none. */
bool behind_value(struct behind *behind, const char *limit, const char *key, double *value);

#endif
