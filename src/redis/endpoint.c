/* SPDX-License-Identifier: MIT */
/*
 * Texts of places. Whatever they hold, what is shown of them is one printable line.
 */
#include "redis/endpoint.h"

#include <stdio.h>
#include <string.h>

#define PORT_MAX 65535u

static void make_printable(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
    }
}

bool rbk_endpoint_set_host(struct rbk_endpoint *endpoint, const char *host, unsigned port)
{
    size_t len = strlen(host);

    if (len == 0 || len > RBK_URL_HOST_MAX || port == 0 || port > PORT_MAX)
        return false;
    memmove(endpoint->name, host, len + 1);
    endpoint->port = port;
    (void)snprintf(endpoint->where, sizeof endpoint->where,
                   strchr(endpoint->name, ':') == NULL ? "%s:%u" : "[%s]:%u", endpoint->name, port);
    make_printable(endpoint->where);
    return true;
}

bool rbk_endpoint_set_path(struct rbk_endpoint *endpoint, const char *path)
{
    size_t len = strlen(path);

    if (len == 0 || len > RBK_UNIX_PATH_MAX)
        return false;
    memmove(endpoint->name, path, len + 1);
    endpoint->port = 0;
    (void)snprintf(endpoint->where, sizeof endpoint->where, "%s", endpoint->name);
    make_printable(endpoint->where);
    return true;
}

bool rbk_endpoint_same(const struct rbk_endpoint *a, const struct rbk_endpoint *b)
{
    return a->port == b->port && strcmp(a->name, b->name) == 0;
}
