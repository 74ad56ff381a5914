/* SPDX-License-Identifier: MIT */
/*
 * Reading and comparing places. Which bytes a host may have doesn't depend on the locale.
 */
#include "wire/place.h"

#include <string.h>

/* Of names, of IPv4 and IPv6 addresses, and of the scope behind the latter. */
static bool is_of_host(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '-' || byte == '_' ||
           byte == ':' || byte == '%';
}

static bool is_host(const char *text, size_t len)
{
    if (len == 0 || len > RBK_PLACE_HOST_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_of_host(text[i]))
            return false;
    }
    return true;
}

bool rbk_place_read(const char *text, size_t len, long long port, const struct rbk_place *asked,
                    struct rbk_place *place)
{
    struct rbk_place found = {.host = ""};

    if (len == 0 || (len == 1 && text[0] == '?')) {
        text = asked->host;
        len = strlen(text);
    } else if (!is_host(text, len)) {
        return false;
    }
    if (port < 1 || port > 65535)
        return false;
    memcpy(found.host, text, len);
    found.port = (unsigned)port;
    *place = found;
    return true;
}

bool rbk_place_same(const struct rbk_place *a, const struct rbk_place *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}
