/* SPDX-License-Identifier: MIT */
/*
 * Storing what was decided, all of it or nothing.
 *
 * First every new bucket is promised a slot, which changes nothing and can fail. Then old states go
 * into the journal, and only then is anything written; a new bucket appears with the one byte of
 * its tag. A process that dies before the end leaves a journal that the next one undoes.
 */
#include "table/room.h"
#include "table/slots.h"

#include <string.h>

/* The page's slot with this zone and key, or RBK_NO_SLOT. */
static uint32_t find_in_page(const struct rbk_table *table, uint32_t page,
                             const struct rbk_place *place)
{
    const unsigned char *tags = table->pages[page].tag;
    const unsigned char *end = tags + RBK_PAGE_SLOTS;
    const unsigned char *tag = tags;

    while ((tag = memchr(tag, place->tag, (size_t)(end - tag))) != NULL) {
        uint32_t slot = page * RBK_PAGE_SLOTS + (uint32_t)(tag - tags);

        if (rbk_slot_is(table, slot, place))
            return slot;
        tag++;
    }
    return RBK_NO_SLOT;
}

void rbk_table_find(const struct rbk_table *table, struct rbk_touch *touch, struct rbk_state *state)
{
    uint32_t slot = find_in_page(table, touch->place.page[0], &touch->place);

    if (slot == RBK_NO_SLOT)
        slot = find_in_page(table, touch->place.page[1], &touch->place);
    touch->slot = slot;
    touch->fresh = false;
    *state = (struct rbk_state){.exists = false};
    if (slot == RBK_NO_SLOT)
        return;
    touch->bucket = rbk_bucket_of(table, slot);
    *state = (struct rbk_state){true, touch->bucket->timestamp, touch->bucket->value};
}

/* Promises a slot to each new bucket. On failure every promise is taken back. */
static bool promise_slots(struct rbk_room *room, struct rbk_touch *touches,
                          const struct rbk_claim *claims, size_t *failed)
{
    for (size_t i = 0; i < room->len; i++) {
        if (claims[i].change != RBK_WRITE || touches[i].slot != RBK_NO_SLOT)
            continue;
        room->place = &touches[i].place;
        touches[i].slot = rbk_room_find(room);
        if (touches[i].slot == RBK_NO_SLOT) {
            *failed = i;
            return false;
        }
        touches[i].fresh = true;
        touches[i].bucket = rbk_bucket_of(room->table, touches[i].slot);
    }
    return true;
}

static uint32_t links_wanted(const struct rbk_touch *touch)
{
    return touch->fresh ? rbk_links_for((size_t)touch->place.zone_len + touch->place.key_len) : 0;
}

/* Chains of new buckets are asked for by the shard, all of a shard's together. */
static bool promise_links(const struct rbk_room *room, const struct rbk_touch *touches,
                          size_t *failed)
{
    for (size_t i = 0; i < room->len; i++) {
        uint32_t links = 0;

        if (links_wanted(&touches[i]) == 0)
            continue;
        for (size_t j = 0; j < room->len; j++) {
            if (touches[j].place.shard == touches[i].place.shard)
                links += links_wanted(&touches[j]);
        }
        if (!rbk_room_for_links(room, touches[i].place.shard, links)) {
            *failed = i;
            return false;
        }
    }
    return true;
}

/* The slowest rate and least depth of all limits since the bucket was last empty: it must not count
 * as drained while one of them still sees it filled. */
static void remember_limit(struct rbk_bucket *bucket, const struct rbk_limit *limit, double now)
{
    double depth = limit->burst + limit->delay;

    if (bucket->rate == limit->rate && bucket->depth == depth)
        return;
    bool drained = rbk_bucket_drained(bucket, now);

    if (drained || limit->rate < bucket->rate)
        bucket->rate = limit->rate;
    if (drained || depth < bucket->depth)
        bucket->depth = depth;
}

static void save(struct rbk_table *table, const struct rbk_touch *touch)
{
    (void)rbk_journal_add(
        table, touch->place.shard,
        (struct rbk_journal_entry){touch->slot, RBK_JOURNAL_STATE,
                                   .was.state = {touch->bucket->timestamp, touch->bucket->value}});
}

static void update(const struct rbk_touch *touch, const struct rbk_claim *claim, double now)
{
    remember_limit(touch->bucket, &claim->limit, now);
    touch->bucket->timestamp = claim->state.timestamp;
    rbk_order();
    touch->bucket->value = claim->state.value;
}

static bool insert(struct rbk_room *room, const struct rbk_touch *touch,
                   const struct rbk_claim *claim)
{
    struct rbk_table *table = room->table;
    uint32_t slot = touch->slot;
    struct rbk_bucket *bucket = touch->bucket;
    uint32_t chain = RBK_NO_SLOT;

    if (*rbk_tag_of(table, slot) != RBK_TAG_FREE)
        rbk_bucket_give_up(table, slot, room->now);
    room->place = &touch->place;
    room->cursor = 0;
    room->spare = RBK_NO_SLOT;
    if (links_wanted(touch) > 0) {
        struct rbk_journal_entry *entry = rbk_journal_add(
            table, touch->place.shard,
            (struct rbk_journal_entry){slot, RBK_JOURNAL_CHAIN, .was.chain = RBK_NO_SLOT});

        if (!rbk_chain_build(table, &touch->place, entry, rbk_room_take_link, room))
            return false;
        chain = entry->was.chain;
    }
    rbk_bucket_name(table, slot, &touch->place, chain);
    bucket->timestamp = claim->state.timestamp;
    bucket->value = claim->state.value;
    bucket->rate = claim->limit.rate;
    bucket->depth = claim->limit.burst + claim->limit.delay;
    rbk_order();
    *rbk_tag_of(table, slot) = touch->place.tag;
    return true;
}

static bool write_claim(struct rbk_room *room, const struct rbk_touch *touch,
                        const struct rbk_claim *claim)
{
    if (claim->change == RBK_FORGET && touch->slot != RBK_NO_SLOT) {
        rbk_bucket_forget(room->table, touch->slot);
    } else if (claim->change == RBK_WRITE) {
        if (touch->fresh)
            return insert(room, touch, claim);
        update(touch, claim, room->now);
    }
    return true;
}

static bool wants_room(const struct rbk_touch *touches, const struct rbk_claim *claims, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (claims[i].change == RBK_WRITE && touches[i].slot == RBK_NO_SLOT)
            return true;
    }
    return false;
}

bool rbk_table_apply(struct rbk_table *table, struct rbk_touch *touches, struct rbk_claim *claims,
                     const struct rbk_apply *apply, size_t *failed)
{
    struct rbk_room room = {
        .table = table, .touches = touches, .len = apply->len, .now = apply->now};

    if (wants_room(touches, claims, apply->len) &&
        (!promise_slots(&room, touches, claims, failed) || !promise_links(&room, touches, failed)))
        return false;
    for (size_t i = 0; i < apply->len; i++) {
        if (claims[i].change == RBK_WRITE && !touches[i].fresh)
            save(table, &touches[i]);
    }
    for (size_t i = 0; i < apply->len; i++) {
        if (!write_claim(&room, &touches[i], &claims[i])) {
            /* Only damaged bytes promise links that aren't there. Undo, as after a crash. */
            for (size_t j = 0; j < apply->len; j++)
                rbk_table_recover(table, touches[j].place.shard);
            *failed = i;
            return false;
        }
    }
    rbk_order();
    for (size_t i = 0; i < apply->len; i++)
        table->shards[touches[i].place.shard].journal_len = 0;
    rbk_order();
    return true;
}
