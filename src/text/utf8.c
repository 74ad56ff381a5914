/* SPDX-License-Identifier: MIT */
/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. All of that
 * shows in the first two bytes.
 */
#include "text/utf8.h"

#include <stdbool.h>

/* The bytes that may follow the first one. */
static void second_range(unsigned char first, unsigned char *low, unsigned char *high)
{
    *low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    *high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
}

static bool within(unsigned char byte, unsigned char low, unsigned char high)
{
    return byte >= low && byte <= high;
}

size_t rbk_utf8_length(const char *text, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)text;
    unsigned char low, high;
    size_t need;

    if (len == 0 || within(bytes[0], 0x80, 0xc1) || bytes[0] > 0xf4)
        return 0;
    need = bytes[0] < 0x80 ? 1 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
    second_range(bytes[0], &low, &high);
    if (need > len || (need > 1 && !within(bytes[1], low, high)))
        return 0;
    for (size_t i = 2; i < need; i++) {
        if (!within(bytes[i], 0x80, 0xbf))
            return 0;
    }
    return need;
}
