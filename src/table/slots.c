/* SPDX-License-Identifier: MIT */
/*
 * Texts in slots: zone and key lie one behind the other, in the bucket alone or, when they are
 * longer than that, in a chain of links behind it. They are stored whole and compared whole.
 */
#include "table/slots.h"

#include <string.h>

static size_t text_len(const struct rbk_place *place)
{
    return (size_t)place->zone_len + place->key_len;
}

/* The piece of zone and key that begins at `offset` and lies in one of them: its start, and in *len
 * at most as much as was asked for. */
static const unsigned char *piece(const struct rbk_place *place, size_t offset, size_t *len)
{
    bool in_zone = offset < place->zone_len;
    size_t left = in_zone ? place->zone_len - offset : text_len(place) - offset;

    if (*len > left)
        *len = left;
    return in_zone ? place->zone + offset : place->key + (offset - place->zone_len);
}

static void copy_text(const struct rbk_place *place, size_t offset, unsigned char *out, size_t len)
{
    while (len > 0) {
        size_t part = len;
        const unsigned char *from = piece(place, offset, &part);

        memcpy(out, from, part);
        out += part;
        offset += part;
        len -= part;
    }
}

static bool same_text(const struct rbk_place *place, size_t offset, const unsigned char *bytes,
                      size_t len)
{
    while (len > 0) {
        size_t part = len;
        const unsigned char *from = piece(place, offset, &part);

        if (memcmp(bytes, from, part) != 0)
            return false;
        bytes += part;
        offset += part;
        len -= part;
    }
    return true;
}

bool rbk_slot_far(const struct rbk_table *table, uint32_t slot)
{
    return rbk_page_of(table, slot)->lengths[slot % RBK_PAGE_SLOTS].key_len == RBK_KEY_FAR;
}

uint32_t rbk_links_for(size_t len)
{
    if (len <= RBK_NEAR_TEXT)
        return 0;
    return (uint32_t)((len - RBK_FAR_TEXT + RBK_LINK_TEXT - 1) / RBK_LINK_TEXT);
}

uint32_t rbk_slot_links(const struct rbk_table *table, uint32_t slot)
{
    const struct rbk_page *page = rbk_page_of(table, slot);
    uint32_t key_len = rbk_read32(&rbk_bucket_of(table, slot)->text.far.key_len);

    if (!rbk_slot_far(table, slot) || key_len > RBK_TABLE_KEY_MAX)
        return 0;
    return rbk_links_for((size_t)page->lengths[slot % RBK_PAGE_SLOTS].zone_len + key_len);
}

static bool far_is(const struct rbk_table *table, uint32_t slot, const struct rbk_place *place)
{
    const struct rbk_bucket *bucket = rbk_bucket_of(table, slot);
    size_t len = text_len(place);
    uint32_t link = rbk_read32(&bucket->text.far.chain);
    size_t offset = RBK_FAR_TEXT;

    if (bucket->text.far.key_len != place->key_len || len <= RBK_NEAR_TEXT ||
        !same_text(place, 0, bucket->text.far.text, RBK_FAR_TEXT))
        return false;
    while (offset < len) {
        size_t part = len - offset < RBK_LINK_TEXT ? len - offset : RBK_LINK_TEXT;

        if (!rbk_slot_valid(table, link) ||
            !same_text(place, offset, rbk_link_of(table, link)->text, part))
            return false;
        link = rbk_read32(&rbk_link_of(table, link)->next);
        offset += part;
    }
    return true;
}

bool rbk_slot_is(const struct rbk_table *table, uint32_t slot, const struct rbk_place *place)
{
    const struct rbk_page *page = rbk_page_of(table, slot);
    uint32_t index = slot % RBK_PAGE_SLOTS;

    if (page->lengths[index].zone_len != place->zone_len)
        return false;
    if (page->lengths[index].key_len == RBK_KEY_FAR)
        return far_is(table, slot, place);
    /* Both are filled up with zeros, so whole words compare. */
    return page->lengths[index].key_len == place->key_len && text_len(place) <= RBK_NEAR_TEXT &&
           memcmp(page->slot[index].bucket.text.near_text, place->text, RBK_NEAR_TEXT) == 0;
}

static bool far_text(const struct rbk_table *table, uint32_t slot, unsigned char *text, size_t len)
{
    const struct rbk_bucket *bucket = rbk_bucket_of(table, slot);
    uint32_t link = rbk_read32(&bucket->text.far.chain);
    size_t offset = RBK_FAR_TEXT;

    memcpy(text, bucket->text.far.text, RBK_FAR_TEXT);
    while (offset < len) {
        size_t part = len - offset < RBK_LINK_TEXT ? len - offset : RBK_LINK_TEXT;

        if (!rbk_slot_valid(table, link))
            return false;
        memcpy(text + offset, rbk_link_of(table, link)->text, part);
        link = rbk_read32(&rbk_link_of(table, link)->next);
        offset += part;
    }
    return true;
}

bool rbk_slot_text(const struct rbk_table *table, uint32_t slot, unsigned char *text,
                   struct rbk_key *key)
{
    const struct rbk_page *page = rbk_page_of(table, slot);
    const struct rbk_bucket *bucket = rbk_bucket_of(table, slot);
    size_t zone_len = page->lengths[slot % RBK_PAGE_SLOTS].zone_len;
    bool far = rbk_slot_far(table, slot);
    size_t key_len =
        far ? rbk_read32(&bucket->text.far.key_len) : page->lengths[slot % RBK_PAGE_SLOTS].key_len;

    *key = (struct rbk_key){text, zone_len, text + zone_len, key_len};
    if (far)
        return key_len <= RBK_TABLE_KEY_MAX && zone_len + key_len > RBK_NEAR_TEXT &&
               far_text(table, slot, text, zone_len + key_len);
    if (zone_len + key_len > RBK_NEAR_TEXT)
        return false;
    memcpy(text, bucket->text.near_text, RBK_NEAR_TEXT);
    return true;
}

void rbk_chain_free(struct rbk_table *table, uint32_t chain, uint32_t links)
{
    while (links-- > 0 && rbk_slot_valid(table, chain)) {
        unsigned char *tag = rbk_tag_of(table, chain);

        /* A free slot is the end of a chain that was being taken apart or put together. */
        if (*tag != RBK_TAG_LINK && *tag != RBK_TAG_FREE)
            return;
        chain = rbk_read32(&rbk_link_of(table, chain)->next);
        *tag = RBK_TAG_FREE;
        rbk_order();
    }
}

bool rbk_chain_build(struct rbk_table *table, const struct rbk_place *place,
                     struct rbk_journal_entry *entry, uint32_t (*take)(void *), void *data)
{
    size_t len = text_len(place);

    for (uint32_t link = rbk_links_for(len); link-- > 0;) {
        size_t offset = RBK_FAR_TEXT + (size_t)link * RBK_LINK_TEXT;
        size_t part = len - offset < RBK_LINK_TEXT ? len - offset : RBK_LINK_TEXT;
        uint32_t slot = take(data);

        if (slot == RBK_NO_SLOT)
            return false;
        rbk_link_of(table, slot)->next = entry->was.chain;
        copy_text(place, offset, rbk_link_of(table, slot)->text, part);
        rbk_order();
        entry->was.chain = slot;
        rbk_order();
        *rbk_tag_of(table, slot) = RBK_TAG_LINK;
    }
    return true;
}

void rbk_bucket_name(struct rbk_table *table, uint32_t slot, const struct rbk_place *place,
                     uint32_t chain)
{
    struct rbk_page *page = rbk_page_of(table, slot);
    struct rbk_bucket *bucket = rbk_bucket_of(table, slot);
    bool far = rbk_links_for(text_len(place)) > 0;

    page->lengths[slot % RBK_PAGE_SLOTS] = (struct rbk_lengths){
        (unsigned char)place->zone_len, (unsigned char)(far ? RBK_KEY_FAR : place->key_len)};
    if (!far) {
        memcpy(bucket->text.near_text, place->text, RBK_NEAR_TEXT);
        return;
    }
    bucket->text.far.key_len = place->key_len;
    bucket->text.far.chain = chain;
    copy_text(place, 0, bucket->text.far.text, RBK_FAR_TEXT);
}
