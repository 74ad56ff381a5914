/* SPDX-License-Identifier: MIT */
/*
 * A strict reader for one JSON object of which two members matter: RFC 8259, within bounds. Of a
 * member given twice the last counts, as in the readers of Python and Lua.
 */
#include "wire/json_state.h"

#include "redbucket/redbucket.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Lua's cjson goes as deep, and a number of more digits is nobody's. */
#define DEPTH_MAX      1000
#define NUMBER_LEN_MAX 64

struct cursor {
    const char *at;
    const char *end;
};

static bool skip_value(struct cursor *cursor, int depth);

static void skip_space(struct cursor *cursor)
{
    while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) != NULL &&
           *cursor->at != '\0')
        cursor->at++;
}

/* Takes `c`, with space around it. */
static bool take(struct cursor *cursor, char c)
{
    skip_space(cursor);
    if (cursor->at == cursor->end || *cursor->at != c)
        return false;
    cursor->at++;
    skip_space(cursor);
    return true;
}

static bool digit_at(const struct cursor *cursor)
{
    return cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9';
}

static bool skip_digits(struct cursor *cursor)
{
    const char *begin = cursor->at;

    while (digit_at(cursor))
        cursor->at++;
    return cursor->at > begin;
}

static bool one_of(struct cursor *cursor, const char *characters)
{
    if (cursor->at == cursor->end || *cursor->at == '\0' || strchr(characters, *cursor->at) == NULL)
        return false;
    cursor->at++;
    return true;
}

static bool skip_number(struct cursor *cursor)
{
    const char *begin = cursor->at;

    (void)one_of(cursor, "-");
    if (!one_of(cursor, "0") && !skip_digits(cursor))
        return false;
    if (one_of(cursor, ".") && !skip_digits(cursor))
        return false;
    if (one_of(cursor, "eE")) {
        (void)one_of(cursor, "+-");
        if (!skip_digits(cursor))
            return false;
    }
    return !digit_at(cursor) && cursor->at - begin <= NUMBER_LEN_MAX;
}

/* The code behind a \u. */
static bool read_hex4(struct cursor *cursor, unsigned *code)
{
    static const char digits[] = "0123456789abcdefABCDEF";

    *code = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = cursor->at;

        if (!one_of(cursor, digits))
            return false;
        unsigned value = (unsigned)(strchr(digits, *digit) - digits);

        *code = *code * 16 + (value < 16 ? value : value - 6);
    }
    return true;
}

/* The rest of an escape with a code. Surrogates come in pairs: the grammar doesn't say so, but
 * cjson does. */
static bool skip_code(struct cursor *cursor)
{
    unsigned code, low;

    if (!read_hex4(cursor, &code))
        return false;
    if (code < 0xd800 || code > 0xdfff)
        return true;
    return code < 0xdc00 && one_of(cursor, "\\") && one_of(cursor, "u") &&
           read_hex4(cursor, &low) && low >= 0xdc00 && low <= 0xdfff;
}

static bool skip_escape(struct cursor *cursor)
{
    return one_of(cursor, "u") ? skip_code(cursor) : one_of(cursor, "\"\\/bfnrt");
}

static bool skip_string(struct cursor *cursor)
{
    if (!one_of(cursor, "\""))
        return false;
    while (cursor->at < cursor->end && *cursor->at != '"') {
        unsigned char byte = (unsigned char)*cursor->at++;

        if (byte < 0x20 || (byte == '\\' && !skip_escape(cursor)))
            return false;
    }
    return one_of(cursor, "\"");
}

static bool skip_word(struct cursor *cursor, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(cursor->end - cursor->at) < len || memcmp(cursor->at, word, len) != 0)
        return false;
    cursor->at += len;
    return true;
}

/* NOLINTBEGIN(misc-no-recursion): JSON is recursive, and DEPTH_MAX bounds it. */

/* An array or object, whose members `has_names`. */
static bool skip_members(struct cursor *cursor, bool has_names, int depth)
{
    char close = has_names ? '}' : ']';

    if (depth == DEPTH_MAX || !take(cursor, has_names ? '{' : '['))
        return false;
    if (take(cursor, close))
        return true;
    do {
        if (has_names && (!skip_string(cursor) || !take(cursor, ':')))
            return false;
        if (!skip_value(cursor, depth + 1))
            return false;
    } while (take(cursor, ','));
    return take(cursor, close);
}

static bool skip_value(struct cursor *cursor, int depth)
{
    skip_space(cursor);
    if (cursor->at == cursor->end)
        return false;
    switch (*cursor->at) {
    case '{':
    case '[':
        return skip_members(cursor, *cursor->at == '{', depth);
    case '"':
        return skip_string(cursor);
    case 't':
        return skip_word(cursor, "true");
    case 'f':
        return skip_word(cursor, "false");
    case 'n':
        return skip_word(cursor, "null");
    default:
        return skip_number(cursor);
    }
}

/* NOLINTEND(misc-no-recursion) */

/* True when the string between the quotes is the one letter, escaped or not. */
static bool names(const char *string, size_t len, char letter)
{
    char escaped[8];

    (void)snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)letter);
    return (len == 1 && *string == letter) || (len == 6 && strncasecmp(string, escaped, 6) == 0);
}

/* One too large for a double is infinite, and no state unless another follows. */
static bool read_number(struct cursor *cursor, double *number)
{
    char text[NUMBER_LEN_MAX + 1];
    const char *begin = cursor->at;

    if (!skip_number(cursor))
        return false;
    memcpy(text, begin, (size_t)(cursor->at - begin));
    text[cursor->at - begin] = '\0';
    enum redbucket_status status = redbucket_number_parse(text, number, NULL);

    if (status == REDBUCKET_ERROR_ARGUMENT)
        *number = INFINITY;
    return status != REDBUCKET_ERROR_MEMORY;
}

/* The value of a member that matters, at `bit` of *seen when it is a number. */
static bool read_value(struct cursor *cursor, unsigned bit, double *number, unsigned *seen)
{
    if (digit_at(cursor) || (cursor->at < cursor->end && *cursor->at == '-')) {
        *seen |= bit;
        return read_number(cursor, number);
    }
    *seen &= ~bit;
    return skip_value(cursor, 1);
}

static bool read_member(struct cursor *cursor, struct rbk_state *state, unsigned *seen)
{
    const char *name = cursor->at + 1;

    if (!skip_string(cursor))
        return false;
    size_t len = (size_t)(cursor->at - name) - 1;

    if (!take(cursor, ':'))
        return false;
    if (names(name, len, 't'))
        return read_value(cursor, 1, &state->timestamp, seen);
    if (names(name, len, 'v'))
        return read_value(cursor, 2, &state->value, seen);
    return skip_value(cursor, 1);
}

bool rbk_json_state_decode(const char *text, size_t len, struct rbk_state *state)
{
    struct cursor cursor = {text, text + len};
    unsigned seen = 0;

    if (len > RBK_STATE_TEXT_MAX || !take(&cursor, '{'))
        return false;
    do {
        if (!read_member(&cursor, state, &seen))
            return false;
    } while (take(&cursor, ','));
    return take(&cursor, '}') && cursor.at == cursor.end && seen == 3;
}

size_t rbk_json_state_encode(const struct rbk_state *state, unsigned char out[RBK_STATE_SIZE])
{
    char timestamp[REDBUCKET_NUMBER_SIZE], value[REDBUCKET_NUMBER_SIZE];

    redbucket_number_format(state->timestamp, timestamp);
    redbucket_number_format(state->value, value);
    return (size_t)snprintf((char *)out, RBK_STATE_SIZE, "{\"t\":%s,\"v\":%s}", timestamp, value);
}
