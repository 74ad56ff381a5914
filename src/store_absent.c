/* SPDX-License-Identifier: MIT */
/*
 * What answers for stores on servers in a build that has none (-Dservers=disabled): their URLs are
 * understood and refused by name, so that nobody takes a library without them for a URL mistyped.
 */
#include "error.h"
#include "store.h"
#include "url.h"

static enum redbucket_status refuse(const struct rbk_url *url, struct redbucket_error *error)
{
    return rbk_fail(error, REDBUCKET_ERROR_UNSUPPORTED, -1,
                    "store URL: %.60s: this library was built without stores on servers, it has "
                    "memory: and shm:NAME",
                    url->scheme);
}

enum redbucket_status rbk_redis_open(const struct rbk_url *url, struct redbucket_store **store,
                                     struct redbucket_error *error)
{
    (void)store;
    return refuse(url, error);
}

enum redbucket_status rbk_cluster_open(const struct rbk_url *url, struct redbucket_store **store,
                                       struct redbucket_error *error)
{
    (void)store;
    return refuse(url, error);
}
