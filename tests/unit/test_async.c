/* SPDX-License-Identifier: MIT */
/*
 * Requests on an event loop: who is decided with whom, whose callback is called when, and what
 * callbacks may do.
 */
#include "slow_asker.h"
#include "test.h"
#include "wait.h"

#include <stdio.h>
#include <stdlib.h>

static int begin(void **state)
{
    (void)state;
    slow_asker_open(8);
    return 0;
}

static void end_and_dispatch(unsigned call)
{
    slow_end(call);
    assert_true(asker_readable());
    slow_asker_dispatch();
}

/* ---- Turns ------------------------------------------------------------------------------------
 */

static void test_a_request_is_answered_in_a_later_turn(void **state)
{
    struct asked asked = {.called = 0};

    (void)state;
    assert_false(asker_readable());
    asker_ask(&asked, "k", 3.0);
    assert_int_equal(slow.begun, 0);
    assert_true(asker_readable());
    assert_int_equal(redbucket_async_outstanding(asker), 1);
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 1);
    assert_string_equal(slow.calls[0].first, "k");
    assert_false(asker_readable());
    slow_asker_dispatch();
    assert_int_equal(asked.called, 0);
    end_and_dispatch(0);
    assert_int_equal(asked.called, 1);
    assert_int_equal(asked.status, REDBUCKET_OK);
    assert_int_equal(asked.remaining, 3);
    assert_int_equal(redbucket_async_outstanding(asker), 0);
    assert_false(asker_readable());
    /* Nobody waits for that any more. */
    slow_end(0);
    assert_false(asker_readable());
}

static void test_a_turns_requests_go_together(void **state)
{
    struct asked asked[30] = {{.called = 0}};

    (void)state;
    asker_ask_all(asked, 10, "first");
    slow_asker_dispatch();
    asker_ask_all(asked + 10, 5, "second");
    slow_asker_dispatch();
    asker_ask_all(asked + 15, 15, "third");
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 2);
    assert_int_equal(slow.calls[0].len, 10);
    assert_int_equal(slow.calls[1].len, 5);
    end_and_dispatch(1);
    assert_int_equal(slow.begun, 3);
    assert_int_equal(slow.calls[2].len, 15);
    assert_int_equal(asker_called, 5);
    end_and_dispatch(0);
    end_and_dispatch(2);
    assert_int_equal(asker_count(asked, 30, REDBUCKET_OK), 30);
    for (int i = 0; i < 30; i++)
        assert_int_equal(asked[i].remaining, i < 10 ? i + 1 : i < 15 ? i - 9 : i - 14);
    for (int i = 1; i < 10; i++)
        assert_int_equal(asked[i].order, asked[i - 1].order + 1);
}

static void test_many_make_two_calls_side_by_side(void **state)
{
    static struct asked asked[600];

    (void)state;
    memset(asked, 0, sizeof asked);
    asker_ask_all(asked, 100, "k");
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 2);
    assert_int_equal(slow.calls[0].len, 50);
    assert_int_equal(slow.calls[1].len, 50);
    asker_ask_all(asked + 100, 500, "k");
    end_and_dispatch(0);
    assert_int_equal(slow.begun, 3);
    assert_int_equal(slow.calls[2].len, 256);
    end_and_dispatch(1);
    assert_int_equal(slow.calls[3].len, 244);
    end_and_dispatch(2);
    end_and_dispatch(3);
    assert_int_equal(asker_count(asked, 600, REDBUCKET_OK), 600);
}

static void test_one_connection_is_one_call_at_a_time(void **state)
{
    static struct asked asked[100];

    (void)state;
    slow_asker_close(NULL);
    slow_asker_open(1);
    memset(asked, 0, sizeof asked);
    asker_ask_all(asked, 100, "k");
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 1);
    assert_int_equal(slow.calls[0].len, 100);
    end_and_dispatch(0);
    assert_int_equal(asker_count(asked, 100, REDBUCKET_OK), 100);
}

/* What is ready at once, as in an embedded store, has its callback in the same turn; but a turn
 * ends, however much there is to do. */
static void test_what_takes_no_time_is_answered_in_its_turn(void **state)
{
    static struct asked asked[2000];
    int turns = 0;

    (void)state;
    memset(asked, 0, sizeof asked);
    slow.at_once = true;
    asker_ask_all(asked, 2, "k");
    slow_asker_dispatch();
    assert_int_equal(asker_count(asked, 2, REDBUCKET_OK), 2);
    asker_ask_all(asked + 2, 1998, "k");
    while (redbucket_async_outstanding(asker) > 0) {
        assert_true(asker_readable());
        slow_asker_dispatch();
        turns++;
        assert_in_range(asker_called, 0, 2 + turns * 1024);
    }
    assert_in_range(turns, 2, 4);
    assert_int_equal(asker_count(asked, 2000, REDBUCKET_OK), 2000);
}

/* Two calls that wait for one descriptor, which can be watched once: the second looks for itself.
 */
static void test_what_cannot_be_watched_is_looked_at(void **state)
{
    struct asked asked[2] = {{.called = 0}};

    (void)state;
    slow.same_pipe = true;
    asker_ask(&asked[0], "k", 1.0);
    slow_asker_dispatch();
    asker_ask(&asked[1], "k", 2.0);
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 2);
    end_and_dispatch(0);
    assert_int_equal(asked[0].called, 1);
    assert_int_equal(asked[1].called, 0);
    slow_end(0);
    slow.now += 0.002;
    slow_asker_dispatch();
    assert_int_equal(asked[1].called, 1);
    assert_int_equal(asked[1].status, REDBUCKET_OK);
}

/* ---- What is asked ----------------------------------------------------------------------------
 */

static struct redbucket_request seen;
static struct redbucket_key seen_keys[2];
static struct redbucket_verdict seen_verdicts[2];
static char seen_text[64];
static struct redbucket_error seen_error;

static void look(void *data, const struct redbucket_request *decided)
{
    assert_ptr_equal(data, &seen);
    seen = *decided;
    if (decided->keys_len == 0)
        return;
    memcpy(seen_keys, decided->keys, sizeof seen_keys);
    snprintf(seen_text, sizeof seen_text, "%.*s=%.*s %.*s", (int)seen_keys[0].limit_len,
             seen_keys[0].limit, (int)seen_keys[0].key_len, seen_keys[0].key,
             (int)seen_keys[1].key_len, seen_keys[1].key);
    if (decided->verdicts != NULL)
        memcpy(seen_verdicts, decided->verdicts, sizeof seen_verdicts);
    redbucket_request_error(decided, &seen_error);
}

/* Asked with memory that is gone before the answer. */
static void ask_for_two(bool verdicts_wanted)
{
    struct redbucket_limit limit = {.rate = 1.0, .zone = "b"};
    struct redbucket_verdict verdicts[2];
    char a[] = "a", b[] = "limit of b", alice[] = "alice";
    const char bytes[] = {'x', '\0', 'y'};
    struct redbucket_key keys[] = {{.limit = a, .key = alice},
                                   {.limit = b, .key = bytes, .key_len = 3, .limit_len = 7}};
    struct redbucket_request request = {.keys = keys,
                                        .keys_len = 2,
                                        .operation = REDBUCKET_CHARGE,
                                        .cost = 5.0,
                                        .verdicts = verdicts_wanted ? verdicts : NULL,
                                        .status = REDBUCKET_ERROR_LIMIT,
                                        .failed = 1};

    memcpy(b, "limit b", 8);
    assert_int_equal(redbucket_limiter_add(slow_limiter, "limit b", &limit, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_async_request(asker, &request, look, &seen, NULL), REDBUCKET_OK);
    memset(a, 'z', sizeof a);
    memset(b, 'z', sizeof b);
    memset(alice, 'z', sizeof alice);
    memset(keys, 0, sizeof keys);
    memset(verdicts, 0x55, sizeof verdicts);
    memset(&request, 0x55, sizeof request);
}

static void test_everything_is_copied(void **state)
{
    (void)state;
    ask_for_two(true);
    slow_asker_dispatch();
    end_and_dispatch(0);
    assert_int_equal(seen.status, REDBUCKET_OK);
    assert_int_equal(seen.failed, REDBUCKET_NONE);
    assert_int_equal(seen.operation, REDBUCKET_CHARGE);
    assert_same(seen.cost, 5.0);
    assert_int_equal(seen.keys_len, 2);
    assert_int_equal(seen_keys[1].key_len, 3);
    assert_string_equal(seen_text, "a=alice x");
    assert_int_equal(seen.response.remaining, 5);
    assert_same(seen.response.time, 7.0);
    assert_int_equal(seen_verdicts[0].remaining, 5);
    assert_int_equal(seen_verdicts[1].remaining, 5);
}

static void test_verdicts_are_for_who_wants_them(void **state)
{
    (void)state;
    ask_for_two(false);
    slow_asker_dispatch();
    end_and_dispatch(0);
    assert_int_equal(seen.status, REDBUCKET_OK);
    assert_null(seen.verdicts);
}

static enum redbucket_status try_one(const char *limit, const char *key, double cost)
{
    struct redbucket_key keys[] = {{.limit = limit, .key = key}, {.limit = "a", .key = "twice"}};
    struct redbucket_request request = {.keys = keys, .keys_len = 1, .cost = cost};

    if (key != NULL && key[0] == '2')
        request.keys_len = 2;
    return redbucket_async_request(asker, &request, look, NULL, NULL);
}

static void test_what_is_wrong_is_said_at_once(void **state)
{
    (void)state;
    assert_int_equal(try_one("unknown", "k", 1.0), REDBUCKET_ERROR_UNKNOWN_LIMIT);
    assert_int_equal(try_one("a", "k", 0.0), REDBUCKET_ERROR_ARGUMENT);
    assert_int_equal(try_one("a", NULL, 1.0), REDBUCKET_ERROR_ARGUMENT);
    assert_int_equal(try_one("a", "2", 1.0), REDBUCKET_ERROR_DUPLICATE);
    assert_int_equal(try_one("a", "a key of sixteen", 1.0), REDBUCKET_ERROR_KEY);
    assert_int_equal(redbucket_async_outstanding(asker), 0);
    assert_false(asker_readable());
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 0);
}

static void test_there_is_a_most(void **state)
{
    struct asked *asked = calloc(REDBUCKET_ASYNC_MAX + 1, sizeof *asked);

    (void)state;
    asker_ask_all(asked, REDBUCKET_ASYNC_MAX, "k");
    assert_int_equal(try_one("a", "k", 1.0), REDBUCKET_ERROR_FULL);
    slow_asker_dispatch();
    assert_int_equal(try_one("a", "k", 1.0), REDBUCKET_ERROR_FULL);
    end_and_dispatch(0);
    asker_ask(&asked[REDBUCKET_ASYNC_MAX], "k", 1.0);
    assert_int_equal(redbucket_async_outstanding(asker), REDBUCKET_ASYNC_MAX - 255);
    redbucket_async_destroy(asker);
    asker = NULL;
    assert_int_equal(asker_count(asked, REDBUCKET_ASYNC_MAX + 1, REDBUCKET_CANCELLED),
                     REDBUCKET_ASYNC_MAX - 255);
    free(asked);
}

static void test_a_request_of_no_limit_is_accepted(void **state)
{
    struct redbucket_request request = {.cost = 1.0};

    (void)state;
    slow_asker_close(NULL);
    struct redbucket_store *store = NULL;

    assert_int_equal(redbucket_store_open("memory:?size=64k", &store, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_create(store, &slow_limiter, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_async_create(slow_limiter, &asker, NULL), REDBUCKET_OK);
    memset(&seen, 0, sizeof seen);
    assert_int_equal(redbucket_async_request(asker, &request, look, &seen, NULL), REDBUCKET_OK);
    slow_asker_dispatch();
    assert_true(seen.response.accepted);
    redbucket_async_destroy(asker);
    redbucket_limiter_destroy(slow_limiter);
    redbucket_store_close(store);
    begin(NULL);
}

/* ---- In a callback ----------------------------------------------------------------------------
 */

static struct asked more[3];

static void ask_again(struct asked *asked)
{
    (void)asked;
    asker_ask_all(more, 3, "again");
    redbucket_async_dispatch(asker);
    assert_int_equal(more[0].called, 0);
}

static void test_callbacks_ask_for_more(void **state)
{
    struct asked asked = {.then = ask_again};

    (void)state;
    memset(more, 0, sizeof more);
    asker_ask(&asked, "k", 1.0);
    slow_asker_dispatch();
    end_and_dispatch(0);
    /* It is on its way before the loop goes on. */
    assert_int_equal(slow.begun, 2);
    assert_int_equal(slow.calls[1].len, 3);
    end_and_dispatch(1);
    assert_int_equal(asker_count(more, 3, REDBUCKET_OK), 3);
}

static int rounds;

static void ask_for_ever(struct asked *asked)
{
    rounds++;
    asked->called = 0;
    asker_ask(asked, "k", 1.0);
}

static void test_a_turn_ends_though_callbacks_go_on(void **state)
{
    static struct asked asked;

    (void)state;
    asked = (struct asked){.then = ask_for_ever};
    rounds = 0;
    slow.at_once = true;
    asker_ask(&asked, "k", 1.0);
    for (int turn = 1; turn <= 5; turn++) {
        assert_true(asker_readable());
        slow_asker_dispatch();
        assert_in_range(rounds, turn, turn);
    }
    assert_true(asker_readable());
    asked.then = NULL;
}

static int heard_on_fiber;
static int heard;

static void hear(void *data, enum redbucket_event event, const char *message)
{
    (void)data;
    assert_int_equal(event, REDBUCKET_EVENT_DOWN);
    assert_string_equal(message, "by a call");
    heard_on_fiber += rbk_wait_on_fiber();
    heard++;
}

static void test_events_are_told_on_the_hosts_stack(void **state)
{
    struct asked asked = {.called = 0};

    (void)state;
    heard = heard_on_fiber = 0;
    slow.tells = true;
    redbucket_store_listen(&slow.store, hear, NULL);
    asker_ask(&asked, "k", 1.0);
    slow_asker_dispatch();
    assert_int_equal(heard, 1);
    assert_int_equal(heard_on_fiber, 0);
    end_and_dispatch(0);
    assert_int_equal(asked.called, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_request_is_answered_in_a_later_turn, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_a_turns_requests_go_together, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_many_make_two_calls_side_by_side, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_one_connection_is_one_call_at_a_time, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_what_takes_no_time_is_answered_in_its_turn, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_watched_is_looked_at, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_everything_is_copied, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_verdicts_are_for_who_wants_them, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_what_is_wrong_is_said_at_once, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_there_is_a_most, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_a_request_of_no_limit_is_accepted, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_callbacks_ask_for_more, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_a_turn_ends_though_callbacks_go_on, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_events_are_told_on_the_hosts_stack, begin,
                                        slow_asker_close),
    };

    return cmocka_run_group_tests_name("async", tests, NULL, NULL);
}
