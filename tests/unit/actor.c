/* SPDX-License-Identifier: MIT */
#include "actor.h"

#include "test.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16

static void *serve(void *data)
{
    struct test_actor *peer = data;

    for (;;) {
        int fd = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0)
            return NULL; /* the test has ended it */
        (void)atomic_fetch_add(&peer->accepted, 1);
        peer->act(fd, peer->data);
        (void)close(fd);
        (void)atomic_fetch_add(&peer->closed, 1);
    }
}

/* Signals are for the test's own thread. */
static void start_thread(struct test_actor *peer, test_actor_act *act, void *data)
{
    sigset_t all, before;

    peer->act = act;
    peer->data = data;
    atomic_init(&peer->accepted, 0);
    atomic_init(&peer->closed, 0);
    if (act == NULL)
        return;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    assert_int_equal(pthread_create(&peer->thread, NULL, serve, peer), 0);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void test_actor_start(struct test_actor *peer, test_actor_act *act, void *data)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;

    memset(peer, 0, sizeof *peer);
    peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(peer->listener >= 0);
    assert_int_equal(bind(peer->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(peer->listener, BACKLOG), 0);
    assert_int_equal(getsockname(peer->listener, (struct sockaddr *)&address, &len), 0);
    peer->port = ntohs(address.sin_port);
    start_thread(peer, act, data);
}

void test_actor_start_unix(struct test_actor *peer, test_actor_act *act, void *data)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memset(peer, 0, sizeof *peer);
    (void)snprintf(peer->directory, sizeof peer->directory, "/tmp/redbucket-peer-XXXXXX");
    assert_non_null(mkdtemp(peer->directory));
    (void)snprintf(peer->path, sizeof peer->path, "%s/socket", peer->directory);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", peer->path);
    peer->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(peer->listener >= 0);
    assert_int_equal(bind(peer->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(peer->listener, act == NULL ? 0 : BACKLOG), 0);
    start_thread(peer, act, data);
}

void test_actor_stop(struct test_actor *peer)
{
    (void)shutdown(peer->listener, SHUT_RDWR);
    if (peer->act != NULL)
        assert_int_equal(pthread_join(peer->thread, NULL), 0);
    (void)close(peer->listener);
    if (peer->path[0] != '\0') {
        (void)unlink(peer->path);
        (void)rmdir(peer->directory);
    }
}

int test_actor_read(int fd, void *bytes, size_t len)
{
    unsigned char *to = bytes;

    while (len > 0) {
        ssize_t some = recv(fd, to, len, 0);

        if (some <= 0)
            return false;
        to += some;
        len -= (size_t)some;
    }
    return true;
}

void test_actor_reset(int fd)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

void test_actor_drain(int fd)
{
    char bytes[4096];

    while (recv(fd, bytes, sizeof bytes, 0) > 0)
        continue;
}

int test_actor_write(int fd, const void *bytes, size_t len)
{
    const unsigned char *from = bytes;

    while (len > 0) {
        ssize_t some = send(fd, from, len, MSG_NOSIGNAL);

        if (some <= 0)
            return false;
        from += some;
        len -= (size_t)some;
    }
    return true;
}
