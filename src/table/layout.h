/* SPDX-License-Identifier: MIT */
/*
 * The table's bytes. Private to src/table; docs/table.md draws them.
 *
 * A header, a row of shards, then pages, each shard owning an equal run of them. A page holds 69
 * slots behind a column of tags and one of lengths. A slot is a bucket, or a link in the chain that
 * carries a text too long for its bucket. Chains run through any page of their shard, so that no
 * mixture of long and short texts can fragment it. A bucket whose zone and key have up to 24 bytes
 * together takes 59 bytes in all.
 *
 * Nothing here is a pointer, everything found here may be anything: a number read from these bytes
 * is checked before it leads anywhere, and every walk is bounded by something known from elsewhere.
 */
#ifndef RBK_TABLE_LAYOUT_H
#define RBK_TABLE_LAYOUT_H

#include "table/table.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define RBK_PAGE_SIZE  4096u
#define RBK_PAGE_SLOTS 69u

#define RBK_NEAR_TEXT 24u /* bytes of zone and key that a bucket holds itself */
#define RBK_FAR_TEXT  16u /* the same when a chain holds the rest */
#define RBK_LINK_TEXT 52u

/* Values in the tag column. Tags of buckets are RBK_TAG_BUCKET and above, made from the hash. */
#define RBK_TAG_FREE   0u
#define RBK_TAG_LINK   1u
#define RBK_TAG_BUCKET 2u

/* As a key_len: the length is in the slot, and a chain holds the rest of the text. */
#define RBK_KEY_FAR 255u

#define RBK_NO_SLOT UINT32_MAX

/* `rate` is the slowest and `depth` (burst + delay) the least of the limits that have asked since
 * the bucket was last empty, so that it drains no sooner for any of them. */
struct rbk_bucket {
    double timestamp;
    double value;
    double rate;
    double depth;
    union {
        unsigned char near_text[RBK_NEAR_TEXT];
        struct {
            uint32_t key_len;
            uint32_t chain;
            unsigned char text[RBK_FAR_TEXT];
        } far;
    } text;
};

struct rbk_link {
    uint32_t next;
    unsigned char text[RBK_LINK_TEXT];
};

union rbk_slot {
    struct rbk_bucket bucket;
    struct rbk_link link;
};

struct rbk_lengths {
    unsigned char zone_len;
    unsigned char key_len;
};

struct rbk_page {
    unsigned char tag[RBK_PAGE_SLOTS];
    struct rbk_lengths lengths[RBK_PAGE_SLOTS];
    unsigned char spare[25];
    union rbk_slot slot[RBK_PAGE_SLOTS];
};

enum rbk_journal_kind {
    RBK_JOURNAL_STATE, /* undo: put the state back */
    RBK_JOURNAL_CHAIN, /* undo: free the chain, unless the bucket at `slot` owns it */
};

struct rbk_journal_entry {
    uint32_t slot;
    uint32_t kind;
    union {
        struct {
            double timestamp;
            double value;
        } state;
        uint32_t chain;
    } was;
};

/* One entry for each key of a request, and one for a bucket that makes room. */
#define RBK_JOURNAL_LEN 65u

struct rbk_shard {
    uint64_t accepted;
    uint64_t delayed;
    uint64_t rejected;
    uint64_t evicted;
    uint64_t full;
    uint64_t recovered;
    uint32_t journal_len; /* above 0: a change is under way */
    uint32_t spare;
    struct rbk_journal_entry journal[RBK_JOURNAL_LEN];
    struct rbk_zone_counts zones[RBK_TABLE_ZONES + 1]; /* the first for those without a name */
    unsigned char pad[920];
};

/* Read as a number, it differs on a machine of the other byte order. */
#define RBK_TABLE_MAGIC 0x524b425f4c425431u

/* Bump when the meaning of bytes changes and no size does. */
#define RBK_TABLE_VERSION 2u

/* Bytes for the names of zones that are counted by themselves. */
#define RBK_ZONE_NAMES 4040u

/* `names` are a byte with a length and that many bytes, again and again, to `names_len`, which is
 * the switch: what lies behind it is not there. Guarded by the lock of shard 0. */
struct rbk_table_header {
    uint64_t magic;
    uint64_t format;
    uint64_t size;
    uint64_t secret[2];
    uint32_t shards; /* a power of two */
    uint32_t pages;  /* of each shard */
    uint32_t names_len;
    uint32_t spare;
    unsigned char names[RBK_ZONE_NAMES];
};

/* Everything that two programs must agree on to share a table. */
#define RBK_TABLE_FORMAT                                                                   \
    ((uint64_t)RBK_TABLE_VERSION << 56 | (uint64_t)sizeof(struct rbk_table_header) << 42 | \
     (uint64_t)sizeof(struct rbk_shard) << 28 | (uint64_t)sizeof(struct rbk_page) << 14 |  \
     (uint64_t)sizeof(union rbk_slot) << 7 | (uint64_t)RBK_PAGE_SLOTS)

static_assert(sizeof(union rbk_slot) == 56, "a bucket and its three bytes stay below 64");
static_assert(sizeof(struct rbk_bucket) == 56, "a bucket fills its slot");
static_assert(sizeof(struct rbk_link) == 56, "a link fills its slot");
static_assert(sizeof(struct rbk_page) == RBK_PAGE_SIZE, "a page is a page");
static_assert(offsetof(struct rbk_page, slot) % 8 == 0, "doubles are aligned");
static_assert(sizeof(struct rbk_journal_entry) == 24, "the journal has no holes");
static_assert(sizeof(struct rbk_shard) == 4096, "a shard is found by a shift");
static_assert(sizeof(struct rbk_table_header) == 4096, "the header is followed by the shards");
static_assert(sizeof(struct rbk_shard) < 1 << 14 && sizeof(struct rbk_table_header) < 1 << 14,
              "the format word has room");
static_assert(offsetof(struct rbk_bucket, text) == 32 &&
                  offsetof(struct rbk_shard, journal) == 56 &&
                  offsetof(struct rbk_table_header, secret) == 24 &&
                  offsetof(struct rbk_table_header, shards) == 40,
              "a 32-bit compiler, which may align doubles to 4 bytes, lays out the same");
static_assert(RBK_PAGE_SLOTS < 128 && sizeof(union rbk_slot) < 128, "the format word has room");

#endif
