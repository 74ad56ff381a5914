/* SPDX-License-Identifier: MIT */
/*
 * The nodes of a cluster: each place is one node, whoever comes first, there are no more than a
 * cluster may have, and who serves a slot is never a place that isn't there.
 */
#include "shots.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>

#define THREADS 4
#define PLACES  60

static struct rbk_node *found[THREADS][PLACES];
static atomic_uint ready;

static struct rbk_place place_of(size_t number)
{
    struct rbk_place place = {.port = 7000};

    snprintf(place.host, sizeof place.host, "h%zu", number);
    return place;
}

/* All at once, so that they meet, and half of them by redirections. */
static void *add_all(void *data)
{
    size_t thread = (size_t)((struct rbk_node * (*)[PLACES]) data - found);

    atomic_fetch_add(&ready, 1);
    while (atomic_load(&ready) < THREADS)
        continue;
    for (size_t i = 0; i < PLACES; i++) {
        struct rbk_redirect redirect = {.slot = (unsigned)i, .place = place_of(i)};

        found[thread][i] = thread % 2 == 0 ? rbk_nodes_at(&nodes, &redirect.place)
                                           : rbk_nodes_redirected(&nodes, &redirect);
    }
    return NULL;
}

static void meet(void)
{
    pthread_t threads[THREADS];

    atomic_store(&ready, 0);
    begin("redis+cluster://a:1,b:1?connections=1");
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_all, &found[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(nodes.len, PLACES + 2);
    for (size_t i = 0; i < PLACES; i++) {
        struct rbk_place place = place_of(i);

        assert_true(rbk_place_same(&found[0][i]->place, &place));
        assert_ptr_equal(rbk_nodes_owner(&nodes, (unsigned)i), found[0][i]);
        for (size_t j = 1; j < THREADS; j++)
            assert_ptr_equal(found[j][i], found[0][i]);
    }
    for (size_t i = 0; i < nodes.len; i++)
        assert_int_equal(nodes.at[i]->number, i);
    close_nodes();
}

static void a_place_is_one_node_whoever_is_first(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        meet();
}

static void there_are_no_more_than_a_cluster_may_have(void **state)
{
    struct rbk_redirect redirect = {.slot = SLOT_A};
    struct rbk_node *owner;

    (void)state;
    begin("redis+cluster://a:1,b:1?connections=1");
    for (size_t i = 0; i < RBK_PLACES_MAX - 2; i++) {
        struct rbk_place place = place_of(i);

        assert_non_null(rbk_nodes_at(&nodes, &place));
    }
    redirect.place = place_of(0);
    owner = rbk_nodes_redirected(&nodes, &redirect);
    assert_non_null(owner);
    redirect.place = place_of(RBK_PLACES_MAX);
    assert_null(rbk_nodes_redirected(&nodes, &redirect));
    assert_ptr_equal(rbk_nodes_owner(&nodes, SLOT_A), owner);
    close_nodes();
}

/* ASK is for once: the map stays. */
static void only_what_has_moved_changes_the_map(void **state)
{
    struct rbk_redirect redirect = {.ask = true, .slot = SLOT_A, .place = place_of(1)};
    struct rbk_node *before, *after;

    (void)state;
    begin_known(URL);
    before = rbk_nodes_owner(&nodes, SLOT_A);
    assert_ptr_not_equal(rbk_nodes_redirected(&nodes, &redirect), before);
    assert_ptr_equal(rbk_nodes_owner(&nodes, SLOT_A), before);
    redirect.ask = false;
    after = rbk_nodes_redirected(&nodes, &redirect);
    assert_ptr_not_equal(after, before);
    assert_ptr_equal(rbk_nodes_owner(&nodes, SLOT_A), after);
    close_nodes();
}

/* Its old node may serve a slot again that nobody does now; a node that is new has its slots. */
static void a_new_map_takes_nothing_away(void **state)
{
    struct rbk_place place = {.host = "c", .port = 1};

    (void)state;
    begin_known(URL);
    fake_node("a:1")->slots = "0-99 a:1,200-9999 c:1";
    fake_node("b:1")->slots = "0-99 a:1,200-9999 c:1";
    rbk_nodes_doubt(&nodes);
    aim(SLOT_A, 1, -1);
    aim(SLOT_B, 2, -1);
    aim(300, 3, -1);
    fly(1.0);
    for (size_t i = 0; i < shots_len; i++)
        assert_status(i, REDBUCKET_OK);
    assert_string_equal(rbk_nodes_owner(&nodes, SLOT_B)->place.host, "b");
    assert_string_equal(rbk_nodes_owner(&nodes, 150)->place.host, "a");
    assert_ptr_equal(rbk_nodes_owner(&nodes, 300), rbk_nodes_at(&nodes, &place));
    close_nodes();
}

/* At most every tenth of a second, however often it is doubted. */
static void the_map_is_not_read_too_often(void **state)
{
    static const struct {
        double later;
        const char *log;
    } steps[] = {{0.0, "b:1 SLOTS; "}, {0.05, ""}, {0.04, ""}, {0.02, "a:1 SLOTS; "}, {0.0, ""}};
    struct rbk_deadline deadline;

    (void)state;
    begin_known(URL);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        fake_nodes.now += steps[i].later;
        rbk_deadline_start(&deadline, 1.0);
        rbk_nodes_doubt(&nodes);
        rbk_nodes_refresh(&nodes, &deadline);
        assert_log(steps[i].log);
    }
    close_nodes();
}

/* Whoever tries whether a node is back may wait for it: that is not for those who only want the
 * map, as long as another can tell. */
static void who_is_down_is_not_asked_while_another_answers(void **state)
{
    struct rbk_deadline deadline;

    (void)state;
    begin_known(URL);
    fake_node("a:1")->says[0] = FAKE_SILENT;
    aim(SLOT_A, 1, -1);
    fly(1.0);
    assert_status(0, REDBUCKET_ERROR_TIMEOUT);
    fake_nodes.log[0] = '\0';
    for (int i = 0; i < 4; i++) {
        fake_nodes.now += 2.0;
        rbk_deadline_start(&deadline, 1.0);
        rbk_nodes_doubt(&nodes);
        rbk_nodes_refresh(&nodes, &deadline);
    }
    assert_log("b:1 SLOTS; b:1 SLOTS; b:1 SLOTS; b:1 SLOTS; ");
    /* When it doesn't, they are. */
    fake_node("b:1")->slots = NULL;
    fake_nodes.now += 2.0;
    rbk_deadline_start(&deadline, 1.0);
    rbk_nodes_doubt(&nodes);
    rbk_nodes_refresh(&nodes, &deadline);
    assert_log("b:1 SLOTS; a:1 SLOTS; ");
    assert_int_equal(rbk_nodes_number(&nodes, SLOT_A), 0);
    close_nodes();
}

static void a_slot_that_is_known_has_a_number(void **state)
{
    struct rbk_redirect redirect = {.slot = SLOT_A, .place = place_of(1)};

    (void)state;
    begin("redis+cluster://a:1,b:1?connections=1");
    assert_int_equal(rbk_nodes_number(&nodes, SLOT_A), RBK_NONE);
    assert_non_null(rbk_nodes_redirected(&nodes, &redirect));
    assert_int_equal(rbk_nodes_number(&nodes, SLOT_A), 2);
    assert_int_equal(rbk_nodes_number(&nodes, SLOT_B), RBK_NONE);
    close_nodes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_is_one_node_whoever_is_first),
        cmocka_unit_test(there_are_no_more_than_a_cluster_may_have),
        cmocka_unit_test(only_what_has_moved_changes_the_map),
        cmocka_unit_test(a_new_map_takes_nothing_away),
        cmocka_unit_test(the_map_is_not_read_too_often),
        cmocka_unit_test(who_is_down_is_not_asked_while_another_answers),
        cmocka_unit_test(a_slot_that_is_known_has_a_number),
    };

    return cmocka_run_group_tests_name("nodes", tests, NULL, NULL);
}
