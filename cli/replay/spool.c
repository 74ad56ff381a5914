/* SPDX-License-Identifier: MIT */
/*
 * Records of one size in a buffer. When it is full it is written behind the file's end; reading
 * takes the file in pieces of another buffer, and then what never left memory.
 */
#include "spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20 };

/*
 *   size     of a record
 *   most     how many records `kept` has room for
 *   filed    how many are in the file
 *   at       the number of the next record to be read
 *   piece    records of the file, the first of which has the number `piece_first`
 */
struct rbk_spool {
    size_t limits;
    size_t size;
    size_t most;
    char *kept;
    size_t kept_len;
    int fd;
    uint64_t filed;
    uint64_t at;
    char *piece;
    uint64_t piece_first;
    size_t piece_len;
    int failed;
};

struct rbk_spool *rbk_spool_create(size_t limits, size_t bytes)
{
    struct rbk_spool *spool = calloc(1, sizeof(*spool));

    if (!spool)
        return NULL;
    spool->fd = -1;
    spool->limits = limits;
    spool->size = sizeof(struct rbk_spool_record) + limits * sizeof(uint64_t);
    spool->most = bytes / spool->size + 1;
    spool->kept = malloc(spool->most * spool->size);
    spool->piece = malloc(PIECE_BYTES);
    if (!spool->kept || !spool->piece) {
        rbk_spool_destroy(spool);
        return NULL;
    }
    return spool;
}

void rbk_spool_destroy(struct rbk_spool *spool)
{
    if (!spool)
        return;
    if (spool->fd >= 0)
        close(spool->fd);
    free(spool->kept);
    free(spool->piece);
    free(spool);
}

/* A file that is gone when it is closed. */
static int file_make(void)
{
    const char *folder = getenv("TMPDIR");
    char name[4096];
    int fd;

    if (!folder || folder[0] == '\0')
        folder = "/tmp";
    if ((size_t)snprintf(name, sizeof(name), "%s/redbucket.XXXXXX", folder) >= sizeof(name)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkstemp(name);
    if (fd >= 0)
        unlink(name);
    return fd;
}

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t written = write(fd, bytes, len);

        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            bytes += written;
            len -= (size_t)written;
        }
    }
    return true;
}

static enum redbucket_status file_append(struct rbk_spool *spool, struct redbucket_error *error)
{
    if (spool->fd < 0)
        spool->fd = file_make();
    if (spool->fd < 0 || !write_all(spool->fd, spool->kept, spool->kept_len * spool->size)) {
        int number = errno;

        *error = (struct redbucket_error){.status = REDBUCKET_ERROR_SYSTEM, .position = -1};
        snprintf(error->message, sizeof(error->message), "temporary file: %s", strerror(number));
        return REDBUCKET_ERROR_SYSTEM;
    }
    spool->filed += spool->kept_len;
    spool->kept_len = 0;
    return REDBUCKET_OK;
}

enum redbucket_status rbk_spool_add(struct rbk_spool *spool, double time_s, double cost,
                                    const uint64_t *hashes, struct redbucket_error *error)
{
    struct rbk_spool_record *record;

    if (spool->kept_len == spool->most) {
        const enum redbucket_status status = file_append(spool, error);

        if (status != REDBUCKET_OK)
            return status;
    }
    record = (void *)(spool->kept + spool->kept_len++ * spool->size);
    record->time_s = time_s;
    record->cost = cost;
    memcpy(record->hashes, hashes, spool->limits * sizeof(uint64_t));
    return REDBUCKET_OK;
}

uint64_t rbk_spool_len(const struct rbk_spool *spool)
{
    return spool->filed + spool->kept_len;
}

void rbk_spool_rewind(struct rbk_spool *spool)
{
    spool->at = 0;
}

/* Reads whole records from number `at` on. */
static bool piece_read(struct rbk_spool *spool)
{
    const size_t most = PIECE_BYTES / spool->size;
    const uint64_t left = spool->filed - spool->at;
    const size_t wanted = (left < most ? (size_t)left : most) * spool->size;
    size_t got = 0;

    while (got < wanted) {
        const ssize_t read = pread(spool->fd, spool->piece + got, wanted - got,
                                   (off_t)(spool->at * spool->size + got));

        if (read > 0)
            got += (size_t)read;
        else if (read == 0 || errno != EINTR) {
            spool->failed = read == 0 ? EIO : errno;
            return false;
        }
    }
    spool->piece_first = spool->at;
    spool->piece_len = wanted / spool->size;
    return true;
}

const struct rbk_spool_record *rbk_spool_next(struct rbk_spool *spool)
{
    const uint64_t number = spool->at;

    if (number >= rbk_spool_len(spool))
        return NULL;
    if (number < spool->filed &&
        (number < spool->piece_first || number >= spool->piece_first + spool->piece_len) &&
        !piece_read(spool))
        return NULL;
    spool->at++;
    if (number < spool->filed)
        return (void *)(spool->piece + (number - spool->piece_first) * spool->size);
    return (void *)(spool->kept + (number - spool->filed) * spool->size);
}

int rbk_spool_failed(const struct rbk_spool *spool)
{
    return spool->failed;
}
