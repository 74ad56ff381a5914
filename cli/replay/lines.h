/* SPDX-License-Identifier: MIT */
/*
 * Lines out of an input, in place: a line is a span of the read buffer. A line longer than
 * RBK_LINE_MAX is read past without being kept, so memory doesn't depend on the input.
 */
#ifndef RBK_REPLAY_LINES_H
#define RBK_REPLAY_LINES_H

#include "redbucket/redbucket.h"

#include "input.h"
#include "span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest line, without its end. */
#define RBK_LINE_MAX ((size_t)64 * 1024)

/* How much is read at once. */
#define RBK_LINES_BUFFER ((size_t)256 * 1024)

/* How much of a line that is too long is still known. */
#define RBK_LINE_HEAD ((size_t)256)

enum rbk_line_kind {
    RBK_LINE,          /* a whole line, without its "\n" or "\r\n"; the last needs none */
    RBK_LINE_TOO_LONG, /* the span is its first RBK_LINE_HEAD bytes */
    RBK_LINE_BROKEN,   /* the input failed in the middle of this one */
    RBK_LINE_END,      /* no more lines */
};

/*
 *   number  of the line last given out, from 1
 *   failed  the input failed, `error` says why: found out after all lines were given out
 */
struct rbk_lines {
    struct rbk_input *input;
    uint64_t number;
    bool failed;
    struct redbucket_error error;
    bool ended;
    size_t from;
    size_t to;
    char head[RBK_LINE_HEAD];
    char buffer[RBK_LINES_BUFFER];
};

/* Begins with the input's first line. The input is borrowed. */
void rbk_lines_init(struct rbk_lines *lines, struct rbk_input *input);

/* The next line; *line lives until the next call. */
enum rbk_line_kind rbk_lines_next(struct rbk_lines *lines, struct rbk_span *line);

#endif
