/* SPDX-License-Identifier: MIT */
/*
 * Follows what a server says as far as it takes to know where the head of a reply stands: the type
 * and what belongs to it, up to the end of its line. A head that is damaged is no reply any more,
 * whoever reads it; a body that is damaged is a good reply that lies.
 */
#ifndef TEST_RESP_HEADS_H
#define TEST_RESP_HEADS_H

#include <stdbool.h>
#include <stddef.h>

#define TEST_HEADS_DEPTH 16

enum test_head {
    TEST_HEAD_FIRST, /* the byte that says the type */
    TEST_HEAD_REST,
    TEST_HEAD_BODY,
};

/* All 0 is the beginning of a connection. */
struct test_heads {
    bool in_head;
    char type;
    bool negative;
    long long number;
    long long body_left;
    size_t depth;
    long long left[TEST_HEADS_DEPTH]; /* of each array that it is in */
};

/* What the next byte is. */
enum test_head test_heads_next(struct test_heads *heads, char byte);

/* Whether the last reply that began is complete. */
bool test_heads_between(const struct test_heads *heads);

#endif
