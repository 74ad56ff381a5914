/* SPDX-License-Identifier: MIT */
/*
 * A ring of pointers indexed by the steps' numbers, which grows by doubling up to its bound. A
 * forgotten step leaves a NULL behind, which is passed over.
 */
#include "held.h"

#include <stdint.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 1024 };

/* Steps with numbers from `head` to below `tail` are held; the capacity is a power of two. */
struct rbk_held {
    struct rbk_step **ring;
    size_t capacity;
    size_t most;
    size_t most_bytes;
    size_t bytes;
    uint64_t head;
    uint64_t tail;
};

static struct rbk_step **slot(const struct rbk_held *held, uint64_t number)
{
    return &held->ring[number & (held->capacity - 1)];
}

struct rbk_held *rbk_held_create(size_t steps, size_t bytes)
{
    struct rbk_held *held = calloc(1, sizeof(*held));

    if (!held)
        return NULL;
    held->most = steps;
    held->most_bytes = bytes;
    held->capacity = steps < FIRST_CAPACITY ? steps : FIRST_CAPACITY;
    held->ring = calloc(held->capacity, sizeof(struct rbk_step *));
    if (!held->ring) {
        free(held);
        return NULL;
    }
    return held;
}

void rbk_held_destroy(struct rbk_held *held)
{
    if (!held)
        return;
    for (uint64_t number = held->head; number != held->tail; number++) {
        struct rbk_step *step = *slot(held, number);

        if (step && step->result != RBK_STEP_WAITS)
            rbk_step_destroy(step);
    }
    free(held->ring);
    free(held);
}

/* Passes over what was forgotten. */
static void advance(struct rbk_held *held)
{
    while (held->head != held->tail && !*slot(held, held->head))
        held->head++;
}

bool rbk_held_full(const struct rbk_held *held)
{
    return held->tail - held->head >= held->most || held->bytes > held->most_bytes;
}

static enum redbucket_status grow(struct rbk_held *held)
{
    const size_t old_capacity = held->capacity;
    struct rbk_step **old = held->ring;
    struct rbk_step **ring;

    if (held->tail - held->head < old_capacity)
        return REDBUCKET_OK;
    ring = calloc(old_capacity * 2, sizeof(struct rbk_step *));
    if (!ring)
        return REDBUCKET_ERROR_MEMORY;
    held->ring = ring;
    held->capacity = old_capacity * 2;
    for (uint64_t number = held->head; number != held->tail; number++)
        *slot(held, number) = old[number & (old_capacity - 1)];
    free(old);
    return REDBUCKET_OK;
}

enum redbucket_status rbk_held_add(struct rbk_held *held, struct rbk_step *step)
{
    const enum redbucket_status status = grow(held);

    if (status != REDBUCKET_OK)
        return status;
    step->number = held->tail++;
    *slot(held, step->number) = step;
    held->bytes += step->size;
    return REDBUCKET_OK;
}

void rbk_held_forget(struct rbk_held *held, const struct rbk_step *step)
{
    *slot(held, step->number) = NULL;
    held->bytes -= step->size;
    advance(held);
}

struct rbk_step *rbk_held_take(struct rbk_held *held)
{
    struct rbk_step *step;

    if (held->head == held->tail)
        return NULL;
    step = *slot(held, held->head);
    if (step->result == RBK_STEP_WAITS)
        return NULL;
    held->bytes -= step->size;
    held->head++;
    advance(held);
    return step;
}
