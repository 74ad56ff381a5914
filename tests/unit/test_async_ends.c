/* SPDX-License-Identifier: MIT */
/*
 * Requests that end before their answer: cancelled, out of time, destroyed with everything else.
 */
#include "policy.h"
#include "slow_asker.h"
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static struct asked asked[8];

static int begin(void **state)
{
    (void)state;
    slow_asker_open(2);
    memset(asked, 0, sizeof asked);
    return 0;
}

/* ---- Cancelled --------------------------------------------------------------------------------
 */

static void test_what_waits_is_never_asked(void **state)
{
    (void)state;
    slow_asker_fill(asked, 3);
    assert_true(redbucket_async_cancel(asker, asked[3].id));
    assert_int_equal(asked[3].called, 0);
    assert_false(redbucket_async_cancel(asker, asked[3].id));
    assert_true(asker_readable());
    slow_asker_dispatch();
    assert_int_equal(asked[3].called, 1);
    assert_int_equal(asked[3].status, REDBUCKET_CANCELLED);
    assert_int_equal(redbucket_async_outstanding(asker), 4);
    slow_end(0);
    slow_asker_dispatch();
    assert_int_equal(slow.calls[2].len, 2);
    slow_end(1);
    slow_end(2);
    slow_asker_dispatch();
    assert_int_equal(asker_count(asked, 5, REDBUCKET_OK), 4);
    assert_int_equal(asked[2].remaining, 1);
    assert_int_equal(asked[4].remaining, 3);
}

static void test_what_is_under_way_has_nobody_to_come_back_to(void **state)
{
    (void)state;
    asker_ask_all(asked, 3, "k");
    slow_asker_dispatch();
    assert_true(redbucket_async_cancel(asker, asked[1].id));
    slow_asker_dispatch();
    assert_int_equal(asked[1].status, REDBUCKET_CANCELLED);
    assert_int_equal(asker_called, 1);
    slow_end(0);
    slow_asker_dispatch();
    assert_int_equal(asker_called, 3);
    assert_int_equal(asker_count(asked, 3, REDBUCKET_OK), 2);
    assert_int_equal(asked[2].remaining, 3);
}

static void test_a_whole_call_can_be_given_up(void **state)
{
    (void)state;
    asker_ask_all(asked, 2, "k");
    slow_asker_dispatch();
    assert_true(redbucket_async_cancel(asker, asked[0].id));
    assert_true(redbucket_async_cancel(asker, asked[1].id));
    slow_asker_dispatch();
    assert_int_equal(redbucket_async_outstanding(asker), 0);
    assert_false(slow.calls[0].ended);
    slow_end(0);
    slow_asker_dispatch();
    assert_true(slow.calls[0].ended);
    assert_int_equal(asker_called, 2);
}

static uint64_t other_id;
static bool other_was_cancelled;

static void cancel_other(struct asked *one)
{
    (void)one;
    other_was_cancelled = redbucket_async_cancel(asker, other_id);
}

static void test_who_has_an_answer_gets_it(void **state)
{
    (void)state;
    asker_ask_all(asked, 2, "k");
    asked[0].then = cancel_other;
    other_id = asked[1].id;
    other_was_cancelled = true;
    slow_asker_dispatch();
    slow_end(0);
    slow_asker_dispatch();
    assert_false(other_was_cancelled);
    assert_int_equal(asked[1].status, REDBUCKET_OK);
    assert_false(redbucket_async_cancel(asker, asked[0].id));
    assert_false(redbucket_async_cancel(asker, 0));
    assert_false(redbucket_async_cancel(asker, UINT64_MAX));
}

static void test_callbacks_cancel(void **state)
{
    (void)state;
    slow_asker_fill(asked, 1);
    asked[0].then = cancel_other;
    other_id = asked[1].id;
    slow_end(0);
    slow_asker_dispatch();
    assert_true(other_was_cancelled);
    assert_int_equal(asked[1].called, 0);
    assert_true(asker_readable());
    slow_asker_dispatch();
    assert_int_equal(asked[1].status, REDBUCKET_CANCELLED);
    slow_end(2);
    slow_asker_dispatch();
    assert_int_equal(asked[2].status, REDBUCKET_OK);
}

/* A number of long ago doesn't find who sits in its place now. */
static void test_numbers_are_not_given_twice(void **state)
{
    uint64_t before = 0;

    (void)state;
    slow.at_once = true;
    for (int i = 0; i < 1000; i++) {
        asked[0].called = 0;
        asker_ask(&asked[0], "k", 1.0);
        assert_int_not_equal(asked[0].id, before);
        assert_false(redbucket_async_cancel(asker, before));
        before = asked[0].id;
        slow_asker_dispatch();
    }
}

/* ---- Out of time ------------------------------------------------------------------------------
 */

static void test_each_has_its_own_time(void **state)
{
    (void)state;
    asker_ask(&asked[0], "first", 1.0);
    slow.now += 0.25;
    asker_ask(&asked[1], "first", 2.0);
    slow.now += 0.25;
    slow_asker_dispatch();
    /* The call has the time of the one who came last. */
    assert_int_equal(slow.calls[0].len, 2);
    assert_true(slow.calls[0].waited > 0.24 && slow.calls[0].waited < 0.26);
    slow.now += 0.5;
    slow_asker_dispatch();
    assert_int_equal(asked[0].called, 1);
    assert_int_equal(asked[0].status, REDBUCKET_ERROR_TIMEOUT);
    assert_int_equal(asked[1].called, 0);
    assert_false(slow.calls[0].ended);
    slow_end(0);
    slow_asker_dispatch();
    assert_int_equal(asked[1].status, REDBUCKET_OK);
    assert_int_equal(asked[0].called, 1);
}

static void test_who_waits_waits_no_longer_than_its_time(void **state)
{
    (void)state;
    slow_asker_fill(asked, 0);
    slow.now += 0.5;
    asker_ask(&asked[2], "third", 3.0);
    slow.now += 0.25;
    asker_ask(&asked[3], "fourth", 4.0);
    slow.now += 0.25;
    slow_asker_dispatch();
    /* Both calls are over, and what waited has gone together. */
    assert_int_equal(asker_count(asked, 2, REDBUCKET_ERROR_TIMEOUT), 2);
    assert_int_equal(slow.begun, 3);
    assert_int_equal(slow.calls[2].len, 2);
    assert_true(slow.calls[2].waited > 0.24 && slow.calls[2].waited < 0.26);
    slow.now += 0.5;
    slow_asker_dispatch();
    assert_int_equal(asked[2].status, REDBUCKET_ERROR_TIMEOUT);
    assert_int_equal(asked[3].called, 0);
    slow.now += 0.25;
    slow_asker_dispatch();
    assert_int_equal(asked[3].status, REDBUCKET_ERROR_TIMEOUT);
    assert_int_equal(redbucket_async_outstanding(asker), 0);
}

/* Both calls are held by somebody with more time: it goes without one. */
static void test_who_never_got_away_is_answered_all_the_same(void **state)
{
    (void)state;
    asker_ask(&asked[0], "early", 1.0);
    slow.now += 0.9;
    asker_ask(&asked[1], "late", 2.0);
    slow_asker_dispatch();
    asker_ask(&asked[2], "second", 3.0);
    slow_asker_dispatch();
    asker_ask(&asked[3], "waits", 4.0);
    slow.now += 0.2;
    slow_asker_dispatch();
    assert_int_equal(asked[0].status, REDBUCKET_ERROR_TIMEOUT);
    assert_int_equal(asker_called, 1);
    slow.now += 0.9;
    slow_asker_dispatch();
    assert_int_equal(asker_count(asked, 4, REDBUCKET_ERROR_TIMEOUT), 4);
}

/* ---- With a policy ----------------------------------------------------------------------------
 */

static void test_a_policy_answers_who_is_out_of_time(void **state)
{
    struct redbucket_limit limit = {.rate = 1.0};
    struct redbucket_store *store = NULL;
    struct redbucket_limiter *open = NULL;

    (void)state;
    redbucket_async_destroy(asker);
    assert_int_equal(rbk_policy_create(RBK_POLICY_OPEN, &slow.store, NULL, 1.0, &store),
                     REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_create(store, &open, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_add(open, "a", &limit, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_async_create(open, &asker, NULL), REDBUCKET_OK);
    asker_ask(&asked[0], "first", 1.0);
    slow.now += 0.5;
    asker_ask(&asked[1], "first", 2.0);
    slow_asker_dispatch();
    slow.now += 0.5;
    slow_asker_dispatch();
    assert_int_equal(asked[0].status, REDBUCKET_OK);
    assert_true(asked[0].degraded);
    slow_end(0);
    slow_asker_dispatch();
    assert_int_equal(asked[1].status, REDBUCKET_OK);
    assert_false(asked[1].degraded);
    /* Nobody is answered by it twice, once late and once when the call is over... */
    asker_ask(&asked[3], "fourth", 4.0);
    slow.now += 0.5;
    asker_ask(&asked[4], "fourth", 5.0);
    slow_asker_dispatch();
    slow.now += 0.5;
    slow_asker_dispatch();
    assert_true(asked[3].degraded);
    slow.now += 0.5;
    slow_asker_dispatch();
    assert_true(asked[4].degraded);
    assert_true(slow.calls[1].ended);
    /* ... nor who has been given up. */
    asker_ask(&asked[2], "third", 3.0);
    slow_asker_dispatch();
    redbucket_async_destroy(asker);
    asker = NULL;
    assert_int_equal(asked[2].status, REDBUCKET_CANCELLED);
    struct redbucket_statistics statistics = {.size = sizeof statistics};

    assert_int_equal(redbucket_store_statistics(store, &statistics), REDBUCKET_OK);
    assert_int_equal(statistics.degraded, 3);
    redbucket_limiter_destroy(open);
    redbucket_store_close(store);
}

static bool late_was_cancelled;

static void cancel_what_is_late(void *data, enum redbucket_event event, const char *message)
{
    (void)data;
    (void)message;
    if (event != REDBUCKET_EVENT_DEGRADED)
        return;
    for (int i = 0; i < 2; i++)
        late_was_cancelled = redbucket_async_cancel(asker, asked[i].id) || late_was_cancelled;
}

/* Its answer is being made while the listener is told. */
static void test_who_is_late_is_called_once_though_a_listener_gives_it_up(void **state)
{
    struct redbucket_limit limit = {.rate = 1.0};
    struct redbucket_store *store = NULL;
    struct redbucket_limiter *open = NULL;

    (void)state;
    redbucket_async_destroy(asker);
    assert_int_equal(rbk_policy_create(RBK_POLICY_OPEN, &slow.store, NULL, 1.0, &store),
                     REDBUCKET_OK);
    redbucket_store_listen(store, cancel_what_is_late, NULL);
    assert_int_equal(redbucket_limiter_create(store, &open, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_add(open, "a", &limit, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_async_create(open, &asker, NULL), REDBUCKET_OK);
    late_was_cancelled = false;
    asker_ask_all(asked, 2, "k");
    slow.now += 0.5;
    asker_ask(&asked[2], "k", 3.0);
    slow_asker_dispatch();
    slow.now += 0.5;
    slow_asker_dispatch();
    slow_asker_dispatch();
    assert_false(late_was_cancelled);
    assert_int_equal(asker_count(asked, 3, REDBUCKET_OK), 2);
    assert_true(asked[0].degraded && asked[1].degraded);
    slow_end(0);
    slow_asker_dispatch();
    assert_int_equal(asker_count(asked, 3, REDBUCKET_OK), 3);
    assert_int_equal(redbucket_async_outstanding(asker), 0);
    redbucket_async_destroy(asker);
    asker = NULL;
    redbucket_limiter_destroy(open);
    redbucket_store_close(store);
}

/* ---- Destroyed --------------------------------------------------------------------------------
 */

static int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void test_all_are_told_and_nothing_is_left(void **state)
{
    int before;

    (void)state;
    redbucket_async_destroy(asker);
    before = open_descriptors();
    assert_int_equal(redbucket_async_create(slow_limiter, &asker, NULL), REDBUCKET_OK);
    slow_asker_fill(asked, 3);
    redbucket_async_destroy(asker);
    asker = NULL;
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(asker_count(asked, 5, REDBUCKET_CANCELLED), 5);
    assert_true(slow.calls[0].ended && slow.calls[1].ended);
    assert_int_equal(slow.begun, 2);
    redbucket_async_destroy(NULL);
}

static void *ask_and_give_up(void *data)
{
    (void)data;
    slow_asker_fill(asked, 1);
    for (int i = 0; i < 3; i++)
        assert_true(redbucket_async_cancel(asker, asked[i].id));
    slow_asker_dispatch();
    return NULL;
}

/* The loop's thread has ended, with calls under way that nobody waits for. */
static void test_whoever_is_left_ends_it(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, ask_and_give_up, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(redbucket_async_outstanding(asker), 0);
    assert_false(slow.calls[0].ended || slow.calls[1].ended);
    redbucket_async_destroy(asker);
    asker = NULL;
    assert_true(slow.calls[0].ended && slow.calls[1].ended);
    assert_int_equal(asker_count(asked, 3, REDBUCKET_CANCELLED), 3);
}

static void destroy(struct asked *one)
{
    (void)one;
    redbucket_async_destroy(asker);
}

static void test_a_callback_may_destroy_it(void **state)
{
    (void)state;
    asker_ask_all(asked, 2, "k");
    slow_asker_dispatch();
    asker_ask(&asked[2], "second", 1.0);
    slow_asker_dispatch();
    asker_ask(&asked[3], "waits", 1.0);
    asked[0].then = destroy;
    slow_end(0);
    redbucket_async_dispatch(asker);
    asker = NULL;
    assert_int_equal(asker_count(asked, 4, REDBUCKET_OK), 2);
    assert_int_equal(asker_count(asked, 4, REDBUCKET_CANCELLED), 2);
    assert_true(slow.calls[1].ended);
}

static void try_everything(struct asked *one)
{
    struct redbucket_request request = {.cost = 1.0};

    assert_int_equal(redbucket_async_request(asker, &request, NULL, NULL, NULL),
                     REDBUCKET_CANCELLED);
    assert_false(redbucket_async_cancel(asker, one->id));
    assert_false(redbucket_async_cancel(asker, asked[2].id));
    assert_true(redbucket_async_outstanding(asker) < 3);
    redbucket_async_dispatch(asker);
    redbucket_async_destroy(asker);
}

static void test_callbacks_of_the_end_begin_nothing(void **state)
{
    (void)state;
    slow_asker_fill(asked, 1);
    for (int i = 0; i < 3; i++)
        asked[i].then = try_everything;
    redbucket_async_destroy(asker);
    asker = NULL;
    assert_int_equal(asker_count(asked, 3, REDBUCKET_CANCELLED), 3);
}

static int detached;

static void detach(void *data)
{
    assert_ptr_equal(data, &detached);
    assert_true(fcntl(redbucket_async_descriptor(asker), F_GETFD) >= 0);
    assert_int_equal(asker_called, 0);
    detached++;
}

static void test_the_loop_is_left_first(void **state)
{
    (void)state;
    detached = 0;
    assert_true(redbucket_async_attach(asker, detach, &detached));
    assert_false(redbucket_async_attach(asker, detach, NULL));
    assert_true(redbucket_async_attach(asker, NULL, NULL));
    assert_true(redbucket_async_attach(asker, detach, &detached));
    asker_ask(&asked[0], "k", 1.0);
    redbucket_async_destroy(asker);
    asker = NULL;
    assert_int_equal(detached, 1);
    assert_int_equal(asked[0].called, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_waits_is_never_asked, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_what_is_under_way_has_nobody_to_come_back_to, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_a_whole_call_can_be_given_up, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_who_has_an_answer_gets_it, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_callbacks_cancel, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_numbers_are_not_given_twice, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_each_has_its_own_time, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_who_waits_waits_no_longer_than_its_time, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_who_never_got_away_is_answered_all_the_same, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_a_policy_answers_who_is_out_of_time, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(
            test_who_is_late_is_called_once_though_a_listener_gives_it_up, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_all_are_told_and_nothing_is_left, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_whoever_is_left_ends_it, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_a_callback_may_destroy_it, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_callbacks_of_the_end_begin_nothing, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_the_loop_is_left_first, begin, slow_asker_close),
    };

    return cmocka_run_group_tests_name("async_ends", tests, NULL, NULL);
}
