/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the text of a limit: reading them is safe, and what is read is written so that it
 * reads back as the same doubles. Links the library; needs no other source.
 */
#include "redbucket/redbucket.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int same(const struct redbucket_named_limit *a, const struct redbucket_named_limit *b)
{
    const double left[] = {a->limit.rate,   a->limit.burst, a->limit.delay,
                           a->limit.expiry, a->limit.lease, a->limit.lease_time};
    const double right[] = {b->limit.rate,   b->limit.burst, b->limit.delay,
                            b->limit.expiry, b->limit.lease, b->limit.lease_time};

    return memcmp(left, right, sizeof(left)) == 0 && strcmp(a->name, b->name) == 0 &&
           strcmp(a->zone, b->zone) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct redbucket_named_limit limit;
    struct redbucket_named_limit again;
    struct redbucket_error error = {.message = "?"};
    char canonical[REDBUCKET_LIMIT_TEXT_SIZE];
    char *text = malloc(size + 1);

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (redbucket_limit_parse(text, &limit, &error) == REDBUCKET_OK) {
        redbucket_limit_format(&limit, canonical);
        if (redbucket_limit_parse(canonical, &again, NULL) != REDBUCKET_OK || !same(&limit, &again))
            abort();
    } else if (error.message[0] == '\0' || strchr(error.message, '\n') != NULL) {
        abort();
    }
    free(text);
    return 0;
}
