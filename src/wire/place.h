/* SPDX-License-Identifier: MIT */
/*
 * Where a node of a cluster is, as the nodes themselves tell it.
 *
 * Invariant: a place that was read has a host of the bytes that names and addresses are made of, at
 * least one, and a port that can be connected to. What a server says reaches no path and no
 * message as anything else.
 */
#ifndef RBK_WIRE_PLACE_H
#define RBK_WIRE_PLACE_H

#include "wire/reply.h"

#include <stdbool.h>

#define RBK_PLACE_HOST_MAX 253

struct rbk_place {
    char host[RBK_PLACE_HOST_MAX + 1]; /* a name, or an address without brackets */
    unsigned port;
};

/*
 * Reads a host, with the host of `asked` for one that is empty or "?": a node that doesn't know its
 * own name, or must not tell it, means the one under which it was reached. False when it can't be
 * one. `text` needs no end. `port` is checked as well.
 */
bool rbk_place_read(const char *text, size_t len, long long port, const struct rbk_place *asked,
                    struct rbk_place *place);

bool rbk_place_same(const struct rbk_place *a, const struct rbk_place *b);

#endif
