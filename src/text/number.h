/* SPDX-License-Identifier: MIT */
/*
 * Reading the number that a text begins with, for whoever reads a unit behind it, and quoting
 * texts from outside in messages.
 *
 * Invariant: what is accepted here is [-]DIGITS[.DIGITS][e[+-]DIGITS] and nothing else, in any
 * locale.
 */
#ifndef RBK_TEXT_NUMBER_H
#define RBK_TEXT_NUMBER_H

#include "redbucket/redbucket.h"

#include <stddef.h>

/*
 * Reads the number at the start of `text` and how many bytes it takes, 0 when there is none. `text`
 * has len bytes, and behind them a NUL or a delimiter that can't go on with a number. The number is
 * infinite when it is too large for a double. ERROR_MEMORY, without a message, is the only failure.
 */
enum redbucket_status rbk_number_read(const char *text, size_t len, double *number, size_t *taken);

/* The public functions for a part of a text: `len` bytes of it, delimited as above. */
enum redbucket_status rbk_number_parse(const char *text, size_t len, double *number,
                                       struct redbucket_error *error);
enum redbucket_status rbk_rate_parse(const char *text, size_t len, double *rate,
                                     struct redbucket_error *error);
enum redbucket_status rbk_duration_parse(const char *text, size_t len, double *seconds,
                                         struct redbucket_error *error);

/* Enough for rbk_quote: 32 bytes, each as \xNN, quotes, an ellipsis. */
#define RBK_QUOTE_SIZE 136

/* Writes `text` in double quotes for a message: bytes that don't print escaped, cut at 32 bytes. */
const char *rbk_quote(const char *text, size_t len, char out[RBK_QUOTE_SIZE]);

#endif
