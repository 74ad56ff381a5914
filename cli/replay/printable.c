/* SPDX-License-Identifier: MIT */
/*
 * Texts and numbers as people read them, with no locale having a say in it.
 */
#include "printable.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One byte's text, up to four columns. */
static size_t escape(unsigned char byte, char out[5])
{
    static const char digits[] = "0123456789abcdef";

    if (byte == '\\') {
        memcpy(out, "\\\\", 3);
        return 2;
    }
    if (byte >= 0x20 && byte < 0x7f) {
        out[0] = (char)byte;
        return 1;
    }
    out[0] = '\\';
    out[1] = 'x';
    out[2] = digits[byte >> 4];
    out[3] = digits[byte & 15];
    return 4;
}

size_t rbk_printable(struct rbk_span bytes, size_t whole_len, size_t columns,
                     char out[RBK_PRINTABLE_SIZE])
{
    size_t len = 0;
    size_t cut = 0; /* as much as leaves room for the dots */
    size_t i;

    for (i = 0; i < bytes.len; i++) {
        char text[5];
        const size_t more = escape((unsigned char)bytes.bytes[i], text);

        if (len + more > columns)
            break;
        memcpy(out + len, text, more);
        len += more;
        if (len + 3 <= columns)
            cut = len;
    }
    if (i < whole_len) {
        memcpy(out + cut, "...", 3);
        len = cut + 3;
    }
    out[len] = '\0';
    return len;
}

void rbk_grouped(uint64_t number, char out[RBK_NUMBER_SIZE])
{
    char digits[RBK_NUMBER_SIZE];
    const int len = snprintf(digits, sizeof(digits), "%" PRIu64, number);
    size_t at = 0;

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

void rbk_share(uint64_t part, uint64_t whole, char out[RBK_NUMBER_SIZE])
{
    /* Counts of lines are far below the 2^54 at which this would overflow. */
    const uint64_t tenths = whole ? (part * 1000 + whole / 2) / whole : 0;

    if (whole == 0)
        snprintf(out, RBK_NUMBER_SIZE, "-");
    else if (part > 0 && tenths == 0)
        snprintf(out, RBK_NUMBER_SIZE, "<0.1 %%");
    else if (part < whole && tenths == 1000)
        snprintf(out, RBK_NUMBER_SIZE, ">99.9 %%");
    else
        snprintf(out, RBK_NUMBER_SIZE, "%" PRIu64 ".%" PRIu64 " %%", tenths / 10, tenths % 10);
}
