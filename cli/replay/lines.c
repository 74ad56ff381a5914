/* SPDX-License-Identifier: MIT */
/*
 * Finding line ends in a buffer that is refilled behind its last, still incomplete line. The buffer
 * is several lines long at least, so a line that fills more than RBK_LINE_MAX of it without an end
 * is known to be too long while its beginning is still there.
 */
#include "lines.h"

#include <assert.h>
#include <string.h>

static_assert(RBK_LINES_BUFFER >= 2 * RBK_LINE_MAX, "a line and its end fit into the buffer");
static_assert(RBK_LINE_MAX >= RBK_LINE_HEAD, "a line too long has a head");

void rbk_lines_init(struct rbk_lines *lines, struct rbk_input *input)
{
    lines->input = input;
    lines->number = 0;
    lines->failed = false;
    lines->ended = false;
    lines->from = 0;
    lines->to = 0;
}

/* Moves the incomplete line to the front and reads more behind it. */
static void refill(struct rbk_lines *lines)
{
    size_t got = 0;

    memmove(lines->buffer, lines->buffer + lines->from, lines->to - lines->from);
    lines->to -= lines->from;
    lines->from = 0;
    if (rbk_input_read(lines->input, lines->buffer + lines->to, RBK_LINES_BUFFER - lines->to, &got,
                       &lines->error) != REDBUCKET_OK)
        lines->failed = true;
    lines->to += got;
    lines->ended = got == 0;
}

static struct rbk_span without_return(struct rbk_span line)
{
    if (line.len > 0 && line.bytes[line.len - 1] == '\r')
        line.len--;
    return line;
}

/* Where the line at `from` ends, reading more as long as it may still be a line; NULL when it has
 * no end within RBK_LINE_MAX or the input has none. */
static char *line_end(struct rbk_lines *lines)
{
    size_t searched = 0;

    for (;;) {
        const char *at = lines->buffer + lines->from + searched;
        const size_t len = lines->to - lines->from - searched;
        char *end = memchr(at, '\n', len);

        searched += len;
        if (end || lines->ended || searched > RBK_LINE_MAX)
            return end;
        refill(lines);
    }
}

/* Reads past the rest of the line that begins at `from`. */
static void skip_line(struct rbk_lines *lines)
{
    char *end;

    while (!(end = memchr(lines->buffer + lines->from, '\n', lines->to - lines->from))) {
        lines->from = lines->to;
        if (lines->ended)
            return;
        refill(lines);
    }
    lines->from = (size_t)(end + 1 - lines->buffer);
}

static enum rbk_line_kind too_long(struct rbk_lines *lines, struct rbk_span *line)
{
    memcpy(lines->head, lines->buffer + lines->from, RBK_LINE_HEAD);
    skip_line(lines);
    *line = (struct rbk_span){lines->head, RBK_LINE_HEAD};
    return RBK_LINE_TOO_LONG;
}

enum rbk_line_kind rbk_lines_next(struct rbk_lines *lines, struct rbk_span *line)
{
    const char *end = line_end(lines);
    const char *from = lines->buffer + lines->from;
    const size_t len = end ? (size_t)(end - from) : lines->to - lines->from;

    if (!end && len == 0)
        return RBK_LINE_END;
    lines->number++;
    if (len > RBK_LINE_MAX)
        return too_long(lines, line);
    lines->from += len + (end != NULL);
    if (!end && lines->failed) {
        *line = (struct rbk_span){from, len};
        return RBK_LINE_BROKEN;
    }
    *line = without_return((struct rbk_span){from, len});
    return RBK_LINE;
}
