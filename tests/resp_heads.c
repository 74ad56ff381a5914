/* SPDX-License-Identifier: MIT */
/*
 * Only what real servers say in RESP 2: strings, arrays, and lines.
 */
#include "resp_heads.h"

static void end_element(struct test_heads *heads)
{
    while (heads->depth > 0 && --heads->left[heads->depth - 1] == 0)
        heads->depth--;
}

static void end_head(struct test_heads *heads)
{
    heads->in_head = false;
    if (heads->type == '$' && !heads->negative) {
        heads->body_left = heads->number + 2;
    } else if (heads->type == '*' && !heads->negative && heads->number > 0 &&
               heads->depth < TEST_HEADS_DEPTH) {
        heads->left[heads->depth++] = heads->number;
    } else {
        end_element(heads);
    }
}

enum test_head test_heads_next(struct test_heads *heads, char byte)
{
    if (heads->body_left > 0) {
        if (--heads->body_left == 0)
            end_element(heads);
        return TEST_HEAD_BODY;
    }
    if (!heads->in_head) {
        heads->in_head = true;
        heads->type = byte;
        heads->negative = false;
        heads->number = 0;
        return TEST_HEAD_FIRST;
    }
    if (byte == '\n')
        end_head(heads);
    else if (byte == '-')
        heads->negative = true;
    else if (byte >= '0' && byte <= '9' && heads->number < 1 << 30)
        heads->number = heads->number * 10 + (byte - '0');
    return TEST_HEAD_REST;
}

bool test_heads_between(const struct test_heads *heads)
{
    return !heads->in_head && heads->body_left == 0 && heads->depth == 0;
}
