/* SPDX-License-Identifier: MIT */
/*
 * Statistics as OpenMetrics text. Each counter of the library is a metric of its own and none is
 * computed from others: a difference of two numbers that are read one after the other can fall, and
 * a counter that falls is taken for one that began anew.
 *
 * Invariant: the text is OpenMetrics, whatever the stores are called.
 */
#include "redbucket/metrics.h"

#include "text/room.h"
#include "text/utf8.h"

#include <string.h>

/* Which stores know of it. */
enum scope {
    OF_ALL,
    OF_TABLES,
    OF_SERVERS,
};

static const struct family {
    const char *name;
    const char *unit; /* or NULL */
    const char *help;
    size_t offset;
    enum scope scope;
    bool gauge;
} families[] = {
#define FIELD(name) offsetof(struct redbucket_statistics, name)
    {"redbucket_accepted_requests", NULL, "Requests accepted, delayed ones among them.",
     FIELD(accepted), OF_ALL, false},
    {"redbucket_delayed_requests", NULL, "Requests accepted with a wait.", FIELD(delayed), OF_ALL,
     false},
    {"redbucket_rejected_requests", NULL, "Requests rejected, denied ones among them.",
     FIELD(rejected), OF_ALL, false},
    {"redbucket_denied_requests", NULL, "Requests rejected without asking the server.",
     FIELD(denied), OF_SERVERS, false},
    {"redbucket_leased_requests", NULL,
     "Requests accepted out of a lease, without asking the server.", FIELD(leased), OF_SERVERS,
     false},
    {"redbucket_failed_requests", NULL, "Requests that the server failed to answer.", FIELD(failed),
     OF_SERVERS, false},
    {"redbucket_degraded_requests", NULL, "Requests that a failure policy answered.",
     FIELD(degraded), OF_ALL, false},
    {"redbucket_refused_requests", NULL, "Requests that failed because the table was full.",
     FIELD(full), OF_TABLES, false},
    {"redbucket_evicted_buckets", NULL, "Buckets given up before they were empty.", FIELD(evicted),
     OF_TABLES, false},
    {"redbucket_recoveries", NULL, "Changes undone because a process died in the middle.",
     FIELD(recovered), OF_TABLES, false},
    {"redbucket_buckets", NULL, "Buckets held now.", FIELD(buckets), OF_TABLES, true},
    {"redbucket_capacity_buckets", NULL, "Buckets with short keys that fit.", FIELD(capacity),
     OF_TABLES, true},
    {"redbucket_table_bytes", "bytes", "Memory set aside for the table.", FIELD(bytes), OF_TABLES,
     true},
#undef FIELD
};

/* What is counted by zone. */
static const struct zone_family {
    const char *name;
    const char *help;
    size_t offset;
} zone_families[] = {
#define FIELD(name) offsetof(struct redbucket_zone_statistics, name)
    {"redbucket_zone_accepted_requests",
     "Requests accepted that named the zone's limit, delayed ones among them.", FIELD(accepted)},
    {"redbucket_zone_delayed_requests", "Requests that the zone's limit had wait.", FIELD(delayed)},
    {"redbucket_zone_rejected_requests",
     "Requests rejected for which the zone's limit had no room.", FIELD(rejected)},
#undef FIELD
};

/* Embedded stores have a table, and stores on a server have none. */
static bool has_table(const struct redbucket_statistics *statistics)
{
    return statistics->size >= offsetof(struct redbucket_statistics, capacity) + sizeof(uint64_t) &&
           statistics->capacity > 0;
}

static bool knows(const struct redbucket_statistics *statistics, const struct family *family)
{
    if (statistics->size < family->offset + sizeof(uint64_t))
        return false;
    if (family->scope == OF_ALL)
        return true;
    return has_table(statistics) == (family->scope == OF_TABLES);
}

/* How a name is shown: what its first bytes become, and in *taken how many those are. */
static const char *next_piece(const char *name, size_t len, size_t *taken, char plain[5])
{
    *taken = rbk_utf8_length(name, len);
    if (*taken == 0 || ((unsigned char)*name < 0x20 && *name != '\n') || *name == 0x7f) {
        *taken = 1;
        return "\xef\xbf\xbd";
    }
    if (*name == '\n')
        return "\\n";
    if (*name == '"')
        return "\\\"";
    if (*name == '\\')
        return "\\\\";
    memcpy(plain, name, *taken);
    plain[*taken] = '\0';
    return plain;
}

static void put_label(struct rbk_room *room, const char *name, size_t len)
{
    size_t left = len;
    size_t taken;
    char plain[5];

    for (; left > 0; left -= taken, name += taken)
        rbk_room_string(room, next_piece(name, left, &taken, plain));
}

/* True when nobody could tell one from the other. */
static bool same_label(const char *a, const char *b)
{
    size_t a_left = strlen(a);
    size_t b_left = strlen(b);
    char a_plain[5];
    char b_plain[5];

    while (a_left > 0 && b_left > 0) {
        size_t a_taken;
        size_t b_taken;

        if (strcmp(next_piece(a, a_left, &a_taken, a_plain),
                   next_piece(b, b_left, &b_taken, b_plain)) != 0)
            return false;
        a += a_taken;
        b += b_taken;
        a_left -= a_taken;
        b_left -= b_taken;
    }
    return a_left == 0 && b_left == 0;
}

static void put_sample(struct rbk_room *room, const struct family *family,
                       const struct redbucket_metered *store)
{
    uint64_t number;

    memcpy(&number, (const char *)store->statistics + family->offset, sizeof number);
    rbk_room_string(room, family->name);
    if (!family->gauge)
        rbk_room_string(room, "_total");
    rbk_room_string(room, "{store=\"");
    put_label(room, store->name, strlen(store->name));
    rbk_room_string(room, "\"} ");
    rbk_room_integer(room, number);
    rbk_room_string(room, "\n");
}

static void put_words(struct rbk_room *room, const char *what, const char *name, const char *value)
{
    rbk_room_string(room, "# ");
    rbk_room_string(room, what);
    rbk_room_string(room, " ");
    rbk_room_string(room, name);
    rbk_room_string(room, " ");
    rbk_room_string(room, value);
    rbk_room_string(room, "\n");
}

/* A metric that no store knows is left out altogether. */
static void put_family(struct rbk_room *room, const struct family *family,
                       const struct redbucket_metered *stores, size_t stores_len)
{
    bool begun = false;

    for (size_t i = 0; i < stores_len; i++) {
        if (!knows(stores[i].statistics, family))
            continue;
        if (!begun) {
            put_words(room, "TYPE", family->name, family->gauge ? "gauge" : "counter");
            if (family->unit != NULL)
                put_words(room, "UNIT", family->name, family->unit);
            put_words(room, "HELP", family->name, family->help);
        }
        begun = true;
        put_sample(room, family, &stores[i]);
    }
}

static void put_version(struct rbk_room *room)
{
    put_words(room, "TYPE", "redbucket_build", "info");
    put_words(room, "HELP", "redbucket_build", "The library that counts.");
    rbk_room_string(room, "redbucket_build_info{version=\"");
    rbk_room_string(room, redbucket_version());
    rbk_room_string(room, "\"} 1\n");
}

/* True when a label shows just these bytes, so that no two zones have the same one. */
static bool prints(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len;) {
        const size_t taken = rbk_utf8_length(bytes + i, len - i);

        if (taken == 0 || (unsigned char)bytes[i] < 0x20 || bytes[i] == 0x7f)
            return false;
        i += taken;
    }
    return true;
}

static void put_zone_label(struct rbk_room *room, const struct redbucket_zone_statistics *zone)
{
    static const char digits[] = "0123456789abcdef";
    const size_t len = zone->zone_len <= REDBUCKET_ZONE_MAX ? zone->zone_len : REDBUCKET_ZONE_MAX;
    const bool exact = prints(zone->zone, len);

    if (len == 0)
        return;
    rbk_room_string(room, exact ? ",zone=\"" : ",zone_hex=\"");
    if (exact)
        put_label(room, zone->zone, len);
    for (size_t i = 0; !exact && i < len; i++) {
        const unsigned char byte = (unsigned char)zone->zone[i];

        rbk_room_put(room, (const char[]){digits[byte >> 4], digits[byte & 15]}, 2);
    }
    rbk_room_string(room, "\"");
}

static void put_zone_sample(struct rbk_room *room, const struct zone_family *family,
                            const struct redbucket_metered *store,
                            const struct redbucket_zone_statistics *zone)
{
    uint64_t number;

    memcpy(&number, (const char *)zone + family->offset, sizeof number);
    rbk_room_string(room, family->name);
    rbk_room_string(room, "_total{store=\"");
    put_label(room, store->name, strlen(store->name));
    rbk_room_string(room, "\"");
    put_zone_label(room, zone);
    rbk_room_string(room, "} ");
    rbk_room_integer(room, number);
    rbk_room_string(room, "\n");
}

/* All others together may be nobody. */
static bool counts(const struct redbucket_zone_statistics *zone)
{
    return zone->zone_len > 0 || zone->accepted > 0 || zone->rejected > 0;
}

static void put_zones(struct rbk_room *room, const struct zone_family *family,
                      const struct redbucket_metered *store, bool *begun)
{
    for (size_t i = 0; i < store->zones_len; i++) {
        if (!counts(&store->zones[i]))
            continue;
        if (!*begun) {
            put_words(room, "TYPE", family->name, "counter");
            put_words(room, "HELP", family->name, family->help);
        }
        *begun = true;
        put_zone_sample(room, family, store, &store->zones[i]);
    }
}

/* A family without a sample has no head either. */
static void put_zone_family(struct rbk_room *room, const struct zone_family *family,
                            const struct redbucket_metered *stores, size_t stores_len)
{
    bool begun = false;

    for (size_t i = 0; i < stores_len; i++)
        put_zones(room, family, &stores[i], &begun);
}

static enum redbucket_status check(const struct redbucket_metered *stores, size_t stores_len)
{
    for (size_t i = 0; i < stores_len; i++) {
        if (stores[i].name == NULL || stores[i].statistics == NULL ||
            stores[i].statistics->size < sizeof(size_t))
            return REDBUCKET_ERROR_ARGUMENT;
        for (size_t j = 0; j < i; j++) {
            if (same_label(stores[i].name, stores[j].name))
                return REDBUCKET_ERROR_DUPLICATE;
        }
    }
    return REDBUCKET_OK;
}

enum redbucket_status redbucket_metrics(const struct redbucket_metered *stores, size_t stores_len,
                                        struct redbucket_text *text)
{
    struct rbk_room room = rbk_room_begin(text);
    enum redbucket_status status = check(stores, stores_len);

    if (status != REDBUCKET_OK)
        return status;
    put_version(&room);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        put_family(&room, &families[i], stores, stores_len);
    for (size_t i = 0; i < sizeof zone_families / sizeof zone_families[0]; i++)
        put_zone_family(&room, &zone_families[i], stores, stores_len);
    rbk_room_string(&room, "# EOF\n");
    return rbk_room_end(&room);
}
