/* SPDX-License-Identifier: MIT */
/*
 * Opening connections: to nobody, to somebody slow, to the second of two addresses, and without
 * descriptors or memory.
 */
#include "caller.h"
#include "processes.h"
#include "redis/dial.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void hold(int fd, void *data)
{
    (void)data;
    test_actor_drain(fd);
}

static void assert_unopened(const char *url, enum redbucket_status status, const char *message)
{
    struct test_caller caller;

    test_caller_init(&caller, url);
    assert_int_equal(test_caller_open(&caller, LONG_S), status);
    assert_null(caller.connection);
    assert_int_equal(caller.error.status, status);
    assert_string_equal(caller.error.message, message);
    test_caller_fini(&caller);
}

/* A port that is taken, and on which nobody listens. */
static int take_port(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void nobody_listens(void **state)
{
    char url[64], message[128];
    int port, fd = take_port(&port);

    (void)state;
    (void)snprintf(url, sizeof url, "redis://u:secret@127.0.0.1:%d", port);
    (void)snprintf(message, sizeof message, "127.0.0.1:%d: Connection refused", port);
    assert_unopened(url, REDBUCKET_ERROR_UNAVAILABLE, message);
    (void)close(fd);
    assert_unopened("unix://u:secret@/nowhere/socket", REDBUCKET_ERROR_UNAVAILABLE,
                    "/nowhere/socket: No such file or directory");
    assert_unopened("unix:///dev/null", REDBUCKET_ERROR_UNAVAILABLE,
                    "/dev/null: Connection refused");
}

/* There may be no way there at all, or somebody who says so; whichever comes, it comes in time. */
static void nobody_answers(void **state)
{
    struct test_caller caller;
    double begin = test_now();

    (void)state;
    test_caller_init(&caller, "redis://192.0.2.1");
    enum redbucket_status status = test_caller_open(&caller, SHORT_S);

    assert_true(status == REDBUCKET_ERROR_TIMEOUT || status == REDBUCKET_ERROR_UNAVAILABLE);
    if (status == REDBUCKET_ERROR_TIMEOUT)
        test_took(begin, SHORT_S);
    test_caller_fini(&caller);
}

static void there_is_no_such_name(void **state)
{
    struct test_caller caller;
    double begin = test_now();

    (void)state;
    test_caller_init(&caller, "redis://:secret@nobody.invalid:1");
    enum redbucket_status status = test_caller_open(&caller, SHORT_S);

    assert_true(status == REDBUCKET_ERROR_TIMEOUT || status == REDBUCKET_ERROR_UNAVAILABLE);
    assert_true(test_now() - begin < SHORT_S + 5.0 * TEST_PATIENCE);
    assert_int_equal(strncmp(caller.error.message, "nobody.invalid:1: ", 18), 0);
    test_caller_fini(&caller); /* with a look-up under way, perhaps */
}

/* Connects until the queue of a listener that never accepts is full. */
static size_t fill_queue(const struct rbk_address *address, int *fds, size_t max)
{
    size_t len = 0;

    while (len < max) {
        fds[len] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        assert_true(fds[len] >= 0);
        if (connect(fds[len++], (const struct sockaddr *)&address->bytes, address->len) != 0)
            break;
    }
    assert_int_equal(errno, EAGAIN);
    return len;
}

static void *accept_all(void *data)
{
    const struct test_actor *peer = data;
    int fd;

    while ((fd = accept(peer->listener, NULL, NULL)) >= 0) {
        test_actor_drain(fd);
        (void)close(fd);
    }
    return NULL;
}

static void a_full_queue_is_waited_for_until_the_deadline(void **state)
{
    int fds[64];
    struct rbk_address address;
    struct test_actor peer;
    struct test_caller caller;
    pthread_t thread;
    size_t len;
    double begin;

    (void)state;
    test_actor_start_unix(&peer, NULL, NULL);
    assert_true(rbk_address_of_path(peer.path, &address));
    len = fill_queue(&address, fds, sizeof fds / sizeof fds[0]);
    test_caller_of(&caller, &peer);
    begin = test_now();
    assert_int_equal(test_caller_open(&caller, SHORT_S), REDBUCKET_ERROR_TIMEOUT);
    test_took(begin, SHORT_S);
    assert_non_null(strstr(caller.error.message, ": no connection in time"));

    for (size_t i = 0; i < len; i++)
        (void)close(fds[i]);
    assert_int_equal(pthread_create(&thread, NULL, accept_all, &peer), 0);
    assert_int_equal(test_caller_open(&caller, LONG_S), REDBUCKET_OK);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static struct rbk_address address_of_port(int port)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)port)};
    struct rbk_address address = {.len = sizeof in};

    memcpy(&address.bytes, &in, sizeof in);
    return address;
}

static void every_address_is_tried(void **state)
{
    struct rbk_addresses addresses = {.len = 3};
    struct rbk_stream stream = {.fd = -1};
    struct rbk_deadline deadline;
    struct test_actor silent, peer;
    int fds[64];
    int port, fd = take_port(&port);
    double begin = test_now();

    (void)state;
    test_actor_start_unix(&silent, NULL, NULL);
    test_actor_start(&peer, hold, NULL);
    addresses.at[0] = address_of_port(port); /* refuses */
    assert_true(rbk_address_of_path(silent.path, &addresses.at[1]));
    addresses.at[2] = address_of_port(peer.port);
    size_t len = fill_queue(&addresses.at[1], fds, sizeof fds / sizeof fds[0]); /* says nothing */

    rbk_deadline_start(&deadline, 4.0);
    assert_int_equal(rbk_dial(&addresses, &deadline, &stream), REDBUCKET_OK);
    assert_true(test_now() - begin > 1.9); /* the silent one had its share */
    assert_true((fcntl(stream.fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_true((fcntl(stream.fd, F_GETFL) & O_NONBLOCK) != 0);
    rbk_stream_close(&stream);

    addresses.len = 2;
    rbk_deadline_start(&deadline, SHORT_S);
    assert_int_equal(rbk_dial(&addresses, &deadline, &stream), REDBUCKET_ERROR_TIMEOUT);
    assert_int_equal(stream.fd, -1);
    addresses.len = 1;
    rbk_deadline_start(&deadline, LONG_S);
    assert_int_equal(rbk_dial(&addresses, &deadline, &stream), REDBUCKET_ERROR_UNAVAILABLE);
    addresses.len = 0;
    assert_int_equal(rbk_dial(&addresses, &deadline, &stream), REDBUCKET_ERROR_UNAVAILABLE);
    while (len > 0)
        (void)close(fds[--len]);
    (void)close(fd);
    test_actor_stop(&silent);
    test_actor_stop(&peer);
}

static void a_name_stands_for_its_addresses(void **state)
{
    struct test_actor peer;
    struct test_caller caller;
    char url[64];

    (void)state;
    test_actor_start(&peer, hold, NULL);
    /* Where it stands for ::1 first, nobody listens there. */
    (void)snprintf(url, sizeof url, "redis://localhost:%d", peer.port);
    test_caller_init(&caller, url);
    assert_int_equal(test_caller_open(&caller, LONG_S), REDBUCKET_OK);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
}

static void without_a_descriptor_there_is_an_error(void **state)
{
    struct rlimit before, none;
    struct test_actor peer;
    struct test_caller caller;
    int spare;

    (void)state;
    test_actor_start(&peer, hold, NULL);
    test_caller_of(&caller, &peer);
    spare = dup(peer.listener);
    assert_true(spare >= 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    (void)close(spare);
    none.rlim_cur = (rlim_t)spare;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    enum redbucket_status status = test_caller_open(&caller, LONG_S);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(status, REDBUCKET_ERROR_SYSTEM);
    assert_non_null(strstr(caller.error.message, ": Too many open files"));
    assert_int_equal(test_caller_open(&caller, LONG_S), REDBUCKET_OK);
    test_caller_fini(&caller);
    test_actor_stop(&peer);
}

static int open_descriptors(void)
{
    int len = 0;

    for (int fd = 0; fd < 256; fd++)
        len += fcntl(fd, F_GETFD) >= 0;
    return len;
}

static void nothing_is_left_open(void **state)
{
    struct test_actor peer;
    struct test_caller caller;
    int before;

    (void)state;
    test_actor_start_unix(&peer, hold, NULL);
    test_caller_of(&caller, &peer);
    before = open_descriptors();
    for (int i = 0; i < 10; i++) {
        assert_int_equal(test_caller_open(&caller, LONG_S), REDBUCKET_OK);
        rbk_connection_close(caller.connection);
        caller.connection = NULL;
    }
    test_caller_fini(&caller);
    test_actor_stop(&peer);
    assert_true(open_descriptors() <= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(nobody_answers),
        cmocka_unit_test(there_is_no_such_name),
        cmocka_unit_test(a_full_queue_is_waited_for_until_the_deadline),
        cmocka_unit_test(every_address_is_tried),
        cmocka_unit_test(a_name_stands_for_its_addresses),
        cmocka_unit_test(without_a_descriptor_there_is_an_error),
        cmocka_unit_test(nothing_is_left_open),
    };

    return cmocka_run_group_tests_name("connection open", tests, NULL, NULL);
}
