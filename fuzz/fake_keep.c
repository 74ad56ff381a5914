/* SPDX-License-Identifier: MIT */
/*
 * What a fake server keeps from one command to the next: a state for each name, for as long as an
 * input lasts, and a clock that goes by ours. A state is never too old: one that has drained means
 * the same as none.
 */
#include "fake_server.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 1024

/* Where each bucket is new, time stands still as well. */
#define STILL 1000.5

static struct kept {
    struct fake_bytes name;
    struct rbk_state state;
} kept[NAMES_MAX];

static size_t kept_len;

double rbk_fake_clock(void)
{
    return rbk_fake.keeps ? rbk_fake.now + rbk_fake.skew : STILL;
}

struct rbk_state *rbk_fake_kept(const void *name, size_t len)
{
    for (size_t i = 0; i < kept_len; i++) {
        if (kept[i].name.len == len && memcmp(kept[i].name.bytes, name, len) == 0)
            return &kept[i].state;
    }
    if (kept_len == NAMES_MAX)
        abort();
    kept[kept_len] = (struct kept){.state = {.exists = false}};
    rbk_fake_append(&kept[kept_len].name, name, len);
    return &kept[kept_len++].state;
}

void rbk_fake_forget(void)
{
    while (kept_len > 0)
        free(kept[--kept_len].name.bytes);
}
