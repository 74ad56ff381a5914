/* SPDX-License-Identifier: MIT */
/*
 * Calls to nodes of a cluster that are dead, silent, slow or busy: the others serve on, the map is
 * found, and nothing that may have run is sent again.
 */
#include "redis/cluster.h"
#include "shots.h"
#include "test.h"

#include <stdio.h>

/* ---- Nodes that are away
 * ------------------------------------------------------------------------- */

static void a_dead_node_is_replaced_by_who_serves_now(void **state)
{
    (void)state;
    begin_known(URL);
    fake_node("a:1")->open = REDBUCKET_ERROR_UNAVAILABLE;
    fake_node("b:1")->slots = ALL_B;
    aim(SLOT_A, 1, -1);
    aim(SLOT_B, 2, -1);
    fly(1.0);
    assert_log("b:1 EVALSHA take 2; b:1 SLOTS; b:1 EVALSHA take 1; ");
    assert_status(0, REDBUCKET_OK);
    assert_status(1, REDBUCKET_OK);
    close_nodes();
}

static void a_dead_node_that_nobody_replaces_fails_what_is_its(void **state)
{
    (void)state;
    begin_known(URL);
    fake_node("a:1")->open = REDBUCKET_ERROR_UNAVAILABLE;
    aim(SLOT_A, 1, -1);
    aim(SLOT_B, 2, -1);
    fly(1.0);
    assert_log("b:1 EVALSHA take 2; b:1 SLOTS; ");
    assert_status(0, REDBUCKET_ERROR_UNAVAILABLE);
    assert_status(1, REDBUCKET_OK);
    close_nodes();
}

/* The importing node is away: who still has the slot is asked, who may have the key again. */
static void a_dead_node_that_was_to_be_asked_is_not_the_end(void **state)
{
    (void)state;
    begin_known(URL);
    fake_node("b:1")->open = REDBUCKET_ERROR_UNAVAILABLE;
    fake_node("a:1")->says[0] = ASK_B;
    aim(SLOT_A, 1, -1);
    fly(1.0);
    assert_log("a:1 EVALSHA take 1; a:1 SLOTS; a:1 EVALSHA take 1; ");
    assert_status(0, REDBUCKET_OK);
    close_nodes();
}

static void a_silent_node_keeps_its_own_alone(void **state)
{
    (void)state;
    begin_known(URL);
    fake_node("a:1")->says[0] = FAKE_SILENT;
    fake_node("b:1")->slots = ALL_B;
    aim(SLOT_A, 1, -1);
    aim(SLOT_B, 2, -1);
    fly(1.0);
    assert_log("a:1 EVALSHA take 1; b:1 EVALSHA take 2; ");
    assert_status(0, REDBUCKET_ERROR_TIMEOUT);
    assert_status(1, REDBUCKET_OK);
    close_nodes();
}

static void what_may_have_run_is_not_sent_again(void **state)
{
    (void)state;
    begin_known(URL);
    fake_node("a:1")->says[1] = FAKE_BREAKS;
    fake_node("b:1")->slots = ALL_B;
    aim(SLOT_A, 1, -1);
    aim(SLOT_A, 2, -1);
    fly(1.0);
    assert_log("a:1 EVALSHA take 1; a:1 EVALSHA take 2; ");
    assert_status(0, REDBUCKET_ERROR_IO);
    assert_status(1, REDBUCKET_ERROR_IO);
    close_nodes();
}

static void what_was_never_sent_goes_where_it_belongs(void **state)
{
    (void)state;
    begin_known(URL);
    fake_node("a:1")->unsent = true;
    fake_node("b:1")->slots = ALL_B;
    /* The first that is asked for the map is the one that has failed. */
    aim(SLOT_A, 1, -1);
    fly(1.0);
    assert_log("b:1 SLOTS; b:1 EVALSHA take 1; ");
    assert_status(0, REDBUCKET_OK);
    close_nodes();
}

/* ---- Time, and connections that others have
 * -------------------------------------------------------- */

static void without_time_nothing_is_sent(void **state)
{
    (void)state;
    begin_known(URL);
    aim(SLOT_A, 1, -1);
    aim(SLOT_B, 2, -1);
    fly(0.0);
    assert_log("");
    assert_status(0, REDBUCKET_ERROR_TIMEOUT);
    assert_status(1, REDBUCKET_ERROR_TIMEOUT);
    close_nodes();
}

/* Everybody borrows in the same order, or two of them could wait for each other. */
static void connections_are_borrowed_in_one_order(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin("redis+cluster://a:1,b:1,c:1?timeout=1");
        for (int j = 0; j < 3; j++)
            fake_node(j == 0   ? "a:1"
                      : j == 1 ? "b:1"
                               : "c:1")
                ->slots = "0-99 c:1,100-199 a:1,200-16383 b:1";
        aim(i == 0 ? 0 : 250, 1, -1);
        aim(150, 2, -1);
        aim(i == 0 ? 250 : 0, 3, -1);
        fly(1.0);
        assert_string_equal(fake_nodes.opens, "a:1 b:1 c:1 ");
        close_nodes();
    }
}

/* Who holds one connection of a node must not wait for a second one. */
static void the_map_is_read_with_empty_hands(void **state)
{
    (void)state;
    begin_known("redis+cluster://a:1,b:1?timeout=1&connections=1");
    fake_node("b:1")->open = REDBUCKET_ERROR_UNAVAILABLE;
    aim(SLOT_A, 1, -1);
    aim(SLOT_B, 2, -1);
    fly(1.0);
    assert_status(0, REDBUCKET_OK);
    assert_status(1, REDBUCKET_ERROR_UNAVAILABLE);
    assert_true(fake_nodes.now < 1000.3);
    close_nodes();
}

static void a_busy_node_leaves_time_for_the_others(void **state)
{
    struct rbk_deadline deadline;
    struct rbk_peer *peer;
    struct rbk_pool *pool;

    (void)state;
    begin_known("redis+cluster://a:1,b:1?timeout=1&connections=1");
    pool = &rbk_nodes_owner(&nodes, SLOT_A)->pool;
    rbk_deadline_start(&deadline, 1.0);
    assert_int_equal(rbk_pool_take(pool, &deadline, &peer), REDBUCKET_OK);
    aim(SLOT_A, 1, -1);
    aim(SLOT_B, 2, -1);
    fly(1.0);
    assert_status(0, REDBUCKET_ERROR_TIMEOUT);
    assert_status(1, REDBUCKET_OK);
    assert_true(fake_nodes.now < 1000.7);
    rbk_pool_give(pool, peer, REDBUCKET_OK, true);
    close_nodes();
}

/* Nodes that take a while to connect to, as with TLS over an ocean: those that were not reached in
 * one decision are in the next. */
static void many_slow_nodes_are_reached_in_the_end(void **state)
{
    static char where[8][8];
    static char map[256];

    (void)state;
    fake_nodes_reset();
    map[0] = '\0';
    for (int i = 0; i < 8; i++) {
        snprintf(where[i], sizeof where[i], "%c:1", 'a' + i);
        fake_node(where[i])->slow = 0.15;
        snprintf(map + strlen(map), sizeof map - strlen(map), "%s%d-%d %s", i == 0 ? "" : ",",
                 i * 100, i * 100 + 99, where[i]);
    }
    for (int i = 0; i < 8; i++)
        fake_node(where[i])->slots = map;
    open_nodes("redis+cluster://a:1?timeout=1");
    for (int decision = 0; decision < 4; decision++) {
        shots_len = 0;
        for (int i = 0; i < 8; i++)
            aim((unsigned)i * 100, i, -1);
        fly(1.0);
    }
    for (size_t i = 0; i < 8; i++)
        assert_status(i, REDBUCKET_OK);
    close_nodes();
}

/* Places that are empty by now take none of the turns. */
static void the_map_is_found_among_many_that_are_gone(void **state)
{
    (void)state;
    fake_nodes_reset();
    for (int i = 0; i < 9; i++) {
        static char where[9][8];

        snprintf(where[i], sizeof where[i], "x%d:1", i);
        fake_node(where[i])->open = REDBUCKET_ERROR_UNAVAILABLE;
    }
    fake_node("b:1")->slots = ALL_B;
    open_nodes("redis+cluster://x0:1,x1:1,x2:1,x3:1,x4:1,x5:1,x6:1,x7:1,x8:1,b:1");
    aim(SLOT_A, 1, -1);
    fly(1.0);
    assert_log("b:1 SLOTS; b:1 EVALSHA take 1; ");
    close_nodes();
}

/* Of four that are silent, and no more, a fifth has time to be asked. */
static void silent_nodes_leave_time_for_the_map(void **state)
{
    (void)state;
    fake_nodes_reset();
    for (int i = 0; i < 3; i++) {
        static char where[3][8];

        snprintf(where[i], sizeof where[i], "s%d:1", i);
        fake_node(where[i])->open = REDBUCKET_ERROR_TIMEOUT;
    }
    fake_node("b:1")->slots = ALL_B;
    open_nodes("redis+cluster://s0:1,s1:1,s2:1,b:1");
    aim(SLOT_A, 1, -1);
    fly(1.0);
    assert_log("b:1 SLOTS; b:1 EVALSHA take 1; ");
    assert_status(0, REDBUCKET_OK);
    close_nodes();
}

/* ---- Requests
 * ------------------------------------------------------------------------------------- */

/* Two keys of one slot, which is torn: taken one by one then, and what was taken is given back in
 * time when the second can't be had. */
static void what_turns_out_to_be_torn_is_given_back_in_time(void **state)
{
    static const struct rbk_key keys[] = {
        {(const unsigned char *)"k", 1, (const unsigned char *)"{t}1", 4},
        {(const unsigned char *)"k", 1, (const unsigned char *)"{t}2", 4}};
    struct rbk_claim claims[2] = {{.limit = {.rate = 1.0, .burst = 100.0}},
                                  {.limit = {.rate = 1.0, .burst = 100.0}}};
    struct rbk_request request = {
        .ask = {.operation = RBK_REQUEST, .cost = 1.0}, .keys = keys, .claims = claims, .len = 2};
    struct rbk_cluster_work *work;
    struct rbk_deadline deadline;
    char ask[32];

    (void)state;
    begin_known(URL);
    work = rbk_cluster_work_create(&options);
    assert_non_null(work);
    fake_node("a:1")->slots = "0-16383 a:1";
    fake_node("b:1")->slots = "0-16383 a:1";
    rbk_nodes_doubt(&nodes);
    snprintf(ask, sizeof ask, "ASK %u b:1", rbk_slot_of((const unsigned char *)"{t}", 3));
    fake_node("a:1")->says[0] = "TRYAGAIN";
    fake_node("a:1")->says[1] = "TRYAGAIN";
    fake_node("a:1")->says[3] = ask;
    fake_node("b:1")->says[0] = FAKE_SILENT;
    rbk_deadline_start(&deadline, 1.0);
    assert_int_equal(rbk_cluster_decide(&nodes, work, &request, 1, &deadline), 1);
    rbk_cluster_work_destroy(work);
    assert_int_equal(request.status, REDBUCKET_ERROR_TIMEOUT);
    assert_non_null(strstr(fake_nodes.log, "b:1 EVALSHA take 2; "));
    assert_non_null(strstr(fake_nodes.log, "a:1 EVALSHA give 1; "));
    close_nodes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_node_is_replaced_by_who_serves_now),
        cmocka_unit_test(a_dead_node_that_nobody_replaces_fails_what_is_its),
        cmocka_unit_test(a_dead_node_that_was_to_be_asked_is_not_the_end),
        cmocka_unit_test(a_silent_node_keeps_its_own_alone),
        cmocka_unit_test(what_may_have_run_is_not_sent_again),
        cmocka_unit_test(what_was_never_sent_goes_where_it_belongs),
        cmocka_unit_test(without_time_nothing_is_sent),
        cmocka_unit_test(connections_are_borrowed_in_one_order),
        cmocka_unit_test(the_map_is_read_with_empty_hands),
        cmocka_unit_test(a_busy_node_leaves_time_for_the_others),
        cmocka_unit_test(many_slow_nodes_are_reached_in_the_end),
        cmocka_unit_test(the_map_is_found_among_many_that_are_gone),
        cmocka_unit_test(silent_nodes_leave_time_for_the_map),
        cmocka_unit_test(what_turns_out_to_be_torn_is_given_back_in_time),
    };

    return cmocka_run_group_tests_name("volley_away", tests, NULL, NULL);
}
