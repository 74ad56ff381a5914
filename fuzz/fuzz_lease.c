/* SPDX-License-Identifier: MIT */
/*
 * Leases before a server that answers what an input says, in between as a good one, while time goes
 * by: what lease_books.h says holds whatever comes, answers and failures are well-formed and come
 * in time, statistics are what the callers were told, and what is closed leaves nothing behind.
 * The input is HEAD bytes, URL and limits, and then steps of two bytes, of which some bring more.
 */
#include "answers.h"
#include "denial.h"
#include "lease.h"
#include "lease_books.h"
#include "lease_serve.h"
#include "limiter.h"
#include "redis/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD         6u
#define STEPS_MAX    200u
#define REQUESTS_MAX 1200u
#define GOOD_MAX     6000u
#define TOGETHER_MAX 144u
#define FEW          4u  /* keys of each limit that are asked for most */
#define CROWD        20u /* keys that want the same few places */
#define KEYS         (FEW + CROWD)
#define ALLOWANCE    0.05 /* seconds that looks at clocks take */

/* What is the same each time makes an input do the same each time. */
ssize_t getrandom(void *bytes, size_t len, unsigned flags)
{
    (void)flags;
    memset(bytes, 7, len);
    return (ssize_t)len;
}

static const char *const urls[] = {
    "redis://192.0.2.1/3",
    "redis+cluster://192.0.2.1,192.0.2.2",
    "redis://192.0.2.1?codec=json&timeout=100ms",
    "redis+cluster://192.0.2.1?key_format={zone}:{{{key}}}&timeout=3s",
    "redis://192.0.2.1?method=transaction",
    "redis+sentinel://192.0.2.1,192.0.2.2/those",
};

static const double rates[] = {5.0, 40.0, 0.2, 1000.0, 1e-9, 1e6, 1e12, 1.0};
static const double bursts[] = {40.0, 100.0, 5.0, 1000.0, 0.0, 1e6, 5e11, 12.0};
static const double delays[] = {0.0, 15.0, 3.0, 1e3, 0.0, 5e11, 0.5, 60.0};
static const double most[] = {1e12, 200.0, 10.0, 2.5, 1.0, 0.5, 1e6, 50.0};
static const double times[] = {1.0, 0.25, 10.0, 60.0, 0.01, 3600.0, 1e-4, 2.0};
static const double costs[] = {1.0, 2.0, 0.5, 3.0, 0.001, 7.25, 100.0, 1e12};

/* Limits by name; the last has no lease. The other limiter has another limit for the zone of the
 * first. */
static const char *const names[] = {"ip", "user", "all"};

struct world {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    struct redbucket_limiter *other;
    struct rbk_redis_options options;
    double timeout;
    size_t requests;
    const uint8_t *at;
    size_t left;
};

static double fake_clock(void)
{
    return rbk_fake.now;
}

static unsigned take(struct world *world)
{
    if (world->left == 0)
        return 0;
    world->left--;
    return *world->at++;
}

/* ---- Keys ----------------------------------------------------------------------------------- */

/* Keys of which the first are a few, one of them too long for a lease, and the others a crowd. */
static char keys[KEYS][RBK_LEASE_PLACES_TEXT + 16];

static unsigned set_of(const char *key)
{
    uint64_t secret[2];
    const struct rbk_key named = {(const unsigned char *)"ip", 2, (const unsigned char *)key,
                                  strlen(key)};

    (void)getrandom(secret, sizeof secret, 0);
    return (unsigned)(rbk_lease_bucket(secret, &named) % RBK_LEASE_PLACES_SETS);
}

static void make_keys(void)
{
    unsigned number = 0;

    if (keys[0][0] != '\0')
        return;
    for (size_t i = 0; i < FEW; i++)
        (void)snprintf(keys[i], sizeof keys[i], "few-%zu", i);
    memset(keys[FEW - 1], 'x', RBK_LEASE_PLACES_TEXT + 1);
    for (size_t i = FEW; i < KEYS;) {
        (void)snprintf(keys[i], sizeof keys[i], "crowd-%u", number++);
        i += set_of(keys[i]) == set_of(keys[0]);
    }
}

/* ---- Answers -------------------------------------------------------------------------------- */

/* However long it takes, it ends. */
static void check_drains(const struct redbucket_request *request)
{
    if (!isfinite(request->response.reset_after))
        abort();
    for (size_t i = 0; i < request->keys_len; i++) {
        if (!isfinite(request->verdicts[i].delay))
            abort();
    }
}

/* Those that a page says a server can come to. */
static bool is_of_servers(enum redbucket_status status)
{
    switch (status) {
    case REDBUCKET_ERROR_UNAVAILABLE:
    case REDBUCKET_ERROR_READONLY:
    case REDBUCKET_ERROR_AUTH:
    case REDBUCKET_ERROR_UNSUPPORTED:
    case REDBUCKET_ERROR_SERVER:
    case REDBUCKET_ERROR_CONFLICT:
    case REDBUCKET_ERROR_STATE:
    case REDBUCKET_ERROR_TIMEOUT:
    case REDBUCKET_ERROR_IO:
    case REDBUCKET_ERROR_PROTOCOL:
        return true;
    default:
        return false;
    }
}

static void check_request(const struct redbucket_request *request)
{
    rbk_answers_check(request);
    if (request->status == REDBUCKET_OK)
        check_drains(request);
    else if (!is_of_servers(request->status))
        abort();
}

/* Less than `seconds` have gone by for who had to wait, who had no clock to look at meanwhile. */
static void check_time(double began, double stalled, double seconds)
{
    if (rbk_fake.now - began - (rbk_fake.stalled - stalled) > seconds + ALLOWANCE)
        abort();
}

/* ---- Asking --------------------------------------------------------------------------------- */

static void decide(struct world *world, struct redbucket_limiter *limiter,
                   struct redbucket_request *requests, size_t len)
{
    double began = rbk_fake.now, stalled = rbk_fake.stalled;
    enum redbucket_status status;
    bool all_good = true;

    world->requests += len;
    status = redbucket_decide(limiter, requests, len);
    check_time(began, stalled, world->timeout);
    for (size_t i = 0; i < len; i++) {
        check_request(&requests[i]);
        all_good = all_good && requests[i].status == REDBUCKET_OK;
    }
    if (all_good != (status == REDBUCKET_OK))
        abort();
}

/* A request for some of the limits, whose bits are set, by the same key of all. */
static struct redbucket_request request_of(unsigned limits, unsigned key, unsigned cost,
                                           struct redbucket_key room[3])
{
    struct redbucket_request request = {.operation = REDBUCKET_REQUEST,
                                        .keys = room,
                                        .cost = costs[cost % 8],
                                        .taken_at = rbk_fake_clock()};

    if (limits % 8 == 0)
        limits = 1;
    for (unsigned i = 0; i < 3; i++) {
        if ((limits >> i & 1) != 0)
            room[request.keys_len++] =
                (struct redbucket_key){.limit = names[i], .key = keys[key % KEYS]};
    }
    return request;
}

static void ask(struct world *world, struct redbucket_request request, unsigned times_over)
{
    for (unsigned i = 0; i < times_over && world->requests < REQUESTS_MAX; i++) {
        struct redbucket_verdict verdicts[3];

        request.verdicts = verdicts;
        decide(world, world->limiter, &request, 1);
    }
}

/* By the limiter that knows one limit only, and that another one. */
static void ask_other(struct world *world, unsigned key, unsigned times_over)
{
    struct redbucket_key room[3];
    struct redbucket_verdict verdicts[3];
    struct redbucket_request request = request_of(1, key, 0, room);

    request.verdicts = verdicts;
    for (unsigned i = 0; i < times_over && world->requests < REQUESTS_MAX; i++)
        decide(world, world->other, &request, 1);
}

/* Like ones, or of all kinds if `mixed`. */
static void ask_together(struct world *world, unsigned what, size_t len, bool mixed)
{
    struct redbucket_request requests[TOGETHER_MAX];
    struct redbucket_key room[TOGETHER_MAX][3];
    struct redbucket_verdict verdicts[TOGETHER_MAX][3];

    for (unsigned i = 0; i < len; i++) {
        unsigned other = mixed ? i * (what | 1) : 0;

        requests[i] = request_of(what + other, what / 8 + other / 3, other / 4, room[i]);
        requests[i].verdicts = verdicts[i];
        if (mixed && i % 5 == 4)
            requests[i].operation = (enum redbucket_operation)(other % 6);
    }
    decide(world, world->limiter, requests, len);
}

/* ---- Steps ---------------------------------------------------------------------------------- */

/* What the server answers to what comes next. */
static void script(struct world *world, size_t len)
{
    if (len > world->left)
        len = world->left;
    rbk_fake.at = world->at;
    rbk_fake.left = len;
    world->at += len;
    world->left -= len;
}

static void set_clock(double seconds)
{
    rbk_fake.skew += seconds;
    lease_books_shift(seconds);
}

/* One byte says what, and how often or how much; the other, of which. */
static void step(struct world *world, unsigned what, unsigned which)
{
    struct redbucket_key room[3];
    unsigned much = what / 16 + 1;
    struct redbucket_request request = request_of(which, which / 8, 0, room);

    switch (what % 16) {
    case 0: /* of a few keys under the first limit, nothing else */
        ask(world, request_of(1, which % FEW, 0, room), much);
        break;
    case 1:
        ask(world, request, much);
        break;
    case 2:
        ask(world, request_of(which, which / 8, much, room), 1);
        break;
    case 3:
        ask_together(world, which, much, false);
        break;
    case 4:
        ask_together(world, which, (size_t)much * 9, false);
        break;
    case 5:
        ask_together(world, which, (size_t)much * 2, true);
        break;
    case 6:
        request.operation = (enum redbucket_operation)(much % 6);
        ask(world, request, 1);
        break;
    case 7:
        rbk_fake.now += which * 1e-3 * much;
        break;
    case 8:
        rbk_fake.now += which * 0.1 * much;
        break;
    case 9:
        set_clock((int8_t)which * 0.1 * much);
        break;
    case 10:
    case 11:
        script(world, which % 64);
        break;
    case 12:
        rbk_fake.refusals = which;
        break;
    case 13: /* a crowd, each as often */
        for (unsigned i = 0; i < much; i++)
            ask(world, request_of(1, FEW + which / 16 + i, 0, room), which % 16 + 1);
        break;
    case 14:
        ask_other(world, which % FEW, much);
        break;
    default: /* as in 0, with a little time in between */
        for (unsigned i = 0; i < much; i++) {
            ask(world, request_of(1, which % FEW, 0, room), 1);
            rbk_fake.now += which / 16 * 0.01;
        }
    }
}

/* ---- All of it ------------------------------------------------------------------------------ */

static struct redbucket_limit limit_of(unsigned byte, unsigned terms)
{
    return (struct redbucket_limit){.rate = rates[byte % 8],
                                    .burst = bursts[byte / 8 % 8],
                                    .delay = delays[(byte / 64 + terms / 64) % 8],
                                    .lease = most[terms % 8],
                                    .lease_time = times[terms / 8 % 8]};
}

static struct redbucket_limiter *limiter_of(struct redbucket_store *store)
{
    struct redbucket_limiter *limiter;

    if (redbucket_limiter_create(store, &limiter, NULL) != REDBUCKET_OK)
        abort();
    return limiter;
}

static void add(struct redbucket_limiter *limiter, unsigned name, struct redbucket_limit limit)
{
    if (redbucket_limiter_add(limiter, names[name], &limit, NULL) != REDBUCKET_OK)
        abort();
}

static void open_store(struct world *world, const char *text, bool denying)
{
    bool in_cluster = strncmp(text, "redis+cluster", 13) == 0;
    rbk_store_opener *opener = in_cluster ? rbk_cluster_open : rbk_redis_open;
    struct rbk_url url;

    rbk_fake.in_cluster = in_cluster;
    rbk_fake.codec_json = strstr(text, "json") != NULL;
    rbk_fake.made_up = strstr(text, "transaction") != NULL;
    if (rbk_url_parse(text, &url, NULL) != REDBUCKET_OK ||
        rbk_redis_options_parse(&url, &world->options, NULL) != REDBUCKET_OK ||
        opener(&url, &world->store, NULL) != REDBUCKET_OK)
        abort();
    world->timeout = world->store->timeout;
    if (denying && rbk_denial_create(world->store, RBK_DENIAL_TIME_DEFAULT, fake_clock,
                                     &world->store, NULL) != REDBUCKET_OK)
        abort();
    world->store = lease_books_behind(world->store);
    if (rbk_lease_create(world->store, fake_clock, &world->store, NULL) != REDBUCKET_OK)
        abort();
    world->store = lease_books_before(world->store);
}

/* The head: URL and whether to deny, pieces, and two bytes for each limit. */
static void open_world(struct world *world, const uint8_t *head)
{
    static const struct redbucket_limit all = {.rate = 1000.0, .burst = 1000.0};

    open_store(world, urls[head[0] % 6], head[0] / 6 % 2 == 0);
    world->limiter = limiter_of(world->store);
    world->other = limiter_of(world->store);
    add(world->limiter, 0, limit_of(head[2], head[3]));
    add(world->limiter, 1, limit_of(head[4], head[5]));
    add(world->limiter, 2, all);
    add(world->other, 0, limit_of(head[2] + 1u, head[5]));
}

static void check_statistics(const struct world *world)
{
    struct redbucket_statistics told = {.size = sizeof told};

    if (redbucket_store_statistics(world->store, &told) != REDBUCKET_OK ||
        told.accepted != lease_counts.accepted || told.delayed != lease_counts.delayed ||
        told.rejected != lease_counts.rejected || told.failed != lease_counts.failed ||
        told.denied != lease_counts.denied || told.leased != lease_counts.leased)
        abort();
}

static void close_world(struct world *world)
{
    double began = rbk_fake.now, stalled = rbk_fake.stalled;

    redbucket_limiter_destroy(world->limiter);
    redbucket_limiter_destroy(world->other);
    redbucket_store_close(world->store);
    check_time(began, stalled, 0.25);
    if (rbk_fake_open() != 0)
        abort();
    lease_books_compare(&world->options.key_format);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world;

    if (size < HEAD)
        return 0;
    world = (struct world){.at = data + HEAD, .left = size - HEAD};
    make_keys();
    rbk_fake_begin(data, 0, data[1] == 0 ? SIZE_MAX : data[1]);
    rbk_fake.good_left = GOOD_MAX;
    rbk_fake.keeps = true;
    lease_books_begin();
    open_world(&world, data);
    for (unsigned i = 0; i < STEPS_MAX && world.left > 0 && world.requests < REQUESTS_MAX; i++) {
        unsigned what = take(&world);

        step(&world, what, take(&world));
    }
    if (world.requests > 8) /* it takes long, and until then nothing is held */
        check_statistics(&world);
    close_world(&world);
    return 0;
}
