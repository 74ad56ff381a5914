/* SPDX-License-Identifier: MIT */
/*
 * Forks beside and in the middle of requests on an event loop: the child leaves everything alone,
 * and the parent goes on.
 */
#include "slow_asker.h"
#include "test.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct asked asked[8];
static int detached;

static int begin(void **state)
{
    (void)state;
    slow_asker_open(2);
    detached = 0;
    memset(asked, 0, sizeof asked);
    return 0;
}

static void detach(void *data)
{
    assert_ptr_equal(data, &detached);
    detached++;
}

#define CHECK(fact)                    \
    do {                               \
        if (!(fact))                   \
            _exit(__LINE__ % 200 + 1); \
    } while (0)

/* Not with the test's own assertions, which belong to the parent. */
static _Noreturn void be_child(void)
{
    struct redbucket_request request = {.cost = 1.0};
    int descriptor = redbucket_async_descriptor(asker);

    CHECK(redbucket_async_outstanding(asker) == 0);
    CHECK(redbucket_async_request(asker, &request, NULL, NULL, NULL) ==
          REDBUCKET_ERROR_UNSUPPORTED);
    CHECK(!redbucket_async_cancel(asker, asked[0].id));
    redbucket_async_dispatch(asker);
    CHECK(asker_called == 0);
    redbucket_async_destroy(asker);
    CHECK(asker_called == 0 && detached == 0);
    CHECK(fcntl(descriptor, F_GETFD) < 0);
    _exit(0);
}

static void check_child(pid_t child)
{
    int status = 0;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_a_child_leaves_it_alone(void **state)
{
    (void)state;
    assert_true(redbucket_async_attach(asker, detach, &detached));
    slow_asker_fill(asked, 2);
    pid_t child = fork();

    if (child == 0)
        be_child();
    check_child(child);
    slow_end(0);
    assert_true(asker_readable());
    slow_asker_dispatch();
    slow_end(1);
    slow_end(2);
    assert_true(asker_readable());
    slow_asker_dispatch();
    assert_int_equal(asker_count(asked, 4, REDBUCKET_OK), 4);
}

static pid_t forked;

static void fork_inside(struct asked *one)
{
    (void)one;
    forked = fork();
    if (forked == 0)
        redbucket_async_destroy(asker);
}

/* The child returns into the turn that it was forked in. */
static void test_a_child_of_a_callback_may_destroy_it(void **state)
{
    (void)state;
    asker_ask_all(asked, 3, "k");
    asked[0].then = fork_inside;
    slow_asker_dispatch();
    asker_ask(&asked[3], "second", 1.0);
    slow_asker_dispatch();
    slow_end(0);
    forked = -1;
    slow_asker_dispatch();
    if (forked == 0)
        _exit(asker_called == 1 ? 0 : 1);
    check_child(forked);
    assert_int_equal(asker_called, 3);
}

static void fork_when_told(void *data, enum redbucket_event event, const char *message)
{
    (void)data;
    (void)event;
    (void)message;
    slow.tells = false;
    forked = fork();
}

/* Nor does it go on with what is under way when it returns from a listener. */
static void test_a_child_of_a_listener_leaves_it_alone(void **state)
{
    static struct asked many[64];

    (void)state;
    memset(many, 0, sizeof many);
    redbucket_store_listen(&slow.store, fork_when_told, NULL);
    slow.tells = true;
    asker_ask_all(many, 64, "k"); /* enough for two calls */
    slow_asker_dispatch();
    if (forked == 0) {
        bool alone = slow.begun == 1 && slow.calls[0].len == 32 && asker_called == 0;

        redbucket_async_destroy(asker);
        _exit(alone && asker_called == 0 ? 0 : 1);
    }
    check_child(forked);
    assert_int_equal(slow.begun, 2);
    slow_end(0);
    slow_end(1);
    assert_true(asker_readable());
    slow_asker_dispatch();
    assert_int_equal(asker_count(many, 64, REDBUCKET_OK), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_child_leaves_it_alone, begin, slow_asker_close),
        cmocka_unit_test_setup_teardown(test_a_child_of_a_callback_may_destroy_it, begin,
                                        slow_asker_close),
        cmocka_unit_test_setup_teardown(test_a_child_of_a_listener_leaves_it_alone, begin,
                                        slow_asker_close),
    };

    return cmocka_run_group_tests_name("async_fork", tests, NULL, NULL);
}
