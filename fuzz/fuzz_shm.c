/* SPDX-License-Identifier: MIT */
/*
 * A file in shared memory whose bytes may be anything, its header and its locks included: opened as
 * a store it is refused with a message, or asked for permits, read, walked and counted by a clock
 * of the caller's, without a crash, a hang or a state that is none. The input is patches (offset,
 * length, bytes) to the file of a good store, which another process could make: some before it is
 * opened, and some, those whose length has bit 7, while it is in use.
 */
#include "redbucket/redbucket.h"
#include "redbucket/walk.h"

#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SIZE (64u << 10)

/* Of a patch's length: it comes later than those before it, while the store is in use. */
#define LATER 0x80u

struct patches {
    const uint8_t *at;
    size_t left;
};

static char name[64];
static char url[128];
static unsigned char good[SIZE];
static int file = -1;

static void forget(void)
{
    char path[96];

    (void)snprintf(path, sizeof path, "/dev/shm/%s", name);
    (void)unlink(path);
}

static void ask(struct redbucket_limiter *limiter, size_t keys)
{
    char text[300];

    memset(text, 'k', sizeof text);
    for (size_t i = 0; i < keys; i++) {
        const struct redbucket_key key = {"ip", text, 1 + i * 20 % sizeof text, 0};
        struct redbucket_verdict verdict;
        struct redbucket_request request = {
            .keys = &key, .keys_len = 1, .cost = 1.0, .verdicts = &verdict};
        struct redbucket_state state;

        text[0] = (char)('a' + i);
        if (redbucket_decide_at(limiter, &request, 1, (double)i) == REDBUCKET_OK &&
            (!(request.response.delay >= 0.0) || !(request.response.retry_after >= 0.0) ||
             request.response.remaining < 0))
            abort();
        if (redbucket_read(limiter, &key, &state) == REDBUCKET_OK && state.exists &&
            (!isfinite(state.timestamp) || !isfinite(state.value)))
            abort();
    }
}

static enum redbucket_status open_it(struct redbucket_store **store,
                                     struct redbucket_limiter **limiter)
{
    const struct redbucket_limit limit = {.rate = 1.0, .burst = 2.0};
    struct redbucket_error error = {.message = ""};
    enum redbucket_status status = redbucket_store_open(url, store, &error);

    if (status != REDBUCKET_OK) {
        if (error.message[0] == '\0' || strchr(error.message, '\n') != NULL)
            abort();
        return status;
    }
    if (redbucket_limiter_create(*store, limiter, NULL) != REDBUCKET_OK ||
        redbucket_limiter_add(*limiter, "ip", &limit, NULL) != REDBUCKET_OK)
        abort();
    return status;
}

static void close_it(struct redbucket_store *store, struct redbucket_limiter *limiter)
{
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

/* Makes the good store, and keeps its bytes. */
static void begin(void)
{
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    char path[96];

    (void)snprintf(name, sizeof name, "redbucket-fuzz-%d", (int)getpid());
    (void)snprintf(url, sizeof url, "shm:%s?size=64k&timeout=1ms", name);
    (void)atexit(forget);
    if (open_it(&store, &limiter) != REDBUCKET_OK)
        abort();
    ask(limiter, 20);
    close_it(store, limiter);
    (void)snprintf(path, sizeof path, "/dev/shm/%s", name);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || pread(file, good, SIZE, 0) != SIZE)
        abort();
}

/* Writes patches over the file, up to the next that comes later. */
static void patch(struct patches *patches)
{
    for (bool first = true; patches->left > 3; first = false) {
        const uint8_t *head = patches->at;
        size_t offset = (size_t)head[0] << 8 | head[1];
        size_t len = head[2] & ~LATER;

        if (!first && (head[2] & LATER) != 0)
            return;
        patches->at += 3;
        patches->left -= 3;
        if (len > patches->left)
            len = patches->left;
        if (len > SIZE - offset)
            len = SIZE - offset;
        if (pwrite(file, patches->at, len, (off_t)offset) != (ssize_t)len)
            abort();
        patches->at += len;
        patches->left -= len;
    }
}

static void visit(void *data, const struct redbucket_bucket *bucket)
{
    volatile unsigned *sum = data;

    for (size_t i = 0; i < bucket->zone_len; i++)
        *sum += (unsigned char)bucket->zone[i];
    for (size_t i = 0; i < bucket->key_len; i++)
        *sum += (unsigned char)bucket->key[i];
    if (bucket->status == REDBUCKET_OK &&
        (!isfinite(bucket->state.timestamp) || !isfinite(bucket->state.value)))
        abort();
}

static void look(struct redbucket_store *store, struct patches *patches)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct redbucket_walk *walk;
    unsigned sum = 0;
    bool done = false;

    if (redbucket_store_statistics(store, &statistics) == REDBUCKET_OK &&
        (statistics.buckets > statistics.capacity || statistics.bytes != SIZE))
        abort();
    if (redbucket_walk_create(store, NULL, &walk) != REDBUCKET_OK)
        abort();
    for (int steps = 0; !done; steps++) {
        enum redbucket_status status = redbucket_walk_step(walk, visit, &sum, &done);

        if (steps > 1000 || (status != REDBUCKET_OK && status != REDBUCKET_ERROR_TIMEOUT &&
                             status != REDBUCKET_ERROR_SYSTEM))
            abort();
        patch(patches);
    }
    redbucket_walk_destroy(walk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;

    struct patches patches = {data, size};

    if (file < 0)
        begin();
    if (pwrite(file, good, SIZE, 0) != SIZE)
        abort();
    patch(&patches);
    if (open_it(&store, &limiter) != REDBUCKET_OK)
        return 0;
    ask(limiter, 4);
    patch(&patches);
    ask(limiter, 8);
    look(store, &patches);
    close_it(store, limiter);
    return 0;
}
