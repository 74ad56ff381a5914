/* SPDX-License-Identifier: MIT */
/*
 * A table whose bytes may be anything: the input is a list of patches (offset, length, bytes) to a
 * good table, its header included. Whatever they make of it, nothing is read or written outside and
 * every call ends. Links the library's own files alone.
 */
#include "table/walk.h"

#include <stdlib.h>
#include <string.h>

#define SIZE (4096u + 6u * 4096u)

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
        rbk_table_find(table, &touch, &claim.state);
        if (!rbk_state_readable(&claim.state))
            continue;
        rbk_decide(&ask, &claim, 1, &answer);
        if (claim.change != RBK_KEEP)
            (void)rbk_table_apply(table, &touch, &claim, &(struct rbk_apply){1, now}, &failed);
    }
}

static void use(struct rbk_table *table)
{
    char text[400];

    memset(text, 'k', sizeof text);
    for (unsigned i = 0; i < 40; i++) {
        text[0] = (char)('a' + i);
        use_key(table, text, 1 + i * 10 % sizeof text, i);
    }
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t secret[2] = {1, 2};
    unsigned char *bytes = calloc(1, SIZE);
    unsigned char *other = calloc(1, 4u * SIZE);
    struct rbk_table_plan plan;
    struct rbk_table table, copy;

    if (bytes == NULL || other == NULL || !rbk_table_plan(SIZE, 1, &plan))
        abort();
    rbk_table_format(bytes, SIZE, &plan, secret);
    if (!rbk_table_attach(&table, bytes, SIZE))
        abort();
    use(&table);
    patch(bytes, data, size);
    if (rbk_table_attach(&table, bytes, SIZE)) {
        struct rbk_table_counts counts = {0};

        use(&table);
        rbk_table_count(&table, 0, &counts);
        if (!rbk_table_plan(4u * SIZE, 1, &plan))
            abort();
        rbk_table_format(other, 4u * SIZE, &plan, secret);
        if (!rbk_table_attach(&copy, other, 4u * SIZE))
            abort();
        copy.growing = true;
        walk(&table);
        (void)rbk_table_live(&table, 10.0);
        (void)rbk_table_copy(&copy, &table, 10.0);
    }
    free(bytes);
    free(other);
    return 0;
}
