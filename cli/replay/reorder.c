/* SPDX-License-Identifier: MIT */
/*
 * A heap of steps by time, then by their number in the order read. Each node has four children: a
 * cache line's worth, and half the levels of a binary heap. The times and numbers lie in the heap
 * itself, so that sifting doesn't touch the steps.
 */
#include "reorder.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    CHILDREN = 4,
    FIRST_CAPACITY = 1024,
};

struct entry {
    double time_s;
    uint64_t number;
    struct rbk_step *step;
};

/*
 *   latest_s  of all times put in
 *   left_s    of all times that have left
 */
struct rbk_reorder {
    struct rbk_reorder_bounds bounds;
    double latest_s;
    double left_s;
    size_t bytes;
    size_t len;
    size_t capacity;
    struct entry *heap;
};

struct rbk_reorder *rbk_reorder_create(const struct rbk_reorder_bounds *bounds)
{
    struct rbk_reorder *reorder = calloc(1, sizeof(*reorder));

    if (reorder) {
        reorder->bounds = *bounds;
        reorder->latest_s = -INFINITY;
        reorder->left_s = -INFINITY;
    }
    return reorder;
}

void rbk_reorder_destroy(struct rbk_reorder *reorder)
{
    if (!reorder)
        return;
    for (size_t i = 0; i < reorder->len; i++)
        rbk_step_destroy(reorder->heap[i].step);
    free(reorder->heap);
    free(reorder);
}

bool rbk_reorder_late(const struct rbk_reorder *reorder, double time_s)
{
    return time_s < reorder->latest_s - reorder->bounds.window_s || time_s < reorder->left_s;
}

static bool before(const struct entry *one, const struct entry *other)
{
    if (one->time_s != other->time_s)
        return one->time_s < other->time_s;
    return one->number < other->number;
}

static enum redbucket_status grow(struct rbk_reorder *reorder)
{
    const size_t capacity = reorder->capacity ? reorder->capacity * 2 : FIRST_CAPACITY;
    struct entry *heap;

    if (reorder->len < reorder->capacity)
        return REDBUCKET_OK;
    heap = realloc(reorder->heap, capacity * sizeof(*heap));
    if (!heap)
        return REDBUCKET_ERROR_MEMORY;
    reorder->heap = heap;
    reorder->capacity = capacity;
    return REDBUCKET_OK;
}

enum redbucket_status rbk_reorder_put(struct rbk_reorder *reorder, struct rbk_step *step)
{
    const struct entry entry = {step->time_s, step->number, step};
    enum redbucket_status status = grow(reorder);
    size_t at = reorder->len;

    if (status != REDBUCKET_OK)
        return status;
    while (at > 0) {
        const size_t parent = (at - 1) / CHILDREN;

        if (!before(&entry, &reorder->heap[parent]))
            break;
        reorder->heap[at] = reorder->heap[parent];
        at = parent;
    }
    reorder->heap[at] = entry;
    reorder->len++;
    reorder->bytes += step->size;
    reorder->latest_s = fmax(reorder->latest_s, step->time_s);
    return REDBUCKET_OK;
}

/* The earliest of the children of `at`, or `len` when it has none. */
static size_t earliest_child(const struct rbk_reorder *reorder, size_t at)
{
    const size_t first = at * CHILDREN + 1;
    const size_t end = first + CHILDREN < reorder->len ? first + CHILDREN : reorder->len;
    size_t earliest = first;

    if (first >= reorder->len)
        return reorder->len;
    for (size_t child = first + 1; child < end; child++)
        if (before(&reorder->heap[child], &reorder->heap[earliest]))
            earliest = child;
    return earliest;
}

struct rbk_step *rbk_reorder_take(struct rbk_reorder *reorder)
{
    struct rbk_step *step;
    struct entry last;
    size_t at = 0;

    if (reorder->len == 0)
        return NULL;
    step = reorder->heap[0].step;
    last = reorder->heap[--reorder->len];
    for (;;) {
        const size_t child = earliest_child(reorder, at);

        if (child == reorder->len || !before(&reorder->heap[child], &last))
            break;
        reorder->heap[at] = reorder->heap[child];
        at = child;
    }
    reorder->heap[at] = last;
    reorder->bytes -= step->size;
    reorder->left_s = fmax(reorder->left_s, step->time_s);
    return step;
}

struct rbk_step *rbk_reorder_take_due(struct rbk_reorder *reorder)
{
    const bool full =
        reorder->len > reorder->bounds.steps || reorder->bytes > reorder->bounds.bytes;

    if (reorder->len == 0)
        return NULL;
    if (!full && reorder->heap[0].time_s >= reorder->latest_s - reorder->bounds.window_s)
        return NULL;
    return rbk_reorder_take(reorder);
}
