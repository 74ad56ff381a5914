/* SPDX-License-Identifier: MIT */
/*
 * Texts that are states in JSON, and texts that aren't, for both of their readers: the library's
 * and the script's.
 */
#ifndef TEST_STATE_TEXTS_H
#define TEST_STATE_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

struct test_state_text {
    const char *text; /* of `len` bytes */
    size_t len;
    bool good;
    double timestamp;
    double value;
};

extern const struct test_state_text test_state_texts[];
extern const size_t test_state_texts_len;

/* The longest text that can be a state. */
#define TEST_STATE_TEXT_MAX 4096

/* Texts with bounds: writes one that is just a state for `over` = 0, and that isn't for 1. Returns
 * its length. */
typedef size_t test_state_bound(char out[TEST_STATE_TEXT_MAX + 1], unsigned over);

extern test_state_bound *const test_state_bounds[];
extern const size_t test_state_bounds_len;

/* Writes a text made of one in the table by a few random changes; returns its length. */
size_t test_state_mutant(unsigned *seed, char out[TEST_STATE_TEXT_MAX]);

#endif
