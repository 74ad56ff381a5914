/* SPDX-License-Identifier: MIT */
/*
 * The zones that a table counts by themselves: a list of names that only ever grows, so that the
 * index of a zone's counters, once told, is good for as long as the table is. A zone is looked up
 * when its limit is made, and no request has to.
 *
 * Invariant: whatever the header holds, and becomes meanwhile, nothing outside `names` is read or
 * written, and every walk ends.
 * Whoever dies while adding a name has added it, or hasn't.
 */
#include "table/layout.h"
#include "table/slots.h"
#include "table/table.h"

#include <string.h>

/* A place in the list; `index` counts from 1. */
struct cursor {
    size_t at;
    size_t end;
    unsigned index;
};

static struct cursor begin(const struct rbk_table *table)
{
    const uint32_t len = rbk_read32(&table->header->names_len);

    return (struct cursor){0, len < RBK_ZONE_NAMES ? len : RBK_ZONE_NAMES, 1};
}

/* The name at the cursor, which moves on; false at the end, and where the bytes make no sense. */
static bool next(const struct rbk_table *table, struct cursor *cursor, const unsigned char **zone,
                 size_t *zone_len)
{
    const unsigned char *entry = &table->header->names[cursor->at];
    size_t len;

    if (cursor->index > RBK_TABLE_ZONES || cursor->at >= cursor->end)
        return false;
    len = *(const volatile unsigned char *)entry;
    if (len == 0 || len >= cursor->end - cursor->at)
        return false;
    *zone = entry + 1;
    *zone_len = len;
    cursor->at += 1 + len;
    cursor->index++;
    return true;
}

/* Behind the last name; 0 when there is no room for it. */
static unsigned add(struct rbk_table *table, const struct cursor *cursor, const unsigned char *zone,
                    size_t zone_len)
{
    struct rbk_table_header *header = table->header;

    if (cursor->index > RBK_TABLE_ZONES || cursor->at != cursor->end || zone_len == 0 ||
        zone_len > UINT8_MAX || zone_len >= RBK_ZONE_NAMES - cursor->at)
        return 0;
    header->names[cursor->at] = (unsigned char)zone_len;
    memcpy(&header->names[cursor->at + 1], zone, zone_len);
    rbk_order();
    header->names_len = (uint32_t)(cursor->at + 1 + zone_len);
    return cursor->index;
}

unsigned rbk_table_zone(struct rbk_table *table, const unsigned char *zone, size_t zone_len)
{
    struct cursor cursor = begin(table);
    const unsigned char *name;
    size_t name_len;

    while (next(table, &cursor, &name, &name_len)) {
        if (name_len == zone_len && memcmp(name, zone, zone_len) == 0)
            return cursor.index - 1;
    }
    return add(table, &cursor, zone, zone_len);
}

bool rbk_table_zone_name(const struct rbk_table *table, unsigned index, const unsigned char **zone,
                         size_t *zone_len)
{
    struct cursor cursor = begin(table);
    const unsigned char *name;
    size_t name_len;

    while (next(table, &cursor, &name, &name_len)) {
        if (cursor.index - 1 == index) {
            *zone = name;
            *zone_len = name_len;
            return true;
        }
    }
    return false;
}
