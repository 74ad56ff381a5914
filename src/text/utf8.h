/* SPDX-License-Identifier: MIT */
/*
 * Telling UTF-8 from other bytes.
 */
#ifndef RBK_TEXT_UTF8_H
#define RBK_TEXT_UTF8_H

#include <stddef.h>

/* How many bytes at the start of `text` are one character of valid UTF-8; 0 when they are none. */
size_t rbk_utf8_length(const char *text, size_t len);

#endif
