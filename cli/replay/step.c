/* SPDX-License-Identifier: MIT */
/*
 * Laying out a step: the struct, its keys, their states where asked for, and the keys' bytes. A
 * replay makes one for every line, so it is one allocation and one copy.
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

struct rbk_step *rbk_step_create(const struct rbk_step_keys *keys, bool with_states)
{
    const size_t size = size_of(keys, with_states);
    struct rbk_step *step = malloc(size);
    char *bytes;

    if (!step)
        return NULL;
    *step = (struct rbk_step){.cost = 1, .size = size, .keys_len = keys->len};
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

void rbk_step_destroy(struct rbk_step *step)
{
    free(step);
}
