/* SPDX-License-Identifier: MIT */
/*
 * Writing a text into the room that a caller gave, all of it or nothing.
 *
 * Pieces are put one after the other without a look at whether they fit; only the end tells.
 * Invariant: no byte is written outside the room, and the text ends with a NUL at every time.
 */
#ifndef RBK_TEXT_ROOM_H
#define RBK_TEXT_ROOM_H

#include "redbucket/redbucket.h"

struct rbk_room {
    struct redbucket_text *text;
    size_t begin;
    bool full;
};

struct rbk_room rbk_room_begin(struct redbucket_text *text);

void rbk_room_put(struct rbk_room *room, const char *bytes, size_t len);
void rbk_room_string(struct rbk_room *room, const char *string);
void rbk_room_integer(struct rbk_room *room, uint64_t number);

/* ERROR_SPACE when something didn't fit; then the text is as it was at the beginning. */
enum redbucket_status rbk_room_end(struct rbk_room *room);

#endif
