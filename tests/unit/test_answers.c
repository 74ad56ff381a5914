/* SPDX-License-Identifier: MIT */
/*
 * What comes back: the answer and each limit's own verdict, states, statistics, and events.
 */
#include "embedded.h"
#include "inside.h"
#include "stores.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct fixture {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    unsigned events[2];
};

static void hear(void *data, enum redbucket_event event, const char *message)
{
    struct fixture *fixture = data;

    assert_true(strlen(message) > 10);
    fixture->events[event]++;
}

static void add(struct fixture *fixture, const char *name, const struct redbucket_limit *limit)
{
    assert_int_equal(redbucket_limiter_add(fixture->limiter, name, limit, NULL), REDBUCKET_OK);
}

/* Limit a takes one, and two more that wait; b takes four and c ten. */
static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    fixture->store = test_store_open("memory:?size=64k");
    redbucket_store_listen(fixture->store, hear, fixture);
    assert_int_equal(redbucket_limiter_create(fixture->store, &fixture->limiter, NULL),
                     REDBUCKET_OK);
    add(fixture, "a", &(struct redbucket_limit){.rate = 2, .delay = 2});
    add(fixture, "b", &(struct redbucket_limit){.rate = 4, .burst = 3});
    add(fixture, "c", &(struct redbucket_limit){.rate = 1, .burst = 9, .zone = "zone of c"});
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    redbucket_limiter_destroy(fixture->limiter);
    redbucket_store_close(fixture->store);
    free(fixture);
    return 0;
}

static const struct redbucket_key abc[] = {{"a", "k"}, {"b", "k"}, {"c", "k"}};

static struct redbucket_request decide(struct fixture *fixture, enum redbucket_operation operation,
                                       double cost, double now)
{
    static struct redbucket_verdict verdicts[3];
    struct redbucket_request request = {.operation = operation,
                                        .keys = abc,
                                        .keys_len = 3,
                                        .cost = cost,
                                        .taken_at = now,
                                        .verdicts = verdicts};

    assert_int_equal(redbucket_decide_at(fixture->limiter, &request, 1, now), REDBUCKET_OK);
    return request;
}

static void each_limit_answers_for_itself(void **state)
{
    struct redbucket_request request = decide(*state, REDBUCKET_REQUEST, 2, 100);
    const struct redbucket_verdict *verdicts = request.verdicts;

    assert_true(request.response.accepted);
    assert_same(request.response.delay, 0.5);
    assert_true(request.response.delay_us == 500000);
    assert_int_equal(request.response.decided, 0);
    assert_int_equal(request.response.remaining, 0);
    assert_same(request.response.reset_after, 2.0);
    assert_true(request.response.reset_after_us == 2000000);
    assert_same(request.response.time, 100.0);
    assert_same(verdicts[0].delay, 0.5);
    assert_int_equal(verdicts[0].remaining, 0);
    assert_same(verdicts[0].reset_after, 1.0);
    assert_true(verdicts[1].accepted);
    assert_same(verdicts[1].delay, 0.0);
    assert_int_equal(verdicts[1].remaining, 2);
    assert_same(verdicts[1].reset_after, 0.5);
    assert_int_equal(verdicts[2].remaining, 8);
    assert_same(verdicts[2].reset_after, 2.0);
}

static void a_rejection_names_the_limit_that_lasts_longest(void **state)
{
    struct redbucket_request request = decide(*state, REDBUCKET_CHARGE, 4, 100);

    assert_true(request.response.accepted);
    request = decide(*state, REDBUCKET_REQUEST, 1, 100);
    assert_false(request.response.accepted);
    assert_same(request.response.delay, 0.0);
    assert_true(request.response.delay_us == 0);
    assert_same(request.response.retry_after, 1.0);
    assert_true(request.response.retry_after_us == 1000000);
    assert_int_equal(request.response.decided, 0);
    assert_false(request.verdicts[0].accepted);
    assert_same(request.verdicts[0].retry_after, 1.0);
    assert_false(request.verdicts[1].accepted);
    assert_same(request.verdicts[1].retry_after, 0.25);
    assert_true(request.verdicts[2].accepted);
    assert_same(request.verdicts[2].retry_after, 0.0);
    assert_int_equal(request.verdicts[2].remaining, 6);
}

static void never_is_infinite_and_the_largest_number(void **state)
{
    struct redbucket_request request = decide(*state, REDBUCKET_REQUEST, 7, 100);

    assert_false(request.response.accepted);
    assert_true(isinf(request.response.retry_after));
    assert_true(request.response.retry_after_us == UINT64_MAX);
    assert_int_equal(request.response.decided, 0);
}

static void no_limit_at_all_is_accepted_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct redbucket_request request = {.cost = 1};
    struct redbucket_response response;

    assert_int_equal(redbucket_decide_at(fixture->limiter, &request, 1, 100), REDBUCKET_OK);
    assert_true(request.response.accepted);
    assert_same(request.response.delay, 0.0);
    assert_same(request.response.reset_after, 0.0);
    assert_true(request.response.remaining == INT64_MAX);
    assert_true(request.response.decided == REDBUCKET_NONE);
    assert_same(request.response.time, 100.0);
    assert_int_equal(redbucket_request(fixture->limiter, NULL, 0, &response), REDBUCKET_OK);
    assert_true(response.accepted);
    /* There is no bucket that could count it. */
    assert_int_equal(redbucket_store_statistics(fixture->store, &statistics), REDBUCKET_OK);
    assert_int_equal(statistics.accepted, 0);
}

static void the_stores_clock_decides_unless_told_otherwise(void **state)
{
    struct fixture *fixture = *state;
    struct redbucket_response response;
    double before = rbk_embedded_now();

    assert_int_equal(redbucket_request(fixture->limiter, abc, 3, &response), REDBUCKET_OK);
    assert_true(before <= response.time && response.time <= rbk_embedded_now());
}

static void keys_are_bytes_with_a_length(void **state)
{
    static const struct redbucket_key keys[] = {
        {"a", "x"},        {"a", "x\0", 2, 0},   {"a", "x\0y", 3, 0}, {"a", "x\0z", 3, 0},
        {"a", "\0", 1, 0}, {"a", "\0\0", 2, 0},  {"a", ""},           {"a", "\xff\xfe", 2, 0},
        {"a", "xx", 2, 0}, {"a", "x\0yy", 4, 0}, {"a", "%s%n"},       {"a", "{x}"},
    };
    struct fixture *fixture = *state;

    /* Three each: one at once, two that wait. */
    for (size_t round = 0; round < 4; round++) {
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            struct redbucket_request request = {.keys = &keys[i], .keys_len = 1, .cost = 1};

            assert_int_equal(redbucket_decide_at(fixture->limiter, &request, 1, 0), REDBUCKET_OK);
            assert_int_equal(request.response.accepted, round < 3);
        }
    }
}

static void names_and_keys_may_have_a_length_or_a_nul(void **state)
{
    struct fixture *fixture = *state;
    const struct redbucket_key same[] = {
        {"a", "key"}, {"a", "key", 3, 1}, {"a and more", "key and more", 3, 1}};
    struct redbucket_response response;

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(redbucket_request(fixture->limiter, &same[i], 1, &response), REDBUCKET_OK);
        assert_int_equal(response.delay > 0, i > 0);
    }
    assert_int_equal(redbucket_request(fixture->limiter, &same[0], 1, &response), REDBUCKET_OK);
    assert_false(response.accepted);
}

static struct redbucket_state read_state(struct fixture *fixture, const struct redbucket_key *key)
{
    struct redbucket_state read = {.timestamp = 77};

    assert_int_equal(redbucket_read(fixture->limiter, key, &read), REDBUCKET_OK);
    return read;
}

static void states_are_read_as_stored(void **state)
{
    struct redbucket_state read = read_state(*state, &abc[2]);

    assert_false(read.exists);
    (void)decide(*state, REDBUCKET_REQUEST, 1.5, 100);
    read = read_state(*state, &abc[2]);
    assert_true(read.exists);
    assert_same(read.timestamp, 100.0);
    assert_same(read.value, 1.5);
    (void)decide(*state, REDBUCKET_GIVE_BACK, 0.5, 100);
    assert_same(read_state(*state, &abc[2]).value, 1.0);
    /* Long empty, and still there. */
    (void)decide(*state, REDBUCKET_PEEK, 1, 1e9);
    read = read_state(*state, &abc[2]);
    assert_true(read.exists);
    assert_same(read.timestamp, 100.0);
    (void)decide(*state, REDBUCKET_RESET, 0, 100);
    assert_false(read_state(*state, &abc[2]).exists);
}

static void what_cant_be_read_is_told(void **state)
{
    struct fixture *fixture = *state;
    const struct redbucket_key unknown = {"nope", "k"}, no_text = {"a", NULL},
                               no_limit = {NULL, "k"}, long_key = {"a", "k", 1 << 20, 0};
    struct redbucket_state read = {.timestamp = 77};

    assert_int_equal(redbucket_read(fixture->limiter, &unknown, &read),
                     REDBUCKET_ERROR_UNKNOWN_LIMIT);
    assert_int_equal(redbucket_read(fixture->limiter, &no_text, &read), REDBUCKET_ERROR_ARGUMENT);
    assert_int_equal(redbucket_read(fixture->limiter, &no_limit, &read), REDBUCKET_ERROR_ARGUMENT);
    assert_int_equal(redbucket_read(fixture->limiter, &long_key, &read), REDBUCKET_ERROR_KEY);
    test_put_state(fixture->limiter, "a", "k", 1, NAN);
    assert_int_equal(redbucket_read(fixture->limiter, &abc[0], &read), REDBUCKET_ERROR_STATE);
    assert_same(read.timestamp, 77.0);
}

static void a_state_that_cant_be_read_is_left_alone_until_it_is_reset(void **state)
{
    static const enum redbucket_operation others[] = {
        REDBUCKET_REQUEST, REDBUCKET_PEEK, REDBUCKET_REFUND, REDBUCKET_CHARGE, REDBUCKET_GIVE_BACK};
    struct fixture *fixture = *state;
    struct redbucket_request request = {.keys = abc, .keys_len = 3, .cost = 1};
    struct redbucket_error error;

    test_put_state(fixture->limiter, "b", "k", INFINITY, 1);
    void *buckets = test_copy_buckets(fixture->store);

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        request.operation = others[i];
        assert_int_equal(redbucket_decide_at(fixture->limiter, &request, 1, 100),
                         REDBUCKET_ERROR_STATE);
        assert_int_equal(request.failed, 1);
        assert_true(test_same_buckets(fixture->store, buckets));
    }
    free(buckets);
    redbucket_request_error(&request, &error);
    assert_string_equal(error.message, "limit b, key k: stored state can't be read");
    assert_true(decide(fixture, REDBUCKET_RESET, 0, 100).response.accepted);
    assert_true(decide(fixture, REDBUCKET_REQUEST, 1, 100).response.accepted);
}

static struct redbucket_statistics count(struct fixture *fixture)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};

    assert_int_equal(redbucket_store_statistics(fixture->store, &statistics), REDBUCKET_OK);
    return statistics;
}

static void statistics_count_requests_alone(void **state)
{
    struct redbucket_statistics statistics = count(*state);

    assert_int_equal(statistics.accepted + statistics.rejected + statistics.buckets, 0);
    assert_int_equal(statistics.bytes, 65536);
    assert_true(statistics.capacity > 900 && statistics.capacity < 65536 / 59);
    (void)decide(*state, REDBUCKET_REQUEST, 1, 0);
    (void)decide(*state, REDBUCKET_REQUEST, 1, 0);
    (void)decide(*state, REDBUCKET_PEEK, 1, 0);
    (void)decide(*state, REDBUCKET_CHARGE, 3, 0);
    (void)decide(*state, REDBUCKET_PEEK, 1, 0);
    (void)decide(*state, REDBUCKET_REQUEST, 1, 0);
    (void)decide(*state, REDBUCKET_REFUND, 1, 0);
    (void)decide(*state, REDBUCKET_GIVE_BACK, 1, 0);
    statistics = count(*state);
    assert_int_equal(statistics.accepted, 2);
    assert_int_equal(statistics.delayed, 1);
    assert_int_equal(statistics.rejected, 1);
    assert_int_equal(statistics.buckets, 3);
    assert_int_equal(statistics.evicted + statistics.full + statistics.recovered, 0);
    (void)decide(*state, REDBUCKET_RESET, 1, 0);
    statistics = count(*state);
    assert_int_equal(statistics.buckets, 0);
    assert_int_equal(statistics.accepted, 2);
}

/* What a program of an earlier version, whose struct ended sooner, has behind it stays as it is. */
static void statistics_fill_in_what_the_caller_has(void **state)
{
    struct fixture *fixture = *state;
    struct redbucket_statistics statistics;
    struct {
        struct redbucket_statistics statistics;
        uint64_t beyond;
    } later;

    (void)decide(fixture, REDBUCKET_REQUEST, 1, 0);
    memset(&statistics, 0xa5, sizeof statistics);
    statistics.size = offsetof(struct redbucket_statistics, delayed);
    assert_int_equal(redbucket_store_statistics(fixture->store, &statistics), REDBUCKET_OK);
    assert_int_equal(statistics.size, offsetof(struct redbucket_statistics, delayed));
    assert_int_equal(statistics.accepted, 1);
    assert_true(statistics.delayed == 0xa5a5a5a5a5a5a5a5);
    memset(&later, 0xa5, sizeof later);
    later.statistics.size = sizeof later;
    assert_int_equal(redbucket_store_statistics(fixture->store, &later.statistics), REDBUCKET_OK);
    assert_int_equal(later.statistics.bytes, 65536);
    assert_true(later.beyond == 0xa5a5a5a5a5a5a5a5);
    statistics.size = 0;
    assert_int_equal(redbucket_store_statistics(fixture->store, &statistics),
                     REDBUCKET_ERROR_ARGUMENT);
    statistics.size = 65537;
    assert_int_equal(redbucket_store_statistics(fixture->store, &statistics),
                     REDBUCKET_ERROR_ARGUMENT);
}

/* Keys that each keep somebody out, until there is no place for one more. */
static void a_full_table_is_an_error_and_an_event_and_takes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct redbucket_key keys[] = {{"c", "bystander"}, {"b", NULL}};
    struct redbucket_request request = {.keys = keys, .keys_len = 2, .cost = 4};
    struct redbucket_error error;
    char text[16], message[64];

    for (unsigned i = 0; i < 100000; i++) {
        (void)snprintf(text, sizeof text, "%u", i);
        keys[1].key = text;
        test_put_state(fixture->limiter, "c", "bystander", 0, 0);
        if (redbucket_decide_at(fixture->limiter, &request, 1, 0) != REDBUCKET_OK)
            break;
    }
    assert_int_equal(request.status, REDBUCKET_ERROR_FULL);
    assert_int_equal(request.failed, 1);
    assert_same(read_state(fixture, &keys[0]).value, 0.0);
    (void)snprintf(message, sizeof message, "limit b, key %s: store full", text);
    redbucket_request_error(&request, &error);
    assert_string_equal(error.message, message);
    assert_int_equal(count(fixture).full, 1);
    assert_int_equal(count(fixture).evicted, 0);
    assert_int_equal(fixture->events[REDBUCKET_EVENT_FULL], 1);
    redbucket_store_listen(fixture->store, NULL, NULL);
    assert_int_equal(redbucket_decide_at(fixture->limiter, &request, 1, 0), REDBUCKET_ERROR_FULL);
    assert_int_equal(count(fixture).full, 2);
    assert_int_equal(fixture->events[REDBUCKET_EVENT_FULL], 1);
    assert_int_equal(fixture->events[REDBUCKET_EVENT_RECOVERED], 0);
}

/* Whoever comes first after a crash undoes it, and says so. */
static void undoing_a_dead_process_work_is_counted_and_told(void **state)
{
    struct fixture *fixture = *state;

    test_tear(fixture->store);
    (void)decide(fixture, REDBUCKET_PEEK, 1, 0);
    assert_int_equal(fixture->events[REDBUCKET_EVENT_RECOVERED], 1);
    assert_int_equal(count(fixture).recovered, 1);
    test_tear(fixture->store);
    (void)read_state(fixture, &abc[0]);
    assert_int_equal(fixture->events[REDBUCKET_EVENT_RECOVERED], 2);
    test_tear(fixture->store);
    assert_int_equal(count(fixture).recovered, 3);
    assert_int_equal(fixture->events[REDBUCKET_EVENT_RECOVERED], 3);
    (void)decide(fixture, REDBUCKET_REQUEST, 1, 0);
    assert_int_equal(fixture->events[REDBUCKET_EVENT_RECOVERED], 3);
    assert_int_equal(fixture->events[REDBUCKET_EVENT_FULL], 0);
}

#define ANSWER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ANSWER_TEST(each_limit_answers_for_itself),
        ANSWER_TEST(a_rejection_names_the_limit_that_lasts_longest),
        ANSWER_TEST(never_is_infinite_and_the_largest_number),
        ANSWER_TEST(no_limit_at_all_is_accepted_at_once),
        ANSWER_TEST(the_stores_clock_decides_unless_told_otherwise),
        ANSWER_TEST(keys_are_bytes_with_a_length),
        ANSWER_TEST(names_and_keys_may_have_a_length_or_a_nul),
        ANSWER_TEST(states_are_read_as_stored),
        ANSWER_TEST(what_cant_be_read_is_told),
        ANSWER_TEST(a_state_that_cant_be_read_is_left_alone_until_it_is_reset),
        ANSWER_TEST(statistics_count_requests_alone),
        ANSWER_TEST(statistics_fill_in_what_the_caller_has),
        ANSWER_TEST(a_full_table_is_an_error_and_an_event_and_takes_nothing),
        ANSWER_TEST(undoing_a_dead_process_work_is_counted_and_told),
    };

    return cmocka_run_group_tests_name("answers", tests, NULL, NULL);
}
