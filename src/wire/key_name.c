/* SPDX-License-Identifier: MIT */
/*
 * Matching names. Once the zone has a length the key has one, too, for all keys in a format are the
 * same: so there is one way to read a name for each length of its zone.
 */
#include "wire/key_name.h"

#include <string.h>

#define ZONE_MAX 255u

static bool special(unsigned char byte)
{
    return byte == '*' || byte == '?' || byte == '[' || byte == ']' || byte == '\\' ||
           byte == '^' || byte == '-';
}

static size_t put_plain(const void *bytes, size_t len, unsigned char *out)
{
    const unsigned char *from = bytes;
    size_t used = 0;

    for (size_t i = 0; i < len; i++) {
        if (special(from[i]))
            out[used++] = '\\';
        out[used++] = from[i];
    }
    return used;
}

size_t rbk_key_pattern(const struct rbk_key_format *format, const struct rbk_key *zone,
                       unsigned char out[RBK_KEY_PATTERN_SIZE])
{
    size_t used = 0;

    for (size_t i = 0; i < format->pieces_len; i++) {
        const struct rbk_piece *piece = &format->pieces[i];

        if (piece->kind == RBK_PIECE_TEXT)
            used += put_plain(format->text + piece->begin, piece->len, out + used);
        else if (piece->kind == RBK_PIECE_ZONE && zone != NULL)
            used += put_plain(zone->zone, zone->zone_len, out + used);
        else if (used == 0 || out[used - 1] != '*' || (used > 1 && out[used - 2] == '\\'))
            out[used++] = '*';
    }
    return used;
}

/* The pieces of a format, by kind. */
struct shape {
    size_t zones;
    size_t keys;
    size_t text_len;
};

static struct shape shape_of(const struct rbk_key_format *format)
{
    struct shape shape = {0};

    for (size_t i = 0; i < format->pieces_len; i++) {
        const struct rbk_piece *piece = &format->pieces[i];

        shape.zones += piece->kind == RBK_PIECE_ZONE;
        shape.keys += piece->kind == RBK_PIECE_KEY;
        shape.text_len += piece->kind == RBK_PIECE_TEXT ? piece->len : 0;
    }
    return shape;
}

/* The length of the key that a zone of this length leaves; false when it leaves none. */
static bool key_len_for(const struct shape *shape, size_t len, size_t zone_len, size_t *key_len)
{
    const size_t others = shape->text_len + shape->zones * zone_len;

    if (shape->keys == 0 || others > len || (len - others) % shape->keys != 0)
        return false;
    *key_len = (len - others) / shape->keys;
    return true;
}

/* Whether the bytes are those of the piece; the first zone and the first key may be any. */
static bool piece_is(const struct rbk_key_format *format, const struct rbk_piece *piece,
                     const unsigned char *bytes, struct rbk_key *key)
{
    if (piece->kind == RBK_PIECE_TEXT)
        return memcmp(bytes, format->text + piece->begin, piece->len) == 0;
    if (piece->kind == RBK_PIECE_ZONE) {
        if (key->zone == NULL)
            key->zone = bytes;
        return memcmp(bytes, key->zone, key->zone_len) == 0;
    }
    if (key->key == NULL)
        key->key = bytes;
    return bytes == key->key || memcmp(bytes, key->key, key->key_len) == 0;
}

static size_t length_of(const struct rbk_piece *piece, const struct rbk_key *key)
{
    if (piece->kind == RBK_PIECE_TEXT)
        return piece->len;
    return piece->kind == RBK_PIECE_ZONE ? key->zone_len : key->key_len;
}

/* `key` has both lengths, and a zone where that is known. */
static bool matches(const struct rbk_key_format *format, const unsigned char *name,
                    struct rbk_key *key)
{
    for (size_t i = 0; i < format->pieces_len; i++) {
        if (!piece_is(format, &format->pieces[i], name, key))
            return false;
        name += length_of(&format->pieces[i], key);
    }
    return true;
}

bool rbk_key_name_of(const struct rbk_key_format *format, const unsigned char *name, size_t len,
                     const struct rbk_key *zone, struct rbk_key *key)
{
    const struct shape shape = shape_of(format);

    *key = (struct rbk_key){.zone = zone->zone, .zone_len = zone->zone_len};
    return key_len_for(&shape, len, zone->zone_len, &key->key_len) && matches(format, name, key);
}

unsigned rbk_key_name_guess(const struct rbk_key_format *format, const unsigned char *name,
                            size_t len, struct rbk_key *key)
{
    const struct shape shape = shape_of(format);
    unsigned found = 0;

    for (size_t zone_len = 1; zone_len <= ZONE_MAX && found < 2; zone_len++) {
        struct rbk_key guess = {.zone_len = zone_len};

        if (!key_len_for(&shape, len, zone_len, &guess.key_len) || !matches(format, name, &guess))
            continue;
        if (found++ == 0)
            *key = guess;
    }
    return found;
}
