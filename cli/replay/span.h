/* SPDX-License-Identifier: MIT */
/*
 * A piece of somebody else's bytes. Lines, fields and keys of a replay are handed on as spans, so
 * that NUL bytes and missing ends of text mean nothing special.
 */
#ifndef RBK_REPLAY_SPAN_H
#define RBK_REPLAY_SPAN_H

#include <stddef.h>

struct rbk_span {
    const char *bytes;
    size_t len;
};

#endif
