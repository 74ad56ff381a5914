/* SPDX-License-Identifier: MIT */
/*
 * A process that forks while another of its threads is in the middle of connecting, at each stage
 * where that may take long: the child has no copy of that descriptor once it has used the store,
 * and the thread notices nothing.
 */
#include "../unit/actor.h"
#include "host.h"
#include "processes.h"
#include "test.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILLERS 4

/* A place where connecting hangs, and somebody who does so. */
struct stage {
    struct test_actor peer; /* which accepts nobody */
    int fillers[FILLERS];   /* what its queue is full of, or -1 */
    struct test_host host;
    pthread_t thread;
    enum redbucket_status status;
    int open; /* descriptors while it hangs */
};

static void *ask(void *data)
{
    struct stage *stage = data;

    stage->status = test_host_ask(&stage->host, "k", NULL);
    return NULL;
}

static void connect_as(struct stage *stage, const char *format)
{
    char url[256];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (stage->peer.path[0] != '\0')
        (void)snprintf(url, sizeof url, format, stage->peer.path);
    else
        (void)snprintf(url, sizeof url, format, stage->peer.port);
#pragma GCC diagnostic pop
    test_host_open(&stage->host, url);
    test_host_limit(&stage->host, "a", 1.0, 1.0);
    stage->open = test_open_descriptors();
    assert_int_equal(pthread_create(&stage->thread, NULL, ask, stage), 0);
    for (double until = test_now() + 30.0; test_open_descriptors() == stage->open;) {
        assert_true(test_now() < until);
        test_pause(0.001);
    }
    test_pause(0.02); /* until it has got to where it hangs */
    stage->open = test_open_descriptors();
}

/* Connects until nobody gets in any more. */
static void fill(struct stage *stage)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)stage->peer.port)};

    assert_int_equal(listen(stage->peer.listener, 0), 0);
    for (int i = 0; i < FILLERS; i++) {
        stage->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(stage->fillers[i] >= 0);
        (void)connect(stage->fillers[i], (struct sockaddr *)&address, sizeof address);
    }
}

static void be_a_child(void *data)
{
    struct stage *stage = data;
    struct redbucket_error error;

    child_check(test_open_descriptors() == stage->open);
    redbucket_store_failure(stage->host.store, &error);
    child_check(test_open_descriptors() == stage->open - 1);
    child_check(error.status == REDBUCKET_OK);
    redbucket_store_failure(stage->host.store, &error);
    child_check(test_open_descriptors() == stage->open - 1);
}

static void fork_and_end(struct stage *stage)
{
    test_join(test_fork(be_a_child, stage));
    assert_int_equal(test_open_descriptors(), stage->open);
    for (int i = 0; i < FILLERS; i++) {
        if (stage->fillers[i] >= 0)
            (void)close(stage->fillers[i]);
    }
    test_actor_stop(&stage->peer);
    assert_int_equal(pthread_join(stage->thread, NULL), 0);
    assert_int_not_equal(stage->status, REDBUCKET_OK);
    test_host_close(&stage->host);
}

static void begin(struct stage *stage)
{
    memset(stage, 0, sizeof *stage);
    for (int i = 0; i < FILLERS; i++)
        stage->fillers[i] = -1;
}

static void test_while_a_socket_has_a_full_queue(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    test_actor_start(&stage.peer, NULL, NULL);
    fill(&stage);
    connect_as(&stage, "redis://127.0.0.1:%d?timeout=3s");
    fork_and_end(&stage);
}

static void test_while_a_unix_socket_has_a_full_queue(void **state)
{
    struct stage stage;
    struct test_host first;
    char url[128];

    (void)state;
    begin(&stage);
    test_actor_start_unix(&stage.peer, NULL, NULL);
    /* Whoever came first, and timed out, stays in the queue. */
    (void)snprintf(url, sizeof url, "unix://%s?timeout=50ms", stage.peer.path);
    test_host_open(&first, url);
    test_host_limit(&first, "a", 1.0, 1.0);
    assert_int_equal(test_host_ask(&first, "k", NULL), REDBUCKET_ERROR_TIMEOUT);
    test_host_close(&first);
    connect_as(&stage, "unix://%s?timeout=3s");
    fork_and_end(&stage);
}

static void test_in_the_tls_handshake(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    test_actor_start(&stage.peer, NULL, NULL);
    connect_as(&stage, "rediss://127.0.0.1:%d?timeout=3s&verify=none");
    fork_and_end(&stage);
}

static void test_in_the_first_round_trip(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    test_actor_start(&stage.peer, NULL, NULL);
    connect_as(&stage, "redis://127.0.0.1:%d?timeout=3s");
    fork_and_end(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_while_a_socket_has_a_full_queue),
        cmocka_unit_test(test_while_a_unix_socket_has_a_full_queue),
        cmocka_unit_test(test_in_the_tls_handshake),
        cmocka_unit_test(test_in_the_first_round_trip),
    };

    return cmocka_run_group_tests_name("server_forks", tests, NULL, NULL);
}
