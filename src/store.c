/* SPDX-License-Identifier: MIT */
/*
 * The composition root: where a URL becomes a store, and the one place that knows them all.
 */
#include "store.h"

#include "census.h"
#include "clock.h"
#include "denial.h"
#include "gather.h"
#include "guard.h"
#include "lease.h"
#include "policy.h"
#include "url.h"
#include "wait.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *scheme;
    rbk_store_opener *open;
} stores[] = {
    {"memory", rbk_memory_open},
    {"shm", rbk_shm_open},
    {"redis", rbk_redis_open},
    {"rediss", rbk_redis_open},
    {"unix", rbk_redis_open},
    {"redis+sentinel", rbk_redis_open},
    {"rediss+sentinel", rbk_redis_open},
    {"redis+cluster", rbk_cluster_open},
    {"rediss+cluster", rbk_cluster_open},
};

static enum redbucket_status open_kind(const struct rbk_url *url, struct redbucket_store **store,
                                       struct redbucket_error *error)
{
    for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
        if (strcmp(url->scheme, stores[i].scheme) == 0)
            return stores[i].open(url, store, error);
    }
    return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                    "store URL: unknown kind \"%.60s\", expected " RBK_URL_KINDS, url->scheme);
}

/* What on_error and local_share ask for; `wanted` is false for on_error=fail. */
struct policy_wish {
    bool wanted;
    enum rbk_policy_kind kind;
    double share;
};

static enum redbucket_status read_policy(const struct rbk_url *url, struct policy_wish *wish,
                                         struct redbucket_error *error)
{
    static const char *const names[] = {"open", "closed", "local"};
    const char *name = rbk_url_get(url, "on_error");
    const char *part = rbk_url_get(url, "local_share");
    int found = -1;

    for (int i = 0; name != NULL && i < 3; i++) {
        if (strcmp(name, names[i]) == 0)
            found = i;
    }
    if (name != NULL && found < 0 && strcmp(name, "fail") != 0)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: on_error: expected fail, open, closed or local");
    if (found >= 0)
        *wish = (struct policy_wish){true, (enum rbk_policy_kind)found, 1.0};
    if (part == NULL)
        return REDBUCKET_OK;
    if (wish->kind != RBK_POLICY_LOCAL ||
        redbucket_number_parse(part, &wish->share, NULL) != REDBUCKET_OK || !(wish->share > 0.0) ||
        wish->share > 1.0)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: local_share: expected a number above 0, to 1, beside "
                        "on_error=local");
    return REDBUCKET_OK;
}

/* The embedded store that answers under on_error=local. */
static enum redbucket_status open_local(struct redbucket_store **store,
                                        struct redbucket_error *error)
{
    struct rbk_url url;
    enum redbucket_status status = rbk_url_parse("memory:", &url, error);

    return status == REDBUCKET_OK ? rbk_memory_open(&url, store, error) : status;
}

/* Puts the policy in front of *store, or closes it. */
static enum redbucket_status add_policy(const struct policy_wish *wish,
                                        struct redbucket_store **store,
                                        struct redbucket_error *error)
{
    struct redbucket_store *local = NULL;
    enum redbucket_status status = REDBUCKET_OK;

    if (wish->kind == RBK_POLICY_LOCAL)
        status = open_local(&local, error);
    if (status == REDBUCKET_OK) {
        status = rbk_policy_create(wish->kind, *store, local, wish->share, store);
        if (status != REDBUCKET_OK)
            rbk_error_set(error, status, -1, "store: %s", redbucket_status_text(status));
    }
    if (status != REDBUCKET_OK) {
        redbucket_store_close(*store);
        redbucket_store_close(local);
    }
    return status;
}

/* Puts gathering in front of *store, or closes it. */
static enum redbucket_status add_gather(const struct rbk_url *url, struct redbucket_store **store,
                                        struct redbucket_error *error)
{
    const char *connections = rbk_url_get(url, "connections");
    unsigned flights = RBK_GATHER_FLIGHTS;
    double timeout = RBK_TIMEOUT_DEFAULT;
    enum redbucket_status status = rbk_url_duration(url, "timeout", &timeout, error);

    /* More calls than connections would wait for these and not here. */
    if (connections != NULL)
        (void)rbk_url_number(connections, 1, RBK_GATHER_FLIGHTS, &flights);
    if (status == REDBUCKET_OK)
        status = rbk_gather_create(*store, timeout, flights, store, error);
    if (status != REDBUCKET_OK)
        redbucket_store_close(*store);
    return status;
}

/* Puts a guard around *store, or closes it. */
static enum redbucket_status add_guard(struct redbucket_store **store,
                                       struct redbucket_error *error)
{
    enum redbucket_status status = rbk_guard_create(*store, store);

    if (status != REDBUCKET_OK) {
        rbk_error_set(error, status, -1, "store: %s", redbucket_status_text(status));
        redbucket_store_close(*store);
    }
    return status;
}

/* Puts the denial cache in front of *store, or closes it. */
static enum redbucket_status add_denial(const struct rbk_url *url, struct redbucket_store **store,
                                        struct redbucket_error *error)
{
    const char *text = rbk_url_get(url, "denial_time");
    double time = RBK_DENIAL_TIME_DEFAULT;
    enum redbucket_status status = REDBUCKET_OK;

    if (text != NULL && (redbucket_duration_parse(text, &time, NULL) != REDBUCKET_OK ||
                         !(time >= 0.0 && time <= RBK_DENIAL_TIME_MAX)))
        status = rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                          "store URL: denial_time: expected a duration to 1h, or 0 for none");
    else if (time > 0.0)
        status = rbk_denial_create(*store, time, rbk_clock_now, store, error);
    if (status != REDBUCKET_OK)
        redbucket_store_close(*store);
    return status;
}

/* Puts leases in front of *store, or closes it. */
static enum redbucket_status add_lease(struct redbucket_store **store,
                                       struct redbucket_error *error)
{
    enum redbucket_status status = rbk_lease_create(*store, rbk_clock_now, store, error);

    if (status != REDBUCKET_OK)
        redbucket_store_close(*store);
    return status;
}

/* Puts the census in front of *store, or closes it. */
static enum redbucket_status add_census(struct redbucket_store **store,
                                        struct redbucket_error *error)
{
    enum redbucket_status status = rbk_census_create(*store, store);

    if (status != REDBUCKET_OK) {
        rbk_error_set(error, status, -1, "store: %s", redbucket_status_text(status));
        redbucket_store_close(*store);
    }
    return status;
}

static enum redbucket_status open_all(const char *text, struct redbucket_store **store,
                                      struct redbucket_error *error)
{
    struct policy_wish wish = {.wanted = false};
    struct redbucket_store *opened = NULL;
    struct rbk_url url;
    enum redbucket_status status = rbk_url_parse(text, &url, error);

    if (status == REDBUCKET_OK)
        status = read_policy(&url, &wish, error);
    if (status == REDBUCKET_OK)
        status = open_kind(&url, &opened, error);
    if (status != REDBUCKET_OK)
        return status;
    assert(opened != NULL);
    if (opened->ops->lane != NULL)
        status = add_gather(&url, &opened, error);
    if (status == REDBUCKET_OK && opened->ops->far)
        status = add_guard(&opened, error);
    if (status == REDBUCKET_OK && opened->ops->far)
        status = add_denial(&url, &opened, error);
    if (status == REDBUCKET_OK && opened->ops->far)
        status = add_lease(&opened, error);
    if (status == REDBUCKET_OK && opened->ops->zones == NULL)
        status = add_census(&opened, error);
    if (status == REDBUCKET_OK && wish.wanted)
        status = add_policy(&wish, &opened, error);
    if (status == REDBUCKET_OK)
        *store = opened;
    return status;
}

/* Stores in files take locks on them, which nobody could give back who was cancelled meanwhile. */
enum redbucket_status redbucket_store_open(const char *text, struct redbucket_store **store,
                                           struct redbucket_error *error)
{
    int before = rbk_guard_begin();
    enum redbucket_status status = open_all(text, store, error);

    rbk_guard_end(before);
    return status;
}

void redbucket_store_close(struct redbucket_store *store)
{
    int before = rbk_guard_begin();

    if (store != NULL)
        store->ops->close(store);
    rbk_guard_end(before);
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

/* One more entry than there are zones with a name. */
_Static_assert(REDBUCKET_ZONES_MAX == RBK_ZONES_NAMED + 1, "all others have an entry as well");

enum redbucket_status redbucket_store_zones(struct redbucket_store *store,
                                            struct redbucket_zone_statistics *zones,
                                            size_t zones_max, size_t *zones_len)
{
    if (zones_max < REDBUCKET_ZONES_MAX)
        return REDBUCKET_ERROR_SPACE;
    return store->ops->zones(store, zones, zones_len);
}

/* Embedded stores are there once they are open. */
static enum redbucket_status check_all(struct redbucket_store *store,
                                       struct redbucket_health *health)
{
    if (store->ops->check != NULL)
        return store->ops->check(store, health);
    (void)snprintf(health->method, sizeof health->method, "table");
    return REDBUCKET_OK;
}

enum redbucket_status redbucket_store_check(struct redbucket_store *store,
                                            struct redbucket_health *health)
{
    struct redbucket_health all = {.size = health->size};
    enum redbucket_status status;

    if (health->size < sizeof health->size || health->size > 65536)
        return REDBUCKET_ERROR_ARGUMENT;
    status = check_all(store, &all);
    if (status == REDBUCKET_OK)
        memcpy(health, &all, health->size < sizeof all ? health->size : sizeof all);
    return status;
}

/* False for what can't be a zone. */
static bool read_zone(const char *zone, size_t len, struct rbk_key *key)
{
    *key = (struct rbk_key){.zone = (const unsigned char *)zone,
                            .zone_len = len > 0 ? len : strlen(zone)};
    return key->zone_len > 0 && key->zone_len <= REDBUCKET_ZONE_MAX;
}

enum redbucket_colocation redbucket_store_colocation(const struct redbucket_store *store,
                                                     const char *zone_a, size_t zone_a_len,
                                                     const char *zone_b, size_t zone_b_len)
{
    struct rbk_key a, b;

    if (!read_zone(zone_a, zone_a_len, &a) || !read_zone(zone_b, zone_b_len, &b))
        return REDBUCKET_COLOCATION_NEVER;
    return store->ops->colocation == NULL ? REDBUCKET_COLOCATION_ALWAYS
                                          : store->ops->colocation(store, &a, &b);
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

struct news {
    struct redbucket_store *store;
    enum redbucket_event event;
    const char *message;
};

static void tell(void *data)
{
    const struct news *news = data;

    news->store->listener(news->store->listener_data, news->event, news->message);
}

void rbk_store_tell(struct redbucket_store *store, enum redbucket_event event, const char *message)
{
    struct news news = {store, event, message};

    if (store->listener != NULL)
        rbk_wait_call(tell, &news);
}
