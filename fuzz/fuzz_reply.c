/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as replies, cut as the first byte says: what is read is whole and within its bounds,
 * and the cutting makes no difference. What the bytes say of a server, or mean as an error, is read
 * too. Links the library's private reader.
 */
#include "redis/connection.h"
#include "redis/reader.h"
#include "redis/server.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Goes through a reply, and returns a sum of what is in it. */
static uint64_t walk(const struct rbk_reply *reply, size_t depth, size_t *elements)
{
    uint64_t sum = (uint64_t)reply->type * 31 + reply->len;

    switch (reply->type) {
    case RBK_REPLY_STATUS:
    case RBK_REPLY_STRING:
    case RBK_REPLY_ERROR:
        if (reply->text[reply->len] != '\0' || reply->len > RBK_REPLY_BYTES_MAX)
            abort();
        for (size_t i = 0; i < reply->len; i++)
            sum = sum * 33 + (unsigned char)reply->text[i];
        break;
    case RBK_REPLY_ARRAY:
        *elements += reply->len;
        if (depth >= RBK_REPLY_DEPTH_MAX || *elements > RBK_REPLY_ELEMENTS_MAX)
            abort();
        for (size_t i = 0; i < reply->len; i++)
            sum = sum * 37 + walk(&reply->elements[i], depth + 1, elements);
        break;
    default:
        sum += (uint64_t)reply->integer;
    }
    return sum;
}

static void understand(const struct rbk_reply *reply)
{
    struct rbk_server server = {.replica = false};
    char words[RBK_SERVER_WORDS_SIZE];
    bool usable;

    rbk_server_read_info(&server, reply);
    rbk_server_read_role(&server, reply);
    if (reply->type != RBK_REPLY_ERROR)
        return;
    (void)rbk_server_error(reply->text, &usable);
    (void)rbk_server_forgot_script(reply->text);
    rbk_server_words(reply->text, words);
}

/* Reads all replies in pieces; returns a sum of them and of how it ended. */
static uint64_t read_all(const uint8_t *data, size_t size, size_t piece)
{
    struct rbk_reader *reader = rbk_reader_create();
    enum redbucket_status status = REDBUCKET_OK;
    uint64_t sum = 0;

    if (reader == NULL)
        abort();
    for (size_t at = 0; at < size && status == REDBUCKET_OK; at += piece) {
        bool complete = true;

        status = rbk_reader_feed(reader, data + at, size - at < piece ? size - at : piece);
        while (status == REDBUCKET_OK && complete) {
            struct rbk_reply reply;
            size_t elements = 0;

            status = rbk_reader_next(reader, &reply, &complete);
            if (status != REDBUCKET_OK || !complete)
                break;
            sum = sum * 41 + walk(&reply, 0, &elements);
            understand(&reply);
        }
    }
    if (status != REDBUCKET_OK && status != REDBUCKET_ERROR_PROTOCOL)
        abort();
    rbk_reader_destroy(reader);
    return sum * 2 + (status != REDBUCKET_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t piece = (size_t)data[0] + 1;
    uint64_t sum = read_all(data + 1, size - 1, piece);

    if (sum != read_all(data + 1, size - 1, size))
        abort();
    return 0;
}
