/* SPDX-License-Identifier: MIT */
/*
 * Whatever happens, what is passed on is in order, and nothing is in it that didn't come, but for
 * garbage: that is put into the heads of replies alone, where no reader can take it for an answer.
 */
#include "fault_way.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define JUNK_MAX 64
#define HIGH_BIT 0x80

struct test_piece {
    struct test_piece *next;
    uint64_t due_us;
    size_t len;
    size_t done;
    char bytes[];
};

static const struct {
    const char *bytes;
    size_t len;
} junk[] = {
    {"HTTP/1.1 400 Bad Request\r\n\r\n", 28},
    {"\0", 1},
    {"\0\0\r\n", 4},
    {"\r\n", 2},
    {"\x15\x03\x01\x00\x02\x02\x46", 7},
    {"EVALSHA", 7},
    {"\xff\xfe$5\r\nhello\r\n", 13},
    {"$-7\r\n", 5},
    {"*9999999999\r\n", 13},
    {"$99999999999999999999\r\n", 23},
    {":12x\r\n", 6},
};

#define JUNKS (sizeof junk / sizeof junk[0])

static void append(struct test_way *way, const char *bytes, size_t len, uint64_t due_us)
{
    struct test_piece *piece = malloc(sizeof *piece + len);

    if (piece == NULL)
        abort();
    *piece = (struct test_piece){.due_us = due_us, .len = len};
    memcpy(piece->bytes, bytes, len);
    if (way->first == NULL)
        way->first = piece;
    else
        way->last->next = piece;
    way->last = piece;
    way->waiting += len;
}

/* Puts it in line, as a whole or in pieces, and sets when the way is free again. */
static void line_up(struct test_way *way, const char *bytes, size_t len, uint64_t due_us,
                    struct test_network *network)
{
    const struct test_weather *weather = &network->weather;

    while (len > 0) {
        size_t part = len;

        if (weather->piece_max > 0) {
            size_t most = 1 + test_chance_below(&network->chance, weather->piece_max);

            part = len < most ? len : most;
        }
        append(way, bytes, part, due_us);
        bytes += part;
        len -= part;
        if (len > 0)
            due_us += test_chance_below(&network->chance, weather->gap_us);
    }
    way->free_us = due_us;
}

static uint64_t time_to_pass(struct test_way *way, uint64_t now_us, struct test_network *network)
{
    const struct test_weather *weather = &network->weather;
    uint64_t due_us =
        now_us + weather->latency_us + test_chance_below(&network->chance, weather->jitter_us);

    if (test_chance_of(&network->chance, weather->hold)) {
        due_us += test_chance_below(&network->chance, weather->hold_us);
        network->counts.held++;
    }
    return due_us > way->free_us ? due_us : way->free_us;
}

/* ---- Garbage -------------------------------------------------------------------------------- */

/* The offset of one byte of all heads, any of them, or `len` when there is none. */
static size_t choose_head(struct test_way *way, const char *bytes, size_t len,
                          struct test_chance *chance, bool *first)
{
    size_t chosen = len;
    unsigned seen = 0;

    for (size_t i = 0; i < len; i++) {
        enum test_head head = test_heads_next(&way->heads, bytes[i]);

        if (head == TEST_HEAD_BODY || test_chance_below(chance, ++seen) != 0)
            continue;
        chosen = i;
        *first = head == TEST_HEAD_FIRST;
    }
    return chosen;
}

/* Returns the length of what is in `out` then, which has room for JUNK_MAX more bytes. */
static size_t spoil(struct test_way *way, const char *bytes, size_t len,
                    struct test_network *network, char *out)
{
    bool first = network->sealed;
    size_t at = network->sealed ? test_chance_below(&network->chance, (unsigned)len)
                                : choose_head(way, bytes, len, &network->chance, &first);
    size_t which = test_chance_below(&network->chance, JUNKS);

    memcpy(out, bytes, len);
    if (at == len)
        return len;
    network->counts.garbage++;
    if (!first || test_chance_below(&network->chance, 2) == 0) {
        out[at] = (char)((unsigned char)out[at] ^ HIGH_BIT);
        return len;
    }
    memcpy(out + at, junk[which].bytes, junk[which].len);
    memcpy(out + at + junk[which].len, bytes + at, len - at);
    return len + junk[which].len;
}

/* An answer of the right shape to no question of this kind is junk as well. */
void test_way_lie(struct test_way *way, uint64_t now_us, struct test_network *network)
{
    size_t which = test_chance_below(&network->chance, JUNKS + 1);

    if (way->ended || way->lost || way->deaf || way->cut || !test_heads_between(&way->heads))
        return;
    network->counts.garbage++;
    line_up(way, which < JUNKS ? junk[which].bytes : "+OK\r\n", which < JUNKS ? junk[which].len : 5,
            time_to_pass(way, now_us, network), network);
}

/* ---- In and out ----------------------------------------------------------------------------- */

bool test_way_take(struct test_way *way, const char *bytes, size_t len, uint64_t now_us,
                   struct test_network *network)
{
    struct test_chance *chance = &network->chance;
    uint64_t due_us;
    char *out;

    if (way->lost || way->deaf || way->cut)
        return false;
    network->counts.pieces++;
    if (test_chance_of(chance, network->weather.deaf)) {
        network->counts.deaf++;
        way->deaf = true;
        return test_chance_below(chance, 2) == 0;
    }
    if (test_chance_of(chance, network->weather.cut)) {
        network->counts.cut++;
        way->cut = true;
        way->abrupt = test_chance_below(chance, 2) == 0;
        len = test_chance_below(chance, (unsigned)len + 1);
    }
    due_us = time_to_pass(way, now_us, network);
    out = malloc(len + JUNK_MAX);
    if (out == NULL)
        abort();
    if (way->replies && test_chance_of(chance, network->weather.garbage)) {
        len = spoil(way, bytes, len, network, out);
    } else {
        for (size_t i = 0; way->replies && !network->sealed && i < len; i++)
            (void)test_heads_next(&way->heads, bytes[i]);
        memcpy(out, bytes, len);
    }
    line_up(way, out, len, due_us, network);
    free(out);
    return false;
}

static void drop_first(struct test_way *way)
{
    struct test_piece *piece = way->first;

    way->waiting -= piece->len - piece->done;
    way->first = piece->next;
    if (way->first == NULL)
        way->last = NULL;
    free(piece);
}

size_t test_way_pass(struct test_way *way, uint64_t now_us)
{
    size_t passed = 0;

    way->blocked = false;
    while (way->first != NULL && way->first->due_us <= now_us && !way->blocked && !way->lost) {
        struct test_piece *piece = way->first;
        ssize_t sent = send(way->to, piece->bytes + piece->done, piece->len - piece->done,
                            MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent >= 0) {
            piece->done += (size_t)sent;
            way->waiting -= (size_t)sent;
            passed += (size_t)sent;
        } else if (errno == EAGAIN) {
            way->blocked = true;
        } else {
            way->lost = true;
        }
        if (piece->done == piece->len)
            drop_first(way);
    }
    if (way->lost)
        test_way_clear(way);
    return passed;
}

uint64_t test_way_due(const struct test_way *way)
{
    return way->first == NULL || way->blocked ? UINT64_MAX : way->first->due_us;
}

void test_way_hurry(struct test_way *way)
{
    for (struct test_piece *piece = way->first; piece != NULL; piece = piece->next)
        piece->due_us = 0;
    way->free_us = 0;
}

void test_way_clear(struct test_way *way)
{
    while (way->first != NULL)
        drop_first(way);
}
