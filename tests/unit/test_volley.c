/* SPDX-License-Identifier: MIT */
/*
 * Calls to the nodes of a cluster: who is asked what, in which order, and what becomes of it when
 * they point elsewhere, refuse, or talk nonsense. Nobody gets somebody else's answer.
 */
#include "shots.h"
#include "test.h"

/* One request for a slot of a:1, where that node says something first. */
static void one_to_a_that_says(const char *says)
{
    begin_known(URL);
    fake_node("a:1")->says[0] = says;
    aim(SLOT_A, 1, -1);
    fly(1.0);
}

/* ---- Redirections ------------------------------------------------------------------------------
 */

static void a_slot_that_moved_is_found_at_once_and_remembered(void **state)
{
    (void)state;
    one_to_a_that_says(MOVED_TO_B);
    assert_log("a:1 EVALSHA take 1; b:1 SLOTS; b:1 EVALSHA take 1; ");
    assert_status(0, REDBUCKET_OK);
    close_nodes();
    /* Also when there is no reading the map. */
    begin_known(URL);
    fake_node("a:1")->slots = NULL;
    fake_node("b:1")->slots = NULL;
    fake_node("a:1")->says[0] = MOVED_TO_B;
    aim(SLOT_A, 1, -1);
    fly(1.0);
    shots_len = 0;
    fake_nodes.log[0] = '\0';
    aim(SLOT_A, 2, -1);
    fly(1.0);
    assert_log("b:1 EVALSHA take 2; ");
    close_nodes();
}

static void a_slot_on_its_way_is_asked_for_once(void **state)
{
    (void)state;
    one_to_a_that_says(ASK_B);
    assert_log("a:1 EVALSHA take 1; b:1 ASKING; b:1 EVALSHA take 1; ");
    assert_status(0, REDBUCKET_OK);
    shots_len = 0;
    aim(SLOT_A, 2, -1);
    fly(1.0);
    assert_log("a:1 EVALSHA take 2; ");
    close_nodes();
}

/* ASKING is for the one call behind it, and answers stay with who asked. */
static void a_round_mixes_what_is_asked_and_what_is_not(void **state)
{
    (void)state;
    begin_known(URL);
    fake_node("a:1")->slots = ALL_B;
    fake_node("b:1")->slots = ALL_B;
    fake_node("a:1")->says[1] = ASK_B;
    fake_node("a:1")->says[2] = MOVED_TO_B;
    fake_node("b:1")->says[1] = "NOSCRIPT No matching script.";
    aim(SLOT_A, 1, 2);
    aim(SLOT_A, 3, -1);
    aim(SLOT_B, 4, -1);
    aim(SLOT_A, 5, 6);
    aim(SLOT_B, 7, -1);
    fly(1.0);
    assert_log("a:1 EVALSHA take 1 2; a:1 EVALSHA take 3; a:1 EVALSHA take 5 6; "
               "b:1 EVALSHA take 4; b:1 EVALSHA take 7; b:1 SLOTS; "
               "b:1 ASKING; b:1 EVALSHA take 3; b:1 EVALSHA take 5 6; b:1 EVAL take 7; ");
    for (size_t i = 0; i < shots_len; i++)
        assert_status(i, REDBUCKET_OK);
    close_nodes();
}

/* A script that is forgotten there as well: asked for again behind a new ASKING. */
static void who_was_asked_may_have_forgotten_the_script(void **state)
{
    (void)state;
    begin_known(URL);
    fake_node("a:1")->says[0] = ASK_B;
    fake_node("b:1")->says[0] = "NOSCRIPT No matching script.";
    aim(SLOT_A, 1, -1);
    fly(1.0);
    assert_log("a:1 EVALSHA take 1; b:1 ASKING; b:1 EVALSHA take 1; b:1 ASKING; b:1 EVAL take 1; ");
    assert_status(0, REDBUCKET_OK);
    close_nodes();
}

static void going_in_circles_ends(void **state)
{
    size_t calls = 0;

    (void)state;
    begin_known(URL);
    fake_node("a:1")->slots = NULL;
    fake_node("b:1")->slots = NULL;
    for (size_t i = 0; i < FAKE_SAYS_MAX; i++) {
        fake_node("a:1")->says[i] = MOVED_TO_B;
        fake_node("b:1")->says[i] = "MOVED 5 a:1";
    }
    aim(SLOT_A, 1, -1);
    fly(1.0);
    assert_status(0, REDBUCKET_ERROR_UNAVAILABLE);
    for (const char *at = fake_nodes.log; (at = strstr(at, "EVAL")) != NULL; at++)
        calls++;
    assert_int_equal(calls, 7);
    close_nodes();
}

static void what_is_no_redirection_is_not_followed(void **state)
{
    static const char *const says[] = {"MOVED 6 b:1", "MOVED 5 b", "MOVED 99999 b:1", "ASK 5 b:0",
                                       "MOVED 5 ../b:1"};

    (void)state;
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        one_to_a_that_says(says[i]);
        assert_log("a:1 EVALSHA take 1; ");
        assert_status(0, REDBUCKET_ERROR_UNSUPPORTED);
        close_nodes();
    }
}

/* ---- Refusals ----------------------------------------------------------------------------------
 */

static void torn_calls_are_told_from_others(void **state)
{
    (void)state;
    begin_known(URL);
    fake_node("a:1")->says[0] = "TRYAGAIN Multiple keys request during rehashing of slot";
    aim(SLOT_A, 1, 2);
    aim(SLOT_A, 3, -1);
    fly(1.0);
    assert_log("a:1 EVALSHA take 1 2; a:1 EVALSHA take 3; ");
    assert_true(shots[0].torn && !shots[1].torn);
    assert_status(0, REDBUCKET_ERROR_UNAVAILABLE);
    assert_status(1, REDBUCKET_OK);
    close_nodes();
}

/* A slot that nobody serves is no reason to ask nobody for the others. */
static void a_slot_without_a_node_fails_alone(void **state)
{
    (void)state;
    begin_known(URL);
    fake_node("a:1")->says[0] = "CLUSTERDOWN Hash slot not served";
    aim(SLOT_A, 1, -1);
    aim(SLOT_A + 1, 2, -1);
    fly(1.0);
    assert_status(0, REDBUCKET_ERROR_UNAVAILABLE);
    assert_status(1, REDBUCKET_OK);
    fake_node("a:1")->says[2] = "CLUSTERDOWN Hash slot not served";
    shots_len = 0;
    aim(SLOT_A + 2, 3, -1);
    fly(1.0);
    shots_len = 0;
    fake_nodes.log[0] = '\0';
    fake_nodes.now += 0.001;
    aim(SLOT_A + 1, 4, -1);
    fly(1.0);
    assert_log("a:1 EVALSHA take 4; ");
    assert_status(0, REDBUCKET_OK);
    close_nodes();
}

static void a_node_that_can_serve_nobody_is_left_alone(void **state)
{
    (void)state;
    one_to_a_that_says("CLUSTERDOWN The cluster is down");
    assert_log("a:1 EVALSHA take 1; ");
    assert_status(0, REDBUCKET_ERROR_UNAVAILABLE);
    fake_node("a:1")->slots = NULL;
    fake_node("b:1")->slots = NULL;
    shots_len = 0;
    aim(SLOT_A, 2, -1);
    aim(SLOT_B, 3, -1);
    fly(1.0);
    assert_null(strstr(fake_nodes.log, "take 2"));
    assert_status(0, REDBUCKET_ERROR_UNAVAILABLE);
    assert_status(1, REDBUCKET_OK);
    close_nodes();
}

static void nonsense_is_the_last_that_is_heard(void **state)
{
    (void)state;
    begin_known(URL);
    fake_node("a:1")->says[1] = FAKE_GARBAGE;
    aim(SLOT_A, 1, -1);
    aim(SLOT_A, 2, -1);
    aim(SLOT_B, 3, -1);
    aim(SLOT_A, 4, -1);
    fly(1.0);
    assert_status(0, REDBUCKET_OK);
    assert_status(1, REDBUCKET_ERROR_PROTOCOL);
    assert_status(2, REDBUCKET_OK);
    assert_status(3, REDBUCKET_ERROR_PROTOCOL);
    assert_int_equal(fake_nodes.closed, 1);
    close_nodes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_that_moved_is_found_at_once_and_remembered),
        cmocka_unit_test(a_slot_on_its_way_is_asked_for_once),
        cmocka_unit_test(a_round_mixes_what_is_asked_and_what_is_not),
        cmocka_unit_test(who_was_asked_may_have_forgotten_the_script),
        cmocka_unit_test(going_in_circles_ends),
        cmocka_unit_test(what_is_no_redirection_is_not_followed),
        cmocka_unit_test(torn_calls_are_told_from_others),
        cmocka_unit_test(a_slot_without_a_node_fails_alone),
        cmocka_unit_test(a_node_that_can_serve_nobody_is_left_alone),
        cmocka_unit_test(nonsense_is_the_last_that_is_heard),
    };

    return cmocka_run_group_tests_name("volley", tests, NULL, NULL);
}
