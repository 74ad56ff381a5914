/* SPDX-License-Identifier: MIT */
/*
 * A table whose bytes may be anything: the input is a byte that says which good table to begin with
 * (1: a full one) and what to do with it (2: it grows, 4: it is copied), and a list of patches
 * (offset, length, bytes) to that table, its header included. Whatever they make of it, nothing is
 * read or written outside, every call ends, a change that was under way is over once it was undone,
 * and no more is counted or copied than there is room for. Links the library's own files alone.
 */
#include "table/layout.h"
#include "table/walk.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SIZE (8192u + 6u * 4096u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void patch(unsigned char *bytes, const uint8_t *data, size_t size)
{
    while (size > 4) {
        size_t offset = ((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2]) % SIZE;
        size_t len = data[3];

        data += 4;
        size -= 4;
        if (len > size)
            len = size;
        if (len > SIZE - offset)
            len = SIZE - offset;
        memcpy(bytes + offset, data, len);
        data += len;
        size -= len;
    }
}

static void use_key(struct rbk_table *table, const char *text, size_t len, double now)
{
    static const enum rbk_operation operations[] = {RBK_REQUEST, RBK_CHARGE, RBK_RESET};
    struct rbk_key key = {(const unsigned char *)"zone", 4, (const unsigned char *)text, len};

    if (len > rbk_table_key_max(table))
        return;
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        struct rbk_ask ask = {operations[i], 1.0, 0.0, now};
        struct rbk_claim claim = {.limit = {1.0, 2.0, 1.0}};
        struct rbk_touch touch;
        struct rbk_answer answer;
        size_t failed;

        rbk_table_place(table, &key, &touch.place);
        if (rbk_table_torn(table, touch.place.shard))
            rbk_table_recover(table, touch.place.shard);
        if (rbk_table_torn(table, touch.place.shard))
            abort();
        rbk_table_find(table, &touch, &claim.state);
        if (!rbk_state_readable(&claim.state))
            continue;
        rbk_decide(&ask, &claim, 1, &answer);
        if (claim.change != RBK_KEEP)
            (void)rbk_table_apply(table, &touch, &claim, &(struct rbk_apply){1, now}, &failed);
    }
}

/* Finds zones and adds some; what is told of lies in the header. */
static void use_zones(struct rbk_table *table)
{
    static const char *const names[] = {"ip", "user", "a zone with a longer name"};
    const unsigned char *zone;
    size_t len;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (rbk_table_zone(table, (const unsigned char *)names[i], strlen(names[i])) >
            RBK_TABLE_ZONES)
            abort();
    }
    for (unsigned i = 0; i <= RBK_TABLE_ZONES + 1; i++) {
        if (rbk_table_zone_name(table, i, &zone, &len) &&
            (zone < table->header->names || len > RBK_ZONE_NAMES ||
             zone + len > table->header->names + RBK_ZONE_NAMES))
            abort();
    }
}

/* Keys of all lengths, those of a template among them. */
static void use(struct rbk_table *table, unsigned first, unsigned len)
{
    char text[400];

    use_zones(table);
    memset(text, 'k', sizeof text);
    for (unsigned i = first; i < first + len; i++) {
        text[0] = (char)('a' + i);
        use_key(table, text, 1 + i * 10 % sizeof text, i);
    }
}

/* Short keys, until there is no room for more. */
static void fill(struct rbk_table *table)
{
    char text[] = "....";

    for (unsigned i = 0; i < rbk_table_capacity(table); i++) {
        text[0] = (char)i;
        text[1] = (char)(i >> 8);
        use_key(table, text, sizeof text, 0.0);
    }
}

/* All claims of one request at once. */
static void use_together(struct rbk_table *table)
{
    static const char texts[] = "abcdefgh................................................";
    struct rbk_claim claims[4];
    struct rbk_touch touches[4];
    struct rbk_ask ask = {RBK_REQUEST, 1.0, 0.0, 7.0};
    struct rbk_answer answer;
    size_t failed = 0;

    for (size_t i = 0; i < 4; i++) {
        struct rbk_key key = {(const unsigned char *)"zone", 4, (const unsigned char *)texts + i,
                              1 + i * 16};

        claims[i] = (struct rbk_claim){.limit = {1.0, 2.0, 1.0}};
        rbk_table_place(table, &key, &touches[i].place);
        if (rbk_table_torn(table, touches[i].place.shard))
            rbk_table_recover(table, touches[i].place.shard);
        rbk_table_find(table, &touches[i], &claims[i].state);
        if (!rbk_state_readable(&claims[i].state))
            return;
    }
    rbk_decide(&ask, claims, 4, &answer);
    if (answer.accepted &&
        !rbk_table_apply(table, touches, claims, &(struct rbk_apply){4, 7.0}, &failed) &&
        failed >= 4)
        abort();
}

/* What is told of lies in the piece, and each step goes on. */
static void walk(const struct rbk_table *table)
{
    static unsigned char text[RBK_TABLE_WALK_TEXT];
    static struct rbk_table_seen seen[100];
    unsigned sum = 0;

    for (uint64_t slot = 0; slot < rbk_table_capacity(table);) {
        struct rbk_table_piece piece = {.seen = seen, .most = 100, .text = text};
        uint64_t next = rbk_table_walk(table, slot, &piece);

        if (next <= slot || piece.len > piece.most || piece.text_len > sizeof text ||
            rbk_table_walk_shard(table, slot) >= rbk_table_shards(table))
            abort();
        for (size_t i = 0; i < piece.len; i++) {
            if ((size_t)seen[i].begin + seen[i].zone_len + seen[i].key_len > piece.text_len)
                abort();
            for (size_t j = 0; j < seen[i].zone_len + seen[i].key_len; j++)
                sum += text[seen[i].begin + j];
        }
        slot = next;
    }
    (void)*(volatile unsigned *)&sum;
}

static const uint64_t secret[2] = {1, 2};

static void make(unsigned char *bytes, size_t size, struct rbk_table *table)
{
    struct rbk_table_plan plan;

    if (!rbk_table_plan(size, 1, &plan))
        abort();
    rbk_table_format(bytes, size, &plan, secret);
    if (!rbk_table_attach(table, bytes, size))
        abort();
}

/* What both kinds of tables begin as: made once, since that takes longer than all else. */
static const unsigned char *template_of(bool full)
{
    static _Alignas(4096) unsigned char templates[2][SIZE];
    static bool made;
    struct rbk_table table;

    for (size_t i = 0; i < 2 && !made; i++) {
        make(templates[i], SIZE, &table);
        if (i == 1)
            fill(&table);
        use(&table, 0, 40);
    }
    made = true;
    return templates[full];
}

/* Into a table that has room for all of it. */
static void copy(const struct rbk_table *table)
{
    static _Alignas(4096) unsigned char bytes[4u * SIZE];
    struct rbk_table other;

    memset(bytes, 0, sizeof bytes);
    make(bytes, sizeof bytes, &other);
    other.growing = true;
    (void)rbk_table_copy(&other, table, 10.0);
    rbk_table_take_counts(&other, table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *bytes = malloc(SIZE);
    unsigned begin = size > 0 ? data[0] : 0;
    struct rbk_table_counts counts = {0};
    struct rbk_table table;

    if (bytes == NULL)
        abort();
    memcpy(bytes, template_of((begin & 1) != 0), SIZE);
    if (size > 1)
        patch(bytes, data + 1, size - 1);
    if (rbk_table_attach(&table, bytes, SIZE)) {
        table.growing = (begin & 2) != 0;
        walk(&table);
        if ((begin & 4) != 0)
            copy(&table);
        use(&table, 35, 10);
        use_together(&table);
        rbk_table_count(&table, 0, &counts);
        (void)rbk_table_live(&table, 10.0);
        if (counts.buckets > rbk_table_capacity(&table))
            abort();
    }
    free(bytes);
    return 0;
}
