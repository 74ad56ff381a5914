/* SPDX-License-Identifier: MIT */
/*
 * Calls that are about to be made to two nodes of the imagination, a:1 and b:1, for tests of what
 * becomes of them.
 */
#ifndef TEST_SHOTS_H
#define TEST_SHOTS_H

#include "fake_nodes.h"
#include "redis/volley.h"

#define SHOTS_MAX 24

/* Slots of a:1 and of b:1. */
#define SLOT_A 5
#define SLOT_B 15000
#define ALL_B  "0-16383 b:1"

#define MOVED_TO_B "MOVED 5 b:1"
#define ASK_B      "ASK 5 b:1"

#define URL "redis+cluster://a:1,b:1?timeout=1"

extern struct rbk_redis_options options;
extern struct rbk_nodes nodes;
extern struct rbk_shot shots[SHOTS_MAX];
extern size_t shots_len;

/* Opens the nodes of a URL, of which there may be others than the two. */
void open_nodes(const char *url);

/* The two nodes, and nothing known of them but what the URL says. */
void begin(const char *url);

/* The same, but the map has been read, and a connection to each has been made. */
void begin_known(const char *url);

/* Closes the nodes, and every connection has been closed. */
void close_nodes(void);

/* Another request for a bucket of a slot, or for two (-1: one). Their levels are their keys. */
void aim(unsigned slot, int key, int other);

/* Lets all of them go, and looks at who got which answer. */
void fly(double seconds);

/* What became of a request; what was said since this was looked at last. */
void assert_status(size_t i, enum redbucket_status status);
void assert_log(const char *log);

#endif
