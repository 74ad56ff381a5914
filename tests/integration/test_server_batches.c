/* SPDX-License-Identifier: MIT */
/*
 * Arrays of independent requests: decided in order, each seeing what those before it took, however
 * many they are and however they are cut into calls; a call a round trip; and a script that the
 * server forgets at any moment costs one more, and no answer.
 */
#include "processes.h"
#include "proxy.h"
#include "served.h"
#include "wire/call.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 1000

static const struct redbucket_key key_k = {.limit = "a", .key = "k"};

static void arrays_of_any_length_are_decided_in_order(void **state)
{
    static const size_t lengths[] = {1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 500, MOST};
    struct redbucket_request *array = calloc(MOST, sizeof *array);
    struct served *served = *state;

    assert_non_null(array);
    served_limit(served, "a", (struct redbucket_limit){.rate = 1, .burst = 499});
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        freeReplyObject(served_ask(served, "DEL", "redbucket:a:k", NULL));
        for (size_t j = 0; j < lengths[i]; j++)
            array[j] = (struct redbucket_request){.keys = &key_k, .keys_len = 1, .cost = 1};
        assert_int_equal(redbucket_decide(served->limiter, array, lengths[i]), REDBUCKET_OK);
        for (size_t j = 0; j < lengths[i]; j++) {
            assert_int_equal(array[j].response.accepted, j < 500);
            assert_int_equal(array[j].response.remaining, j < 500 ? 499 - j : 0);
        }
    }
    assert_int_equal(redbucket_decide(served->limiter, array, 0), REDBUCKET_OK);
    free(array);
}

static void a_later_request_sees_what_an_earlier_one_did(void **state)
{
    static const struct {
        enum redbucket_operation operation;
        double cost;
        bool accepted;
        int64_t remaining;
    } steps[] = {
        {REDBUCKET_PEEK, 1, true, 2},      {REDBUCKET_REQUEST, 2, true, 1},
        {REDBUCKET_REQUEST, 1, true, 0},   {REDBUCKET_REQUEST, 1, false, 0},
        {REDBUCKET_REFUND, 2, true, 2},    {REDBUCKET_REQUEST, 1, true, 1},
        {REDBUCKET_CHARGE, 9, true, 0},    {REDBUCKET_PEEK, 1, false, 0},
        {REDBUCKET_RESET, 0, true, 3},     {REDBUCKET_REFUND, 1, true, 3},
        {REDBUCKET_REQUEST, 3, true, 0},   {REDBUCKET_GIVE_BACK, 2, true, 2},
        {REDBUCKET_RESET, 0, true, 3},     {REDBUCKET_RESET, 0, true, 3},
        {REDBUCKET_REQUEST, 0.5, true, 2}, {REDBUCKET_REFUND, 7, true, 3},
    };
    enum { LEN = sizeof steps / sizeof steps[0] };
    struct redbucket_request batch[LEN];
    struct served *served = *state;

    served_limit(served, "a", (struct redbucket_limit){.rate = 1, .burst = 2});
    for (size_t i = 0; i < LEN; i++)
        batch[i] = (struct redbucket_request){.operation = steps[i].operation,
                                              .keys = &key_k,
                                              .keys_len = 1,
                                              .cost = steps[i].cost,
                                              .taken_at = SERVED_NOW};
    assert_int_equal(redbucket_decide(served->limiter, batch, LEN), REDBUCKET_OK);
    for (size_t i = 0; i < LEN; i++) {
        if (batch[i].response.accepted != steps[i].accepted ||
            batch[i].response.remaining != steps[i].remaining)
            fail_msg("step %zu", i);
    }
}

static long long stored_len(const struct served *served, const char *key)
{
    redisReply *reply = served_get(served, key);
    long long len = reply == NULL ? 0 : (long long)reply->len;

    freeReplyObject(reply);
    return len;
}

/* Whichever of them is named first, and whether the other's bucket is there or not. */
static void several_limits_take_together_or_not_at_all(void **state)
{
    const struct redbucket_key keys[] = {{"a", "k"}, {"b", "k"}, {"a", "k"}};
    const struct redbucket_key fresh[] = {{"a", "k"}, {"b", "new"}, {"a", "k"}};
    struct served *served = *state;
    struct redbucket_response response;
    struct redbucket_state before, after;

    served_limit(served, "a", (struct redbucket_limit){.rate = 1});
    served_limit(served, "b", (struct redbucket_limit){.rate = 1, .burst = 4});
    assert_int_equal(redbucket_request(served->limiter, keys, 2, &response), REDBUCKET_OK);
    assert_true(response.accepted);
    assert_int_equal(redbucket_read(served->limiter, &keys[1], &before), REDBUCKET_OK);
    rbk_test_now = SERVED_NOW + 0.5;
    for (int first = 0; first < 2; first++) {
        assert_int_equal(redbucket_request(served->limiter, &keys[first], 2, &response),
                         REDBUCKET_OK);
        assert_false(response.accepted);
        assert_same(response.retry_after, 0.5);
        assert_int_equal(redbucket_request(served->limiter, &fresh[first], 2, &response),
                         REDBUCKET_OK);
        assert_false(response.accepted);
    }
    assert_int_equal(redbucket_read(served->limiter, &keys[1], &after), REDBUCKET_OK);
    assert_same(after.timestamp, before.timestamp);
    assert_same(after.value, before.value);
    assert_int_equal(stored_len(served, "redbucket:b:new"), 0);
}

#define LIMITS 64

struct many {
    char names[LIMITS][8];
    struct redbucket_key keys[LIMITS];
    struct redbucket_verdict verdicts[LIMITS];
};

static struct many *many_limits(struct served *served)
{
    struct many *many = calloc(1, sizeof *many);

    assert_non_null(many);
    for (size_t i = 0; i < LIMITS; i++) {
        (void)snprintf(many->names[i], sizeof many->names[i], "l%zu", i);
        many->keys[i] = (struct redbucket_key){.limit = many->names[i], .key = "k"};
        served_limit(served, many->names[i],
                     (struct redbucket_limit){.rate = 1, .burst = 100 + (double)i});
    }
    return many;
}

/* As many requests as fit a call, of as many limits together: 31 that name 64, and one that names
 * 64 more. */
static void the_largest_call_is_decided(void **state)
{
    struct served *served = *state;
    struct many *many = many_limits(served);
    struct redbucket_request batch[32];

    for (size_t i = 0; i < 32; i++)
        batch[i] = (struct redbucket_request){
            .keys = many->keys, .keys_len = i == 31 ? 64 : 2 + (i < 2), .cost = 1};
    batch[31].verdicts = many->verdicts;
    assert_int_equal(redbucket_decide(served->limiter, batch, 32), REDBUCKET_OK);
    for (size_t i = 0; i < 32; i++)
        assert_int_equal(batch[i].response.remaining, 100 - i);
    for (size_t i = 0; i < LIMITS; i++) {
        size_t taken = i < 2 ? 32 : i == 2 ? 3 : 1;

        assert_int_equal(many->verdicts[i].remaining, 101 + i - taken);
    }
    free(many);
}

/* Each is settled by itself: one that is wrong, or names nothing, is no reason to stop. */
static void what_is_wrong_with_one_concerns_no_other(void **state)
{
    const struct redbucket_key unknown = {.limit = "b", .key = "k"};
    const struct redbucket_key twice[] = {key_k, key_k};
    struct served *served = *state;
    struct redbucket_request batch[] = {
        {.keys = &key_k, .keys_len = 1, .cost = 1},    {.keys = &unknown, .keys_len = 1, .cost = 1},
        {.keys = NULL, .keys_len = 0, .cost = 1},      {.keys = twice, .keys_len = 2, .cost = 1},
        {.keys = &key_k, .keys_len = 1, .cost = 1e-4}, {.keys = &key_k, .keys_len = 1, .cost = 1},
        {.keys = &key_k, .keys_len = 1, .cost = 1},
    };

    served_limit(served, "a", (struct redbucket_limit){.rate = 1, .burst = 1});
    assert_int_equal(redbucket_decide(served->limiter, batch, 7), REDBUCKET_ERROR_UNKNOWN_LIMIT);
    assert_true(batch[0].status == REDBUCKET_OK && batch[0].response.accepted);
    assert_int_equal(batch[1].status, REDBUCKET_ERROR_UNKNOWN_LIMIT);
    assert_true(batch[2].status == REDBUCKET_OK && batch[2].response.accepted);
    assert_int_equal(batch[3].status, REDBUCKET_ERROR_DUPLICATE);
    assert_int_equal(batch[4].status, REDBUCKET_ERROR_ARGUMENT);
    assert_true(batch[5].status == REDBUCKET_OK && batch[5].response.accepted);
    assert_true(batch[6].status == REDBUCKET_OK && !batch[6].response.accepted);
}

/* Nobody is asked about them, so that they are accepted whatever becomes of the others. */
static void what_names_no_limit_needs_no_server(void **state)
{
    struct served *served = *state;
    struct redbucket_request batch[] = {
        {.keys = NULL, .keys_len = 0, .cost = 1},
        {.keys = &key_k, .keys_len = 1, .cost = 1},
        {.keys = NULL, .keys_len = 0, .cost = 1},
    };

    served_limit(served, "a", (struct redbucket_limit){.rate = 1});
    for (int kept = 1; kept >= 0; kept--) {
        if (!kept)
            test_server_end(served->server);
        enum redbucket_status status = redbucket_decide(served->limiter, batch, 3);

        assert_int_equal(status, kept ? REDBUCKET_OK : REDBUCKET_ERROR_UNAVAILABLE);
        assert_int_equal(batch[1].status, status);
        for (int i = 0; i < 3; i += 2) {
            assert_int_equal(batch[i].status, REDBUCKET_OK);
            assert_true(batch[i].response.accepted && !batch[i].response.degraded);
            assert_int_equal(batch[i].response.remaining, INT64_MAX);
            assert_same(batch[i].response.time, 0.0);
        }
    }
    assert_true(test_server_again(served->server));
}

/* ---- Round trips ---- */

struct watched {
    struct test_proxy *proxy;
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    struct test_traffic before;
};

static void watch(struct served *served, struct watched *watched)
{
    char query[64], url[512];

    (void)snprintf(query, sizeof query, "timeout=20s&method=%s&codec=%s", served->method,
                   served->codec);
    watched->proxy = test_proxy_start(served->server, TEST_BY_SOCKET);
    assert_non_null(watched->proxy);
    test_proxy_url(watched->proxy, query, url, sizeof url);
    assert_int_equal(redbucket_store_open(url, &watched->store, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_create(watched->store, &watched->limiter, NULL),
                     REDBUCKET_OK);
    for (int i = 0; i < 3; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        const struct redbucket_limit limit = {.rate = 1, .burst = 1e6};

        assert_int_equal(redbucket_limiter_add(watched->limiter, name, &limit, NULL), REDBUCKET_OK);
    }
}

static void unwatch(struct watched *watched)
{
    redbucket_limiter_destroy(watched->limiter);
    redbucket_store_close(watched->store);
    test_proxy_stop(watched->proxy);
}

static const struct redbucket_key three[] = {
    {.limit = "a", .key = "k"}, {.limit = "b", .key = "k"}, {.limit = "c", .key = "k"}};

static void decide_many(struct watched *watched, size_t len, size_t keys_len)
{
    struct redbucket_request *array = calloc(len, sizeof *array);

    assert_non_null(array);
    for (size_t i = 0; i < len; i++)
        array[i] = (struct redbucket_request){.keys = three, .keys_len = keys_len, .cost = 1};
    test_proxy_traffic(watched->proxy, &watched->before);
    assert_int_equal(redbucket_decide(watched->limiter, array, len), REDBUCKET_OK);
    for (size_t i = 0; i < len; i++)
        assert_true(array[i].response.accepted);
    free(array);
}

/* How often the client spoke since; what it said each time came in one piece. */
static uint64_t turns(struct watched *watched)
{
    struct test_traffic after;

    test_proxy_traffic(watched->proxy, &after);
    assert_int_equal(after.writes - watched->before.writes, after.turns - watched->before.turns);
    assert_int_equal(after.connections, 1);
    return after.turns - watched->before.turns;
}

static void a_decision_is_one_round_trip(void **state)
{
    struct served *served = *state;
    struct watched watched;

    watch(served, &watched);
    decide_many(&watched, 1, 1);
    for (size_t keys_len = 1; keys_len <= 3; keys_len++) {
        for (int i = 0; i < 5; i++) {
            decide_many(&watched, 1, keys_len);
            assert_int_equal(turns(&watched), 1);
        }
        decide_many(&watched, 32, keys_len);
        assert_true(turns(&watched) <= keys_len);
    }
    decide_many(&watched, 32, 1);
    assert_int_equal(turns(&watched), 1);
    decide_many(&watched, MOST, 1);
    assert_true(turns(&watched) <= (MOST + 31) / 32);
    decide_many(&watched, 1, 0);
    assert_int_equal(turns(&watched), 0);
    unwatch(&watched);
}

/* Reading, and writing on condition: neither can be had without the other's answer. */
static void a_transaction_is_two_round_trips(void **state)
{
    struct served *served = *state;
    struct watched watched;

    watch(served, &watched);
    decide_many(&watched, 1, 1);
    for (size_t keys_len = 1; keys_len <= 3; keys_len++) {
        decide_many(&watched, 1, keys_len);
        assert_int_equal(turns(&watched), 2);
    }
    decide_many(&watched, 10, 2);
    assert_int_equal(turns(&watched), 20);
    unwatch(&watched);
}

static void a_forgotten_script_costs_one_round_trip_once(void **state)
{
    struct served *served = *state;
    struct watched watched;

    watch(served, &watched);
    decide_many(&watched, 1, 1);
    for (int i = 0; i < 3; i++) {
        freeReplyObject(served_ask(served, "SCRIPT", "FLUSH", NULL));
        decide_many(&watched, 2, 3);
        assert_int_equal(turns(&watched), 2);
        decide_many(&watched, 2, 3);
        assert_int_equal(turns(&watched), 1);
    }
    unwatch(&watched);
}

/* ---- Forgetting at any moment ---- */

struct forgetting {
    struct test_client *client;
    atomic_bool enough;
    atomic_uint flushes;
};

static void *keep_forgetting(void *data)
{
    struct forgetting *forgetting = data;

    while (!atomic_load(&forgetting->enough)) {
        redisReply *reply = test_client_ask(forgetting->client, "SCRIPT", "FLUSH", NULL);

        if (reply != NULL && reply->type == REDIS_REPLY_STATUS)
            (void)atomic_fetch_add(&forgetting->flushes, 1);
        freeReplyObject(reply);
    }
    return NULL;
}

static void a_script_may_be_forgotten_at_any_moment(void **state)
{
    struct served *served = *state;
    struct forgetting forgetting = {.client = test_client_open(served->server->socket)};
    double end = test_now() + 60;
    size_t accepted = 0, batches = 0;
    pthread_t thread;

    assert_non_null(forgetting.client);
    served_limit(served, "a", (struct redbucket_limit){.rate = 1, .burst = 999});
    assert_int_equal(pthread_create(&thread, NULL, keep_forgetting, &forgetting), 0);
    while (batches++ < 300 || (atomic_load(&forgetting.flushes) < 30 && test_now() < end)) {
        struct redbucket_request batch[5];

        for (size_t j = 0; j < 5; j++)
            batch[j] = (struct redbucket_request){.keys = &key_k, .keys_len = 1, .cost = 1};
        enum redbucket_status status = redbucket_decide(served->limiter, batch, 5);

        /* Between EVALSHA and EVAL nothing is needed of what was forgotten. */
        if (status != REDBUCKET_OK)
            break;
        for (size_t j = 0; j < 5; j++)
            accepted += batch[j].response.accepted;
    }
    atomic_store(&forgetting.enough, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    test_client_close(forgetting.client);
    assert_int_equal(accepted, 1000);
    assert_true(atomic_load(&forgetting.flushes) >= 30);
}

int main(void)
{
    static const struct served_case cases[] = {
        SERVED(arrays_of_any_length_are_decided_in_order),
        SERVED(a_later_request_sees_what_an_earlier_one_did),
        SERVED(several_limits_take_together_or_not_at_all),
        SERVED(the_largest_call_is_decided),
        SERVED(what_is_wrong_with_one_concerns_no_other),
        SERVED(what_names_no_limit_needs_no_server),
        SERVED_BY(SERVED_SCRIPT, a_decision_is_one_round_trip),
        SERVED_BY(SERVED_TRANSACTION, a_transaction_is_two_round_trips),
        SERVED_BY(SERVED_SCRIPT, a_forgotten_script_costs_one_round_trip_once),
        SERVED_BY(SERVED_SCRIPT, a_script_may_be_forgotten_at_any_moment),
    };

    return served_run("server_batches", cases, sizeof cases / sizeof cases[0]);
}
