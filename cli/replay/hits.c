/* SPDX-License-Identifier: MIT */
/*
 * The counters of the space-saving sketch: found by a hash table with chains, and the smallest one
 * by a heap of their totals. A counter that grows sinks in the heap, mostly by no level at all.
 */
#include "hits.h"

#include "hash.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

#define NOBODY UINT32_MAX

/* total = all that was counted + missed. `next`: in the chain of its hash; `at`: place in the heap.
 * The timeline's bins are set whenever it is handed out, for they move when the counters grow. */
struct counter {
    uint64_t total;
    struct rbk_hit hit;
    struct rbk_histogram timeline;
    uint32_t next;
    uint32_t at;
    char key[RBK_HITS_KEY];
};

struct rbk_hits {
    size_t most;
    size_t len;
    size_t capacity;
    bool exact;
    bool with_timelines;
    struct counter *counters;
    struct rbk_histogram_bin *bins; /* RBK_HITS_BINS a counter, with timelines */
    uint32_t *chains;               /* as many as `chain_mask` + 1 */
    size_t chain_mask;
    uint32_t *heap;
};

struct rbk_hits *rbk_hits_create(size_t counters, bool with_timelines)
{
    struct rbk_hits *hits = calloc(1, sizeof(*hits));
    size_t chains = 1;

    if (!hits)
        return NULL;
    while (chains < 2 * counters)
        chains *= 2;
    hits->most = counters;
    hits->exact = true;
    hits->with_timelines = with_timelines;
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
    free(hits->bins);
    free(hits->chains);
    free(hits->heap);
    free(hits);
}

static uint32_t *chain_of(struct rbk_hits *hits, uint64_t hash)
{
    return &hits->chains[hash & hits->chain_mask];
}

static size_t kept_len(size_t key_len)
{
    return key_len < RBK_HITS_KEY ? key_len : RBK_HITS_KEY;
}

/* The counter of a key, of which `bytes` has the whole or as much as is kept, or NOBODY. */
static uint32_t find(const struct rbk_hits *hits, const char *bytes, size_t key_len, uint64_t hash)
{
    uint32_t index = hits->chains[hash & hits->chain_mask];

    while (index != NOBODY) {
        const struct counter *counter = &hits->counters[index];

        if (counter->hit.hash == hash && counter->hit.key_len == key_len &&
            memcmp(counter->key, bytes, kept_len(key_len)) == 0)
            break;
        index = counter->next;
    }
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
    uint32_t *link = chain_of(hits, hits->counters[index].hit.hash);

    while (*link != index)
        link = &hits->counters[*link].next;
    *link = hits->counters[index].next;
}

static enum redbucket_status bins_grow(struct rbk_hits *hits, size_t capacity)
{
    struct rbk_histogram_bin *bins;

    if (!hits->with_timelines)
        return REDBUCKET_OK;
    bins = realloc(hits->bins, capacity * RBK_HITS_BINS * sizeof(*bins));
    if (!bins)
        return REDBUCKET_ERROR_MEMORY;
    hits->bins = bins;
    return REDBUCKET_OK;
}

static enum redbucket_status grow(struct rbk_hits *hits)
{
    size_t capacity = hits->capacity ? hits->capacity * 2 : FIRST_CAPACITY;
    struct counter *counters;

    if (hits->len < hits->capacity)
        return REDBUCKET_OK;
    if (capacity > hits->most)
        capacity = hits->most;
    if (bins_grow(hits, capacity) != REDBUCKET_OK)
        return REDBUCKET_ERROR_MEMORY;
    counters = realloc(hits->counters, capacity * sizeof(*counters));
    if (!counters)
        return REDBUCKET_ERROR_MEMORY;
    hits->counters = counters;
    hits->capacity = capacity;
    return REDBUCKET_OK;
}

static struct rbk_histogram *timeline_of(struct rbk_hits *hits, uint32_t index)
{
    struct rbk_histogram *timeline = &hits->counters[index].timeline;

    timeline->bins = &hits->bins[index * RBK_HITS_BINS];
    return timeline;
}

static void counter_init(struct rbk_hits *hits, uint32_t index, const struct rbk_hit *hit)
{
    struct counter *counter = &hits->counters[index];

    counter->total = hit->missed;
    counter->hit = *hit;
    memcpy(counter->key, hit->key.bytes, kept_len(hit->key_len));
    counter->hit.key = (struct rbk_span){NULL, kept_len(hit->key_len)};
    counter->next = *chain_of(hits, hit->hash);
    *chain_of(hits, hit->hash) = index;
    if (hits->with_timelines)
        rbk_histogram_init(&counter->timeline, &hits->bins[index * RBK_HITS_BINS], RBK_HITS_BINS);
}

/* Gives `key` a counter: a new one, or the smallest, whose total it inherits as missed. */
static enum redbucket_status begin(struct rbk_hits *hits, struct rbk_span key, uint64_t hash,
                                   uint32_t *index)
{
    struct rbk_hit hit = {.key = key, .key_len = key.len, .hash = hash};
    const bool full = hits->len == hits->most;

    if (full) {
        *index = hits->heap[0];
        hit.missed = hits->counters[*index].total;
        unchain(hits, *index);
        hits->exact = false;
    } else {
        const enum redbucket_status status = grow(hits);

        if (status != REDBUCKET_OK)
            return status;
        *index = (uint32_t)hits->len++;
    }
    counter_init(hits, *index, &hit);
    if (!full) {
        hits->heap[hits->len - 1] = *index;
        heap_rise(hits, hits->len - 1);
    }
    return REDBUCKET_OK;
}

enum redbucket_status rbk_hits_add(struct rbk_hits *hits, struct rbk_span key,
                                   enum rbk_histogram_kind kind, double time_s)
{
    const uint64_t hash = rbk_replay_hash(key);
    uint32_t index = find(hits, key.bytes, key.len, hash);
    struct counter *counter;

    if (index == NOBODY) {
        const enum redbucket_status status = begin(hits, key, hash, &index);

        if (status != REDBUCKET_OK)
            return status;
    }
    counter = &hits->counters[index];
    counter->total++;
    counter->hit.at_once += kind == RBK_HISTOGRAM_AT_ONCE;
    counter->hit.delayed += kind == RBK_HISTOGRAM_DELAYED;
    counter->hit.rejected += kind == RBK_HISTOGRAM_REJECTED;
    if (hits->with_timelines)
        rbk_histogram_add(timeline_of(hits, index), time_s, kind);
    heap_sink(hits, counter->at);
    return REDBUCKET_OK;
}

/* The hit as others may see it. */
static struct rbk_hit shown(struct rbk_hits *hits, uint32_t index)
{
    struct rbk_hit hit = hits->counters[index].hit;

    hit.key.bytes = hits->counters[index].key;
    hit.timeline = hits->with_timelines ? timeline_of(hits, index) : NULL;
    return hit;
}

bool rbk_hit_harder(const struct rbk_hit *one, const struct rbk_hit *other)
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

size_t rbk_hits_top(struct rbk_hits *hits, size_t most, struct rbk_hit *top)
{
    size_t len = 0;

    for (uint32_t i = 0; i < hits->len; i++) {
        const struct rbk_hit hit = shown(hits, i);
        size_t at;

        for (at = len; at > 0 && rbk_hit_harder(&hit, &top[at - 1]); at--)
            if (at < most)
                top[at] = top[at - 1];
        if (at < most)
            top[at] = hit;
        if (len < most)
            len++;
    }
    return len;
}

void rbk_hits_find(struct rbk_hits *hits, const struct rbk_hit *other, struct rbk_hit *hit)
{
    const uint32_t index = find(hits, other->key.bytes, other->key_len, other->hash);

    if (index != NOBODY) {
        *hit = shown(hits, index);
        return;
    }
    *hit = *other;
    hit->timeline = NULL;
    hit->at_once = hit->delayed = hit->rejected = 0;
    hit->missed = hits->exact ? 0 : total_at(hits, 0);
}

size_t rbk_hits_keys(const struct rbk_hits *hits, bool *exact)
{
    *exact = hits->exact;
    return hits->len;
}
