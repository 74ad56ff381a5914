/* SPDX-License-Identifier: MIT */
/*
 * The json codec. Apart from the rest because reading strictly takes a reader: Lua's cjson takes
 * NaN, Infinity, 0x10 and 01 for numbers, and one that reads as much would let a state that means
 * nothing decide.
 */
#ifndef RBK_WIRE_JSON_STATE_H
#define RBK_WIRE_JSON_STATE_H

#include "wire/codec.h"

size_t rbk_json_state_encode(const struct rbk_state *state, unsigned char out[RBK_STATE_SIZE]);

/* Sets timestamp and value; false when the text isn't one JSON object with both as numbers. */
bool rbk_json_state_decode(const char *text, size_t len, struct rbk_state *state);

#endif
