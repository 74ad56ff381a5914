/* SPDX-License-Identifier: MIT */
/*
 * A bounded text that grows by pieces. Once a piece didn't fit, nothing more is written.
 */
#include "text/room.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct rbk_room rbk_room_begin(struct redbucket_text *text)
{
    return (struct rbk_room){
        .text = text,
        .begin = text->len,
        .full = text->bytes == NULL || text->len >= text->size,
    };
}

void rbk_room_put(struct rbk_room *room, const char *bytes, size_t len)
{
    struct redbucket_text *text = room->text;

    room->full = room->full || len >= text->size - text->len;
    if (room->full)
        return;
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
    text->bytes[text->len] = '\0';
}

void rbk_room_string(struct rbk_room *room, const char *string)
{
    rbk_room_put(room, string, strlen(string));
}

void rbk_room_integer(struct rbk_room *room, uint64_t number)
{
    char digits[24];
    const int len = snprintf(digits, sizeof digits, "%" PRIu64, number);

    rbk_room_put(room, digits, (size_t)len);
}

enum redbucket_status rbk_room_end(struct rbk_room *room)
{
    struct redbucket_text *text = room->text;

    if (!room->full)
        return REDBUCKET_OK;
    text->len = room->begin;
    if (text->bytes != NULL && text->len < text->size)
        text->bytes[text->len] = '\0';
    return REDBUCKET_ERROR_SPACE;
}
