/* SPDX-License-Identifier: MIT */
/*
 * Reading files, compressed or not.
 *
 * zlib's own file functions throw away what a damaged file still gave, and can't tell where a file
 * was cut off; so its decoder is driven here. A gzip file may be several, one after the other, and
 * may be filled up with zeros.
 */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { RAW_SIZE = 128 * 1024 };

/*
 *   raw      bytes of the file, read and not yet used: from raw_at to raw_len
 *   ended    the file has no more bytes
 *   between  a gzip member has ended and no other has begun
 */
struct rbk_input {
    int fd;
    bool gzip;
    bool ended;
    bool between;
    uint64_t consumed;
    size_t raw_at;
    size_t raw_len;
    z_stream stream;
    unsigned char raw[RAW_SIZE];
};

static enum redbucket_status fail(struct redbucket_error *error, const char *what,
                                  const char *detail)
{
    if (error) {
        error->status = REDBUCKET_ERROR_SYSTEM;
        error->position = -1;
        snprintf(error->message, sizeof(error->message), "%s%s%s", what, detail ? ": " : "",
                 detail ? detail : "");
    }
    return REDBUCKET_ERROR_SYSTEM;
}

/* read(), undisturbed by signals. */
static enum redbucket_status read_some(struct rbk_input *input, void *bytes, size_t size,
                                       size_t *got, struct redbucket_error *error)
{
    ssize_t count;

    do
        count = read(input->fd, bytes, size);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return fail(error, strerror(errno), NULL);
    *got = (size_t)count;
    input->ended = count == 0;
    input->consumed += *got;
    return REDBUCKET_OK;
}

static enum redbucket_status raw_fill(struct rbk_input *input, struct redbucket_error *error)
{
    enum redbucket_status status;
    size_t got = 0;

    if (input->raw_at == input->raw_len)
        input->raw_at = input->raw_len = 0;
    status = read_some(input, input->raw + input->raw_len, RAW_SIZE - input->raw_len, &got, error);
    input->raw_len += got;
    return status;
}

/* Reads until the first bytes tell what the file is; a pipe may give them one by one. */
static enum redbucket_status recognise(struct rbk_input *input, struct redbucket_error *error)
{
    enum redbucket_status status = REDBUCKET_OK;

    while (status == REDBUCKET_OK && !input->ended && input->raw_len < 3)
        status = raw_fill(input, error);
    if (status != REDBUCKET_OK)
        return status;
    input->gzip = input->raw_len >= 3 && memcmp(input->raw, "\x1f\x8b\x08", 3) == 0;
    /* 15: the largest window; 16: gzip and nothing else. */
    if (input->gzip && inflateInit2(&input->stream, 15 + 16) != Z_OK) {
        input->gzip = false;
        return fail(error, "out of memory", NULL);
    }
    return REDBUCKET_OK;
}

enum redbucket_status rbk_input_open(const char *path, struct rbk_input **opened,
                                     struct redbucket_error *error)
{
    struct rbk_input *input = calloc(1, sizeof(*input));
    enum redbucket_status status;

    if (!input)
        return fail(error, "out of memory", NULL);
    input->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0) {
        status = fail(error, strerror(errno), NULL);
        free(input);
        return status;
    }
    status = recognise(input, error);
    if (status != REDBUCKET_OK) {
        rbk_input_close(input);
        return status;
    }
    *opened = input;
    return REDBUCKET_OK;
}

void rbk_input_close(struct rbk_input *input)
{
    if (!input)
        return;
    if (input->gzip)
        inflateEnd(&input->stream);
    if (input->fd != STDIN_FILENO)
        close(input->fd);
    free(input);
}

uint64_t rbk_input_consumed(const struct rbk_input *input)
{
    return input->consumed - (input->raw_len - input->raw_at);
}

/* What follows a gzip member: another one, filling zeros, or the end. */
static enum redbucket_status member_begin(struct rbk_input *input, struct redbucket_error *error)
{
    while (input->raw_at < input->raw_len && input->raw[input->raw_at] == 0)
        input->raw_at++;
    if (input->raw_at == input->raw_len)
        return REDBUCKET_OK;
    if (input->raw[input->raw_at] != 0x1f)
        return fail(error, "damaged gzip file", "other bytes behind its end");
    inflateReset(&input->stream);
    input->between = false;
    return REDBUCKET_OK;
}

/* Decodes what is there; `out` may stay empty. */
static enum redbucket_status decode(struct rbk_input *input, struct redbucket_error *error)
{
    int result;

    input->stream.next_in = input->raw + input->raw_at;
    input->stream.avail_in = (uInt)(input->raw_len - input->raw_at);
    result = inflate(&input->stream, Z_NO_FLUSH);
    input->raw_at = input->raw_len - input->stream.avail_in;
    if (result == Z_STREAM_END)
        input->between = true;
    else if (result == Z_MEM_ERROR)
        return fail(error, "out of memory", NULL);
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return fail(error, "damaged gzip file", input->stream.msg);
    return REDBUCKET_OK;
}

static enum redbucket_status gzip_read(struct rbk_input *input, char *bytes, size_t size,
                                       size_t *got, struct redbucket_error *error)
{
    enum redbucket_status status = REDBUCKET_OK;
    bool at_end = false;

    input->stream.next_out = (Bytef *)bytes;
    input->stream.avail_out = (uInt)size;
    while (status == REDBUCKET_OK && !at_end && input->stream.avail_out == size) {
        if (input->raw_at == input->raw_len && !input->ended)
            status = raw_fill(input, error);
        if (status == REDBUCKET_OK && input->between)
            status = member_begin(input, error);
        /* At the end once more: the decoder may still hold what it had no room for. */
        at_end = input->raw_at == input->raw_len && input->ended;
        if (status == REDBUCKET_OK && !input->between)
            status = decode(input, error);
    }
    *got = size - input->stream.avail_out;
    if (*got > 0) /* a fault comes up again when there is nothing left to give out */
        return REDBUCKET_OK;
    if (status == REDBUCKET_OK && !input->between)
        return fail(error, "damaged gzip file", "it ends too early");
    return status;
}

enum redbucket_status rbk_input_read(struct rbk_input *input, char *bytes, size_t size, size_t *got,
                                     struct redbucket_error *error)
{
    const size_t waiting = input->raw_len - input->raw_at;

    if (input->gzip)
        return gzip_read(input, bytes, size < RAW_SIZE ? size : RAW_SIZE, got, error);
    if (waiting == 0 && input->ended) {
        *got = 0;
        return REDBUCKET_OK;
    }
    if (waiting == 0)
        return read_some(input, bytes, size, got, error);
    *got = waiting < size ? waiting : size;
    memcpy(bytes, input->raw + input->raw_at, *got);
    input->raw_at += *got;
    return REDBUCKET_OK;
}
