/* SPDX-License-Identifier: MIT */
/*
 * Hides the passwords of a store's URL.
 *
 * Rather too much than too little: whatever stands between the first ':' behind "//" and the last
 * '@' may be a password with unencoded separators in it, and so may the value of every parameter
 * whose name has "password" in it.
 */
#include "cli.h"

#include <string.h>

#define MASK "***"

/* Appends `len` bytes, as far as they fit. */
static void append(char out[CLI_URL_SIZE], const char *text, size_t len)
{
    const size_t used = strlen(out);
    const size_t room = CLI_URL_SIZE - 1 - used;
    const size_t taken = len < room ? len : room;

    memcpy(out + used, text, taken);
    out[used + taken] = '\0';
}

/* Appends the authority's user and masked password and returns what follows them. */
static const char *mask_user(const char *url, char out[CLI_URL_SIZE])
{
    const char *slashes = strstr(url, "://");
    const char *at = slashes != NULL ? strrchr(slashes, '@') : NULL;
    const char *colon = slashes != NULL ? strchr(slashes + 3, ':') : NULL;

    if (at == NULL || colon == NULL || colon > at)
        return url;
    append(out, url, (size_t)(colon + 1 - url));
    append(out, MASK, strlen(MASK));
    return at;
}

const char *rbk_cli_mask_url(const char *url, char out[CLI_URL_SIZE])
{
    const char *rest;

    out[0] = '\0';
    rest = mask_user(url, out);
    while (*rest != '\0') { /* from parameter to parameter */
        const size_t len = strcspn(rest, "?&");
        const char *word = memmem(rest, len, "password", strlen("password"));
        const char *equals = word != NULL ? memchr(word, '=', len - (size_t)(word - rest)) : NULL;

        append(out, rest, equals != NULL ? (size_t)(equals + 1 - rest) : len);
        if (equals != NULL)
            append(out, MASK, strlen(MASK));
        rest += len;
        append(out, rest, *rest != '\0');
        rest += *rest != '\0';
    }
    return out;
}
