/* SPDX-License-Identifier: MIT */
/*
 * How a bucket is called on a server: a format with {zone} and {key} in it, and {{ and }} for
 * braces, by the rules of Python's str.format. Parsed once; anything else in braces is refused.
 *
 * Invariant: a parsed format names zone and key, and every name it writes has the length it said.
 */
#ifndef RBK_WIRE_KEY_FORMAT_H
#define RBK_WIRE_KEY_FORMAT_H

#include "model/key.h"

#include <stdbool.h>

#define RBK_KEY_FORMAT_DEFAULT "redbucket:{zone}:{key}"
#define RBK_KEY_FORMAT_MAX     1024
#define RBK_KEY_FORMAT_PIECES  32

enum rbk_piece_kind {
    RBK_PIECE_TEXT,
    RBK_PIECE_ZONE,
    RBK_PIECE_KEY,
};

struct rbk_piece {
    enum rbk_piece_kind kind;
    unsigned short begin; /* of a text, in struct rbk_key_format.text */
    unsigned short len;
};

struct rbk_key_format {
    char text[RBK_KEY_FORMAT_MAX]; /* with its braces undoubled */
    struct rbk_piece pieces[RBK_KEY_FORMAT_PIECES];
    size_t pieces_len;
};

/* NULL, or what is wrong, in a few words. */
const char *rbk_key_format_parse(const char *text, struct rbk_key_format *format);

/* The length of a bucket's name. */
size_t rbk_key_format_len(const struct rbk_key_format *format, const struct rbk_key *key);

/* Writes the name, without a NUL. */
void rbk_key_format_write(const struct rbk_key_format *format, const struct rbk_key *key,
                          unsigned char *out);

/*
 * True when no key of one zone can ever have the name of a key of the other. That is so when
 * neither text before the first {key} is the beginning of the other, or neither text after the last
 * {key} is the end of the other. Only the zones of `a` and `b` matter.
 */
bool rbk_key_format_apart(const struct rbk_key_format *format, const struct rbk_key *a,
                          const struct rbk_key *b);

#endif
