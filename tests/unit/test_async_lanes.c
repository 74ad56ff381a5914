/* SPDX-License-Identifier: MIT */
/*
 * Requests on an event loop that go different ways: to nodes of a cluster, or alone.
 */
#include "slow_asker.h"
#include "test.h"

#include <stdio.h>

static struct asked asked[400];

static void open_for(unsigned connections)
{
    slow_limiter = slow_open(connections);
    slow_divide();
    slow_asker_begin();
    memset(asked, 0, sizeof asked);
}

static int begin(void **state)
{
    (void)state;
    open_for(8);
    return 0;
}

static void test_only_those_of_a_lane_go_together(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        char key[2] = {(char)('0' + i % 3), '\0'};

        asker_ask(&asked[i], key, 1.0 + i);
    }
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(slow.calls[i].len, 4);
        assert_int_equal(slow.calls[i].first[0], '0' + (int)i);
        slow_end(i);
    }
    slow_asker_dispatch();
    assert_int_equal(asker_count(asked, 12, REDBUCKET_OK), 12);
    for (int i = 0; i < 12; i++)
        assert_int_equal(asked[i].remaining, i + 1);
}

static void test_no_lane_waits_for_another(void **state)
{
    (void)state;
    /* The calls of one lane hang, as many as it may have. */
    for (int i = 0; i < 3; i++) {
        asker_ask(&asked[i], "0", 1.0);
        slow_asker_dispatch();
    }
    assert_int_equal(slow.begun, 2);
    for (unsigned i = 3; i < 40; i++) {
        asker_ask(&asked[i], i % 2 == 0 ? "1" : "2", 1.0);
        slow_asker_dispatch();
        assert_int_equal(slow.begun, i);
        slow_end(i - 1);
        slow_asker_dispatch();
        assert_int_equal(asked[i].status, REDBUCKET_OK);
    }
    assert_int_equal(asker_count(asked, 3, REDBUCKET_OK), 0);
    slow_end(0);
    slow_asker_dispatch();
    assert_int_equal(slow.calls[39].first[0], '0');
    assert_int_equal(asker_count(asked, 3, REDBUCKET_OK), 1);
}

/* However many lanes hang, there is a most; and each of their requests has its time. */
static void test_there_is_a_most_of_all_lanes(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        char key[2] = {(char)('0' + i / 2), '\0'};

        asker_ask(&asked[i], key, 1.0);
        slow_asker_dispatch();
    }
    assert_int_equal(slow.begun, 16);
    assert_false(asker_readable());
    slow_end(3);
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 17);
    assert_int_equal(slow.calls[16].first[0], '8');
    slow.now += SLOW_TIMEOUT;
    slow_asker_dispatch();
    assert_int_equal(asker_count(asked, 20, REDBUCKET_OK), 1);
    assert_int_equal(asker_count(asked, 20, REDBUCKET_ERROR_TIMEOUT), 19);
    assert_int_equal(redbucket_async_outstanding(asker), 0);
}

static void test_who_goes_alone_shares_as_little_as_it_can(void **state)
{
    (void)state;
    asker_ask_all(asked, 24, "alone");
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 8);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(slow.calls[i].len, 3);
    asker_ask_all(&asked[24], 2, "more");
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 8);
    slow_end(5);
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 9);
    for (unsigned i = 0; i < 9; i++) {
        if (i != 5)
            slow_end(i);
    }
    slow_asker_dispatch();
    assert_int_equal(asker_count(asked, 26, REDBUCKET_OK), 26);
}

static void test_no_more_go_than_there_are_connections(void **state)
{
    (void)state;
    slow_asker_close(NULL);
    open_for(3);
    asker_ask_all(asked, 24, "alone");
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 3);
    assert_int_equal(slow.calls[0].len, 8);
    for (unsigned i = 0; i < 3; i++)
        slow_end(i);
    slow_asker_dispatch();
    assert_int_equal(asker_count(asked, 24, REDBUCKET_OK), 24);
}

static void test_lanes_take_turns(void **state)
{
    static struct asked others[400];

    (void)state;
    slow_asker_close(NULL);
    open_for(1);
    memset(others, 0, sizeof others);
    asker_ask_all(asked, 400, "0");
    asker_ask_all(others, 400, "1");
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 2);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(slow.calls[i].first[0], '0' + (int)(i % 2));
        assert_int_equal(slow.calls[i].len, i < 2 ? 256 : 144);
        slow_end(i);
        slow_asker_dispatch();
    }
    assert_int_equal(asker_count(asked, 400, REDBUCKET_OK), 400);
    assert_int_equal(asker_count(others, 400, REDBUCKET_OK), 400);
}

static void test_cancelling_empties_a_lane(void **state)
{
    (void)state;
    asker_ask(&asked[0], "0", 1.0);
    asker_ask(&asked[1], "1", 1.0);
    assert_true(redbucket_async_cancel(asker, asked[0].id));
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 1);
    assert_int_equal(slow.calls[0].first[0], '1');
    assert_int_equal(asked[0].status, REDBUCKET_CANCELLED);
    asker_ask(&asked[2], "0", 1.0);
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 2);
    slow_end(0);
    slow_end(1);
    slow_asker_dispatch();
    assert_int_equal(asker_count(asked, 3, REDBUCKET_OK), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_those_of_a_lane_go_together, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_no_lane_waits_for_another, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_there_is_a_most_of_all_lanes, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_who_goes_alone_shares_as_little_as_it_can, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_no_more_go_than_there_are_connections, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_lanes_take_turns, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_cancelling_empties_a_lane, begin, slow_asker_close),
    };

    return cmocka_run_group_tests_name("async_lanes", tests, NULL, NULL);
}
