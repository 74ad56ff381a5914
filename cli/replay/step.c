/* SPDX-License-Identifier: MIT */
/*
 * Laying out a step: the struct, its keys, their states where asked for, and the keys' bytes. A
 * replay makes one for every line, so it is one allocation and one copy, and mostly not even that:
 * a step that is done is kept for the next one of about its size.
 */
#include "step.h"

#include <stdlib.h>
#include <string.h>

static size_t size_of(const struct rbk_step_keys *keys, bool with_states)
{
    size_t size = sizeof(struct rbk_step) + keys->len * sizeof(struct redbucket_key);

    if (with_states)
        size += keys->len * sizeof(struct redbucket_state);
    for (size_t i = 0; i < keys->len; i++)
        size += keys->keys[i].len;
    return size;
}

void rbk_step_pool_fini(struct rbk_step_pool *pool)
{
    for (size_t units = 0; units <= RBK_STEP_POOL_UNITS; units++) {
        while (pool->done[units]) {
            struct rbk_step *step = pool->done[units];

            pool->done[units] = step->next;
            free(step);
        }
    }
}

/* Room for at least so much, rounded up to whole units. */
static struct rbk_step *take(struct rbk_step_pool *pool, size_t *size)
{
    const size_t units = (*size + RBK_STEP_POOL_UNIT - 1) / RBK_STEP_POOL_UNIT;
    struct rbk_step *step;

    *size = units * RBK_STEP_POOL_UNIT;
    if (units > RBK_STEP_POOL_UNITS || !pool->done[units])
        return malloc(*size);
    step = pool->done[units];
    pool->done[units] = step->next;
    return step;
}

struct rbk_step *rbk_step_create(struct rbk_step_pool *pool, const struct rbk_step_keys *keys,
                                 bool with_states)
{
    size_t size = size_of(keys, with_states);
    struct rbk_step *step = take(pool, &size);
    char *bytes;

    if (!step)
        return NULL;
    *step = (struct rbk_step){.cost = 1, .size = size, .keys_len = (uint32_t)keys->len};
    bytes = (char *)&step->keys[keys->len];
    if (with_states) {
        step->states = (struct redbucket_state *)(void *)bytes;
        bytes += keys->len * sizeof(struct redbucket_state);
        memset(step->states, 0, keys->len * sizeof(struct redbucket_state));
    }
    for (size_t i = 0; i < keys->len; i++) {
        const struct rbk_span key = keys->keys[i];

        /* A length of 0 asks the library to look for a NUL. */
        step->keys[i] = (struct redbucket_key){
            .limit = keys->limits[i], .key = key.len ? bytes : "", .key_len = key.len};
        if (key.len)
            memcpy(bytes, key.bytes, key.len);
        bytes += key.len;
    }
    return step;
}

void rbk_step_recycle(struct rbk_step_pool *pool, struct rbk_step *step)
{
    const size_t units = step->size / RBK_STEP_POOL_UNIT;

    if (units > RBK_STEP_POOL_UNITS) {
        free(step);
        return;
    }
    step->next = pool->done[units];
    pool->done[units] = step;
}

void rbk_step_destroy(struct rbk_step *step)
{
    free(step);
}
