/* SPDX-License-Identifier: MIT */
/*
 * Taking redirections apart. Hosts may be IPv6 addresses without brackets, so that the last colon
 * is the one before the port.
 */
#include "wire/redirect.h"

#include "wire/slot.h"

#include <string.h>

#define PORT_MAX 65535

/* Digits and nothing else, to `max`; returns what stands behind them, or NULL. */
static const char *read_number(const char *text, unsigned max, unsigned *number)
{
    unsigned value = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (unsigned)(*at - '0');
        if (value > max)
            return NULL;
    }
    *number = value;
    return at > text ? at : NULL;
}

/* Returns what stands behind the word, or NULL. */
static const char *skip_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    return strncmp(text, word, len) == 0 ? text + len : NULL;
}

static bool read_place(const char *text, const struct rbk_place *asked, struct rbk_place *place)
{
    const char *colon = strrchr(text, ':');
    unsigned port;

    if (colon == NULL)
        return false;
    const char *end = read_number(colon + 1, PORT_MAX, &port);

    return end != NULL && *end == '\0' &&
           rbk_place_read(text, (size_t)(colon - text), port, asked, place);
}

bool rbk_redirect_read(const char *error_text, const struct rbk_place *asked,
                       struct rbk_redirect *out)
{
    struct rbk_redirect found = {.ask = false};
    const char *at = skip_word(error_text, "MOVED ");

    if (at == NULL) {
        found.ask = true;
        at = skip_word(error_text, "ASK ");
    }
    if (at != NULL)
        at = read_number(at, RBK_SLOTS - 1, &found.slot);
    if (at == NULL || *at != ' ' || !read_place(at + 1, asked, &found.place))
        return false;
    *out = found;
    return true;
}
