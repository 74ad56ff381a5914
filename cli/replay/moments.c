/* SPDX-License-Identifier: MIT */
/*
 * Moments are found by a hash table with chains, and the earliest by a binary heap. A moment whose
 * last step is taken is gone from both. The moment asked for last is remembered: most lines have
 * the time of the line before.
 */
#include "moments.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };

struct moment {
    double time_s;
    struct rbk_step *first;
    struct rbk_step *last;
    struct moment *chained;
};

/* The heap has room for `capacity` moments, the table as many chains; a power of two. */
struct rbk_moments {
    size_t len;
    size_t capacity;
    struct moment **heap;
    struct moment **chains;
    struct moment *recent;
};

struct rbk_moments *rbk_moments_create(void)
{
    return calloc(1, sizeof(struct rbk_moments));
}

static void moment_destroy(struct moment *moment)
{
    while (moment->first) {
        struct rbk_step *step = moment->first;

        moment->first = step->next;
        rbk_step_destroy(step);
    }
    free(moment);
}

void rbk_moments_destroy(struct rbk_moments *moments)
{
    if (!moments)
        return;
    for (size_t i = 0; i < moments->len; i++)
        moment_destroy(moments->heap[i]);
    free(moments->heap);
    free(moments->chains);
    free(moments);
}

static struct moment **chain_of(const struct rbk_moments *moments, double time_s)
{
    const double zeroless = time_s + 0.0; /* -0.0 is the same moment as 0.0 */
    uint64_t bits;

    memcpy(&bits, &zeroless, sizeof(bits));
    bits *= UINT64_C(0x9e3779b97f4a7c15); /* the golden ratio, which spreads what is alike */
    return &moments->chains[bits >> 32 & (moments->capacity - 1)];
}

static struct moment *find(const struct rbk_moments *moments, double time_s)
{
    struct moment *moment;

    if (moments->recent && moments->recent->time_s == time_s)
        return moments->recent;
    if (moments->len == 0)
        return NULL;
    moment = *chain_of(moments, time_s);
    while (moment && moment->time_s != time_s)
        moment = moment->chained;
    return moment;
}

static void chain(struct rbk_moments *moments, struct moment *moment)
{
    struct moment **head = chain_of(moments, moment->time_s);

    moment->chained = *head;
    *head = moment;
}

static void unchain(struct rbk_moments *moments, const struct moment *moment)
{
    struct moment **link = chain_of(moments, moment->time_s);

    while (*link != moment)
        link = &(*link)->chained;
    *link = moment->chained;
}

static enum redbucket_status grow(struct rbk_moments *moments)
{
    const size_t capacity = moments->capacity ? moments->capacity * 2 : FIRST_CAPACITY;
    struct moment **heap;
    struct moment **chains;

    if (moments->len < moments->capacity)
        return REDBUCKET_OK;
    chains = calloc(capacity, sizeof(struct moment *));
    heap = realloc(moments->heap, capacity * sizeof(struct moment *));
    if (heap)
        moments->heap = heap;
    if (!heap || !chains) {
        free(chains);
        return REDBUCKET_ERROR_MEMORY;
    }
    free(moments->chains);
    moments->chains = chains;
    moments->capacity = capacity;
    for (size_t i = 0; i < moments->len; i++)
        chain(moments, moments->heap[i]);
    return REDBUCKET_OK;
}

/* Puts a moment into the heap, from its end upwards. */
static void heap_rise(struct rbk_moments *moments, struct moment *moment)
{
    size_t at = moments->len++;

    while (at > 0 && moments->heap[(at - 1) / 2]->time_s > moment->time_s) {
        moments->heap[at] = moments->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    moments->heap[at] = moment;
}

/* Takes the earliest moment out of the heap. */
static void heap_drop(struct rbk_moments *moments)
{
    struct moment *last = moments->heap[--moments->len];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < moments->len &&
            moments->heap[child + 1]->time_s < moments->heap[child]->time_s)
            child++;
        if (child >= moments->len || moments->heap[child]->time_s >= last->time_s)
            break;
        moments->heap[at] = moments->heap[child];
        at = child;
    }
    moments->heap[at] = last;
}

static struct moment *begin(struct rbk_moments *moments, double time_s)
{
    struct moment *moment;

    if (grow(moments) != REDBUCKET_OK)
        return NULL;
    moment = calloc(1, sizeof(*moment));
    if (!moment)
        return NULL;
    moment->time_s = time_s;
    chain(moments, moment);
    heap_rise(moments, moment);
    return moment;
}

enum redbucket_status rbk_moments_put(struct rbk_moments *moments, struct rbk_step *step)
{
    struct moment *moment = find(moments, step->time_s);

    if (!moment)
        moment = begin(moments, step->time_s);
    if (!moment)
        return REDBUCKET_ERROR_MEMORY;
    moments->recent = moment;
    step->next = NULL;
    if (moment->first)
        moment->last->next = step;
    else
        moment->first = step;
    moment->last = step;
    return REDBUCKET_OK;
}

bool rbk_moments_earliest(const struct rbk_moments *moments, double *time_s)
{
    if (moments->len == 0)
        return false;
    *time_s = moments->heap[0]->time_s;
    return true;
}

/* A step has waited for minutes and left the processor's caches; it is wanted back in a moment. */
static void prefetch(const struct rbk_step *step)
{
    __builtin_prefetch(step);
    __builtin_prefetch((const char *)step + 64);
    __builtin_prefetch((const char *)step + 128);
}

struct rbk_step *rbk_moments_take(struct rbk_moments *moments)
{
    struct moment *moment;
    struct rbk_step *step;

    if (moments->len == 0)
        return NULL;
    moment = moments->heap[0];
    step = moment->first;
    moment->first = step->next;
    if (moment->first) {
        prefetch(moment->first);
        return step;
    }
    if (moments->recent == moment)
        moments->recent = NULL;
    unchain(moments, moment);
    heap_drop(moments);
    free(moment);
    return step;
}
