/* SPDX-License-Identifier: MIT */
/*
 * Moving the live buckets of one table into another: how a growing store grows. What has long been
 * empty stays behind.
 */
#include "table/room.h"
#include "table/slots.h"

#include <stdlib.h>

static bool copy_bucket(struct rbk_table *to, const struct rbk_table *from, uint32_t slot,
                        unsigned char *text)
{
    const struct rbk_bucket *bucket = rbk_bucket_of(from, slot);
    struct rbk_claim claim = {
        .limit = {bucket->rate, bucket->depth, 0.0},
        .state = {true, bucket->timestamp, bucket->value},
        .change = RBK_WRITE,
    };
    struct rbk_touch touch = {.slot = RBK_NO_SLOT};
    struct rbk_key key;
    size_t failed;

    if (!rbk_slot_text(from, slot, text, &key))
        return true;
    rbk_table_place(to, &key, &touch.place);
    return rbk_table_apply(to, &touch, &claim, &(struct rbk_apply){1, 0.0}, &failed);
}

static bool live(const struct rbk_table *table, uint32_t slot, double drained_before)
{
    return *rbk_tag_of(table, slot) >= RBK_TAG_BUCKET &&
           !rbk_bucket_drained(rbk_bucket_of(table, slot), drained_before);
}

uint64_t rbk_table_live(const struct rbk_table *table, double drained_before)
{
    uint64_t count = 0;

    for (uint32_t slot = 0; slot < rbk_table_capacity(table); slot++) {
        if (live(table, slot, drained_before))
            count += 1 + rbk_slot_links(table, slot);
    }
    return count;
}

bool rbk_table_copy(struct rbk_table *to, const struct rbk_table *from, double drained_before)
{
    unsigned char *text = malloc(UINT8_MAX + RBK_TABLE_KEY_MAX);
    bool done = text != NULL;

    for (uint32_t slot = 0; done && slot < rbk_table_capacity(from); slot++) {
        if (live(from, slot, drained_before))
            done = copy_bucket(to, from, slot, text);
    }
    free(text);
    return done;
}
