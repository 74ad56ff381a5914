/* SPDX-License-Identifier: MIT */
/*
 * Fibers: going in and out of functions, what they wait for, and what becomes of those that nobody
 * waits for any more.
 */
#include "bell.h"
#include "deadline.h"
#include "fiber.h"
#include "processes.h"
#include "redis/dial.h"
#include "test.h"
#include "wait.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char steps[64];

static void note(const char *step)
{
    strcat(steps, step);
}

static int begin(void **state)
{
    (void)state;
    steps[0] = '\0';
    return 0;
}

/* ---- Going in and out -------------------------------------------------------------------------
 */

static void count(void *data)
{
    int *counted = data;
    double before = *counted;
    double part = 1.0 / (3.0 + before);

    for (int i = 0; i < 3; i++) {
        rbk_wait_pause(1.0);
        (*counted)++;
        /* What it had in hand when it was left is as it was. */
        assert_same(part * (3.0 + before), 1.0);
    }
}

static void test_functions_go_on_where_they_were_left(void **state)
{
    struct rbk_fiber *a = rbk_fiber_create();
    struct rbk_fiber *b = rbk_fiber_create();
    int in_a = 0, in_b = 0;

    (void)state;
    assert_null(rbk_fiber_current());
    rbk_fiber_begin(a, count, &in_a);
    rbk_fiber_begin(b, count, &in_b);
    for (int i = 1; i <= 3; i++) {
        assert_true(rbk_fiber_busy(a) && rbk_fiber_busy(b));
        rbk_fiber_resume(a);
        assert_int_equal(in_a, i);
        assert_int_equal(in_b, i - 1);
        rbk_fiber_resume(b);
        assert_int_equal(in_b, i);
    }
    assert_false(rbk_fiber_busy(a) || rbk_fiber_busy(b));
    rbk_fiber_begin(a, count, &in_b);
    assert_true(rbk_fiber_busy(a));
    rbk_fiber_hurry(a);
    while (rbk_fiber_busy(a))
        rbk_fiber_resume(a);
    rbk_fiber_destroy(a);
    rbk_fiber_destroy(b);
    rbk_fiber_destroy(NULL);
}

/* ---- From thread to thread --------------------------------------------------------------------
 */

struct begun {
    struct rbk_fiber *fiber;
    rbk_fiber_function *function;
    void *data;
};

static void *begin_there(void *data)
{
    struct begun *begun = data;

    rbk_fiber_begin(begun->fiber, begun->function, begun->data);
    return NULL;
}

/* Begins one in a thread that ends. */
static void begin_elsewhere(struct begun *begun)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, begin_there, begun), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(rbk_fiber_busy(begun->fiber));
}

static void test_another_thread_goes_on_with_it(void **state)
{
    int counted = 0;
    struct begun begun = {rbk_fiber_create(), count, &counted};

    (void)state;
    begin_elsewhere(&begun);
    while (rbk_fiber_busy(begun.fiber))
        rbk_fiber_resume(begun.fiber);
    assert_int_equal(counted, 3);
    assert_null(rbk_fiber_current());
    rbk_fiber_destroy(begun.fiber);
}

/* A Unix socket whose queue is full, and then is gone. */
struct crowd {
    struct rbk_addresses addresses;
    struct rbk_stream stream;
    enum redbucket_status status;
};

static void dial(void *data)
{
    struct crowd *crowd = data;
    struct rbk_deadline deadline;

    rbk_deadline_start(&deadline, 60.0);
    crowd->status = rbk_dial(&crowd->addresses, &deadline, &crowd->stream);
}

static int connect_to(const struct rbk_address *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

    if (connect(fd, (const struct sockaddr *)&address->bytes, address->len) == 0)
        return fd;
    assert_int_equal(errno, EAGAIN);
    close(fd);
    return -1;
}

/* Why a call failed is read where it has failed, and not where one had failed before. */
static void test_errors_are_those_of_the_thread_that_goes_on(void **state)
{
    struct crowd crowd = {.addresses.len = 1, .stream.fd = -1};
    struct rbk_address *address = &crowd.addresses.at[0];
    struct begun begun = {rbk_fiber_create(), dial, &crowd};
    int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    int fds[8], len = 0;

    (void)state;
    address->bytes.ss_family = AF_UNIX;
    address->len = sizeof address->bytes.ss_family;
    assert_int_equal(bind(listening, (struct sockaddr *)&address->bytes, address->len), 0);
    address->len = sizeof address->bytes;
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address->bytes, &address->len), 0);
    assert_int_equal(listen(listening, 0), 0);
    while (len < 8 && (fds[len] = connect_to(address)) >= 0)
        len++;
    assert_in_range(len, 1, 7);
    begin_elsewhere(&begun);
    close(listening);
    rbk_fiber_resume(begun.fiber);
    assert_false(rbk_fiber_busy(begun.fiber));
    assert_int_equal(crowd.status, REDBUCKET_ERROR_UNAVAILABLE);
    assert_string_equal(crowd.stream.failure, strerror(ECONNREFUSED));
    rbk_fiber_destroy(begun.fiber);
    while (len > 0)
        close(fds[--len]);
}

/* ---- Stacks -----------------------------------------------------------------------------------
 */

static unsigned fill(unsigned depth)
{
    volatile unsigned char frame[1024];

    memset((unsigned char *)frame, (int)depth, sizeof frame);
    return depth == 0 ? frame[7] : fill(depth - 1) + frame[9];
}

static void go_deep(void *data)
{
    *(unsigned *)data = fill(100);
}

static void test_there_is_stack_enough(void **state)
{
    struct rbk_fiber *fiber = rbk_fiber_create();
    unsigned sum = 0;

    (void)state;
    rbk_fiber_begin(fiber, go_deep, &sum);
    assert_false(rbk_fiber_busy(fiber));
    assert_int_equal(sum, 5050);
    rbk_fiber_destroy(fiber);
}

static void go_too_deep(void *data)
{
    *(unsigned *)data = fill(1u << 20);
}

/* Nobody else's memory is written to. */
static void test_whoever_runs_out_of_stack_ends(void **state)
{
    int status = 0;
    pid_t child;

    (void)state;
    if (TEST_SANITIZED)
        skip(); /* a sanitizer takes its end for a fault of the test's */
    child = fork();
    if (child == 0) {
        struct rbk_fiber *fiber = rbk_fiber_create();
        unsigned sum;

        signal(SIGSEGV, SIG_DFL);
        rbk_fiber_begin(fiber, go_too_deep, &sum);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

/* ---- Waiting ----------------------------------------------------------------------------------
 */

struct ends {
    int read;
    int write;
};

static void read_one(void *data)
{
    struct ends *ends = data;
    struct pollfd polled = {.fd = ends->read, .events = POLLIN};
    char byte;

    while (rbk_wait_poll(&polled, 1, 5000) == 0)
        note("nothing ");
    assert_int_equal(polled.revents, POLLIN);
    assert_int_equal(read(ends->read, &byte, 1), 1);
    note("read ");
}

static void test_a_descriptor_is_said_to_whoever_runs_it(void **state)
{
    struct rbk_fiber *fiber = rbk_fiber_create();
    struct timespec now;
    struct ends ends;

    (void)state;
    assert_int_equal(pipe((int *)&ends), 0);
    clock_gettime(CLOCK_MONOTONIC, &now);
    rbk_fiber_begin(fiber, read_one, &ends);
    const struct rbk_wait *wait = rbk_fiber_wait(fiber);

    assert_null(wait->call);
    assert_int_equal(wait->polled_len, 1);
    assert_int_equal(wait->polled->fd, ends.read);
    assert_int_equal(wait->polled->events, POLLIN);
    assert_in_range(wait->until.tv_sec, now.tv_sec + 5, now.tv_sec + 60);
    rbk_fiber_resume(fiber);
    assert_string_equal(steps, "nothing ");
    assert_true(rbk_fiber_busy(fiber));
    assert_int_equal(write(ends.write, "x", 1), 1);
    rbk_fiber_resume(fiber);
    assert_false(rbk_fiber_busy(fiber));
    assert_string_equal(steps, "nothing read ");
    rbk_fiber_destroy(fiber);
    close(ends.read);
    close(ends.write);
}

static void look_at_once(void *data)
{
    struct pollfd polled = {.fd = *(int *)data, .events = POLLIN};

    assert_int_equal(rbk_wait_poll(&polled, 1, 0), 0);
}

static void test_what_lasts_no_time_is_no_wait(void **state)
{
    struct rbk_fiber *fiber = rbk_fiber_create();
    struct ends ends;

    (void)state;
    assert_int_equal(pipe((int *)&ends), 0);
    rbk_fiber_begin(fiber, look_at_once, &ends.read);
    assert_false(rbk_fiber_busy(fiber));
    rbk_fiber_destroy(fiber);
    close(ends.read);
    close(ends.write);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct rbk_bell bell;
static bool holds;

static void await(void *data)
{
    struct rbk_deadline deadline;

    rbk_deadline_start(&deadline, 60.0);
    pthread_mutex_lock(&mutex);
    while (!holds) {
        note("look ");
        assert_int_equal(rbk_bell_await(&bell, &mutex, &deadline), data == NULL);
        if (data != NULL)
            break;
    }
    pthread_mutex_unlock(&mutex);
}

static void test_a_lock_is_let_go_while_it_waits(void **state)
{
    struct rbk_fiber *fiber = rbk_fiber_create();

    (void)state;
    holds = false;
    rbk_fiber_begin(fiber, await, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_mutex_trylock(&mutex), 0);
        holds = i == 1;
        pthread_mutex_unlock(&mutex);
        rbk_fiber_resume(fiber);
    }
    assert_false(rbk_fiber_busy(fiber));
    assert_string_equal(steps, "look look ");
    rbk_fiber_destroy(fiber);
}

static void test_no_thread_is_taken_for_a_fiber(void **state)
{
    (void)state;
    assert_false(rbk_wait_on_fiber());
    assert_false(rbk_wait_is_over());
    pthread_mutex_lock(&mutex);
    assert_false(rbk_wait_unlocked(&mutex));
    pthread_mutex_unlock(&mutex);
}

/* ---- Called outside, and hurried --------------------------------------------------------------
 */

static void outside(void *data)
{
    note(*(bool *)data && !rbk_wait_on_fiber() ? "outside " : "inside ");
}

static void call(void *data)
{
    note(rbk_wait_on_fiber() ? "inside " : "outside ");
    rbk_wait_call(outside, data);
    note("back ");
}

static void test_what_is_the_hosts_is_called_on_its_stack(void **state)
{
    struct rbk_fiber *fiber = rbk_fiber_create();
    bool yes = true;

    (void)state;
    rbk_wait_call(outside, &yes);
    rbk_fiber_begin(fiber, call, &yes);
    const struct rbk_wait *wait = rbk_fiber_wait(fiber);

    assert_ptr_equal(wait->call, outside);
    wait->call(wait->data);
    rbk_fiber_resume(fiber);
    assert_false(rbk_fiber_busy(fiber));
    assert_string_equal(steps, "outside inside outside back ");
    rbk_fiber_destroy(fiber);
}

static void test_who_is_hurried_waits_for_nothing(void **state)
{
    struct rbk_fiber *fiber = rbk_fiber_create();

    (void)state;
    holds = false;
    rbk_fiber_begin(fiber, await, &holds);
    assert_true(rbk_fiber_busy(fiber));
    rbk_fiber_hurry(fiber);
    rbk_fiber_resume(fiber);
    assert_false(rbk_fiber_busy(fiber));
    assert_string_equal(steps, "look ");
    rbk_fiber_destroy(fiber);
}

static void wait_in_all_ways(void *data)
{
    struct pollfd polled = {.fd = *(int *)data, .events = POLLIN};
    struct rbk_deadline deadline;

    rbk_wait_pause(1.0);
    rbk_deadline_start(&deadline, 60.0);
    assert_true(rbk_wait_is_over());
    assert_same(rbk_deadline_left(&deadline), 0.0);
    assert_int_equal(rbk_deadline_left_ms(&deadline), 0);
    assert_int_equal(rbk_wait_poll(&polled, 1, 5000), 0);
    rbk_wait_pause(60.0);
    note("done ");
}

static void test_all_deadlines_have_passed_for_who_is_hurried(void **state)
{
    struct rbk_fiber *fiber = rbk_fiber_create();
    struct ends ends;

    (void)state;
    assert_int_equal(pipe((int *)&ends), 0);
    rbk_fiber_begin(fiber, wait_in_all_ways, &ends.read);
    rbk_fiber_hurry(fiber);
    rbk_fiber_resume(fiber);
    assert_false(rbk_fiber_busy(fiber));
    assert_string_equal(steps, "done ");
    rbk_fiber_destroy(fiber);
    close(ends.read);
    close(ends.write);
}

/* In a child, a fiber in the middle of something can be given up. */
static void test_a_busy_one_can_be_left_behind(void **state)
{
    struct rbk_fiber *fiber = rbk_fiber_create();
    int counted = 0;

    (void)state;
    rbk_fiber_begin(fiber, count, &counted);
    assert_true(rbk_fiber_busy(fiber));
    rbk_fiber_destroy(fiber);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_functions_go_on_where_they_were_left, begin),
        cmocka_unit_test_setup(test_another_thread_goes_on_with_it, begin),
        cmocka_unit_test_setup(test_errors_are_those_of_the_thread_that_goes_on, begin),
        cmocka_unit_test_setup(test_there_is_stack_enough, begin),
        cmocka_unit_test_setup(test_whoever_runs_out_of_stack_ends, begin),
        cmocka_unit_test_setup(test_a_descriptor_is_said_to_whoever_runs_it, begin),
        cmocka_unit_test_setup(test_what_lasts_no_time_is_no_wait, begin),
        cmocka_unit_test_setup(test_a_lock_is_let_go_while_it_waits, begin),
        cmocka_unit_test_setup(test_no_thread_is_taken_for_a_fiber, begin),
        cmocka_unit_test_setup(test_what_is_the_hosts_is_called_on_its_stack, begin),
        cmocka_unit_test_setup(test_who_is_hurried_waits_for_nothing, begin),
        cmocka_unit_test_setup(test_all_deadlines_have_passed_for_who_is_hurried, begin),
        cmocka_unit_test_setup(test_a_busy_one_can_be_left_behind, begin),
    };

    return cmocka_run_group_tests_name("fiber", tests, NULL, NULL);
}
