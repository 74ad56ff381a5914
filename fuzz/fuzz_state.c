/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a state under both codecs: reading them is safe, and what is read is written so that
 * it reads back as the same state, by the other codec as well. Any two doubles are written as JSON
 * that reads back as just these. Links the library's private codecs.
 */
#include "wire/codec.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int same(double a, double b)
{
    /* A -0 is written as 0. */
    return memcmp(&a, &b, sizeof a) == 0 || (a == 0.0 && b == 0.0);
}

static void write_and_read(const struct rbk_state *state)
{
    static const enum rbk_codec codecs[] = {RBK_CODEC_STRUCT, RBK_CODEC_JSON};

    for (size_t i = 0; i < 2; i++) {
        unsigned char bytes[RBK_STATE_SIZE];
        size_t len = rbk_state_encode(codecs[i], state, bytes);
        struct rbk_state again;

        if (len > RBK_STATE_SIZE || !rbk_state_decode(codecs[i], bytes, len, &again))
            abort();
        if (!again.exists || !same(again.timestamp, state->timestamp) ||
            !same(again.value, state->value))
            abort();
    }
}

static void read_as(enum rbk_codec codec, const uint8_t *data, size_t size)
{
    struct rbk_state state = {.exists = false, .timestamp = 7, .value = 7};

    if (rbk_state_decode(codec, data, size, &state)) {
        if (!state.exists || !isfinite(state.timestamp) || !isfinite(state.value))
            abort();
        write_and_read(&state);
    } else if (state.exists || state.timestamp != 7 || state.value != 7) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_as(RBK_CODEC_STRUCT, data, size);
    read_as(RBK_CODEC_JSON, data, size);
    if (size >= 16)
        read_as(RBK_CODEC_STRUCT, data, 16);
    return 0;
}
