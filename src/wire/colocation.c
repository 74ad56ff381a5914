/* SPDX-License-Identifier: MIT */
/*
 * Reading hash tags off key formats.
 *
 * The names of a zone's buckets are taken as one row of symbols: the bytes of the format's texts
 * and of the zone, and KEY for whatever the key will be. A plain key has no braces, so in the names
 * of all of them the tag begins and ends at the same symbols, and two rows with the same tag have
 * equal tags for equal keys. A tag without KEY in it is the same for all keys, and so is its slot.
 *
 * A key that begins with a tag of its own has it come first when no { stands before; behind a {
 * that is still open, it prolongs what stands between.
 */
#include "wire/colocation.h"

#include "wire/slot.h"

#include <string.h>

/* The longest name of a bucket whose key has one byte. */
#define NAME_MAX_SIZE (RBK_KEY_FORMAT_MAX + RBK_KEY_FORMAT_PIECES * REDBUCKET_ZONE_MAX)

/* Symbols that are no bytes. */
enum { KEY = 256, END };

struct cursor {
    const struct rbk_key_format *format;
    const struct rbk_key *zone;
    size_t piece;
    size_t at; /* in the piece */
};

static size_t symbols_of(const struct cursor *cursor, const struct rbk_piece *piece)
{
    switch (piece->kind) {
    case RBK_PIECE_ZONE:
        return cursor->zone->zone_len;
    case RBK_PIECE_KEY:
        return 1;
    case RBK_PIECE_TEXT:
        break;
    }
    return piece->len;
}

static int symbol_of(const struct cursor *cursor, const struct rbk_piece *piece)
{
    switch (piece->kind) {
    case RBK_PIECE_ZONE:
        return cursor->zone->zone[cursor->at];
    case RBK_PIECE_KEY:
        return KEY;
    case RBK_PIECE_TEXT:
        break;
    }
    return (unsigned char)cursor->format->text[piece->begin + cursor->at];
}

static int next(struct cursor *cursor)
{
    for (; cursor->piece < cursor->format->pieces_len; cursor->piece++, cursor->at = 0) {
        const struct rbk_piece *piece = &cursor->format->pieces[cursor->piece];

        if (cursor->at < symbols_of(cursor, piece)) {
            int symbol = symbol_of(cursor, piece);

            cursor->at++;
            return symbol;
        }
    }
    return END;
}

/* True when both rows, which have a `last` ahead, go on alike up to there. */
static bool alike(struct cursor a, struct cursor b, int last)
{
    int of_a, of_b;

    do {
        of_a = next(&a);
        of_b = next(&b);
    } while (of_a == of_b && of_a != last);
    return of_a == of_b;
}

/* A zone's hash tag, and what comes of one that a key brings along. */
struct tag {
    struct cursor begin; /* behind the first {, if there is one */
    enum { NO_TAG, OF_ZONE, OF_KEY } kind;
    enum { COUNTS_ALONE, PROLONGS, MEANS_NOTHING } own;
};

static struct tag read_tag(const struct rbk_key_format *format, const struct rbk_key *zone)
{
    struct tag tag = {.begin = {.format = format, .zone = zone}, .own = COUNTS_ALONE};
    bool behind_key = false;
    size_t len = 0, keys = 0;
    int symbol;

    while ((symbol = next(&tag.begin)) != '{') {
        if (symbol == END)
            return tag;
        behind_key = behind_key || symbol == KEY;
    }
    struct cursor at = tag.begin;

    for (; (symbol = next(&at)) != '}' && symbol != END; len++)
        keys += symbol == KEY;
    if (symbol == '}' && len > 0)
        tag.kind = keys > 0 ? OF_KEY : OF_ZONE;
    if (!behind_key)
        tag.own = keys > 0 ? PROLONGS : MEANS_NOTHING;
    return tag;
}

/* The slot of all buckets of a zone whose tag has no key in it. */
static unsigned slot_of_zone(const struct rbk_key_format *format, const struct rbk_key *zone)
{
    struct rbk_key any = {zone->zone, zone->zone_len, (const unsigned char *)"k", 1};
    unsigned char name[NAME_MAX_SIZE];

    rbk_key_format_write(format, &any, name);
    return rbk_slot_of(name, rbk_key_format_len(format, &any));
}

static bool is_same_zone(const struct rbk_key *a, const struct rbk_key *b)
{
    return a->zone_len == b->zone_len && memcmp(a->zone, b->zone, a->zone_len) == 0;
}

static bool by_own_tag(const struct tag *a, const struct tag *b)
{
    if (a->own == COUNTS_ALONE && b->own == COUNTS_ALONE)
        return true;
    return a->own == PROLONGS && b->own == PROLONGS && alike(a->begin, b->begin, KEY);
}

enum redbucket_colocation rbk_colocation(const struct rbk_key_format *format,
                                         const struct rbk_key *a, const struct rbk_key *b)
{
    struct tag of_a = read_tag(format, a), of_b = read_tag(format, b);

    if (of_a.kind == OF_ZONE && of_b.kind == OF_ZONE &&
        slot_of_zone(format, a) == slot_of_zone(format, b))
        return REDBUCKET_COLOCATION_ONE_SLOT;
    if (is_same_zone(a, b))
        return REDBUCKET_COLOCATION_SAME_KEY;
    if (of_a.kind == OF_KEY && of_b.kind == OF_KEY && alike(of_a.begin, of_b.begin, '}'))
        return REDBUCKET_COLOCATION_SAME_KEY;
    return by_own_tag(&of_a, &of_b) ? REDBUCKET_COLOCATION_SAME_TAG : REDBUCKET_COLOCATION_NEVER;
}
