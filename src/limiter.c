/* SPDX-License-Identifier: MIT */
/*
 * Making limiters and giving them limits. Everything a request could stumble over is checked here,
 * once.
 */
#include "limiter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Limits that are looked through one after the other, which is as quick. */
#define FEW 4u

/* Seconds that leases last when a limit doesn't say. */
#define LEASE_TIME_DEFAULT 1.0

/* Bytes of struct redbucket_limit in version 0.1, which a caller may call 0. */
#define LIMIT_SIZE_FIRST (offsetof(struct redbucket_limit, lease_time) + sizeof(double))

/* Copies what the caller's version of the struct has. */
static enum redbucket_status take_limit(const struct redbucket_limit *given,
                                        struct redbucket_limit *limit,
                                        struct redbucket_error *error)
{
    size_t size = given->size == 0 ? LIMIT_SIZE_FIRST : given->size;

    if (size != sizeof *limit)
        return rbk_fail(error, REDBUCKET_ERROR_LIMIT, -1,
                        "limit: made for another version of the library");
    *limit = *given;
    limit->size = sizeof *limit;
    return REDBUCKET_OK;
}

static enum redbucket_status fail_range(struct redbucket_error *error, const char *field,
                                        double value, const char *expected)
{
    char number[REDBUCKET_NUMBER_SIZE];

    redbucket_number_format(value, number);
    return rbk_fail(error, REDBUCKET_ERROR_LIMIT, -1, "%s: %s is out of range, expected %s", field,
                    number, expected);
}

static enum redbucket_status check_arithmetic(const struct redbucket_limit *limit,
                                              struct redbucket_error *error)
{
    struct rbk_limit model = {limit->rate, limit->burst, limit->delay};

    switch (rbk_limit_check(&model)) {
    case RBK_LIMIT_RATE:
        return fail_range(error, "rate", limit->rate, "1e-9 to 1e12 requests a second");
    case RBK_LIMIT_BURST:
        return fail_range(error, "burst", limit->burst, "0 to 1e12 requests");
    case RBK_LIMIT_DELAY:
        return fail_range(error, "delay", limit->delay, "0 to 1e12 requests");
    case RBK_LIMIT_DEPTH:
        return fail_range(error, "burst + delay", limit->burst + limit->delay,
                          "0 to 1e12 requests");
    case RBK_LIMIT_GOOD:
        break;
    }
    return REDBUCKET_OK;
}

enum redbucket_status redbucket_limit_check(const struct redbucket_limit *given,
                                            struct redbucket_error *error)
{
    struct redbucket_limit limit = {0};
    enum redbucket_status status = take_limit(given, &limit, error);

    if (status == REDBUCKET_OK)
        status = check_arithmetic(&limit, error);
    if (status != REDBUCKET_OK)
        return status;
    if (!rbk_within(limit.expiry, 0.0, RBK_EXPIRY_MAX))
        return fail_range(error, "expiry", limit.expiry, "0 to 1e10 seconds");
    if (!rbk_within(limit.lease, 0.0, RBK_LEASE_MAX))
        return fail_range(error, "lease", limit.lease, "0 to 1e12 permits");
    if (!rbk_within(limit.lease_time, 0.0, RBK_LEASE_TIME_MAX))
        return fail_range(error, "lease_time", limit.lease_time, "0 to 3600 seconds");
    return REDBUCKET_OK;
}

enum redbucket_status redbucket_limiter_create(struct redbucket_store *store,
                                               struct redbucket_limiter **limiter,
                                               struct redbucket_error *error)
{
    struct redbucket_limiter *made = calloc(1, sizeof *made);

    if (made == NULL)
        return rbk_fail_system(error, ENOMEM, "limiter");
    made->store = store;
    made->key_max = store->ops->key_max(store);
    *limiter = made;
    return REDBUCKET_OK;
}

static void destroy_named(struct rbk_named *named)
{
    if (named == NULL)
        return;
    free(named->name);
    free(named->zone);
    free(named);
}

void redbucket_limiter_destroy(struct redbucket_limiter *limiter)
{
    if (limiter == NULL)
        return;
    for (size_t i = 0; i < limiter->len; i++)
        destroy_named(limiter->limits[i]);
    free(limiter->limits);
    free(limiter->by_name);
    free(limiter);
}

/* Where the name is in by_name, or where it would go. */
static size_t position(const struct redbucket_limiter *limiter, const char *name, size_t name_len,
                       bool *found)
{
    size_t low = 0;
    size_t high = limiter->len;

    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct rbk_named *named = limiter->by_name[middle];
        int order = named->name_len != name_len ? (named->name_len < name_len ? -1 : 1)
                                                : memcmp(named->name, name, name_len);

        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct rbk_named *rbk_limiter_find(const struct redbucket_limiter *limiter, const char *name,
                                         size_t name_len)
{
    bool found;
    size_t at;

    for (size_t i = 0; i < limiter->len && i < FEW; i++) {
        const struct rbk_named *named = limiter->by_name[i];

        if (named->name_len == name_len && memcmp(named->name, name, name_len) == 0)
            return named;
    }
    if (limiter->len <= FEW)
        return NULL;
    at = position(limiter, name, name_len, &found);
    return found ? limiter->by_name[at] : NULL;
}

static struct rbk_named *make_named(const char *name, const struct redbucket_limit *limit)
{
    struct rbk_named *named = calloc(1, sizeof *named);

    if (named == NULL)
        return NULL;
    *named = (struct rbk_named){
        .name = strdup(name),
        .name_len = strlen(name),
        .zone = calloc(1, limit->zone_len + 1),
        .zone_len = limit->zone_len,
        .limit = {limit->rate, limit->burst, limit->delay},
        .expiry = ceil(limit->expiry),
        .terms = {limit->lease, limit->lease_time > 0.0 ? limit->lease_time : LEASE_TIME_DEFAULT},
        .as_given = *limit,
    };
    if (named->name == NULL || named->zone == NULL) {
        destroy_named(named);
        return NULL;
    }
    memcpy(named->zone, limit->zone, limit->zone_len);
    named->as_given.zone = (const char *)named->zone;
    return named;
}

static bool apart(const struct redbucket_store *store, const struct rbk_named *other,
                  const struct redbucket_limit *limit)
{
    struct rbk_key a = {.zone = other->zone, .zone_len = other->zone_len};
    struct rbk_key b = {.zone = (const unsigned char *)limit->zone, .zone_len = limit->zone_len};

    return store->ops->apart == NULL || store->ops->apart(store, &a, &b);
}

static enum redbucket_status check_names(const struct redbucket_limiter *limiter, const char *name,
                                         const struct redbucket_limit *limit,
                                         struct redbucket_error *error)
{
    size_t name_len = strlen(name);

    if (name_len == 0 || name_len > REDBUCKET_ZONE_MAX)
        return rbk_fail(error, REDBUCKET_ERROR_LIMIT, -1, "limit: expected a name of 1 to %d bytes",
                        REDBUCKET_ZONE_MAX);
    if (limit->zone_len == 0 || limit->zone_len > REDBUCKET_ZONE_MAX)
        return rbk_fail(error, REDBUCKET_ERROR_LIMIT, -1,
                        "limit %s: expected a zone of 1 to %d bytes", name, REDBUCKET_ZONE_MAX);
    if (rbk_limiter_find(limiter, name, name_len) != NULL)
        return rbk_fail(error, REDBUCKET_ERROR_DUPLICATE, -1, "limit %s: there is one already",
                        name);
    for (size_t i = 0; i < limiter->len; i++) {
        const struct rbk_named *other = limiter->limits[i];

        if (other->zone_len == limit->zone_len &&
            memcmp(other->zone, limit->zone, limit->zone_len) == 0)
            return rbk_fail(
                error, REDBUCKET_ERROR_DUPLICATE, -1,
                "limit %s: its zone is the zone of limit %s, and one zone has one limit", name,
                other->name);
        if (!apart(limiter->store, other, limit))
            return rbk_fail(
                error, REDBUCKET_ERROR_DUPLICATE, -1,
                "limit %s: under the key format, a key of its zone could be one of limit "
                "%s",
                name, other->name);
    }
    return REDBUCKET_OK;
}

/* Makes room for one more in both arrays; what has grown stays so. */
static bool reserve(struct redbucket_limiter *limiter)
{
    size_t size = (limiter->len + 1) * sizeof limiter->limits[0];
    struct rbk_named **limits = realloc(limiter->limits, size);

    if (limits == NULL)
        return false;
    limiter->limits = limits;

    struct rbk_named **by_name = realloc(limiter->by_name, size);

    if (by_name == NULL)
        return false;
    limiter->by_name = by_name;
    return true;
}

enum redbucket_status redbucket_limiter_add(struct redbucket_limiter *limiter, const char *name,
                                            const struct redbucket_limit *given,
                                            struct redbucket_error *error)
{
    struct redbucket_limit limit = {0};
    enum redbucket_status status = redbucket_limit_check(given, error);

    if (status == REDBUCKET_OK)
        status = take_limit(given, &limit, error);
    if (status != REDBUCKET_OK)
        return status;
    if (limit.zone == NULL) {
        limit.zone = name;
        limit.zone_len = 0;
    }
    if (limit.zone_len == 0)
        limit.zone_len = strlen(limit.zone);
    status = check_names(limiter, name, &limit, error);
    if (status != REDBUCKET_OK)
        return status;

    struct rbk_named *named = make_named(name, &limit);

    if (named == NULL || !reserve(limiter)) {
        destroy_named(named);
        return rbk_fail_system(error, ENOMEM, "limiter");
    }
    bool found;
    size_t at = position(limiter, name, named->name_len, &found);

    if (limiter->store->ops->enroll != NULL)
        named->zone_index = limiter->store->ops->enroll(
            limiter->store, &(struct rbk_key){.zone = named->zone, .zone_len = named->zone_len});
    memmove(&limiter->by_name[at + 1], &limiter->by_name[at],
            (limiter->len - at) * sizeof limiter->by_name[0]);
    limiter->by_name[at] = named;
    limiter->limits[limiter->len++] = named;
    return REDBUCKET_OK;
}

size_t redbucket_limiter_count(const struct redbucket_limiter *limiter)
{
    return limiter->len;
}

bool redbucket_limiter_get(const struct redbucket_limiter *limiter, size_t index, const char **name,
                           struct redbucket_limit *limit)
{
    size_t size = limit->size == 0 ? LIMIT_SIZE_FIRST : limit->size;

    if (index >= limiter->len || size < sizeof limit->size)
        return false;
    if (size > sizeof *limit)
        size = sizeof *limit;
    *name = limiter->limits[index]->name;
    memcpy(limit, &limiter->limits[index]->as_given, size);
    limit->size = size;
    return true;
}
