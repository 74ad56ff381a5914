/* SPDX-License-Identifier: MIT */
/*
 * The CRC that the specification of Redis Cluster names: CRC-16/XMODEM, the polynomial
 * x^16 + x^12 + x^5 + 1 of CCITT (0x1021), begun with 0, nothing reflected, nothing added at the
 * end. "123456789" has 0x31c3.
 */
#include "wire/slot.h"

#include <stdint.h>
#include <string.h>

/*
 * A byte at a time without a table. Let x be the byte that the division by the polynomial takes
 * off the front: the register's high byte, the new byte added. Since the polynomial's next term is
 * 4 bits below its first, x also changes its own lower half, which x ^ x >> 4 makes up for. What
 * the division then adds are the lower terms times x: x at 0, at 5 and at 12.
 */
static uint16_t crc16(const unsigned char *bytes, size_t len)
{
    unsigned crc = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned x = (crc >> 8 ^ bytes[i]) & 0xff;

        x ^= x >> 4;
        crc = (crc << 8 ^ x << 12 ^ x << 5 ^ x) & 0xffff;
    }
    return (uint16_t)crc;
}

unsigned rbk_slot_of(const unsigned char *name, size_t len)
{
    const unsigned char *open = len > 0 ? memchr(name, '{', len) : NULL;

    if (open != NULL) {
        const unsigned char *tag = open + 1;
        const unsigned char *close = memchr(tag, '}', len - (size_t)(tag - name));

        if (close != NULL && close > tag)
            return crc16(tag, (size_t)(close - tag)) % RBK_SLOTS;
    }
    return crc16(name, len) % RBK_SLOTS;
}
