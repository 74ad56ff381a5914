/* SPDX-License-Identifier: MIT */
/*
 * The counters of the space-saving sketch: found by a hash table with chains, and the smallest one
 * by a heap of their totals. A counter that grows sinks in the heap, mostly by no level at all.
 */
#include "hits.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

#define NOBODY UINT32_MAX

/* total = rejected + delayed + missed. `next`: in the chain of its hash; `at`: place in the heap.
 */
struct counter {
    uint64_t hash;
    uint64_t total;
    struct rbk_hit hit;
    uint32_t next;
    uint32_t at;
    char key[RBK_HITS_KEY];
};

struct rbk_hits {
    size_t most;
    size_t len;
    size_t capacity;
    bool exact;
    struct counter *counters;
    uint32_t *chains; /* as many as `chain_mask` + 1 */
    size_t chain_mask;
    uint32_t *heap;
};

struct rbk_hits *rbk_hits_create(size_t counters)
{
    struct rbk_hits *hits = calloc(1, sizeof(*hits));
    size_t chains = 1;

    if (!hits)
        return NULL;
    while (chains < 2 * counters)
        chains *= 2;
    hits->most = counters;
    hits->exact = true;
    hits->chain_mask = chains - 1;
    hits->chains = malloc(chains * sizeof(*hits->chains));
    hits->heap = malloc(counters * sizeof(*hits->heap));
    if (!hits->chains || !hits->heap) {
        rbk_hits_destroy(hits);
        return NULL;
    }
    memset(hits->chains, 0xff, chains * sizeof(*hits->chains)); /* NOBODY */
    return hits;
}

void rbk_hits_destroy(struct rbk_hits *hits)
{
    if (!hits)
        return;
    free(hits->counters);
    free(hits->chains);
    free(hits->heap);
    free(hits);
}

/* FNV-1a, its bits mixed once more for the chains. */
static uint64_t hash_of(struct rbk_span key)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < key.len; i++)
        hash = (hash ^ (unsigned char)key.bytes[i]) * UINT64_C(1099511628211);
    return hash ^ hash >> 29;
}

static uint32_t *chain_of(struct rbk_hits *hits, uint64_t hash)
{
    return &hits->chains[hash & hits->chain_mask];
}

static size_t kept_len(size_t key_len)
{
    return key_len < RBK_HITS_KEY ? key_len : RBK_HITS_KEY;
}

static bool counts(const struct counter *counter, struct rbk_span key, uint64_t hash)
{
    return counter->hash == hash && counter->hit.key_len == key.len &&
           memcmp(counter->key, key.bytes, kept_len(key.len)) == 0;
}

static uint32_t find(struct rbk_hits *hits, struct rbk_span key, uint64_t hash)
{
    uint32_t index = *chain_of(hits, hash);

    while (index != NOBODY && !counts(&hits->counters[index], key, hash))
        index = hits->counters[index].next;
    return index;
}

static void heap_set(struct rbk_hits *hits, size_t at, uint32_t index)
{
    hits->heap[at] = index;
    hits->counters[index].at = (uint32_t)at;
}

static uint64_t total_at(const struct rbk_hits *hits, size_t at)
{
    return hits->counters[hits->heap[at]].total;
}

/* A new counter is the smallest there can be, so it goes all the way up past larger ones. */
static void heap_rise(struct rbk_hits *hits, size_t at)
{
    const uint32_t index = hits->heap[at];

    while (at > 0 && total_at(hits, (at - 1) / 2) > hits->counters[index].total) {
        heap_set(hits, at, hits->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_set(hits, at, index);
}

static void heap_sink(struct rbk_hits *hits, size_t at)
{
    const uint32_t index = hits->heap[at];
    const uint64_t total = hits->counters[index].total;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < hits->len && total_at(hits, child + 1) < total_at(hits, child))
            child++;
        if (child >= hits->len || total_at(hits, child) >= total)
            break;
        heap_set(hits, at, hits->heap[child]);
        at = child;
    }
    heap_set(hits, at, index);
}

static void unchain(struct rbk_hits *hits, uint32_t index)
{
    uint32_t *link = chain_of(hits, hits->counters[index].hash);

    while (*link != index)
        link = &hits->counters[*link].next;
    *link = hits->counters[index].next;
}

static enum redbucket_status grow(struct rbk_hits *hits)
{
    size_t capacity = hits->capacity ? hits->capacity * 2 : FIRST_CAPACITY;
    struct counter *counters;

    if (hits->len < hits->capacity)
        return REDBUCKET_OK;
    if (capacity > hits->most)
        capacity = hits->most;
    counters = realloc(hits->counters, capacity * sizeof(*counters));
    if (!counters)
        return REDBUCKET_ERROR_MEMORY;
    hits->counters = counters;
    hits->capacity = capacity;
    return REDBUCKET_OK;
}

/* Gives `key` a counter: a new one, or the smallest, whose total it inherits as missed. */
static enum redbucket_status begin(struct rbk_hits *hits, struct rbk_span key, uint64_t hash,
                                   uint32_t *index)
{
    const bool full = hits->len == hits->most;
    struct counter *counter;
    uint64_t missed = 0;

    if (full) {
        *index = hits->heap[0];
        missed = hits->counters[*index].total;
        unchain(hits, *index);
        hits->exact = false;
    } else {
        const enum redbucket_status status = grow(hits);

        if (status != REDBUCKET_OK)
            return status;
        *index = (uint32_t)hits->len++;
    }
    counter = &hits->counters[*index];
    counter->hash = hash;
    counter->total = missed;
    counter->hit = (struct rbk_hit){.key_len = key.len, .missed = missed};
    memcpy(counter->key, key.bytes, kept_len(key.len));
    counter->next = *chain_of(hits, hash);
    *chain_of(hits, hash) = *index;
    if (!full) {
        hits->heap[hits->len - 1] = *index;
        heap_rise(hits, hits->len - 1);
    }
    return REDBUCKET_OK;
}

enum redbucket_status rbk_hits_add(struct rbk_hits *hits, struct rbk_span key, bool rejected)
{
    const uint64_t hash = hash_of(key);
    uint32_t index = find(hits, key, hash);
    struct counter *counter;

    if (index == NOBODY) {
        const enum redbucket_status status = begin(hits, key, hash, &index);

        if (status != REDBUCKET_OK)
            return status;
    }
    counter = &hits->counters[index];
    counter->total++;
    if (rejected)
        counter->hit.rejected++;
    else
        counter->hit.delayed++;
    heap_sink(hits, counter->at);
    return REDBUCKET_OK;
}

/* Whether `one` was hit harder than `other`. */
static bool harder(const struct rbk_hit *one, const struct rbk_hit *other)
{
    const size_t len = one->key.len < other->key.len ? one->key.len : other->key.len;
    int order;

    if (one->rejected != other->rejected)
        return one->rejected > other->rejected;
    if (one->delayed != other->delayed)
        return one->delayed > other->delayed;
    order = memcmp(one->key.bytes, other->key.bytes, len);
    return order != 0 ? order < 0 : one->key_len < other->key_len;
}

size_t rbk_hits_top(const struct rbk_hits *hits, size_t most, struct rbk_hit *top)
{
    size_t len = 0;

    for (size_t i = 0; i < hits->len; i++) {
        const struct counter *counter = &hits->counters[i];
        struct rbk_hit hit = counter->hit;
        size_t at;

        hit.key = (struct rbk_span){counter->key, kept_len(hit.key_len)};
        for (at = len; at > 0 && harder(&hit, &top[at - 1]); at--)
            if (at < most)
                top[at] = top[at - 1];
        if (at < most)
            top[at] = hit;
        if (len < most)
            len++;
    }
    return len;
}

size_t rbk_hits_keys(const struct rbk_hits *hits, bool *exact)
{
    *exact = hits->exact;
    return hits->len;
}
