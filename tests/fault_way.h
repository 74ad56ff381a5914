/* SPDX-License-Identifier: MIT */
/*
 * One direction of a connection that goes through a bad network: what came and waits for its time,
 * in the order in which it came, and what becomes of it. It knows of time what it is told.
 */
#ifndef TEST_FAULT_WAY_H
#define TEST_FAULT_WAY_H

#include "fault_weather.h"
#include "resp_heads.h"

#include <stddef.h>

struct test_piece;

/*
 *   to       where it goes, a socket
 *   replies  whether a server speaks
 *   ended    nothing more is taken
 *   lost     nobody is there to get it: it is thrown away
 *   deaf     it is thrown away and nobody is told
 *   cut      the connection ends when what waits has gone; `abrupt`, as by a crash
 *   blocked  the other side takes nothing at the moment
 *   waiting  bytes that wait
 */
struct test_way {
    int to;
    bool replies;
    bool ended;
    bool lost;
    bool deaf;
    bool cut;
    bool abrupt;
    bool blocked;
    size_t waiting;
    uint64_t free_us; /* when the last that came will have gone */
    struct test_piece *first;
    struct test_piece *last;
    struct test_heads heads;
};

/* What the network is like, and what it draws. What is sealed can't be looked into, and garbage in
 * any place of it is found out by whoever opens it. */
struct test_network {
    bool sealed;
    struct test_weather weather;
    struct test_chance chance;
    struct test_fault_counts counts;
};

/* Something came. True when the connection is to be deaf the other way as well. */
bool test_way_take(struct test_way *way, const char *bytes, size_t len, uint64_t now_us,
                   struct test_network *network);

/* The client is given what no server says, unasked. Only between two replies. */
void test_way_lie(struct test_way *way, uint64_t now_us, struct test_network *network);

/* Passes on what is due, and returns how many bytes. */
size_t test_way_pass(struct test_way *way, uint64_t now_us);

/* When something is due, or UINT64_MAX. */
uint64_t test_way_due(const struct test_way *way);

/* Everything is due now, and whole. */
void test_way_hurry(struct test_way *way);

/* Throws away what waits. */
void test_way_clear(struct test_way *way);

#endif
