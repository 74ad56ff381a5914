/* SPDX-License-Identifier: MIT */
/*
 * libConfuse 3.3 loses count of lines at comments, takes a file that ends inside a section, drops
 * bytes that it doesn't know, cuts a string at \0 and puts the environment into values. So its
 * tokens are walked here once first: comments become blanks (newlines stay, so lines are counted
 * right), and all the rest of that list is a fault with a line.
 *
 * Invariant: `at` never passes `len`, and text[len] is a NUL, so looking one byte ahead is safe.
 */
#include "config_scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Deeper than any valid file, so that what is deeper can be reported where it opens. */
#define DEPTH_MAX 8

struct scan {
    char *text;
    size_t len;
    size_t at;
    int line;
    int depth;
    int opened[DEPTH_MAX]; /* the line of each brace that is open */
    struct cli_config_fault *fault;
};

__attribute__((format(printf, 3, 4))) static bool fail(struct scan *scan, int line,
                                                       const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(scan->fault->message, sizeof(scan->fault->message), format, arguments);
    va_end(arguments);
    scan->fault->line = line;
    return false;
}

static bool starts(const struct scan *scan, const char *word)
{
    return strncmp(scan->text + scan->at, word, strlen(word)) == 0;
}

/* Goes one byte on; every byte is passed here or in blank(). */
static void advance(struct scan *scan)
{
    if (scan->text[scan->at] == '\n')
        scan->line++;
    scan->at++;
}

static void blank(struct scan *scan)
{
    if (scan->text[scan->at] != '\n')
        scan->text[scan->at] = ' ';
    advance(scan);
}

static bool scan_line_comment(struct scan *scan)
{
    while (scan->at < scan->len && scan->text[scan->at] != '\n')
        blank(scan);
    return true;
}

static bool scan_block_comment(struct scan *scan)
{
    const int line = scan->line;

    blank(scan);
    blank(scan);
    while (scan->at < scan->len && !starts(scan, "*/"))
        blank(scan);
    if (scan->at == scan->len)
        return fail(scan, line, "this comment has no end, expected */");
    blank(scan);
    blank(scan);
    return true;
}

static bool fail_environment(struct scan *scan)
{
    return fail(scan, scan->line,
                "\"${\": nothing is taken from the environment, expected the value itself "
                "(or '${' in single quotes)");
}

/* Passes an escape in a double-quoted string. */
static bool scan_escape(struct scan *scan)
{
    const char escaped = scan->text[scan->at + 1];

    if ((escaped >= '0' && escaped <= '9') || escaped == 'x')
        return fail(scan, scan->line, "\"\\%c\": expected no numeric escape", escaped);
    advance(scan);
    if (scan->at < scan->len)
        advance(scan);
    return true;
}

static bool scan_string(struct scan *scan)
{
    const char quote = scan->text[scan->at];
    const int line = scan->line;

    advance(scan);
    while (scan->at < scan->len && scan->text[scan->at] != quote) {
        if (quote == '"' && starts(scan, "${"))
            return fail_environment(scan);
        if (scan->text[scan->at] == '\\' && quote == '"') {
            if (!scan_escape(scan))
                return false;
            continue;
        }
        if (scan->text[scan->at] == '\\') /* in single quotes only these two are escapes */
            if (scan->text[scan->at + 1] == '\'' || scan->text[scan->at + 1] == '\\')
                advance(scan);
        advance(scan);
    }
    if (scan->at == scan->len)
        return fail(scan, line, "this string has no end, expected %c", quote);
    advance(scan);
    return true;
}

static bool scan_brace(struct scan *scan)
{
    if (scan->text[scan->at] == '{') {
        if (scan->depth == DEPTH_MAX)
            return fail(scan, scan->line, "\"{\": sections are not nested here");
        scan->opened[scan->depth++] = scan->line;
    } else if (scan->depth == 0) {
        return fail(scan, scan->line, "\"}\": no section is open here");
    } else {
        scan->depth--;
    }
    advance(scan);
    return true;
}

static bool is_word_byte(char c)
{
    return c != '\0' && strchr(" #\"'\t\n\r={}()+,*", c) == NULL;
}

static bool scan_word(struct scan *scan)
{
    while (scan->at < scan->len && is_word_byte(scan->text[scan->at])) {
        if (starts(scan, "${"))
            return fail_environment(scan);
        advance(scan);
    }
    return true;
}

/* Passes one token, or blanks, or one comment. */
static bool scan_token(struct scan *scan)
{
    const char c = scan->text[scan->at];

    if (c == '#' || starts(scan, "//"))
        return scan_line_comment(scan);
    if (starts(scan, "/*"))
        return scan_block_comment(scan);
    if (c == '"' || c == '\'')
        return scan_string(scan);
    if (c == '{' || c == '}')
        return scan_brace(scan);
    if (is_word_byte(c))
        return scan_word(scan);
    if (c == '*' || (c == '+' && !starts(scan, "+=")))
        return fail(scan, scan->line, "\"%c\": expected a setting or a section", c);
    advance(scan);
    return true;
}

static bool is_control(char c)
{
    return ((unsigned char)c < 0x20 && c != '\t' && c != '\n') || c == 0x7f;
}

/* Refuses control bytes, but for the carriage return of a line's end. */
static bool check_bytes(struct scan *scan)
{
    int line = 1;

    for (size_t i = 0; i < scan->len; i++) {
        const char c = scan->text[i];

        if (is_control(c) && !(c == '\r' && scan->text[i + 1] == '\n'))
            return fail(scan, line, "byte 0x%02x: expected text", (unsigned)(unsigned char)c);
        line += c == '\n';
    }
    return true;
}

bool rbk_config_scan(char *text, size_t len, struct cli_config_fault *fault)
{
    struct scan scan = {.text = text, .len = len, .line = 1, .fault = fault};

    if (!check_bytes(&scan))
        return false;
    while (scan.at < scan.len)
        if (!scan_token(&scan))
            return false;
    if (scan.depth > 0)
        return fail(&scan, scan.opened[scan.depth - 1], "this section has no end, expected }");
    return true;
}
