/* SPDX-License-Identifier: MIT */
/*
 * One thread accepts, and one serves each connection. The list of connections is guarded by the
 * mutex; a descriptor in it is open as long as `fd` isn't -1, so that nobody shuts down a number
 * that has become something else.
 */
#include "acceptor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128

struct connection {
    struct test_acceptor *acceptor;
    struct connection *next;
    pthread_t thread;
    int fd;
    int served_fd;
};

struct test_acceptor {
    test_serve *serve;
    void *data;
    int fd;
    int port;
    char directory[40];
    char path[64];
    pthread_t thread;
    pthread_mutex_t mutex;
    struct connection *connections;
    size_t count;
    size_t open;
    struct test_acceptor *next;
};

/* Those that a failed test left running: their sockets are removed when the program ends. Guarded
 * by the mutex; `owner` is the process that made them. */
static pthread_mutex_t all_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct test_acceptor *all;
static pid_t owner;

bool test_send_all(int fd, const void *bytes, size_t len)
{
    const char *next = bytes;

    while (len > 0) {
        ssize_t sent = send(fd, next, len, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        next += sent;
        len -= (size_t)sent;
    }
    return true;
}

static void *serve_one(void *data)
{
    struct connection *connection = data;
    struct test_acceptor *acceptor = connection->acceptor;
    bool abrupt = acceptor->serve(acceptor->data, connection->served_fd);
    const struct linger at_once = {.l_onoff = 1};

    pthread_mutex_lock(&acceptor->mutex);
    /* A child of the test may have a copy: the end must not wait for that. */
    if (abrupt)
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    else
        shutdown(connection->fd, SHUT_RDWR);
    close(connection->fd);
    connection->fd = -1;
    acceptor->open--;
    pthread_mutex_unlock(&acceptor->mutex);
    return NULL;
}

/* Frees those that have ended; all of them when `every`, after waiting. */
static void reap(struct test_acceptor *acceptor, bool every)
{
    struct connection **link = &acceptor->connections;
    struct connection *ended = NULL;

    pthread_mutex_lock(&acceptor->mutex);
    while (*link != NULL) {
        struct connection *connection = *link;

        if (!every && connection->fd >= 0) {
            link = &connection->next;
            continue;
        }
        *link = connection->next;
        connection->next = ended;
        ended = connection;
    }
    pthread_mutex_unlock(&acceptor->mutex);
    while (ended != NULL) {
        struct connection *next = ended->next;

        pthread_join(ended->thread, NULL);
        free(ended);
        ended = next;
    }
}

static void begin(struct test_acceptor *acceptor, int fd)
{
    struct connection *connection = calloc(1, sizeof *connection);

    if (connection == NULL)
        abort();
    *connection = (struct connection){.acceptor = acceptor, .fd = fd, .served_fd = fd};
    pthread_mutex_lock(&acceptor->mutex);
    acceptor->count++;
    acceptor->open++;
    connection->next = acceptor->connections;
    acceptor->connections = connection;
    if (pthread_create(&connection->thread, NULL, serve_one, connection) != 0)
        abort();
    pthread_mutex_unlock(&acceptor->mutex);
}

static void *accept_all(void *data)
{
    struct test_acceptor *acceptor = data;
    int fd;

    while ((fd = accept4(acceptor->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        reap(acceptor, false);
        begin(acceptor, fd);
    }
    return NULL;
}

static bool listen_by_port(struct test_acceptor *acceptor)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;

    acceptor->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (acceptor->fd < 0 ||
        bind(acceptor->fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(acceptor->fd, BACKLOG) != 0 ||
        getsockname(acceptor->fd, (struct sockaddr *)&address, &size) != 0)
        return false;
    acceptor->port = ntohs(address.sin_port);
    return true;
}

static bool listen_by_path(struct test_acceptor *acceptor)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    strcpy(acceptor->directory, "/tmp/redbucket-peer-XXXXXX");
    if (mkdtemp(acceptor->directory) == NULL) {
        acceptor->directory[0] = '\0';
        return false;
    }
    snprintf(acceptor->path, sizeof acceptor->path, "%s/socket", acceptor->directory);
    memcpy(address.sun_path, acceptor->path, strlen(acceptor->path));
    acceptor->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return acceptor->fd >= 0 &&
           bind(acceptor->fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
           listen(acceptor->fd, BACKLOG) == 0;
}

static void remove_socket(const struct test_acceptor *acceptor)
{
    if (acceptor->path[0] != '\0')
        unlink(acceptor->path);
    if (acceptor->directory[0] != '\0')
        rmdir(acceptor->directory);
}

static void remove_sockets(void)
{
    if (getpid() != owner)
        return;
    pthread_mutex_lock(&all_mutex);
    for (const struct test_acceptor *acceptor = all; acceptor != NULL; acceptor = acceptor->next)
        remove_socket(acceptor);
    pthread_mutex_unlock(&all_mutex);
}

static void enlist(struct test_acceptor *acceptor)
{
    pthread_mutex_lock(&all_mutex);
    if (owner != getpid()) {
        owner = getpid();
        all = NULL;
        atexit(remove_sockets);
    }
    acceptor->next = all;
    all = acceptor;
    pthread_mutex_unlock(&all_mutex);
}

static void strike_off(const struct test_acceptor *acceptor)
{
    struct test_acceptor **link = &all;

    pthread_mutex_lock(&all_mutex);
    while (*link != NULL && *link != acceptor)
        link = &(*link)->next;
    if (*link == acceptor)
        *link = acceptor->next;
    pthread_mutex_unlock(&all_mutex);
}

static void release(struct test_acceptor *acceptor)
{
    strike_off(acceptor);
    if (acceptor->fd >= 0)
        close(acceptor->fd);
    remove_socket(acceptor);
    pthread_mutex_destroy(&acceptor->mutex);
    free(acceptor);
}

struct test_acceptor *test_acceptor_start(bool by_port, test_serve *serve, void *data)
{
    struct test_acceptor *acceptor = calloc(1, sizeof *acceptor);

    if (acceptor == NULL)
        return NULL;
    acceptor->fd = -1;
    acceptor->serve = serve;
    acceptor->data = data;
    pthread_mutex_init(&acceptor->mutex, NULL);
    enlist(acceptor);
    if ((by_port ? listen_by_port(acceptor) : listen_by_path(acceptor)) &&
        pthread_create(&acceptor->thread, NULL, accept_all, acceptor) == 0)
        return acceptor;
    release(acceptor);
    return NULL;
}

void test_acceptor_cut(struct test_acceptor *acceptor)
{
    pthread_mutex_lock(&acceptor->mutex);
    for (struct connection *c = acceptor->connections; c != NULL; c = c->next) {
        if (c->fd >= 0)
            shutdown(c->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&acceptor->mutex);
}

void test_acceptor_stop(struct test_acceptor *acceptor)
{
    if (acceptor == NULL)
        return;
    shutdown(acceptor->fd, SHUT_RDWR); /* wakes accept */
    pthread_join(acceptor->thread, NULL);
    test_acceptor_cut(acceptor);
    reap(acceptor, true);
    release(acceptor);
}

size_t test_acceptor_count(struct test_acceptor *acceptor)
{
    size_t count;

    pthread_mutex_lock(&acceptor->mutex);
    count = acceptor->count;
    pthread_mutex_unlock(&acceptor->mutex);
    return count;
}

size_t test_acceptor_open(struct test_acceptor *acceptor)
{
    size_t open;

    pthread_mutex_lock(&acceptor->mutex);
    open = acceptor->open;
    pthread_mutex_unlock(&acceptor->mutex);
    return open;
}

int test_acceptor_port(const struct test_acceptor *acceptor)
{
    return acceptor->port;
}

const char *test_acceptor_path(const struct test_acceptor *acceptor)
{
    return acceptor->path;
}
