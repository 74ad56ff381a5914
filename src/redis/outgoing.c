/* SPDX-License-Identifier: MIT */
/*
 * *N CRLF, and for each argument $LEN CRLF BYTES CRLF. The size is known before the first byte is
 * written, so that there is one place at which memory can run out.
 */
#include "redis/outgoing.h"

#include <stdlib.h>
#include <string.h>

/* What is kept from call to call. */
#define KEPT ((size_t)64 << 10)

/* A sign, a number and a line's end. */
#define HEAD_MAX ((size_t)24)

static size_t write_head(unsigned char *out, char sign, size_t number)
{
    unsigned char digits[HEAD_MAX];
    size_t begin = sizeof digits;
    size_t len;

    digits[--begin] = '\n';
    digits[--begin] = '\r';
    do {
        digits[--begin] = (unsigned char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    digits[--begin] = (unsigned char)sign;
    len = sizeof digits - begin;
    memcpy(out, digits + begin, len);
    return len;
}

/* At most so many bytes; false when that is no number. */
static bool measure(const struct rbk_command *commands, size_t commands_len, size_t *size)
{
    size_t sum = 0;

    for (size_t i = 0; i < commands_len; i++) {
        sum += HEAD_MAX;
        for (size_t j = 0; j < commands[i].len; j++) {
            if (__builtin_add_overflow(sum, HEAD_MAX + 2, &sum) ||
                __builtin_add_overflow(sum, commands[i].arguments[j].len, &sum))
                return false;
        }
    }
    *size = sum;
    return true;
}

static bool reserve(struct rbk_outgoing *outgoing, size_t size)
{
    size_t wanted = size < 1024 ? 1024 : size;

    if (size <= outgoing->size)
        return true;
    unsigned char *bytes = realloc(outgoing->bytes, wanted);

    if (bytes == NULL)
        return false;
    outgoing->bytes = bytes;
    outgoing->size = wanted;
    return true;
}

static void append_argument(struct rbk_outgoing *outgoing, const struct rbk_argument *argument)
{
    outgoing->len += write_head(outgoing->bytes + outgoing->len, '$', argument->len);
    if (argument->len > 0)
        memcpy(outgoing->bytes + outgoing->len, argument->bytes, argument->len);
    outgoing->len += argument->len;
    outgoing->bytes[outgoing->len++] = '\r';
    outgoing->bytes[outgoing->len++] = '\n';
}

enum redbucket_status rbk_outgoing_set(struct rbk_outgoing *outgoing,
                                       const struct rbk_command *commands, size_t commands_len)
{
    size_t size;

    outgoing->len = 0;
    if (!measure(commands, commands_len, &size) || !reserve(outgoing, size))
        return REDBUCKET_ERROR_MEMORY;
    for (size_t i = 0; i < commands_len; i++) {
        outgoing->len += write_head(outgoing->bytes + outgoing->len, '*', commands[i].len);
        for (size_t j = 0; j < commands[i].len; j++)
            append_argument(outgoing, &commands[i].arguments[j]);
    }
    return REDBUCKET_OK;
}

void rbk_outgoing_clear(struct rbk_outgoing *outgoing)
{
    outgoing->len = 0;
    if (outgoing->size > KEPT)
        rbk_outgoing_free(outgoing);
}

void rbk_outgoing_free(struct rbk_outgoing *outgoing)
{
    free(outgoing->bytes);
    *outgoing = (struct rbk_outgoing){0};
}
