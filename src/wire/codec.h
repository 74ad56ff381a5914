/* SPDX-License-Identifier: MIT */
/*
 * States as stored on a server: byte for byte what the original Python redbucket stores.
 *
 *   struct  16 bytes: timestamp and value, little-endian IEEE-754 doubles
 *   json    {"t":TIMESTAMP,"v":VALUE}, members in any order, others passed over
 *
 * Reading is strict: what isn't exactly a state, with finite numbers, can't be read. The script has
 * a reader of its own, which has to agree with this one about every text.
 */
#ifndef RBK_WIRE_CODEC_H
#define RBK_WIRE_CODEC_H

#include "model/bucket.h"

#include <stddef.h>

enum rbk_codec {
    RBK_CODEC_STRUCT,
    RBK_CODEC_JSON,
};

/* Enough for any encoded state. */
#define RBK_STATE_SIZE 96

/* Longer texts are no states: what a server may be made to answer is bounded. */
#define RBK_STATE_TEXT_MAX 4096u

/* Writes the state's bytes, and returns how many. */
size_t rbk_state_encode(enum rbk_codec codec, const struct rbk_state *state,
                        unsigned char out[RBK_STATE_SIZE]);

/* False when the bytes are no state. */
bool rbk_state_decode(enum rbk_codec codec, const unsigned char *bytes, size_t len,
                      struct rbk_state *state);

/* One double, little-endian. */
void rbk_double_write(double number, unsigned char out[8]);
double rbk_double_read(const unsigned char bytes[8]);

#endif
