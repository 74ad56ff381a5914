/* SPDX-License-Identifier: MIT */
/*
 * States as bytes. Doubles go through their bits, so that neither byte order nor locale matters.
 */
#include "wire/codec.h"

#include "wire/json_state.h"

#include <string.h>

void rbk_double_write(double number, unsigned char out[8])
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(bits >> 8 * i);
}

double rbk_double_read(const unsigned char bytes[8])
{
    uint64_t bits = 0;
    double number;

    for (int i = 0; i < 8; i++)
        bits |= (uint64_t)bytes[i] << 8 * i;
    memcpy(&number, &bits, sizeof number);
    return number;
}

size_t rbk_state_encode(enum rbk_codec codec, const struct rbk_state *state,
                        unsigned char out[RBK_STATE_SIZE])
{
    if (codec == RBK_CODEC_JSON)
        return rbk_json_state_encode(state, out);
    rbk_double_write(state->timestamp, out);
    rbk_double_write(state->value, out + 8);
    return 16;
}

bool rbk_state_decode(enum rbk_codec codec, const unsigned char *bytes, size_t len,
                      struct rbk_state *state)
{
    struct rbk_state read = {.exists = true};

    if (codec == RBK_CODEC_JSON) {
        if (!rbk_json_state_decode((const char *)bytes, len, &read))
            return false;
    } else {
        if (len != 16)
            return false;
        read.timestamp = rbk_double_read(bytes);
        read.value = rbk_double_read(bytes + 8);
    }
    if (!rbk_state_readable(&read))
        return false;
    *state = read;
    return true;
}
