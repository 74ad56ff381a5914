/* SPDX-License-Identifier: MIT */
/*
 * Reading and using key formats. A zone's name is at most 255 bytes and a format is bounded, so
 * what stands before and after the key fits a buffer.
 */
#include "wire/key_format.h"

#include <stdint.h>
#include <string.h>

#define ZONE_MAX 255
#define SIDE_MAX (RBK_KEY_FORMAT_MAX + RBK_KEY_FORMAT_PIECES * ZONE_MAX)

static const char *add_piece(struct rbk_key_format *format, struct rbk_piece piece)
{
    if (format->pieces_len == RBK_KEY_FORMAT_PIECES)
        return "too many fields";
    format->pieces[format->pieces_len++] = piece;
    return NULL;
}

/* Adds one byte of text to the last piece, or begins one. */
static const char *add_byte(struct rbk_key_format *format, size_t *used, char byte)
{
    struct rbk_piece *last =
        format->pieces_len > 0 ? &format->pieces[format->pieces_len - 1] : NULL;

    format->text[*used] = byte;
    if (last != NULL && last->kind == RBK_PIECE_TEXT) {
        last->len++;
        (*used)++;
        return NULL;
    }
    return add_piece(format, (struct rbk_piece){RBK_PIECE_TEXT, (unsigned short)(*used)++, 1});
}

/* Reads the field behind a {; *at is left on its }. */
static const char *add_field(struct rbk_key_format *format, const char **at)
{
    if (strncmp(*at, "zone}", 5) == 0) {
        *at += 4;
        return add_piece(format, (struct rbk_piece){.kind = RBK_PIECE_ZONE});
    }
    if (strncmp(*at, "key}", 4) == 0) {
        *at += 3;
        return add_piece(format, (struct rbk_piece){.kind = RBK_PIECE_KEY});
    }
    return "expected {zone}, {key}, {{ or }}";
}

static bool has(const struct rbk_key_format *format, enum rbk_piece_kind kind)
{
    for (size_t i = 0; i < format->pieces_len; i++) {
        if (format->pieces[i].kind == kind)
            return true;
    }
    return false;
}

const char *rbk_key_format_parse(const char *text, struct rbk_key_format *format)
{
    const char *fault = NULL;
    size_t used = 0;

    format->pieces_len = 0;
    if (strlen(text) >= RBK_KEY_FORMAT_MAX)
        return "longer than 1023 bytes";
    for (const char *at = text; fault == NULL && *at != '\0'; at++) {
        bool brace = *at == '{' || *at == '}';

        if (!brace) {
            fault = add_byte(format, &used, *at);
        } else if (at[1] == *at) {
            fault = add_byte(format, &used, *at++);
        } else if (*at == '}') {
            fault = "expected }} for a brace";
        } else {
            at++;
            fault = add_field(format, &at);
        }
    }
    if (fault == NULL && !has(format, RBK_PIECE_ZONE))
        fault = "expected {zone} in it";
    if (fault == NULL && !has(format, RBK_PIECE_KEY))
        fault = "expected {key} in it";
    return fault;
}

static size_t piece_len(const struct rbk_piece *piece, const struct rbk_key *key)
{
    switch (piece->kind) {
    case RBK_PIECE_ZONE:
        return key->zone_len;
    case RBK_PIECE_KEY:
        return key->key_len;
    case RBK_PIECE_TEXT:
        break;
    }
    return piece->len;
}

static const void *piece_bytes(const struct rbk_key_format *format, const struct rbk_piece *piece,
                               const struct rbk_key *key)
{
    switch (piece->kind) {
    case RBK_PIECE_ZONE:
        return key->zone;
    case RBK_PIECE_KEY:
        return key->key;
    case RBK_PIECE_TEXT:
        break;
    }
    return format->text + piece->begin;
}

size_t rbk_key_format_len(const struct rbk_key_format *format, const struct rbk_key *key)
{
    size_t len = 0;

    for (size_t i = 0; i < format->pieces_len; i++)
        len += piece_len(&format->pieces[i], key);
    return len;
}

/* Writes the pieces from `first` to before `last`; returns how many bytes. */
static size_t write_pieces(const struct rbk_key_format *format, size_t first, size_t last,
                           const struct rbk_key *key, unsigned char *out)
{
    size_t used = 0;

    for (size_t i = first; i < last; i++) {
        size_t len = piece_len(&format->pieces[i], key);

        if (len > 0)
            memcpy(out + used, piece_bytes(format, &format->pieces[i], key), len);
        used += len;
    }
    return used;
}

void rbk_key_format_write(const struct rbk_key_format *format, const struct rbk_key *key,
                          unsigned char *out)
{
    (void)write_pieces(format, 0, format->pieces_len, key, out);
}

static size_t shorter(size_t a, size_t b)
{
    return a < b ? a : b;
}

bool rbk_key_format_apart(const struct rbk_key_format *format, const struct rbk_key *a,
                          const struct rbk_key *b)
{
    unsigned char of_a[SIDE_MAX], of_b[SIDE_MAX];
    size_t first = 0;
    size_t last = format->pieces_len;

    while (format->pieces[first].kind != RBK_PIECE_KEY)
        first++;
    while (format->pieces[last - 1].kind != RBK_PIECE_KEY)
        last--;

    size_t a_len = write_pieces(format, 0, first, a, of_a);
    size_t b_len = write_pieces(format, 0, first, b, of_b);

    if (memcmp(of_a, of_b, shorter(a_len, b_len)) != 0)
        return true;
    a_len = write_pieces(format, last, format->pieces_len, a, of_a);
    b_len = write_pieces(format, last, format->pieces_len, b, of_b);

    size_t both = shorter(a_len, b_len);

    return memcmp(of_a + a_len - both, of_b + b_len - both, both) != 0;
}
