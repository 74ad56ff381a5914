/* SPDX-License-Identifier: MIT */
/*
 * A stranger's program: built in a folder of its own, from what was installed and what pkg-config
 * says of it, as C and as C++. It decides something, so that more than its headers must be there.
 */
#include <stdio.h>

#include <redbucket/redbucket.h>

static bool accepts_one(struct redbucket_limiter *limiter)
{
    struct redbucket_limit limit = {0};
    struct redbucket_key key = {0};
    struct redbucket_response response;
    limit.rate = 1;
    key.limit = "ip";
    key.key = "192.0.2.7";
    return redbucket_limiter_add(limiter, "ip", &limit, NULL) == REDBUCKET_OK &&
           redbucket_request(limiter, &key, 1, &response) == REDBUCKET_OK && response.accepted;
}

int main(void)
{
    struct redbucket_store *store = NULL;
    struct redbucket_limiter *limiter = NULL;
    bool good = redbucket_store_open("memory:?size=64k", &store, NULL) == REDBUCKET_OK &&
                redbucket_limiter_create(store, &limiter, NULL) == REDBUCKET_OK &&
                accepts_one(limiter);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    printf("%s %s\n", redbucket_version(), good ? "accepted" : "failed");
    return good ? 0 : 1;
}
