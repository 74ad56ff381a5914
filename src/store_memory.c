/* SPDX-License-Identifier: MIT */
/*
 * The memory: store: a table in this process's own memory.
 *
 * After fork the child has a copy of the table, perhaps of a moment in which another thread held a
 * lock and was in the middle of a change. The locks therefore lie in memory that the kernel hands
 * to a child as zeros, which is what an unlocked mutex looks like here, and the change is undone by
 * whoever takes the lock next, as after a crash.
 */
#include "embedded.h"
#include "fork_page.h"
#include "url.h"

#include <errno.h>
#include <float.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SIZE_DEFAULT ((size_t)64 << 20)

/* Large enough that a quarter of it holds the longest key. */
#define SIZE_GROWING ((size_t)1 << 20)

/* A growing store serves clocks that step back: what is empty may be asked for again at an earlier
 * time, so that buckets are dropped only once they have been empty for this long, in seconds. */
#define EMPTY_FOR 3600.0

/* A cache line each, so that threads on different shards don't disturb each other. */
struct memory_lock {
    _Alignas(64) pthread_mutex_t mutex;
};

#define LOCKS_SIZE (RBK_TABLE_SHARDS_MAX * sizeof(struct memory_lock))

/* A table and the memory that it lies in. */
struct holding {
    struct rbk_table table;
    void *bytes;
    size_t size;
};

/* The table in use is that of one holding; the other one is for the next. */
struct memory {
    struct rbk_embedded embedded;
    struct holding holdings[2];
    struct memory_lock *locks;
};

static struct memory *memory_of(struct rbk_embedded *embedded)
{
    return (struct memory *)embedded;
}

static enum redbucket_status lock(struct rbk_embedded *embedded, unsigned shard, double *waited)
{
    /* Its holder is a thread of this process between two lines of ours; there is nothing to wait
     * out that the whole process wouldn't wait for. */
    (void)waited;
    (void)pthread_mutex_lock(&memory_of(embedded)->locks[shard].mutex);
    return REDBUCKET_OK;
}

static void unlock(struct rbk_embedded *embedded, unsigned shard)
{
    (void)pthread_mutex_unlock(&memory_of(embedded)->locks[shard].mutex);
}

static void *map(size_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return bytes == MAP_FAILED ? NULL : bytes;
}

/* Makes a table in new memory. */
static bool make_table(struct holding *holding, size_t size, unsigned shards_max,
                       const uint64_t secret[2])
{
    struct rbk_table_plan plan;
    void *bytes = rbk_table_plan(size, shards_max, &plan) ? map(size) : NULL;

    if (bytes == NULL)
        return false;
    rbk_table_format(bytes, size, &plan, secret);
    if (!rbk_table_attach(&holding->table, bytes, size)) {
        (void)munmap(bytes, size);
        return false;
    }
    holding->bytes = bytes;
    holding->size = size;
    return true;
}

static struct holding *holding_in_use(struct memory *memory)
{
    return &memory->holdings[memory->embedded.table == &memory->holdings[1].table];
}

/* The present size, when leaving behind what is long empty makes room, or double. */
static size_t next_size(const struct holding *old, double now)
{
    uint64_t live = rbk_table_live(&old->table, now - EMPTY_FOR);
    bool crowded =
        live > rbk_table_capacity(&old->table) / 2 || live == rbk_table_live(&old->table, -DBL_MAX);

    return crowded ? old->size * 2 : old->size;
}

/*
 * Moves to another table. A thread that forks meanwhile leaves its child with the old one or the
 * new one, each of them whole: the change is one store, the new table is complete before it and the
 * old one is there until after it.
 */
static bool grow(struct rbk_embedded *embedded, double now)
{
    struct memory *memory = memory_of(embedded);
    struct holding *old = holding_in_use(memory);
    struct holding *next = &memory->holdings[old == &memory->holdings[0]];

    for (size_t size = next_size(old, now); make_table(next, size, 1, old->table.secret);
         size *= 2) {
        next->table.growing = true;
        if (rbk_table_copy(&next->table, &old->table, now - EMPTY_FOR)) {
            rbk_table_take_counts(&next->table, &old->table);
            atomic_signal_fence(memory_order_seq_cst);
            embedded->table = &next->table;
            embedded->generation++;
            atomic_signal_fence(memory_order_seq_cst);
            (void)munmap(old->bytes, old->size);
            return true;
        }
        (void)munmap(next->bytes, next->size);
    }
    return false;
}

static void close_memory(struct redbucket_store *store)
{
    struct memory *memory = (struct memory *)store;

    if (memory->embedded.table != NULL)
        (void)munmap(holding_in_use(memory)->bytes, holding_in_use(memory)->size);
    rbk_fork_page_unmap(memory->locks, LOCKS_SIZE);
    free(memory);
}

static const struct rbk_store_ops memory_ops = {
    .decide = rbk_embedded_decide,
    .read = rbk_embedded_read,
    .walk = rbk_embedded_walk,
    .statistics = rbk_embedded_statistics,
    .key_max = rbk_embedded_key_max,
    .enroll = rbk_embedded_enroll,
    .zones = rbk_embedded_zones,
    .close = close_memory,
    .own_clock_only = false,
};

static enum redbucket_status make(struct memory *memory, size_t size, bool growing,
                                  struct redbucket_error *error)
{
    struct holding *holding = &memory->holdings[0];
    uint64_t secret[2];
    enum redbucket_status status = rbk_fork_page_map(LOCKS_SIZE, (void **)&memory->locks, error);

    if (status != REDBUCKET_OK)
        return status;
    if (!rbk_embedded_secret(secret))
        return rbk_fail_system(error, errno, "memory: store: getrandom");
    if (!make_table(holding, size, growing ? 1 : RBK_TABLE_SHARDS_MAX, secret))
        return rbk_fail_system(error, errno, "memory: store: table");
    holding->table.growing = growing;
    memory->embedded.table = &holding->table;
    memory->embedded.grow = growing ? grow : NULL;
    return REDBUCKET_OK;
}

/* Reads the URL's parameters. */
static enum redbucket_status configure(const struct rbk_url *url, size_t *size, bool *growing,
                                       struct redbucket_error *error)
{
    const char *text = rbk_url_get(url, "grow");
    enum redbucket_status status = rbk_url_known(url, "size grow on_error local_share", error);

    if (status != REDBUCKET_OK)
        return status;
    if (url->body[0] != '\0')
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: memory: has no name, expected memory:[?size=64m]");
    if (text != NULL && (strcmp(text, "yes") != 0 || rbk_url_get(url, "size") != NULL))
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: grow: expected yes, without a size");
    *growing = text != NULL;
    *size = *growing ? SIZE_GROWING : SIZE_DEFAULT;
    return rbk_url_size(url, "size", size, error);
}

enum redbucket_status rbk_memory_open(const struct rbk_url *url, struct redbucket_store **store,
                                      struct redbucket_error *error)
{
    size_t size = 0;
    bool growing = false;
    enum redbucket_status status = configure(url, &size, &growing, error);

    if (status != REDBUCKET_OK)
        return status;
    struct memory *memory = calloc(1, sizeof *memory);

    if (memory == NULL)
        return rbk_fail_system(error, ENOMEM, "memory: store");
    memory->embedded.store.ops = &memory_ops;
    memory->embedded.lock = lock;
    memory->embedded.unlock = unlock;
    status = make(memory, size, growing, error);
    if (status != REDBUCKET_OK) {
        close_memory(&memory->embedded.store);
        return status;
    }
    *store = &memory->embedded.store;
    return REDBUCKET_OK;
}
