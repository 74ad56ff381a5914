/* SPDX-License-Identifier: MIT */
/*
 * Making room. A bucket that can't be read keeps its place: it is somebody's state, and nobody here
 * can say when it drains.
 */
#include "table/room.h"

#include "table/slots.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* While a page has this many slots free, a new bucket goes to its first page, which most look-ups
 * then need alone; two choices matter only when pages fill up. */
#define FREE_ENOUGH 16u

/* So many slots of each page are for buckets alone. Links make no room for anybody, so that chains
 * could otherwise leave a key without a place in a table that is far from full. */
#define BUCKETS_ONLY 16u

static struct rbk_limit bucket_limit(const struct rbk_bucket *bucket)
{
    return (struct rbk_limit){bucket->rate, bucket->depth, 0.0};
}

static struct rbk_state bucket_state(const struct rbk_bucket *bucket)
{
    return (struct rbk_state){true, bucket->timestamp, bucket->value};
}

static bool bucket_readable(const struct rbk_bucket *bucket)
{
    struct rbk_state state = bucket_state(bucket);
    struct rbk_limit limit = bucket_limit(bucket);

    return rbk_state_readable(&state) && rbk_limit_check(&limit) == RBK_LIMIT_GOOD;
}

static double bucket_level(const struct rbk_bucket *bucket, double now)
{
    struct rbk_state state = bucket_state(bucket);
    struct rbk_limit limit = bucket_limit(bucket);

    return rbk_level(&limit, &state, now);
}

bool rbk_bucket_drained(const struct rbk_bucket *bucket, double now)
{
    return bucket_readable(bucket) && bucket_level(bucket, now) <= 0.0;
}

/* Seconds until the bucket is empty, or -1 when it keeps somebody out. With burst + delay for a
 * burst and no delay, the model rejects a unit request at just the levels at which it should. */
static double gives_way(const struct rbk_bucket *bucket, double now)
{
    struct rbk_state state = bucket_state(bucket);
    struct rbk_limit limit = bucket_limit(bucket);
    struct rbk_judgement judgement;

    if (!bucket_readable(bucket))
        return -1.0;
    rbk_judge(&limit, &state, 1.0, now, &judgement);
    if (!judgement.accepted)
        return -1.0;
    return judgement.level / limit.rate;
}

static bool pinned(const struct rbk_room *room, uint32_t slot)
{
    for (size_t i = 0; i < room->len; i++) {
        if (room->touches[i].slot == slot)
            return true;
    }
    return false;
}

static unsigned count_free(const struct rbk_page *page)
{
    unsigned count = 0;

    for (unsigned i = 0; i < RBK_PAGE_SLOTS; i++)
        count += page->tag[i] == RBK_TAG_FREE;
    return count;
}

static bool takes_links(uint32_t slot)
{
    return slot % RBK_PAGE_SLOTS >= BUCKETS_ONLY;
}

/* A free slot of the page, from the one of number `first` on. */
static uint32_t free_in_page(const struct rbk_room *room, uint32_t page, uint32_t first)
{
    const unsigned char *tags = room->table->pages[page].tag;

    for (uint32_t i = first; i < RBK_PAGE_SLOTS; i++) {
        const unsigned char *tag = memchr(tags + i, RBK_TAG_FREE, RBK_PAGE_SLOTS - i);

        if (tag == NULL)
            return RBK_NO_SLOT;
        i = (uint32_t)(tag - tags);
        if (!pinned(room, page * RBK_PAGE_SLOTS + i))
            return page * RBK_PAGE_SLOTS + i;
    }
    return RBK_NO_SLOT;
}

/* Of the page's buckets, the one that gives way soonest, if sooner than *soonest. */
static uint32_t victim_in_page(const struct rbk_room *room, uint32_t page, double *soonest)
{
    uint32_t victim = RBK_NO_SLOT;

    for (uint32_t i = 0; i < RBK_PAGE_SLOTS; i++) {
        uint32_t slot = page * RBK_PAGE_SLOTS + i;

        if (room->table->pages[page].tag[i] < RBK_TAG_BUCKET)
            continue;
        double drains_in = gives_way(rbk_bucket_of(room->table, slot), room->now);

        if (drains_in >= 0.0 && drains_in < *soonest && !pinned(room, slot)) {
            *soonest = drains_in;
            victim = slot;
        }
    }
    return victim;
}

static uint32_t victim(const struct rbk_room *room)
{
    double soonest = INFINITY;
    uint32_t first = victim_in_page(room, room->place->page[0], &soonest);
    uint32_t second = victim_in_page(room, room->place->page[1], &soonest);

    return second != RBK_NO_SLOT ? second : first;
}

uint32_t rbk_room_find(const struct rbk_room *room)
{
    const struct rbk_place *place = room->place;
    const struct rbk_page *pages = room->table->pages;
    unsigned free_first = count_free(&pages[place->page[0]]);
    bool second = free_first < FREE_ENOUGH && count_free(&pages[place->page[1]]) > free_first;
    uint32_t slot = free_in_page(room, place->page[second], 0);

    if (slot == RBK_NO_SLOT)
        slot = free_in_page(room, place->page[!second], 0);
    if (slot == RBK_NO_SLOT && !room->table->growing)
        slot = victim(room);
    return slot;
}

bool rbk_room_for_links(const struct rbk_room *room, uint32_t shard, uint32_t links)
{
    const struct rbk_table *table = room->table;
    uint32_t slots = table->shard_pages * RBK_PAGE_SLOTS;
    uint64_t found = 0;

    for (uint32_t i = 0; i < slots && found < links; i++) {
        uint32_t slot = shard * slots + i;
        unsigned char tag = *rbk_tag_of(table, slot);

        if (tag == RBK_TAG_LINK || pinned(room, slot))
            continue;
        if (tag == RBK_TAG_FREE)
            found += takes_links(slot);
        else if (!table->growing && gives_way(rbk_bucket_of(table, slot), room->now) >= 0.0)
            found += takes_links(slot) + rbk_slot_links(table, slot);
    }
    return found >= links;
}

/* Of the page's buckets that leave a slot for a link, their own or their chain's, one that drains
 * soonest, or one that has drained. */
static uint32_t link_victim(const struct rbk_room *room, uint32_t page, bool drained)
{
    double soonest = drained ? DBL_MIN : INFINITY;
    uint32_t victim = RBK_NO_SLOT;

    for (uint32_t i = 0; i < RBK_PAGE_SLOTS; i++) {
        uint32_t slot = page * RBK_PAGE_SLOTS + i;

        if (room->table->pages[page].tag[i] < RBK_TAG_BUCKET ||
            (!takes_links(slot) && rbk_slot_links(room->table, slot) == 0))
            continue;
        double drains_in = gives_way(rbk_bucket_of(room->table, slot), room->now);

        if (drains_in >= 0.0 && drains_in < soonest && !pinned(room, slot)) {
            soonest = drains_in;
            victim = slot;
        }
    }
    return victim;
}

/* The next link of the chain that a bucket had which made room: free now, and still strung
 * together. */
static uint32_t take_spare(struct rbk_room *room)
{
    uint32_t slot = room->spare;

    if (!rbk_slot_valid(room->table, slot) || *rbk_tag_of(room->table, slot) != RBK_TAG_FREE ||
        rbk_shard_of(room->table, slot) != room->place->shard || !takes_links(slot) ||
        pinned(room, slot))
        return RBK_NO_SLOT;
    room->spare = rbk_link_of(room->table, slot)->next;
    return slot;
}

/* Has a bucket of the page make room for a link, and perhaps for more, which become spare. */
static uint32_t make_link_room(struct rbk_room *room, uint32_t page, bool drained)
{
    uint32_t slot = link_victim(room, page, drained);

    if (slot == RBK_NO_SLOT)
        return RBK_NO_SLOT;
    if (rbk_slot_links(room->table, slot) > 0)
        room->spare = rbk_bucket_of(room->table, slot)->text.far.chain;
    rbk_bucket_give_up(room->table, slot, room->now);
    return takes_links(slot) ? slot : take_spare(room);
}

/* Three rounds over the shard's pages, from the key's own on: free slots, then buckets that have
 * drained, then those that keep nobody out. */
uint32_t rbk_room_take_link(void *data)
{
    struct rbk_room *room = data;
    uint32_t pages = room->table->shard_pages;
    uint32_t first = room->place->page[0] - room->place->shard * pages;
    uint32_t rounds = room->table->growing ? 1 : 3;
    uint32_t slot = take_spare(room);

    while (slot == RBK_NO_SLOT && room->cursor < rounds * pages) {
        uint32_t page = room->place->shard * pages + (first + room->cursor) % pages;
        uint32_t round = room->cursor / pages;

        slot = round == 0 ? free_in_page(room, page, BUCKETS_ONLY)
                          : make_link_room(room, page, round == 1);
        room->cursor += slot == RBK_NO_SLOT;
    }
    return slot;
}

/* A journal has an entry for each claim and one to spare, and only this file's forgetting, which
 * takes its entry back, goes beyond the claims. Nobody else changes its length, unless somebody
 * writes where he has no business to. */
struct rbk_journal_entry *rbk_journal_add(struct rbk_table *table, uint32_t shard,
                                          struct rbk_journal_entry entry)
{
    struct rbk_shard *to = &table->shards[shard];
    uint32_t at = rbk_read32(&to->journal_len);
    struct rbk_journal_entry *place = &to->journal[at < RBK_JOURNAL_LEN ? at : RBK_JOURNAL_LEN - 1];

    *place = entry;
    rbk_order();
    to->journal_len++;
    rbk_order();
    return place;
}

void rbk_bucket_forget(struct rbk_table *table, uint32_t slot)
{
    uint32_t shard = rbk_shard_of(table, slot);
    uint32_t links = rbk_slot_links(table, slot);
    uint32_t chain = rbk_read32(&rbk_bucket_of(table, slot)->text.far.chain);

    if (links == 0) {
        *rbk_tag_of(table, slot) = RBK_TAG_FREE;
        rbk_order();
        return;
    }
    (void)rbk_journal_add(table, shard,
                          (struct rbk_journal_entry){slot, RBK_JOURNAL_CHAIN, .was.chain = chain});
    *rbk_tag_of(table, slot) = RBK_TAG_FREE;
    rbk_order();
    rbk_chain_free(table, chain, links);
    rbk_order();
    table->shards[shard].journal_len--;
    rbk_order();
}

void rbk_bucket_give_up(struct rbk_table *table, uint32_t slot, double now)
{
    bool drained = rbk_bucket_drained(rbk_bucket_of(table, slot), now);

    rbk_bucket_forget(table, slot);
    if (!drained)
        table->shards[rbk_shard_of(table, slot)].evicted++;
}
