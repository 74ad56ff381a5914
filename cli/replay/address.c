/* SPDX-License-Identifier: MIT */
/*
 * Cutting addresses to a prefix. inet_pton() and inet_ntop() read and write the canonical spelling
 * and know nothing of the locale; only a whole, plain address gets past inet_pton().
 */
#include "address.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool parse(struct rbk_span text, unsigned char address[16])
{
    char copy[INET6_ADDRSTRLEN];

    /* A NUL inside would hide what follows it. */
    if (text.len >= sizeof(copy) || memchr(text.bytes, '\0', text.len) ||
        !memchr(text.bytes, ':', text.len))
        return false;
    memcpy(copy, text.bytes, text.len);
    copy[text.len] = '\0';
    return inet_pton(AF_INET6, copy, address) == 1;
}

/* Whether the last four bytes are an IPv4 address. */
static bool holds_ipv4(const unsigned char address[16])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const unsigned char translated[12] = {0x00, 0x64, 0xff, 0x9b};

    return memcmp(address, mapped, 12) == 0 || memcmp(address, translated, 12) == 0;
}

static void keep_bits(unsigned char address[16], unsigned bits)
{
    for (unsigned i = 0; i < 16; i++) {
        const unsigned left = bits > i * 8 ? bits - i * 8 : 0;

        if (left < 8)
            address[i] &= (unsigned char)(0xff00u >> left);
    }
}

struct rbk_span rbk_address_prefix(struct rbk_span text, unsigned bits, char out[RBK_ADDRESS_SIZE])
{
    unsigned char address[16];
    size_t len;

    if (!parse(text, address))
        return text;
    if (holds_ipv4(address)) {
        inet_ntop(AF_INET, address + 12, out, RBK_ADDRESS_SIZE);
        return (struct rbk_span){out, strlen(out)};
    }
    keep_bits(address, bits);
    inet_ntop(AF_INET6, address, out, RBK_ADDRESS_SIZE);
    len = strlen(out);
    len += (size_t)snprintf(out + len, RBK_ADDRESS_SIZE - len, "/%u", bits);
    return (struct rbk_span){out, len};
}
