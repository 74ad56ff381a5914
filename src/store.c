/* SPDX-License-Identifier: MIT */
/*
 * The composition root: where a URL becomes a store, and the one place that knows them all.
 */
#include "store.h"

#include "url.h"

#include <string.h>

static const struct {
    const char *scheme;
    rbk_store_opener *open;
} stores[] = {
    {"memory", rbk_memory_open},
    {"shm", rbk_shm_open},
};

enum redbucket_status redbucket_store_open(const char *text, struct redbucket_store **store,
                                           struct redbucket_error *error)
{
    struct rbk_url url;
    enum redbucket_status status = rbk_url_parse(text, &url, error);

    if (status != REDBUCKET_OK)
        return status;
    for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
        if (strcmp(url.scheme, stores[i].scheme) == 0)
            return stores[i].open(&url, store, error);
    }
    return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                    "store URL: unknown kind \"%.60s\", expected memory: or shm:NAME", url.scheme);
}

void redbucket_store_close(struct redbucket_store *store)
{
    if (store != NULL)
        store->ops->close(store);
}

enum redbucket_status redbucket_store_statistics(struct redbucket_store *store,
                                                 struct redbucket_statistics *statistics)
{
    struct redbucket_statistics all = {.size = statistics->size};
    enum redbucket_status status;

    if (statistics->size < sizeof statistics->size || statistics->size > 65536)
        return REDBUCKET_ERROR_ARGUMENT;
    status = store->ops->statistics(store, &all);
    if (status == REDBUCKET_OK)
        memcpy(statistics, &all, statistics->size < sizeof all ? statistics->size : sizeof all);
    return status;
}

void redbucket_store_failure(struct redbucket_store *store, struct redbucket_error *error)
{
    *error = (struct redbucket_error){.status = REDBUCKET_OK, .position = -1};
    if (store->ops->failure != NULL)
        store->ops->failure(store, error);
}

void redbucket_store_listen(struct redbucket_store *store, redbucket_listener *listener, void *data)
{
    store->listener = listener;
    store->listener_data = data;
}

void rbk_store_tell(struct redbucket_store *store, enum redbucket_event event, const char *message)
{
    if (store->listener != NULL)
        store->listener(store->listener_data, event, message);
}
