/* SPDX-License-Identifier: MIT */
/*
 * Bytes that end where the memory does: whoever reads one too many dies, in every build.
 */
#ifndef TEST_EDGE_H
#define TEST_EDGE_H

#include <stddef.h>

/* Copies the bytes, at most a page of them, flush against a page that can't be read. The copy lasts
 * until the next one. */
const void *test_edge(const void *bytes, size_t len);

#endif
