/* SPDX-License-Identifier: MIT */
/*
 * States of the pass before are found by a hash under a seed of this process. Two keys with the
 * same hash would be taken for one, which misleads a look at a screen, and nobody can choose them.
 *
 * A name that a server gives twice in one pass is told by the pass that its track is of.
 */
#include "top_pass.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define TRACKS ((size_t)1 << 18)
#define PROBES 64u

/* The tick by which the model is lenient, in seconds. */
#define TICK 2e-6

/* What a key was when it was last seen; pass 0 is none. */
struct track {
    uint64_t hash;
    double timestamp;
    double value;
    double now;
    unsigned pass;
};

struct cli_top {
    const struct cli_context *context;
    struct track *tracks;
    uint64_t seed;
    unsigned pass;
    double begun; /* the store's time at the first bucket of this pass, or 0 */
    double begun_before;
    bool all_tracked; /* in the pass before */
    bool gap;         /* in this pass */
    bool by_level;
    size_t keys_max;
    size_t coldest; /* of the keys, once there are keys_max */
    struct cli_top_view views[2];
    unsigned shown; /* the view that has ended; the other one is under way */
};

struct cli_top *rbk_top_create(const struct cli_context *context, size_t keys_max)
{
    struct cli_top *top = calloc(1, sizeof(*top));

    if (top == NULL)
        return NULL;
    top->context = context;
    top->keys_max = keys_max < CLI_TOP_KEYS ? keys_max : CLI_TOP_KEYS;
    top->tracks = calloc(TRACKS, sizeof(top->tracks[0]));
    if (getrandom(&top->seed, sizeof(top->seed), GRND_NONBLOCK) < 0)
        top->seed = (uint64_t)(uintptr_t)top;
    if (top->tracks == NULL) {
        rbk_top_destroy(top);
        return NULL;
    }
    return top;
}

void rbk_top_destroy(struct cli_top *top)
{
    if (top != NULL)
        free(top->tracks);
    free(top);
}

void rbk_top_order(struct cli_top *top, bool by_level)
{
    top->by_level = by_level;
}

static struct cli_top_view *current(struct cli_top *top)
{
    return &top->views[1 - top->shown];
}

const struct cli_top_view *rbk_top_view(const struct cli_top *top)
{
    return &top->views[top->shown];
}

uint64_t rbk_top_met(const struct cli_top *top)
{
    const struct cli_top_view *view = &top->views[1 - top->shown];

    return view->buckets + view->drained;
}

/* ---- Comparing ------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ hash >> 31) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return mix(hash + len);
}

static uint64_t hash_of(const struct cli_top *top, const struct redbucket_bucket *bucket)
{
    return hash_bytes(hash_bytes(top->seed, bucket->zone, bucket->zone_len), bucket->key,
                      bucket->key_len);
}

/* The key's track, or one that is free for it; NULL when there is neither. */
static struct track *find_track(struct cli_top *top, uint64_t hash)
{
    struct track *spare = NULL;

    for (size_t i = 0; i < PROBES; i++) {
        struct track *track = &top->tracks[(hash + i) & (TRACKS - 1)];

        if (track->pass != 0 && track->hash == hash)
            return track;
        if (spare == NULL && (track->pass == 0 || track->pass + 1 < top->pass))
            spare = track;
    }
    if (spare != NULL)
        *spare = (struct track){.hash = hash};
    return spare;
}

/* At least so much was taken a second since the pass before; -1 when nobody can say. */
static double taken_per_second(const struct cli_top *top, const struct track *before,
                               const struct redbucket_bucket *bucket, double rate)
{
    double since = before->now;
    double left = before->value;

    if (before->pass == 0 || before->pass + 1 != top->pass) {
        if (top->pass < 2 || !top->all_tracked || top->begun_before <= 0.0)
            return -1.0;
        if (bucket->state.timestamp < top->begun_before)
            return 0.0;
        since = top->begun_before;
        left = 0.0;
    } else {
        left -= (bucket->state.timestamp - before->timestamp) * rate;
    }
    left = left > 0.0 ? left : 0.0;
    if (!(bucket->now > since) || bucket->state.value <= left)
        return 0.0;
    return (bucket->state.value - left) / (bucket->now - since);
}

/* ---- Zones ---------------------------------------------------------------------------------- */

static struct cli_top_zone *zone_of(struct cli_top_view *view,
                                    const struct redbucket_bucket *bucket)
{
    struct cli_top_zone *zone = view->zones;
    const struct cli_top_zone *end = zone + view->zones_len;

    while (zone < end && (zone->zone_len != bucket->zone_len ||
                          memcmp(zone->zone, bucket->zone, zone->zone_len) != 0))
        zone++;
    if (zone < end)
        return zone;
    if (view->zones_len == CLI_TOP_ZONES) {
        view->zones[CLI_TOP_ZONES - 1].zone_len = 0;
        return &view->zones[CLI_TOP_ZONES - 1];
    }
    view->zones_len++;
    *zone = (struct cli_top_zone){.zone_len = bucket->zone_len};
    memcpy(zone->zone, bucket->zone, bucket->zone_len);
    return zone;
}

static bool is_kept_out(const struct cli_seen *seen)
{
    return seen->known && seen->most > 0.0 && seen->level > seen->most - 1.0 + seen->rate * TICK;
}

/* ---- The hottest ---------------------------------------------------------------------------- */

static double share(const struct cli_top_key *key)
{
    return key->seen.most > 0.0 ? key->seen.level / key->seen.most : 0.0;
}

/* Above 0 when `a` is the hotter one. */
static int hotter(const struct cli_top_key *a, const struct cli_top_key *b, bool by_level)
{
    const double differences[] = {a->taken_per_second - b->taken_per_second, share(a) - share(b),
                                  a->seen.level - b->seen.level};
    const double first = by_level ? differences[1] : differences[0];
    const double second = by_level ? differences[0] : differences[1];
    const double difference = first != 0.0 ? first : second != 0.0 ? second : differences[2];

    return (difference > 0.0) - (difference < 0.0);
}

static void find_coldest(struct cli_top *top)
{
    const struct cli_top_view *view = current(top);

    top->coldest = 0;
    for (size_t i = 1; i < view->keys_len; i++)
        if (hotter(&view->keys[i], &view->keys[top->coldest], top->by_level) < 0)
            top->coldest = i;
}

static void name_key(struct cli_top_key *key, const struct redbucket_bucket *bucket)
{
    key->zone_len = bucket->zone_len;
    key->whole_len = bucket->key_len;
    key->key_len = bucket->key_len < CLI_TOP_TEXT ? bucket->key_len : CLI_TOP_TEXT;
    memcpy(key->zone, bucket->zone, key->zone_len);
    memcpy(key->key, bucket->key, key->key_len);
}

static void offer(struct cli_top *top, const struct redbucket_bucket *bucket,
                  struct cli_top_key *key)
{
    struct cli_top_view *view = current(top);

    if (view->keys_len < top->keys_max) {
        name_key(key, bucket);
        view->keys[view->keys_len++] = *key;
        if (view->keys_len == top->keys_max)
            find_coldest(top);
    } else if (top->keys_max > 0 && hotter(key, &view->keys[top->coldest], top->by_level) > 0) {
        name_key(key, bucket);
        view->keys[top->coldest] = *key;
        find_coldest(top);
    }
}

static int compare_by_taken(const void *a, const void *b)
{
    return -hotter(a, b, false);
}

static int compare_by_level(const void *a, const void *b)
{
    return -hotter(a, b, true);
}

static int compare_zones(const void *left, const void *right)
{
    const struct cli_top_zone *a = left, *b = right;

    if (a->buckets != b->buckets)
        return a->buckets < b->buckets ? 1 : -1;
    return 0;
}

/* ---- A pass --------------------------------------------------------------------------------- */

void rbk_top_begin(struct cli_top *top)
{
    struct cli_top_view *view = current(top);

    top->pass++;
    top->begun_before = top->begun;
    top->begun = 0.0;
    top->all_tracked = rbk_top_view(top)->untracked == 0 && !top->gap;
    top->gap = false;
    *view = (struct cli_top_view){.rated = top->pass > 1};
}

void rbk_top_gap(struct cli_top *top)
{
    top->gap = true;
}

static void count(struct cli_top *top, const struct redbucket_bucket *bucket,
                  struct cli_top_key *key)
{
    struct cli_top_view *view = current(top);
    struct cli_top_zone *zone;

    if (key->seen.known && key->seen.level <= 0.0 && !(key->taken_per_second > 0.0)) {
        view->drained++;
        return;
    }
    key->kept_out = is_kept_out(&key->seen);
    view->buckets++;
    view->unreadable += !key->seen.readable;
    view->kept_out += key->kept_out;
    view->taken_per_second += key->taken_per_second;
    zone = zone_of(view, bucket);
    zone->buckets++;
    zone->kept_out += key->kept_out;
    zone->taken_per_second += key->taken_per_second;
    zone->bounded = zone->bounded || (key->seen.known && key->seen.most > 0.0);
    if (key->seen.readable)
        offer(top, bucket, key);
}

void rbk_top_visit(void *data, const struct redbucket_bucket *bucket)
{
    struct cli_top *top = data;
    const uint64_t hash = hash_of(top, bucket);
    struct track *track = find_track(top, hash);
    struct track none = {.hash = hash};
    struct cli_top_key key = {.guessed = bucket->guessed, .seen = rbk_seen(top->context, bucket)};
    double taken;

    if (track == NULL) {
        current(top)->untracked++;
        track = &none;
    } else if (track->pass == top->pass) {
        return;
    }
    if (top->begun <= 0.0)
        top->begun = bucket->now;
    taken = key.seen.readable ? taken_per_second(top, track, bucket, key.seen.rate) : -1.0;
    key.rated = taken >= 0.0;
    key.taken_per_second = key.rated ? taken : 0.0;
    *track =
        (struct track){hash, bucket->state.timestamp, bucket->state.value, bucket->now, top->pass};
    count(top, bucket, &key);
}

void rbk_top_end(struct cli_top *top)
{
    struct cli_top_view *view = current(top);

    qsort(view->keys, view->keys_len, sizeof(view->keys[0]),
          top->by_level ? compare_by_level : compare_by_taken);
    qsort(view->zones, view->zones_len, sizeof(view->zones[0]), compare_zones);
    top->shown = 1 - top->shown;
}
