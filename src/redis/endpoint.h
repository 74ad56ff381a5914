/* SPDX-License-Identifier: MIT */
/*
 * Where a server is: a host with a port, or the path of a Unix socket.
 *
 * A value that holds its texts itself, to be copied at will: some come from a URL, others from what
 * a server says of where its neighbours are.
 */
#ifndef RBK_REDIS_ENDPOINT_H
#define RBK_REDIS_ENDPOINT_H

#include "url.h"

/* The longest path of a Unix socket, without its NUL. */
#define RBK_UNIX_PATH_MAX 107

/* Room for a host or a path with a port, for messages. */
#define RBK_WHERE_SIZE 272

struct rbk_endpoint {
    char
        name[RBK_URL_HOST_MAX + 1]; /* a host's name or numeric address, without brackets; a path */
    unsigned port;                  /* 0 for a Unix socket */
    char where[RBK_WHERE_SIZE]; /* "host:port", "[v6]:port" or the path, in one printable line */
};

/* False, and nothing is changed, for what can be no host or no port. */
bool rbk_endpoint_set_host(struct rbk_endpoint *endpoint, const char *host, unsigned port);

/* False, and nothing is changed, when the path is too long. */
bool rbk_endpoint_set_path(struct rbk_endpoint *endpoint, const char *path);

/* True when both name the same place in the same words. */
bool rbk_endpoint_same(const struct rbk_endpoint *a, const struct rbk_endpoint *b);

#endif
