/* SPDX-License-Identifier: MIT */
#include "audit.h"

#include "embedded.h"
#include "table/slots.h"

#include <stdlib.h>

struct rbk_table *test_table_of(struct redbucket_store *store)
{
    return ((struct rbk_embedded *)store)->table;
}

/* Follows a bucket's chain, marking its links. */
static const char *audit_chain(const struct rbk_table *table, uint32_t slot, unsigned char *seen)
{
    uint32_t link = rbk_bucket_of(table, slot)->text.far.chain;

    for (uint32_t links = rbk_slot_links(table, slot); links > 0; links--) {
        if (!rbk_slot_valid(table, link) || *rbk_tag_of(table, link) != RBK_TAG_LINK)
            return "a chain leads nowhere";
        if (rbk_shard_of(table, link) != rbk_shard_of(table, slot))
            return "a chain leaves its shard";
        if (seen[link]++)
            return "a link is in two chains";
        link = rbk_link_of(table, link)->next;
    }
    return link == RBK_NO_SLOT ? NULL : "a chain is longer than its text";
}

/* The bucket must be just what a look-up for its text finds. */
static const char *audit_bucket(const struct rbk_table *table, uint32_t slot, unsigned char *text)
{
    struct rbk_touch touch;
    struct rbk_state state;
    struct rbk_key key;

    if (!rbk_slot_text(table, slot, text, &key))
        return "a bucket's text can't be read";
    rbk_table_place(table, &key, &touch.place);
    rbk_table_find(table, &touch, &state);
    if (touch.slot == RBK_NO_SLOT)
        return "a bucket is where nobody looks for it";
    return touch.slot == slot ? NULL : "a bucket is there twice";
}

static const char *audit_slot(const struct rbk_table *table, uint32_t slot, unsigned char *seen,
                              unsigned char *text, struct test_audit *audit)
{
    unsigned char tag = *rbk_tag_of(table, slot);
    const char *fault;

    audit->free += tag == RBK_TAG_FREE;
    audit->links += tag == RBK_TAG_LINK;
    if (tag < RBK_TAG_BUCKET)
        return NULL;
    audit->buckets++;
    fault = rbk_slot_far(table, slot) ? audit_chain(table, slot, seen) : NULL;
    return fault != NULL ? fault : audit_bucket(table, slot, text);
}

const char *test_audit(const struct rbk_table *table, struct test_audit *audit)
{
    uint32_t slots = (uint32_t)rbk_table_capacity(table);
    unsigned char *seen = calloc(slots, 1);
    unsigned char *text = calloc(UINT8_MAX + RBK_TABLE_KEY_MAX, 1);
    const char *fault = seen == NULL || text == NULL ? "no memory to audit with" : NULL;

    *audit = (struct test_audit){0};
    for (unsigned shard = 0; fault == NULL && shard < rbk_table_shards(table); shard++) {
        if (rbk_table_torn(table, shard))
            fault = "a journal isn't empty";
    }
    for (uint32_t slot = 0; fault == NULL && slot < slots; slot++)
        fault = audit_slot(table, slot, seen, text, audit);
    for (uint32_t slot = 0; fault == NULL && slot < slots; slot++) {
        if (*rbk_tag_of(table, slot) == RBK_TAG_LINK && !seen[slot])
            fault = "a link is in no chain";
    }
    free(seen);
    free(text);
    return fault;
}
