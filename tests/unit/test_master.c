/* SPDX-License-Identifier: MIT */
/*
 * What is known of a master between searches: how long it holds, what loses it, who asks when
 * several want to know, and that a child knows nothing.
 */
#include "redis/master.h"

#include "fake_hosts.h"
#include "processes.h"
#include "test.h"
#include "url.h"

#include <sched.h>
#include <stdlib.h>

#define MASTER "192.0.2.1:6379"
#define OTHER  "192.0.2.2:6379"

#define NAMES_MASTER "192.0.2.1 6379"
#define NAMES_OTHER  "192.0.2.2 6379"

static struct rbk_redis_options options;
static struct rbk_master *master;
static struct rbk_deadline soon;

/* Expects that since the last time the log has got to say so. */
static void assert_logged(const char *log)
{
    char *said = fake_hosts_take_log();

    assert_string_equal(said, log);
    free(said);
}

static void begin(void)
{
    struct redbucket_error error;
    struct rbk_url url;

    fake_hosts_reset();
    (void)fake_sentinel("a:26379", NAMES_MASTER);
    (void)fake_sentinel("b:26379", NAMES_MASTER);
    (void)fake_server(MASTER, "master");
    (void)fake_server(OTHER, "slave");
    assert_int_equal(rbk_url_parse("redis+sentinel://a,b/s", &url, NULL), REDBUCKET_OK);
    assert_int_equal(rbk_redis_options_parse(&url, &options, NULL), REDBUCKET_OK);
    assert_int_equal(rbk_master_create(&options, NULL, &master, &error), REDBUCKET_OK);
    assert_logged("");
    rbk_deadline_start(&soon, 1.0);
}

static void end(void)
{
    rbk_master_destroy(master);
    assert_int_equal(fake_hosts.opened, fake_hosts.closed);
}

static void fail_over(void)
{
    fake_server(MASTER, "master")->open = REDBUCKET_ERROR_UNAVAILABLE;
    fake_server(OTHER, "master");
    fake_sentinel("a:26379", NAMES_OTHER);
    fake_sentinel("b:26379", NAMES_OTHER);
}

static enum redbucket_status connect_one(struct rbk_peer *peer)
{
    struct redbucket_error error = {.message = ""};

    memset(peer, 0, sizeof *peer);
    return rbk_master_connect(master, &soon, peer, &error);
}

/* Connects, and expects that the log then says so. */
static void assert_connected(struct rbk_peer *peer, const char *log)
{
    free(fake_hosts_take_log());
    assert_int_equal(connect_one(peer), REDBUCKET_OK);
    assert_non_null(peer->connection);
    assert_true(rbk_master_is_current(master, peer));
    assert_logged(log);
}

static void assert_told(const char *where, const char *sentinel)
{
    char place[RBK_WHERE_SIZE], who[RBK_WHERE_SIZE];

    rbk_master_tell(master, place, who);
    assert_string_equal(place, where);
    assert_string_equal(who, sentinel);
}

static void what_is_known_is_not_asked_again(void **state)
{
    struct rbk_peer peers[3];

    (void)state;
    begin();
    assert_told("", "");
    assert_connected(&peers[0], "a:26379 500 " MASTER " 500 ");
    assert_connected(&peers[1], MASTER " 1000 ");
    assert_connected(&peers[2], MASTER " 1000 ");
    assert_told(MASTER, "a:26379");
    for (int i = 0; i < 3; i++)
        rbk_connection_close(peers[i].connection);
    end();
}

static void what_was_lost_is_asked_for_again(void **state)
{
    struct rbk_peer old, new;

    (void)state;
    begin();
    assert_connected(&old, "a:26379 500 " MASTER " 500 ");
    fail_over();
    fake_sentinel("a:26379", NULL)->open = REDBUCKET_ERROR_UNAVAILABLE;
    rbk_master_lost(master, &old);
    assert_false(rbk_master_is_current(master, &old));
    assert_connected(&new, "a:26379 500 b:26379 1000 " OTHER " 1000 ");
    assert_false(rbk_master_is_current(master, &old));
    assert_told(OTHER, "b:26379");
    /* What the old place's connections meet says nothing of the new one. */
    rbk_master_lost(master, &old);
    assert_true(rbk_master_is_current(master, &new));
    rbk_connection_close(old.connection);
    rbk_master_lost(master, &new);
    assert_connected(&old, "b:26379 500 " OTHER " 500 "); /* who answered last comes first */
    rbk_connection_close(old.connection);
    rbk_connection_close(new.connection);
    end();
}

/* Nothing was decided yet, so that nobody needs to hear of it. */
static void a_place_found_lost_is_replaced_at_once(void **state)
{
    struct rbk_peer old, new, more;

    (void)state;
    begin();
    assert_connected(&old, "a:26379 500 " MASTER " 500 ");
    fail_over();
    assert_connected(&new, MASTER " 1000 a:26379 500 " OTHER " 500 ");
    assert_false(rbk_master_is_current(master, &old));
    fake_server(OTHER, "slave"); /* and back */
    fake_server(MASTER, "master");
    fake_sentinel("a:26379", NAMES_MASTER);
    assert_connected(&more, OTHER " 1000 a:26379 500 " MASTER " 500 ");
    rbk_connection_close(old.connection);
    rbk_connection_close(new.connection);
    rbk_connection_close(more.connection);
    end();
}

static void failing_once_is_enough(void **state)
{
    struct rbk_peer old, new;

    (void)state;
    begin();
    assert_connected(&old, "a:26379 500 " MASTER " 500 ");
    fake_server(MASTER, "master")->open = REDBUCKET_ERROR_UNAVAILABLE;
    free(fake_hosts_take_log());
    assert_int_equal(connect_one(&new), REDBUCKET_ERROR_UNAVAILABLE);
    assert_null(new.connection);
    assert_logged(MASTER " 1000 a:26379 500 " MASTER " 500 b:26379 1000 ");
    fake_server(MASTER, "master")->open = REDBUCKET_ERROR_TLS;
    assert_int_equal(connect_one(&new), REDBUCKET_ERROR_TLS);
    rbk_connection_close(old.connection);
    end();
}

/* ---- Listening ------------------------------------------------------------------------------ */

/* Looks a moment later, and expects that the log then says so. */
static void assert_looked(double later, const char *log)
{
    free(fake_hosts_take_log());
    fake_hosts.now = fake_hosts.now + later;
    rbk_deadline_start(&soon, 1.0);
    rbk_master_look(master, &soon);
    assert_logged(log);
}

static void a_sentinel_that_speaks_is_asked(void **state)
{
    struct rbk_peer peer, other;

    (void)state;
    begin();
    assert_connected(&peer, "a:26379 500 " MASTER " 500 ");
    assert_looked(0.06, "");
    fake_hosts.hosts[0].spoken = true;
    assert_looked(0.01, ""); /* not yet */
    assert_looked(0.05, "a:26379 125 ");
    assert_true(rbk_master_is_current(master, &peer)); /* it spoke of another service */
    fake_hosts.hosts[0].spoken = false;
    assert_looked(10.0, "");
    fake_server(OTHER, "master"); /* which takes requests, as the old one does */
    fake_sentinel("a:26379", NAMES_OTHER)->spoken = true;
    assert_looked(10.0, "a:26379 125 ");
    assert_false(rbk_master_is_current(master, &peer));
    assert_looked(10.0, ""); /* the next connection asks anyway */
    fake_hosts.hosts[0].spoken = false;
    assert_connected(&other, "a:26379 500 " OTHER " 500 ");
    assert_looked(10.0, "");
    rbk_connection_close(peer.connection);
    rbk_connection_close(other.connection);
    end();
}

static void a_sentinel_that_ends_is_replaced(void **state)
{
    struct rbk_peer peer;

    (void)state;
    begin();
    assert_connected(&peer, "a:26379 500 " MASTER " 500 ");
    fake_sentinel("a:26379", NULL)->open = REDBUCKET_ERROR_UNAVAILABLE;
    assert_looked(1.0, "a:26379 125 b:26379 250 ");
    assert_looked(1.0, "");
    assert_true(rbk_master_is_current(master, &peer));
    assert_told(MASTER, "b:26379");
    fake_sentinel("b:26379", NAMES_OTHER)->spoken = true;
    assert_looked(1.0, "b:26379 125 ");
    assert_false(rbk_master_is_current(master, &peer));
    rbk_connection_close(peer.connection);
    end();
}

/* Who was found goes on being good enough; and nobody waits for silent ones all the time. */
static void nobody_answering_changes_nothing(void **state)
{
    struct rbk_peer peer;

    (void)state;
    begin();
    assert_connected(&peer, "a:26379 500 " MASTER " 500 ");
    fake_sentinel("a:26379", NULL)->open = REDBUCKET_ERROR_TIMEOUT;
    fake_sentinel("b:26379", NULL)->open = REDBUCKET_ERROR_TIMEOUT;
    double began = fake_hosts.now + 1.0;

    assert_looked(1.0, "a:26379 125 b:26379 125 ");
    assert_true(fake_hosts.now - began < 0.2501);
    assert_true(rbk_master_is_current(master, &peer));
    assert_looked(4.9, "");
    assert_looked(0.2, "a:26379 125 b:26379 125 ");
    assert_told(MASTER, "a:26379");
    rbk_connection_close(peer.connection);
    end();
}

static void one_that_says_nothing_unasked_is_asked_now_and_then(void **state)
{
    struct rbk_peer peer;

    (void)state;
    begin();
    fake_hosts.hosts[0].shy = true;
    assert_connected(&peer, "a:26379 500 " MASTER " 500 ");
    assert_looked(4.9, "");
    assert_looked(0.2, "a:26379 125 ");
    assert_looked(4.9, "");
    fake_hosts.hosts[0].named = NAMES_OTHER;
    assert_true(rbk_master_is_current(master, &peer));
    assert_looked(0.2, "a:26379 125 ");
    assert_false(rbk_master_is_current(master, &peer));
    rbk_connection_close(peer.connection);
    end();
}

/* ---- Several at once ------------------------------------------------------------------------ */

enum { THREADS = 4 };

static struct rbk_peer crowd[THREADS];
static enum redbucket_status outcomes[THREADS];

static void *connect_in_thread(void *data)
{
    size_t i = (size_t)(uintptr_t)data;

    outcomes[i] = connect_one(&crowd[i]);
    return NULL;
}

/* Whoever asks may not have got so far when the others wait already. */
static char *await_log(void)
{
    char *said = fake_hosts_take_log();

    while (said[0] == '\0') {
        free(said);
        sched_yield();
        said = fake_hosts_take_log();
    }
    return said;
}

/* All want to know at the same time: one asks, and the others wait. */
static void want_at_once(void)
{
    pthread_t threads[THREADS];

    fake_hosts.hosts[0].held = 1;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, connect_in_thread, (void *)(uintptr_t)i),
                         0);
    while (atomic_load(&fake_hosts.waiting) < THREADS - 1)
        sched_yield();
    char *said = await_log();

    assert_string_equal(said, "a:26379 500 ");
    free(said);
    fake_hosts.hosts[0].held = 0;
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void one_asks_for_all(void **state)
{
    (void)state;
    begin();
    want_at_once();
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(outcomes[i], REDBUCKET_OK);
        assert_true(rbk_master_is_current(master, &crowd[i]));
        rbk_connection_close(crowd[i].connection);
    }
    assert_int_equal(fake_hosts.opened, THREADS + 1);
    end();
}

static void one_fails_for_all(void **state)
{
    (void)state;
    begin();
    fake_sentinel("a:26379", NULL)->open = REDBUCKET_ERROR_UNAVAILABLE;
    fake_sentinel("b:26379", NULL)->open = REDBUCKET_ERROR_UNAVAILABLE;
    want_at_once();
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(outcomes[i], REDBUCKET_ERROR_UNAVAILABLE);
    assert_logged("b:26379 1000 ");
    end();
}

/* ---- Fork ----------------------------------------------------------------------------------- */

static void ask_in_child(void *data)
{
    struct rbk_peer peer;

    (void)data;
    free(fake_hosts_take_log());
    fake_hosts.hosts[0].held = 0;
    child_check(connect_one(&peer) == REDBUCKET_OK);
    char *said = fake_hosts_take_log();

    child_check(strcmp(said, "a:26379 500 " MASTER " 500 ") == 0);
    free(said);
    rbk_connection_close(peer.connection);
    rbk_master_destroy(master);
}

static void a_child_asks_for_itself(void **state)
{
    pthread_t thread;
    struct rbk_peer peer;

    (void)state;
    begin();
    assert_connected(&peer, "a:26379 500 " MASTER " 500 ");
    test_join(test_fork(ask_in_child, NULL));
    rbk_master_lost(master, &peer);
    free(fake_hosts_take_log());
    fake_hosts.hosts[0].held = 1; /* another thread is asking at the moment of the fork */
    assert_int_equal(pthread_create(&thread, NULL, connect_in_thread, NULL), 0);
    free(await_log());
    test_join(test_fork(ask_in_child, NULL));
    fake_hosts.hosts[0].held = 0;
    pthread_join(thread, NULL);
    assert_int_equal(outcomes[0], REDBUCKET_OK);
    rbk_connection_close(crowd[0].connection);
    rbk_connection_close(peer.connection);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_known_is_not_asked_again),
        cmocka_unit_test(what_was_lost_is_asked_for_again),
        cmocka_unit_test(a_place_found_lost_is_replaced_at_once),
        cmocka_unit_test(failing_once_is_enough),
        cmocka_unit_test(a_sentinel_that_speaks_is_asked),
        cmocka_unit_test(a_sentinel_that_ends_is_replaced),
        cmocka_unit_test(nobody_answering_changes_nothing),
        cmocka_unit_test(one_that_says_nothing_unasked_is_asked_now_and_then),
        cmocka_unit_test(one_asks_for_all),
        cmocka_unit_test(one_fails_for_all),
        cmocka_unit_test(a_child_asks_for_itself),
    };

    return cmocka_run_group_tests_name("master", tests, NULL, NULL);
}
