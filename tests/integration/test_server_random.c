/* SPDX-License-Identifier: MIT */
/*
 * Whatever is asked of whatever is stored, in arrays of any mixture, a server decides as the model
 * does, and stores what the model says to the last bit: times that go back, states of other
 * programs, values that are none, and buckets that come several times in one array.
 */
#include "model/decide.h"
#include "served.h"
#include "wire/call.h"

#include <math.h>
#include <stdio.h>

#define LIMITS   4
#define KEYS     3
#define BATCH    40
#define ROUNDS   250
#define CONTENTS 14

static const char *const names[LIMITS] = {"a", "b", "c", "d"};
static const char *const texts[KEYS] = {"x", "y", "z"};

/* Kept by the servers for longer than this takes. */
static const struct redbucket_limit limits[LIMITS] = {
    {.rate = 1.0 / 3, .burst = 4, .expiry = 3600},
    {.rate = 7, .burst = 0, .delay = 3, .expiry = 3600},
    {.rate = 1e-3, .burst = 2.5, .delay = 0.25, .expiry = 3600},
    {.rate = 1e5, .burst = 20, .delay = 7, .expiry = 3600},
};

enum content { STATE, BYTES, LIST };

struct bucket {
    enum content content; /* of what isn't STATE there is no state */
    struct rbk_state state;
};

struct world {
    struct served *served;
    uint64_t random;
    struct bucket buckets[LIMITS][KEYS];
    struct redbucket_request batch[BATCH];
    struct redbucket_key keys[BATCH][LIMITS];
    struct redbucket_verdict verdicts[BATCH][LIMITS];
    size_t limit[BATCH][LIMITS]; /* which those are */
    size_t key[BATCH][LIMITS];
};

static unsigned draw(struct world *world, unsigned below)
{
    world->random = world->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(world->random >> 33) % below;
}

static enum rbk_codec codec_of(const struct world *world)
{
    return served_json(world->served) ? RBK_CODEC_JSON : RBK_CODEC_STRUCT;
}

/* ---- What is stored ----------------------------------------------------------------------------
 */

static void name_bucket(size_t limit, size_t key, char name[32])
{
    snprintf(name, 32, "redbucket:%s:%s", names[limit], texts[key]);
}

static void set(struct world *world, const char *name, const void *bytes, size_t len)
{
    const char *words[] = {"SET", name, bytes};
    const size_t lengths[] = {3, strlen(name), len};
    redisReply *reply = test_server_call(world->served->server, 3, words, lengths);

    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
}

static void set_state(struct world *world, struct bucket *bucket, const char *name,
                      double timestamp, double value)
{
    unsigned char bytes[RBK_STATE_SIZE];
    size_t len;

    bucket->state = (struct rbk_state){true, timestamp, value};
    len = rbk_state_encode(codec_of(world), &bucket->state, bytes);
    set(world, name, bytes, len);
}

/* Puts something into one of the buckets, or nothing. */
static void disturb(struct world *world)
{
    static const double stamps[] = {0.0, -1e10, 1e300, SERVED_NOW, SERVED_NOW + 5, SERVED_NOW - 5};
    static const double values[] = {-5.0, -0.0, 1e300, 1e15, 0.5, 3.0};
    static const unsigned char nan[16] = {0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
    size_t limit = draw(world, LIMITS), key = draw(world, KEYS);
    struct bucket *bucket = &world->buckets[limit][key];
    char name[32];

    name_bucket(limit, key, name);
    freeReplyObject(test_server_ask(world->served->server, "DEL", name, NULL));
    *bucket = (struct bucket){.content = STATE};
    switch (draw(world, CONTENTS)) {
    case 0:
        bucket->content = LIST;
        assert_true(test_server_do(world->served->server, "RPUSH", name, "1", NULL));
        break;
    case 1:
        bucket->content = BYTES;
        set(world, name, "{\"t\":1,\"v\":", 11);
        break;
    case 2:
        bucket->content = BYTES;
        set(world, name, nan, sizeof nan);
        break;
    case 3:
        break;
    default:
        set_state(world, bucket, name, stamps[draw(world, 6)], values[draw(world, 6)]);
    }
}

static void look_at(struct world *world, size_t limit, size_t key)
{
    const struct bucket *bucket = &world->buckets[limit][key];
    struct rbk_state stored = {.exists = false};
    redisReply *reply;
    char name[32];

    name_bucket(limit, key, name);
    reply = test_server_ask(world->served->server, "GET", name, NULL);
    assert_non_null(reply);
    if (bucket->content == LIST) {
        assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    } else if (bucket->content == STATE && !bucket->state.exists) {
        assert_int_equal(reply->type, REDIS_REPLY_NIL);
    } else {
        assert_int_equal(reply->type, REDIS_REPLY_STRING);
        assert_int_equal(rbk_state_decode(codec_of(world), (const unsigned char *)reply->str,
                                          reply->len, &stored),
                         bucket->content == STATE);
        if (bucket->content == STATE) {
            assert_true(stored.timestamp == bucket->state.timestamp);
            assert_true(stored.value == bucket->state.value);
        }
    }
    freeReplyObject(reply);
}

/* ---- What is asked -----------------------------------------------------------------------------
 */

static void make_request(struct world *world, size_t i, bool alike)
{
    static const double costs[] = {1.0, 1.0, 0.1, 2.5, 1e-3, 7.0};
    static const enum redbucket_operation operations[] = {
        REDBUCKET_REQUEST, REDBUCKET_REQUEST, REDBUCKET_REQUEST, REDBUCKET_REQUEST,  REDBUCKET_PEEK,
        REDBUCKET_REFUND,  REDBUCKET_CHARGE,  REDBUCKET_RESET,   REDBUCKET_GIVE_BACK};
    struct redbucket_request *request = &world->batch[i];
    size_t first = draw(world, LIMITS);

    *request = (struct redbucket_request){
        .operation = alike ? REDBUCKET_REQUEST : operations[draw(world, 9)],
        .cost = alike ? 1.0 : costs[draw(world, 6)],
        .taken_at = rbk_test_now - draw(world, 3) + 1.0,
        .keys = world->keys[i],
        .keys_len = alike ? 1 : draw(world, LIMITS + 1),
        .verdicts = world->verdicts[i],
    };
    for (size_t j = 0; j < request->keys_len; j++) {
        world->limit[i][j] = alike ? i % LIMITS : (first + j) % LIMITS;
        world->key[i][j] = alike ? i / LIMITS % KEYS : draw(world, KEYS);
        world->keys[i][j] = (struct redbucket_key){.limit = names[world->limit[i][j]],
                                                   .key = texts[world->key[i][j]]};
    }
}

static struct bucket *bucket_of(struct world *world, size_t i, size_t claim)
{
    return &world->buckets[world->limit[i][claim]][world->key[i][claim]];
}

/* A reset needs no state that can be read, but it is not for what other programs keep in a list. */
static bool is_readable(struct world *world, size_t i)
{
    const struct redbucket_request *request = &world->batch[i];

    for (size_t j = 0; j < request->keys_len; j++) {
        enum content content = bucket_of(world, i, j)->content;

        if (content == LIST || (content == BYTES && request->operation != REDBUCKET_RESET))
            return false;
    }
    return true;
}

/* What the model makes of the request is what the server has answered. */
static void expect(struct world *world, size_t i)
{
    const struct redbucket_request *request = &world->batch[i];
    const struct redbucket_response *response = &request->response;
    struct rbk_ask ask = {(enum rbk_operation)request->operation, request->cost, request->taken_at,
                          rbk_test_now};
    struct rbk_claim claims[LIMITS];
    struct rbk_answer answer;

    if (!is_readable(world, i)) {
        assert_int_equal(request->status, REDBUCKET_ERROR_STATE);
        return;
    }
    assert_int_equal(request->status, REDBUCKET_OK);
    for (size_t j = 0; j < request->keys_len; j++) {
        const struct redbucket_limit *limit = &limits[world->limit[i][j]];

        claims[j] = (struct rbk_claim){.limit = {limit->rate, limit->burst, limit->delay},
                                       .state = bucket_of(world, i, j)->state};
    }
    rbk_decide(&ask, claims, request->keys_len, &answer);
    assert_int_equal(response->accepted, answer.accepted);
    assert_true(response->delay == answer.delay);
    assert_true(response->retry_after == answer.retry_after);
    assert_int_equal(response->remaining, answer.remaining);
    for (size_t j = 0; j < request->keys_len; j++) {
        if (claims[j].change != RBK_KEEP || request->operation == REDBUCKET_RESET)
            *bucket_of(world, i, j) = (struct bucket){STATE, claims[j].state};
    }
}

static void run(struct world *world)
{
    bool alike = draw(world, 3) == 0;
    size_t len = alike ? 1 + draw(world, LIMITS * KEYS) : 1 + draw(world, BATCH);

    for (unsigned i = draw(world, 6); i > 0; i--)
        disturb(world);
    rbk_test_now += (draw(world, 40) - 8.0) / 16;
    for (size_t i = 0; i < len; i++)
        make_request(world, i, alike);
    (void)!redbucket_decide(world->served->limiter, world->batch, len);
    for (size_t i = 0; i < len; i++)
        expect(world, i);
    for (size_t i = 0; i < LIMITS; i++) {
        for (size_t j = 0; j < KEYS; j++)
            look_at(world, i, j);
    }
}

static void servers_decide_and_store_as_the_model_does(void **state)
{
    static struct world world;

    memset(&world, 0, sizeof world);
    world.served = *state;
    world.random = 20261130;
    for (size_t i = 0; i < LIMITS; i++)
        served_limit(world.served, names[i], limits[i]);
    for (int i = 0; i < ROUNDS; i++)
        run(&world);
}

int main(void)
{
    static const struct served_case cases[] = {
        SERVED(servers_decide_and_store_as_the_model_does),
    };

    return served_run("server_random", cases, sizeof cases / sizeof cases[0]);
}
