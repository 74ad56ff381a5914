/* SPDX-License-Identifier: MIT */
/*
 * A strict reader for one JSON object of which two members matter: RFC 8259, nesting bounded. Of a
 * member given twice the last counts, as in the readers of Python and Lua.
 */
#include "wire/json_state.h"

#include "redbucket/redbucket.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Lua's cjson goes as deep, and a number of more digits is nobody's state. */
#define DEPTH_MAX  1000
#define NUMBER_MAX 65

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
    return !digit_at(cursor);
}

static bool skip_hex4(struct cursor *cursor)
{
    for (int i = 0; i < 4; i++) {
        if (!one_of(cursor, "0123456789abcdefABCDEF"))
            return false;
    }
    return true;
}

static bool skip_string(struct cursor *cursor)
{
    if (!one_of(cursor, "\""))
        return false;
    while (cursor->at < cursor->end && *cursor->at != '"') {
        unsigned char byte = (unsigned char)*cursor->at++;

        if (byte < 0x20)
            return false;
        if (byte == '\\' && !one_of(cursor, "\"\\/bfnrt") &&
            !(one_of(cursor, "u") && skip_hex4(cursor)))
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

/* True when the string between the quotes is the one letter, escaped or not. */
static bool names(const char *string, size_t len, char letter)
{
    char escaped[8];

    (void)snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)letter);
    return (len == 1 && *string == letter) || (len == 6 && strncasecmp(string, escaped, 6) == 0);
}

static bool read_number(struct cursor *cursor, double *number)
{
    char text[NUMBER_MAX];
    const char *begin = cursor->at;

    if (!skip_number(cursor) || (size_t)(cursor->at - begin) >= sizeof text)
        return false;
    memcpy(text, begin, (size_t)(cursor->at - begin));
    text[cursor->at - begin] = '\0';
    return redbucket_number_parse(text, number, NULL) == REDBUCKET_OK;
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

    if (!take(&cursor, '{'))
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
