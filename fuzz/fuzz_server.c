/* SPDX-License-Identifier: MIT */
/*
 * Any answers of servers, sentinels and nodes to all that the library asks them, from the first
 * word of a connection on: requests, arrays, reads, walks and checks end, whatever is made of the
 * answers lies within its bounds, no text that is shown has a byte that doesn't print or a piece of
 * a password, and to a server that is honest the library is as honest. The input is URL, PIECE,
 * WHAT, each a byte, and then the records of fake_reply.c.
 */
#include "answers.h"
#include "fake_server.h"

#include "redbucket/walk.h"
#include "redis/options.h"
#include "store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUESTS 6

static const struct {
    const char *url;
    bool by_script;
} urls[] = {
    {"redis://me:" FAKE_PASSWORD "@192.0.2.1/3", true},
    {"redis://192.0.2.1?codec=json", true},
    {"redis://:" FAKE_PASSWORD "@192.0.2.1?method=transaction", false},
    {"redis://192.0.2.1?method=transaction&codec=json", false},
    {"redis+sentinel://me:" FAKE_PASSWORD
     "@192.0.2.1,192.0.2.2/those?sentinel_password=" FAKE_PASSWORD,
     true},
    {"redis+cluster://me:" FAKE_PASSWORD "@192.0.2.1,192.0.2.2", true},
    {"redis+cluster://192.0.2.1?codec=json&key_format={zone}:{{{key}}}", true},
    {"unix://me:" FAKE_PASSWORD "@/some/where?db=1&key_format={zone}:{key}", true},
};

#define URLS (sizeof urls / sizeof urls[0])

static const struct redbucket_key keys[] = {
    {"ip", "one", 0, 0}, {"user", "two", 0, 0}, {"all", "", 0, 0}};

struct world {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    struct rbk_redis_options options;
    bool by_script;
    size_t accepted;
};

/* The input has the password in it, so that finding it in a text means nothing. */
static bool knows_password;

/* One line that a terminal takes for nothing but text, and that tells no secret. */
static void check_text(const char *text, size_t size)
{
    size_t len = strnlen(text, size);

    if (len == size || (!knows_password && strstr(text, FAKE_PASSWORD) != NULL))
        abort();
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            abort();
    }
}

static void check_failure(const struct world *world)
{
    struct redbucket_error error;

    redbucket_store_failure(world->store, &error);
    check_text(error.message, sizeof error.message);
    (void)redbucket_status_text(error.status);
}

/* ---- Requests ------------------------------------------------------------------------------- */

static void check_request(struct world *world, const struct redbucket_request *request)
{
    struct redbucket_error error;

    rbk_answers_check(request);
    if (request->status == REDBUCKET_OK) {
        world->accepted += request->operation == REDBUCKET_REQUEST && request->response.accepted;
        return;
    }
    redbucket_request_error(request, &error);
    check_text(error.message, sizeof error.message);
    check_failure(world);
    if (rbk_fake.honest && request->status != REDBUCKET_ERROR_STATE)
        abort();
}

/* `len` requests of several limits and all operations. */
static void ask(struct world *world, size_t len)
{
    struct redbucket_verdict verdicts[REQUESTS][3];
    struct redbucket_request requests[REQUESTS];
    size_t before = rbk_fake.accepted;

    world->accepted = 0;
    for (size_t i = 0; i < len; i++) {
        requests[i] = (struct redbucket_request){
            .operation = i < 2 ? REDBUCKET_REQUEST : (enum redbucket_operation)(i % 6),
            .keys = i % 2 == 0 ? keys : keys + 1,
            .keys_len = i % 2 == 0 ? 3 : 1,
            .cost = 1.0 + (double)(i / 2),
            .taken_at = 1000.0,
            .verdicts = verdicts[i]};
    }
    enum redbucket_status status = redbucket_decide(world->limiter, requests, len);
    bool all_good = true;

    for (size_t i = 0; i < len; i++) {
        check_request(world, &requests[i]);
        all_good = all_good && requests[i].status == REDBUCKET_OK;
    }
    if (all_good != (status == REDBUCKET_OK))
        abort();
    if (rbk_fake.honest && world->by_script && world->accepted > rbk_fake.accepted - before)
        abort();
}

static void read_one(struct world *world)
{
    struct redbucket_state state = {.exists = false};
    enum redbucket_status status = redbucket_read(world->limiter, &keys[0], &state);

    if (status == REDBUCKET_OK && state.exists &&
        (!isfinite(state.timestamp) || !isfinite(state.value)))
        abort();
    if (status != REDBUCKET_OK)
        check_failure(world);
}

/* ---- Walks and checks ----------------------------------------------------------------------- */

/* The name is what the format makes of the zone and the key that are told. */
static void check_name(const struct world *world, const struct redbucket_bucket *bucket)
{
    const struct rbk_key_format *format = &world->options.key_format;
    const struct rbk_key key = {(const unsigned char *)bucket->zone, bucket->zone_len,
                                (const unsigned char *)bucket->key, bucket->key_len};
    size_t len = rbk_key_format_len(format, &key);
    unsigned char *name = malloc(len + 1);

    if (name == NULL || len != bucket->name_len)
        abort();
    rbk_key_format_write(format, &key, name);
    if (memcmp(name, bucket->name, len) != 0)
        abort();
    free(name);
}

static void visit(void *data, const struct redbucket_bucket *bucket)
{
    if (bucket->zone == NULL || bucket->name == NULL || !isfinite(bucket->now))
        abort();
    if (bucket->status == REDBUCKET_OK &&
        (!isfinite(bucket->state.timestamp) || !isfinite(bucket->state.value)))
        abort();
    if (bucket->status != REDBUCKET_OK && bucket->status != REDBUCKET_ERROR_STATE)
        abort();
    check_name(data, bucket);
}

static void walk_all(struct world *world, const char *zone)
{
    const struct redbucket_walk_options options = {.limiter = world->limiter, .zone = zone};
    struct redbucket_walk *walk;
    bool done = false;

    if (redbucket_walk_create(world->store, &options, &walk) != REDBUCKET_OK)
        abort();
    for (int steps = 0; !done && steps < 100; steps++) {
        if (redbucket_walk_step(walk, visit, world, &done) != REDBUCKET_OK)
            check_failure(world);
    }
    redbucket_walk_destroy(walk);
    if (rbk_fake.honest && zone != NULL && !done)
        abort();
}

static void check_health(struct world *world)
{
    struct redbucket_health health = {.size = sizeof health};

    if (redbucket_store_check(world->store, &health) != REDBUCKET_OK) {
        check_failure(world);
        return;
    }
    if (!(health.round_trip >= 0.0) || health.warnings_len > REDBUCKET_WARNINGS_MAX ||
        health.server[0] == '\0' || health.slots > 16384)
        abort();
    check_text(health.server, sizeof health.server);
    check_text(health.method, sizeof health.method);
    check_text(health.service, sizeof health.service);
    check_text(health.master, sizeof health.master);
    check_text(health.sentinel, sizeof health.sentinel);
    for (size_t i = 0; i < health.warnings_len; i++)
        check_text(health.warnings[i], sizeof health.warnings[i]);
}

/* ---- All of it ------------------------------------------------------------------------------ */

static void open_world(struct world *world, size_t number)
{
    static const struct redbucket_limit limits[] = {
        {.rate = 1.0, .burst = 2.0}, {.rate = 5.0, .delay = 3.0}, {.rate = 1e-3, .expiry = 60.0}};
    struct redbucket_error error;
    struct rbk_url url;
    bool in_cluster = strncmp(urls[number].url, "redis+cluster", 13) == 0;
    rbk_store_opener *opener = in_cluster ? rbk_cluster_open : rbk_redis_open;

    *world = (struct world){.by_script = urls[number].by_script};
    rbk_fake.in_cluster = in_cluster;
    rbk_fake.codec_json = strstr(urls[number].url, "json") != NULL;
    if (rbk_url_parse(urls[number].url, &url, &error) != REDBUCKET_OK ||
        rbk_redis_options_parse(&url, &world->options, &error) != REDBUCKET_OK ||
        opener(&url, &world->store, &error) != REDBUCKET_OK ||
        redbucket_limiter_create(world->store, &world->limiter, &error) != REDBUCKET_OK)
        abort();
    for (size_t i = 0; i < 3; i++) {
        if (redbucket_limiter_add(world->limiter, keys[i].limit, &limits[i], &error) !=
            REDBUCKET_OK)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world;

    if (size < 3)
        return 0;
    knows_password = memmem(data, size, FAKE_PASSWORD, strlen(FAKE_PASSWORD)) != NULL;
    rbk_fake_begin(data + 3, size - 3, data[1] == 0 ? SIZE_MAX : data[1]);
    open_world(&world, data[0] % URLS);
    if ((data[2] & 1) != 0)
        check_health(&world);
    ask(&world, 1);
    if ((data[2] & 2) != 0)
        ask(&world, REQUESTS);
    if ((data[2] & 4) != 0)
        read_one(&world);
    if ((data[2] & 8) != 0)
        walk_all(&world, NULL);
    if ((data[2] & 16) != 0)
        walk_all(&world, "ip");
    rbk_fake.now += 1.0; /* so that whoever looks after something now and then does */
    ask(&world, 2);
    redbucket_limiter_destroy(world.limiter);
    redbucket_store_close(world.store);
    return 0;
}
