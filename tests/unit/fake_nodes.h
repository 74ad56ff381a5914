/* SPDX-License-Identifier: MIT */
/*
 * Nodes of a cluster of the imagination, behind the functions of src/redis/connection.h, each of
 * which answers as a test says. Linked into a program, they keep the real ones out of it. Time
 * stands still, but while somebody waits for what doesn't come.
 */
#ifndef TEST_FAKE_NODES_H
#define TEST_FAKE_NODES_H

#include "redis/connection.h"

#define FAKE_NODES_MAX 24
#define FAKE_SAYS_MAX  12

/* In the place of what a node says: no answer, until the deadline; the connection breaks; and an
 * answer that is none. */
#define FAKE_SILENT  "silent"
#define FAKE_BREAKS  "breaks"
#define FAKE_GARBAGE "garbage"

/*
 *   where   "a:1"
 *   open    how connecting to it fares; TIMEOUT: it takes all the time there is
 *   slow    seconds that connecting takes
 *   slots   what it says of who serves which: "0-99 a:1,100-16383 b:1"; NULL: an error
 *   says    its answers to scripts, in turn: an error's text, or a word from above; behind the
 * last, and where one is NULL, it does what it is asked said    how many of them it has given
 *   unsent  the next exchange fails before anything is sent
 */
struct fake_node {
    const char *where;
    enum redbucket_status open;
    double slow;
    const char *slots;
    const char *says[FAKE_SAYS_MAX];
    size_t said;
    bool unsent;
};

/*
 *   log     all that was said: "a:1 SLOTS; a:1 ASKING; a:1 EVALSHA take 1 2; ", with the ends of
 * keys opens   to whom it was tried to connect, in turn: "a:1 b:1 " opened  connections, and those
 * of them that are closed  closed again now     what time it is
 */
struct fake_nodes {
    struct fake_node nodes[FAKE_NODES_MAX];
    char log[4096];
    char opens[1024];
    unsigned opened;
    unsigned closed;
    double now;
};

extern struct fake_nodes fake_nodes;

/* No nodes, and nothing said yet. */
void fake_nodes_reset(void);

/* Puts a node there, or returns the one that is. */
struct fake_node *fake_node(const char *where);

#endif
