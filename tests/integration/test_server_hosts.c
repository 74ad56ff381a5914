/* SPDX-License-Identifier: MIT */
/*
 * What a host does to a call that waits: a thread is cancelled in it, or a signal comes after which
 * the host waits no longer. Neither may cost anybody else anything: not the connection, not the
 * place in a call, not the good name of the server.
 */
#include "host.h"
#include "processes.h"
#include "redbucket/async.h"
#include "redbucket/interrupt.h"
#include "server.h"
#include "test.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#define RIDERS 3
#define QUERY  "timeout=4s&connections=1"
#define LEFT_S 0.2 /* until a call ends that nobody waits for */
#define BUSY_S 2.0 /* and on a machine that is busy */
#define LOOKS  400

static struct {
    struct test_server *server;
    struct test_host host;
} all;

static void stop_server(void)
{
    assert_int_equal(kill(all.server->pid, SIGSTOP), 0);
}

static void let_server_go_on(void)
{
    assert_int_equal(kill(all.server->pid, SIGCONT), 0);
}

static void begin(void)
{
    char url[512];

    test_server_url(all.server, TEST_BY_PORT, QUERY, url, sizeof url);
    test_host_open(&all.host, url);
    test_host_limit(&all.host, "a", 1.0, 1e6);
    assert_int_equal(test_host_ask(&all.host, "k", NULL), REDBUCKET_OK);
}

static void end(void)
{
    test_host_close(&all.host);
}

/* ---- Cancelled threads ---------------------------------------------------------------------- */

enum deed { ASK, READ, CHECK, RIDE };

struct thread {
    pthread_t thread;
    enum deed deed;
    enum redbucket_status status;
    atomic_bool began;
    atomic_bool ended;
};

static enum redbucket_status act(enum deed deed)
{
    struct redbucket_health health = {.size = sizeof health};
    const struct redbucket_key key = {.limit = "a", .key = "k"};
    struct redbucket_state state;

    if (deed == READ)
        return redbucket_read(all.host.limiter, &key, &state);
    if (deed == CHECK)
        return redbucket_store_check(all.host.store, &health);
    return test_host_ask(&all.host, "k", NULL);
}

/* Signals are for the thread that is tested. */
static void *run(void *data)
{
    struct thread *thread = data;
    sigset_t signals;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGALRM);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    atomic_store(&thread->began, true);
    thread->status = act(thread->deed);
    atomic_store(&thread->ended, true);
    if (thread->deed != RIDE)
        for (;;)
            test_pause(1.0); /* where it is cancelled at last */
    return NULL;
}

static void start(struct thread *thread, enum deed deed)
{
    *thread = (struct thread){.deed = deed};
    assert_int_equal(pthread_create(&thread->thread, NULL, run, thread), 0);
    while (!atomic_load(&thread->began))
        test_pause(0.001);
    test_pause(0.05); /* in the middle of its call, with all likelihood */
}

static void cancel(struct thread *thread)
{
    void *result = NULL;

    assert_int_equal(pthread_cancel(thread->thread), 0);
    test_pause(0.05);
    let_server_go_on();
    assert_int_equal(pthread_join(thread->thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_true(atomic_load(&thread->ended));
    assert_int_equal(thread->status, REDBUCKET_OK);
}

static void a_cancelled_thread_ends_its_call_first(void **state)
{
    static const enum deed deeds[] = {ASK, READ, CHECK};

    (void)state;
    begin();
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
        struct thread thread;

        stop_server();
        start(&thread, deeds[i]);
        cancel(&thread);
        /* There is one connection, and it is free again. */
        assert_int_equal(act(READ), REDBUCKET_OK);
        assert_int_equal(act(ASK), REDBUCKET_OK);
    }
    end();
}

/* The others' requests wait for the same connection, or are in the same call. */
static void nobody_else_is_left_waiting(void **state)
{
    struct thread leader, riders[RIDERS];

    (void)state;
    begin();
    stop_server();
    start(&leader, ASK);
    for (int i = 0; i < RIDERS; i++)
        start(&riders[i], RIDE);
    cancel(&leader);
    for (int i = 0; i < RIDERS; i++) {
        assert_int_equal(pthread_join(riders[i].thread, NULL), 0);
        assert_int_equal(riders[i].status, REDBUCKET_OK);
    }
    end();
}

static void count(void *data, const struct redbucket_request *decided)
{
    *(int *)data += decided->status == REDBUCKET_OK;
}

static void *turn_a_loop(void *data)
{
    const struct redbucket_key key = {.limit = "a", .key = "k"};
    const struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1};
    struct redbucket_async *async = NULL;
    int *answered = data;
    int before;

    if (redbucket_async_create(all.host.limiter, &async, NULL) != REDBUCKET_OK ||
        redbucket_async_request(async, &request, count, answered, NULL) != REDBUCKET_OK)
        abort();
    (void)pthread_cancel(pthread_self());
    for (int i = 0; i < LOOKS && *answered == 0; i++) {
        redbucket_async_dispatch(async);
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
        test_pause(0.01);
        (void)pthread_setcancelstate(before, NULL);
    }
    redbucket_async_destroy(async);
    for (;;)
        test_pause(1.0);
}

static void a_loop_is_turned_to_its_end(void **state)
{
    pthread_t thread;
    void *result = NULL;
    int answered = 0;

    (void)state;
    begin();
    assert_int_equal(pthread_create(&thread, NULL, turn_a_loop, &answered), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(answered, 1);
    end();
}

/* ---- Signals -------------------------------------------------------------------------------- */

static void take_signal(int number)
{
    (void)number;
}

static bool has_had_enough(void *data)
{
    ++*(int *)data;
    return true;
}

static void send_signal_soon(void)
{
    const struct sigaction action = {.sa_handler = take_signal};
    const struct itimerval once = {.it_value.tv_usec = 100000};

    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &once, NULL), 0);
}

static void check_left(enum deed deed)
{
    double began = test_now();
    int asked = 0;

    send_signal_soon();
    redbucket_thread_interrupt(has_had_enough, &asked);
    assert_int_not_equal(act(deed), REDBUCKET_OK);
    redbucket_thread_interrupt(NULL, NULL);
    assert_int_equal(asked, 1);
    assert_true(test_now() - began < 0.1 + LEFT_S + BUSY_S * TEST_PATIENCE);
}

/* Who waits no longer says nothing of the server, and what he said is forgotten. */
static void who_leaves_blames_nobody(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 3; i++) {
        stop_server();
        check_left(i == 1 ? READ : ASK);
        let_server_go_on();
        assert_int_equal(act(i == 2 ? READ : ASK), REDBUCKET_OK);
    }
    assert_int_equal(atomic_load(&all.host.down), 0);
    end();
}

/* The one connection is another thread's. */
static void who_waits_for_a_connection_may_leave(void **state)
{
    struct thread other;

    (void)state;
    begin();
    stop_server();
    start(&other, ASK);
    check_left(READ);
    cancel(&other);
    assert_int_equal(act(READ), REDBUCKET_OK);
    end();
}

static int set_up(void **state)
{
    (void)state;
    all.server = test_server_start(&(struct test_server_options){.kind = TEST_REDIS});
    return all.server == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_server_stop(all.server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancelled_thread_ends_its_call_first),
        cmocka_unit_test(nobody_else_is_left_waiting),
        cmocka_unit_test(a_loop_is_turned_to_its_end),
        cmocka_unit_test(who_leaves_blames_nobody),
        cmocka_unit_test(who_waits_for_a_connection_may_leave),
    };

    return cmocka_run_group_tests_name("server_hosts", tests, set_up, tear_down);
}
