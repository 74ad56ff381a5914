/* SPDX-License-Identifier: MIT */
/*
 * Bytes from outside as text for people: no byte of a log may move the cursor, set a title or end a
 * line of a terminal that shows it.
 */
#ifndef RBK_REPLAY_PRINTABLE_H
#define RBK_REPLAY_PRINTABLE_H

#include "span.h"

#include <stddef.h>
#include <stdint.h>

/* Enough for rbk_printable with up to this many columns, and its NUL. */
#define RBK_PRINTABLE_COLUMNS ((size_t)400)
#define RBK_PRINTABLE_SIZE    (RBK_PRINTABLE_COLUMNS + 1)

/*
 * Writes the bytes in at most `columns` (4 to RBK_PRINTABLE_COLUMNS) columns: printable ASCII as it
 * is, a backslash doubled, all else as \xNN. "..." stands for what had no room, and for the rest of
 * a text of which `bytes` is only the beginning: whole_len is its whole length. Returns the
 * columns.
 */
size_t rbk_printable(struct rbk_span bytes, size_t whole_len, size_t columns,
                     char out[RBK_PRINTABLE_SIZE]);

/* Enough for rbk_grouped and rbk_share. */
#define RBK_NUMBER_SIZE 32

/* 1234567 as "1,234,567". */
void rbk_grouped(uint64_t number, char out[RBK_NUMBER_SIZE]);

/* A part as a percentage with one digit, "99.2 %"; never "0.0 %" for something or "100.0 %" for
 * less than all; "-" of nothing. */
void rbk_share(uint64_t part, uint64_t whole, char out[RBK_NUMBER_SIZE]);

#endif
