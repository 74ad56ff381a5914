/* SPDX-License-Identifier: MIT */
/*
 * A thread for each connection, between two sockets. What a test says is looked at for every piece,
 * and while replies are held a thousand times a second.
 */
#include "proxy.h"

#include "acceptor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PIECE   262144
#define LOOK_MS 1
#define NO_CUT  UINT64_MAX

/* All from `held` on is guarded by the mutex. */
struct test_proxy {
    struct test_acceptor *acceptor;
    enum test_server_way way;
    const struct test_server *server;
    pthread_mutex_t mutex;
    bool held;
    bool refused;
    unsigned delay_us;
    uint64_t left; /* bytes until a cut */
    struct test_traffic traffic;
};

/* One connection: its two sockets, and whether the server was the last to speak. */
struct relay {
    struct test_proxy *proxy;
    int client;
    int server;
    bool answered;
    char *piece;
};

static int reach_path(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, path, strlen(path));
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int reach_port(int port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int reach(const struct test_proxy *proxy)
{
    if (proxy->way == TEST_BY_SOCKET)
        return reach_path(proxy->server->socket);
    return reach_port(proxy->way == TEST_BY_TLS ? proxy->server->tls_port : proxy->server->port);
}

static bool is_held(struct test_proxy *proxy)
{
    bool held;

    pthread_mutex_lock(&proxy->mutex);
    held = proxy->held;
    pthread_mutex_unlock(&proxy->mutex);
    return held;
}

/* Client to server; false at the end. */
static bool pass_request(struct relay *relay)
{
    struct test_traffic *traffic = &relay->proxy->traffic;
    ssize_t len = recv(relay->client, relay->piece, PIECE, 0);

    if (len <= 0)
        return false;
    pthread_mutex_lock(&relay->proxy->mutex);
    traffic->writes++;
    traffic->sent += (uint64_t)len;
    traffic->turns += relay->answered;
    pthread_mutex_unlock(&relay->proxy->mutex);
    relay->answered = false;
    return test_send_all(relay->server, relay->piece, (size_t)len);
}

/* How many of `len` bytes the client is still given, and after what time. */
static size_t allowed(struct test_proxy *proxy, size_t len, unsigned *delay_us)
{
    pthread_mutex_lock(&proxy->mutex);
    *delay_us = proxy->delay_us;
    if (proxy->left != NO_CUT) {
        len = len < proxy->left ? len : (size_t)proxy->left;
        proxy->left -= len;
    }
    proxy->traffic.received += len;
    pthread_mutex_unlock(&proxy->mutex);
    return len;
}

/* True once for each cut that is due. */
static bool cut_is_due(struct test_proxy *proxy)
{
    bool due;

    pthread_mutex_lock(&proxy->mutex);
    due = proxy->left == 0;
    if (due)
        proxy->left = NO_CUT;
    pthread_mutex_unlock(&proxy->mutex);
    return due;
}

/* Server to client; false at the end. */
static bool pass_reply(struct relay *relay)
{
    ssize_t len = recv(relay->server, relay->piece, PIECE, 0);
    unsigned delay_us;
    size_t given;

    if (len <= 0)
        return false;
    given = allowed(relay->proxy, (size_t)len, &delay_us);
    if (delay_us != 0)
        nanosleep(&(struct timespec){.tv_sec = (time_t)(delay_us / 1000000),
                                     .tv_nsec = (long)(delay_us % 1000000) * 1000},
                  NULL);
    relay->answered = true;
    return test_send_all(relay->client, relay->piece, given) && !cut_is_due(relay->proxy);
}

static void pass(struct relay *relay)
{
    bool going = true;

    while (going) {
        bool held = is_held(relay->proxy);
        struct pollfd ends[] = {{.fd = relay->client, .events = POLLIN},
                                {.fd = held ? -1 : relay->server, .events = POLLIN}};

        if (poll(ends, 2, held ? LOOK_MS : -1) < 0)
            return;
        if (ends[0].revents != 0)
            going = pass_request(relay);
        else if (ends[1].revents != 0 && !is_held(relay->proxy))
            going = pass_reply(relay);
    }
}

static bool serve(void *data, int fd)
{
    struct test_proxy *proxy = data;
    struct relay relay = {.proxy = proxy, .client = fd, .server = -1, .answered = true};
    bool refused;

    pthread_mutex_lock(&proxy->mutex);
    refused = proxy->refused;
    proxy->traffic.connections++;
    pthread_mutex_unlock(&proxy->mutex);
    relay.piece = malloc(PIECE);
    if (relay.piece != NULL && !refused)
        relay.server = reach(proxy);
    if (relay.server >= 0) {
        pass(&relay);
        close(relay.server);
    }
    free(relay.piece);
    return false;
}

struct test_proxy *test_proxy_start(const struct test_server *server, enum test_server_way way)
{
    struct test_proxy *proxy = calloc(1, sizeof *proxy);

    if (proxy == NULL)
        return NULL;
    proxy->server = server;
    proxy->way = way;
    proxy->left = NO_CUT;
    pthread_mutex_init(&proxy->mutex, NULL);
    proxy->acceptor = test_acceptor_start(way != TEST_BY_SOCKET, serve, proxy);
    if (proxy->acceptor != NULL)
        return proxy;
    pthread_mutex_destroy(&proxy->mutex);
    free(proxy);
    return NULL;
}

void test_proxy_stop(struct test_proxy *proxy)
{
    if (proxy == NULL)
        return;
    test_acceptor_stop(proxy->acceptor);
    pthread_mutex_destroy(&proxy->mutex);
    free(proxy);
}

void test_proxy_url(const struct test_proxy *proxy, const char *query, char *url, size_t size)
{
    struct test_server apparent = *proxy->server;

    apparent.port = apparent.tls_port = test_acceptor_port(proxy->acceptor);
    snprintf(apparent.socket, sizeof apparent.socket, "%s", test_acceptor_path(proxy->acceptor));
    test_server_url(&apparent, proxy->way, query, url, size);
}

void test_proxy_traffic(struct test_proxy *proxy, struct test_traffic *traffic)
{
    pthread_mutex_lock(&proxy->mutex);
    *traffic = proxy->traffic;
    pthread_mutex_unlock(&proxy->mutex);
}

void test_proxy_hold(struct test_proxy *proxy, bool held)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->held = held;
    pthread_mutex_unlock(&proxy->mutex);
}

void test_proxy_delay(struct test_proxy *proxy, unsigned delay_us)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->delay_us = delay_us;
    pthread_mutex_unlock(&proxy->mutex);
}

void test_proxy_cut(struct test_proxy *proxy)
{
    test_acceptor_cut(proxy->acceptor);
}

void test_proxy_cut_after(struct test_proxy *proxy, uint64_t bytes)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->left = bytes;
    pthread_mutex_unlock(&proxy->mutex);
}

void test_proxy_refuse(struct test_proxy *proxy, bool refused)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->refused = refused;
    pthread_mutex_unlock(&proxy->mutex);
}
