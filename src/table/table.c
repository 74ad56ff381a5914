/* SPDX-License-Identifier: MIT */
/*
 * The table as a whole: how bytes are cut up, made and checked, and where a key may lie.
 */
#include "table/table.h"

#include "table/layout.h"
#include "table/siphash.h"

#include <string.h>

/* So many pages a shard are enough for two choices to keep them even. */
#define PAGES_WANTED 64u

/* A place takes 24 bits of the hash for each page, and a slot's number has to fit 32 bits. */
#define PAGES_MAX (1u << 24)

/* Pages begin at a multiple of their own size. */
static size_t pages_offset(unsigned shards)
{
    size_t end = sizeof(struct rbk_table_header) + shards * sizeof(struct rbk_shard);

    return (end + RBK_PAGE_SIZE - 1) / RBK_PAGE_SIZE * RBK_PAGE_SIZE;
}

static size_t pages_in(size_t size, unsigned shards)
{
    size_t offset = pages_offset(shards);

    return size < offset ? 0 : (size - offset) / RBK_PAGE_SIZE;
}

size_t rbk_table_size_min(void)
{
    return pages_offset(1) + (size_t)2 * RBK_PAGE_SIZE;
}

bool rbk_table_plan(size_t size, unsigned shards_max, struct rbk_table_plan *plan)
{
    unsigned shards = 1;

    if (size < rbk_table_size_min())
        return false;
    while (shards * 2 <= shards_max && shards * 2 <= RBK_TABLE_SHARDS_MAX &&
           pages_in(size, shards * 2) >= (size_t)shards * 2 * PAGES_WANTED)
        shards *= 2;
    size_t pages = pages_in(size, shards) / shards;

    if (pages > PAGES_MAX || pages * shards * RBK_PAGE_SLOTS >= RBK_NO_SLOT)
        return false;
    *plan = (struct rbk_table_plan){shards, (uint32_t)pages};
    return true;
}

void rbk_table_format(void *bytes, size_t size, const struct rbk_table_plan *plan,
                      const uint64_t secret[2])
{
    struct rbk_table_header *header = bytes;

    header->format = RBK_TABLE_FORMAT;
    header->size = size;
    header->secret[0] = secret[0];
    header->secret[1] = secret[1];
    header->shards = plan->shards;
    header->pages = plan->shard_pages;
    header->magic = RBK_TABLE_MAGIC;
}

static bool header_good(const struct rbk_table_header *header, size_t size)
{
    uint32_t shards = header->shards;

    if (header->magic != RBK_TABLE_MAGIC || header->format != RBK_TABLE_FORMAT ||
        header->size != size)
        return false;
    if (shards == 0 || shards > RBK_TABLE_SHARDS_MAX || (shards & (shards - 1)) != 0)
        return false;
    return header->pages >= 2 && header->pages <= PAGES_MAX &&
           (uint64_t)header->pages * shards * RBK_PAGE_SLOTS < RBK_NO_SLOT &&
           (uint64_t)header->pages * shards <= pages_in(size, shards);
}

bool rbk_table_attach(struct rbk_table *table, void *bytes, size_t size)
{
    unsigned char *base = bytes;
    struct rbk_table_header header; /* a copy, which nobody changes once it has been checked */

    if (size < rbk_table_size_min())
        return false;
    memcpy(&header, bytes, offsetof(struct rbk_table_header, names_len));
    if (!header_good(&header, size))
        return false;
    *table = (struct rbk_table){
        .header = bytes,
        .shards = (void *)(base + sizeof header),
        .pages = (void *)(base + pages_offset(header.shards)),
        .secret = {header.secret[0], header.secret[1]},
        .shard_mask = header.shards - 1,
        .shard_pages = header.pages,
    };
    return true;
}

uint64_t rbk_table_capacity(const struct rbk_table *table)
{
    return (uint64_t)rbk_table_shards(table) * table->shard_pages * RBK_PAGE_SLOTS;
}

/* A quarter of a shard for one text at most, so that one key can't push all others out. */
size_t rbk_table_key_max(const struct rbk_table *table)
{
    size_t links = (size_t)table->shard_pages * RBK_PAGE_SLOTS / 4;
    size_t text = RBK_FAR_TEXT + links * RBK_LINK_TEXT - UINT8_MAX;

    return text < RBK_TABLE_KEY_MAX ? text : RBK_TABLE_KEY_MAX;
}

/* Absorbs bytes as words, the last one filled up with zeros. */
static void absorb(struct rbk_siphash *hash, const unsigned char *bytes, size_t len)
{
    while (len > 0) {
        uint64_t word = 0;
        size_t part = len < sizeof word ? len : sizeof word;

        memcpy(&word, bytes, part);
        rbk_siphash_word(hash, word);
        bytes += part;
        len -= part;
    }
}

/* The lengths go in last: no two pairs of zone and key are the same message. */
static uint64_t hash_place(const struct rbk_table *table, const struct rbk_place *place)
{
    size_t text_len = (size_t)place->zone_len + place->key_len;
    struct rbk_siphash hash;

    rbk_siphash_begin(&hash, table->secret);
    if (text_len <= RBK_NEAR_TEXT) {
        for (size_t i = 0; i * 8 < text_len; i++)
            rbk_siphash_word(&hash, place->text[i]);
    } else {
        absorb(&hash, place->zone, place->zone_len);
        absorb(&hash, place->key, place->key_len);
    }
    return rbk_siphash_end(&hash, (uint64_t)place->zone_len << 32 | place->key_len, 7);
}

/* At most 24 bytes, in fewer steps than a call of memcpy for an unknown length takes. */
static void copy_short(unsigned char *to, const unsigned char *from, size_t len)
{
    if (len >= 8) {
        if (len > 16)
            memcpy(to + 8, from + 8, 8);
        memcpy(to, from, 8);
        memcpy(to + len - 8, from + len - 8, 8);
    } else if (len >= 4) {
        memcpy(to, from, 4);
        memcpy(to + len - 4, from + len - 4, 4);
    } else if (len > 0) {
        to[0] = from[0];
        to[len / 2] = from[len / 2];
        to[len - 1] = from[len - 1];
    }
}

/* Scales 24 bits of a hash to a number below `count`, without a division. */
static uint32_t scale(uint64_t hash, uint32_t count)
{
    return (uint32_t)((hash & 0xffffff) * count >> 24);
}

void rbk_table_place(const struct rbk_table *table, const struct rbk_key *key,
                     struct rbk_place *place)
{
    place->zone = key->zone;
    place->key = key->key;
    place->zone_len = (uint32_t)key->zone_len;
    place->key_len = (uint32_t)key->key_len;
    memset(place->text, 0, sizeof place->text);
    if (key->zone_len + key->key_len <= RBK_NEAR_TEXT) {
        unsigned char *text = (unsigned char *)place->text;

        copy_short(text, key->zone, key->zone_len);
        copy_short(text + key->zone_len, key->key, key->key_len);
    }

    uint64_t hash = hash_place(table, place);
    uint32_t first = scale(hash >> 40, table->shard_pages);
    uint32_t step = 1 + scale(hash >> 16, table->shard_pages - 1);
    uint32_t second = first + step;

    place->shard = (uint32_t)hash & table->shard_mask;
    place->tag =
        (unsigned char)(RBK_TAG_BUCKET + ((hash >> 8 & 0xff) * (256 - RBK_TAG_BUCKET) >> 8));
    place->page[0] = place->shard * table->shard_pages + first;
    place->page[1] = place->shard * table->shard_pages +
                     (second < table->shard_pages ? second : second - table->shard_pages);
    /* The tags of a page lie on two lines; nearly all buckets are in their first page. */
    __builtin_prefetch(&table->pages[place->page[0]].tag[0]);
    __builtin_prefetch(&table->pages[place->page[0]].tag[RBK_PAGE_SLOTS - 1]);
}
