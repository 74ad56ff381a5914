/* SPDX-License-Identifier: MIT */
/*
 * From the caller's array to what a store gets to see, in pieces of a fixed size that nobody can
 * tell: long arrays against lone requests, and a store that only looks at what it is given.
 */
#include "limiter.h"
#include "stores.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void add(struct redbucket_limiter *limiter, const char *name, double rate, double burst)
{
    struct redbucket_limit limit = {.rate = rate, .burst = burst};

    assert_int_equal(redbucket_limiter_add(limiter, name, &limit, NULL), REDBUCKET_OK);
}

static struct redbucket_limiter *open_limiter(struct redbucket_store **store)
{
    struct redbucket_limiter *limiter;

    *store = test_store_open("memory:?size=64k");
    assert_int_equal(redbucket_limiter_create(*store, &limiter, NULL), REDBUCKET_OK);
    add(limiter, "a", 1, 1);
    add(limiter, "b", 1, 9);
    add(limiter, "c", 1, 1000);
    return limiter;
}

/* The n-th of a long array: none to three keys, some of them bad. */
static struct redbucket_request nth(size_t n, const struct redbucket_key keys[6])
{
    static const size_t lens[] = {1, 0, 3, 2, 1};

    return (struct redbucket_request){
        .operation = n % 23 == 0 ? REDBUCKET_REFUND : REDBUCKET_REQUEST,
        .keys = keys + (n % 3 == 0 ? 3 : 0),
        .keys_len = lens[n % 5],
        .cost = n % 97 == 0 ? -1 : 1 + (double)(n % 4),
    };
}

static void assert_decided_alike(const struct redbucket_request *array, size_t len,
                                 const struct redbucket_key keys[6])
{
    struct redbucket_store *store;
    struct redbucket_limiter *limiter = open_limiter(&store);

    for (size_t i = 0; i < len; i++) {
        struct redbucket_request one = nth(i, keys);

        assert_int_equal(redbucket_decide_at(limiter, &one, 1, 5), array[i].status);
        assert_int_equal(one.response.accepted, array[i].response.accepted);
        assert_same(one.response.retry_after, array[i].response.retry_after);
        assert_same(one.response.reset_after, array[i].response.reset_after);
        assert_true(one.response.remaining == array[i].response.remaining);
        assert_true(one.response.decided == array[i].response.decided);
    }
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

static void a_long_array_is_decided_like_so_many_requests(void **state)
{
    enum { COUNT = 1000 };
    const struct redbucket_key keys[] = {{"a", "k"},     {"b", "k"},     {"c", "k"},
                                         {"c", "other"}, {"b", "other"}, {"a", "other"}};
    struct redbucket_request *array = calloc(COUNT, sizeof *array);
    struct redbucket_store *store;
    struct redbucket_limiter *limiter = open_limiter(&store);

    assert_non_null(array);
    for (size_t i = 0; i < COUNT; i++)
        array[i] = nth(i, keys);
    assert_int_equal(redbucket_decide_at(limiter, array, COUNT, 5), REDBUCKET_ERROR_ARGUMENT);
    assert_decided_alike(array, COUNT, keys);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    free(array);
    (void)state;
}

/* Requests of 1, 30, 63 and 64 keys by turns leave a piece full at every possible place. */
static void long_requests_are_decided_like_lone_ones(void **state)
{
    enum { COUNT = 200 };
    static const size_t lens[] = {64, 1, 30, 63, 64, 64, 2};
    struct redbucket_key keys[REDBUCKET_KEYS_MAX];
    struct redbucket_request requests[COUNT];
    struct redbucket_store *store = test_store_open("memory:?size=64k");
    struct redbucket_limiter *limiter;
    char names[REDBUCKET_KEYS_MAX][8];

    assert_int_equal(redbucket_limiter_create(store, &limiter, NULL), REDBUCKET_OK);
    for (size_t i = 0; i < REDBUCKET_KEYS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%zu", i);
        add(limiter, names[i], 1, COUNT);
        keys[i] = (struct redbucket_key){.limit = names[i], .key = "k"};
    }
    for (size_t i = 0; i < COUNT; i++)
        requests[i] = (struct redbucket_request){.keys = keys, .keys_len = lens[i % 7], .cost = 1};
    assert_int_equal(redbucket_decide_at(limiter, requests, COUNT, 5), REDBUCKET_OK);
    /* The first limit is named by all of them. */
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(requests[i].response.remaining, COUNT - i);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    (void)state;
}

/* A store that only looks at what it gets, and lets every other request fail. */
struct looking_store {
    struct redbucket_store store;
    size_t calls;
    size_t requests;
    double now;
    bool bad;
};

static void look(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                 struct rbk_batch *batch)
{
    struct looking_store *looking = (struct looking_store *)store;

    looking->calls++;
    looking->now = batch->now != NULL ? *batch->now : -1;
    for (size_t i = 0; i < len; i++) {
        const struct rbk_request *request = &requests[i];

        if (request->len > REDBUCKET_KEYS_MAX || !(request->ask.cost >= 1e-3))
            looking->bad = true;
        for (size_t j = 0; j < request->len; j++) {
            if (request->keys[j].key_len > 4 || !(request->claims[j].limit.rate > 0))
                looking->bad = true;
        }
        requests[i].answer = (struct rbk_answer){.accepted = true, .decided = RBK_NONE};
        requests[i].ask.now = 4;
        requests[i].status = looking->requests++ % 2 == 0 ? REDBUCKET_OK : REDBUCKET_ERROR_TIMEOUT;
        requests[i].failed = RBK_NONE;
    }
}

static size_t four(const struct redbucket_store *store)
{
    (void)store;
    return 4;
}

static void set_up_looking(struct looking_store *looking, const struct rbk_store_ops *ops,
                           struct redbucket_limiter **limiter)
{
    *looking = (struct looking_store){.store.ops = ops};
    assert_int_equal(redbucket_limiter_create(&looking->store, limiter, NULL), REDBUCKET_OK);
    add(*limiter, "a", 1, 1);
}

static void a_store_sees_good_requests_alone(void **state)
{
    static const struct rbk_store_ops ops = {.decide = look, .key_max = four};
    const struct redbucket_key good = {"a", "1234"}, bad = {"a", "12345"};
    struct redbucket_request requests[100];
    struct redbucket_limiter *limiter;
    struct looking_store looking;
    size_t wrong = 0;

    set_up_looking(&looking, &ops, &limiter);
    for (size_t i = 0; i < 100; i++) {
        requests[i] = (struct redbucket_request){
            .keys = i % 7 == 0 ? &bad : &good, .keys_len = 1, .cost = i % 11 == 0 ? NAN : 1};
        wrong += i % 7 == 0 || i % 11 == 0;
    }
    assert_int_equal(redbucket_decide(limiter, requests, 100), REDBUCKET_ERROR_ARGUMENT);
    assert_false(looking.bad);
    assert_same(looking.now, -1.0);
    assert_int_equal(looking.requests, 100 - wrong);
    /* The first request that is good is 1, and the store has every other one fail. */
    assert_int_equal(requests[1].status, REDBUCKET_OK);
    assert_same(requests[1].response.time, 4.0);
    assert_int_equal(requests[2].status, REDBUCKET_ERROR_TIMEOUT);
    assert_int_equal(requests[3].status, REDBUCKET_OK);
    looking.requests = 0;
    assert_int_equal(redbucket_decide_at(limiter, &requests[1], 1, 7), REDBUCKET_OK);
    assert_same(looking.now, 7.0);
    redbucket_limiter_destroy(limiter);
    (void)state;
}

static void a_store_with_its_own_clock_takes_no_other(void **state)
{
    static const struct rbk_store_ops ops = {
        .decide = look, .key_max = four, .own_clock_only = true};
    const struct redbucket_key key = {"a", "1"};
    struct redbucket_request requests[] = {
        {.keys = &key, .keys_len = 1, .cost = 1, .failed = 0, .response.delay = 77},
        {.keys = &key, .keys_len = 1, .cost = -1, .failed = 0},
    };
    struct redbucket_limiter *limiter;
    struct looking_store looking;

    set_up_looking(&looking, &ops, &limiter);
    assert_int_equal(redbucket_decide_at(limiter, requests, 2, 7), REDBUCKET_ERROR_UNSUPPORTED);
    assert_int_equal(looking.calls, 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(requests[i].status, REDBUCKET_ERROR_UNSUPPORTED);
        assert_true(requests[i].failed == REDBUCKET_NONE);
    }
    assert_same(requests[0].response.delay, 77.0);
    assert_int_equal(redbucket_decide_at(limiter, requests, 2, NAN), REDBUCKET_ERROR_ARGUMENT);
    assert_int_equal(redbucket_decide(limiter, requests, 1), REDBUCKET_OK);
    redbucket_limiter_destroy(limiter);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_array_is_decided_like_so_many_requests),
        cmocka_unit_test(long_requests_are_decided_like_lone_ones),
        cmocka_unit_test(a_store_sees_good_requests_alone),
        cmocka_unit_test(a_store_with_its_own_clock_takes_no_other),
    };

    return cmocka_run_group_tests_name("batches", tests, NULL, NULL);
}
