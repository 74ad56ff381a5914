/* SPDX-License-Identifier: MIT */
/*
 * One thread, which waits for whatever comes or is due next on any connection: thousands of delays
 * at a time cost nothing. The mutex guards everything; it is open while the thread waits.
 *
 * When a client has gone, what it sent still goes to the server, in its time, and then the end of
 * file does. When the server has gone, what it said still goes to the client.
 */
#include "fault_proxy.h"

#include "fault_way.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG     128
#define PIECE       65536
#define WAITING_MAX (1 << 20)
#define LIES        500 /* chance of an unasked one, a connection and spell, while there is garbage */
#define LINGER_US   2000000u /* a server that doesn't hang up after its client did */

enum { LISTENER, WAKER, OTHERS };

/* A connection: its requests go to the server, its replies to the client. */
struct link {
    struct link *next;
    int client;
    int server; /* -1 for one that is never served */
    bool client_gone;
    uint64_t gone_us;
    struct test_way requests;
    struct test_way replies;
};

struct test_fault_proxy {
    int fds[OTHERS];
    int port;
    pthread_t thread;
    pthread_mutex_t mutex;
    bool ending;
    bool blowing;
    int target;
    uint64_t spell_end_us;
    struct test_chance spells;
    struct test_network network;
    struct link *links;
    unsigned links_len;
    struct pollfd *polled;
    size_t polled_size;
    char piece[PIECE];
};

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void wake(struct test_fault_proxy *proxy)
{
    uint64_t one = 1;

    if (write(proxy->fds[WAKER], &one, sizeof one) < 0)
        abort();
}

/* ---- Connections ---------------------------------------------------------------------------- */

static int reach(int port)
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

static void end_by(int fd, bool abrupt)
{
    const struct linger at_once = {.l_onoff = 1};

    if (fd < 0)
        return;
    if (abrupt)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

static void end_link(struct test_fault_proxy *proxy, struct link **at, bool abrupt)
{
    struct link *link = *at;

    *at = link->next;
    proxy->links_len--;
    end_by(link->client, abrupt);
    end_by(link->server, abrupt);
    test_way_clear(&link->requests);
    test_way_clear(&link->replies);
    free(link);
}

static void send_at_once(int fd)
{
    const int yes = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static void begin_link(struct test_fault_proxy *proxy, int client)
{
    struct test_network *network = &proxy->network;
    struct link *link = calloc(1, sizeof *link);
    bool silent = test_chance_of(&network->chance, network->weather.silent);

    if (link == NULL)
        abort();
    link->client = client;
    link->server = silent ? -1 : reach(proxy->target);
    if (!silent && link->server < 0) {
        free(link);
        end_by(client, true);
        return;
    }
    network->counts.silent += silent;
    send_at_once(client);
    if (!silent)
        send_at_once(link->server);
    link->requests = (struct test_way){.to = link->server, .deaf = silent};
    link->replies = (struct test_way){.to = client, .replies = true, .deaf = silent};
    link->next = proxy->links;
    proxy->links = link;
    proxy->links_len++;
}

static void accept_one(struct test_fault_proxy *proxy)
{
    struct test_network *network = &proxy->network;
    int client = accept4(proxy->fds[LISTENER], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (client < 0)
        return;
    network->counts.connections++;
    if (test_chance_of(&network->chance, network->weather.refused)) {
        network->counts.refused++;
        end_by(client, test_chance_below(&network->chance, 2) == 0);
        return;
    }
    begin_link(proxy, client);
}

/* ---- What comes and goes -------------------------------------------------------------------- */

/* What comes from one side; false at its end. */
static bool take(struct test_fault_proxy *proxy, int fd, struct test_way *way,
                 struct test_way *other)
{
    ssize_t len = recv(fd, proxy->piece, PIECE, MSG_DONTWAIT);

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (len <= 0)
        return false;
    if (test_way_take(way, proxy->piece, (size_t)len, now_us(), &proxy->network))
        other->deaf = true;
    return true;
}

static void take_from(struct test_fault_proxy *proxy, struct link *link, short client, short server)
{
    if (client != 0 && !link->client_gone &&
        !take(proxy, link->client, &link->requests, &link->replies)) {
        link->client_gone = true;
        link->gone_us = now_us();
        link->requests.ended = true;
        link->replies.lost = true;
        test_way_clear(&link->replies);
    }
    if (server != 0 && !link->replies.ended &&
        !take(proxy, link->server, &link->replies, &link->requests))
        link->replies.ended = true;
}

static bool is_cut(const struct test_way *way)
{
    return way->cut && way->first == NULL;
}

/* Whether the connection is over. A deaf one is, for the server, when its client gives it up. */
static bool is_over(const struct link *link, uint64_t now)
{
    bool nothing_left = link->requests.first == NULL;

    if (link->server < 0 || link->requests.deaf)
        return link->client_gone && nothing_left;
    if (link->replies.ended && link->replies.first == NULL && !link->replies.deaf)
        return true;
    return link->client_gone && nothing_left &&
           (link->replies.ended || link->requests.lost || now > link->gone_us + LINGER_US);
}

static void pass(struct test_fault_proxy *proxy, uint64_t now)
{
    for (struct link **at = &proxy->links; *at != NULL;) {
        struct link *link = *at;
        bool had = link->requests.first != NULL;

        if (test_way_pass(&link->requests, now) > 0 && link->client_gone)
            proxy->network.counts.late++;
        (void)test_way_pass(&link->replies, now);
        if (link->client_gone && link->requests.first == NULL && link->server >= 0 &&
            (had || link->gone_us + 1000 > now))
            (void)shutdown(link->server, SHUT_WR);
        if (is_cut(&link->requests) || is_cut(&link->replies))
            end_link(proxy, at, link->requests.abrupt || link->replies.abrupt);
        else if (is_over(link, now))
            end_link(proxy, at, false);
        else
            at = &link->next;
    }
}

/* ---- The thread ----------------------------------------------------------------------------- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static short wanted(const struct test_way *in, const struct test_way *out, bool gone)
{
    bool reads = !gone && in->waiting < WAITING_MAX && !in->cut;

    return (short)((reads ? POLLIN : 0) | (out->blocked ? POLLOUT : 0));
}

/* A connection of which nothing is wanted isn't polled, since its end would wake us for ever. */
static int fd_if(int fd, short events)
{
    return events != 0 ? fd : -1;
}

static size_t prepare(struct test_fault_proxy *proxy, uint64_t *due_us)
{
    size_t len = OTHERS;

    if (proxy->polled_size < OTHERS + 2 * (size_t)proxy->links_len) {
        proxy->polled_size = 2 * (OTHERS + 2 * (size_t)proxy->links_len);
        proxy->polled = realloc(proxy->polled, proxy->polled_size * sizeof proxy->polled[0]);
        if (proxy->polled == NULL)
            abort();
    }
    for (size_t i = 0; i < OTHERS; i++)
        proxy->polled[i] = (struct pollfd){.fd = proxy->fds[i], .events = POLLIN};
    *due_us = proxy->blowing ? proxy->spell_end_us : UINT64_MAX;
    for (struct link *link = proxy->links; link != NULL; link = link->next) {
        short client = wanted(&link->requests, &link->replies, link->client_gone);
        short server = wanted(&link->replies, &link->requests, link->replies.ended);

        proxy->polled[len++] = (struct pollfd){.fd = fd_if(link->client, client), .events = client};
        proxy->polled[len++] = (struct pollfd){.fd = fd_if(link->server, server), .events = server};
        *due_us = earlier(*due_us, test_way_due(&link->requests));
        *due_us = earlier(*due_us, test_way_due(&link->replies));
        if (link->client_gone)
            *due_us = earlier(*due_us, link->gone_us + LINGER_US + 1000);
    }
    return len;
}

/* Open, the mutex; returns with what has come. */
static void wait_until(struct test_fault_proxy *proxy, size_t len, uint64_t due_us)
{
    uint64_t now = now_us();
    uint64_t left = due_us > now ? due_us - now : 0;
    struct timespec time = {.tv_sec = (time_t)(left / 1000000),
                            .tv_nsec = (long)(left % 1000000) * 1000};
    uint64_t count;

    pthread_mutex_unlock(&proxy->mutex);
    if (ppoll(proxy->polled, len, due_us == UINT64_MAX ? NULL : &time, NULL) < 0 && errno != EINTR)
        abort();
    pthread_mutex_lock(&proxy->mutex);
    if (proxy->polled[WAKER].revents != 0 && read(proxy->fds[WAKER], &count, sizeof count) < 0)
        abort();
}

static void turn_weather(struct test_fault_proxy *proxy, uint64_t now)
{
    struct test_network *network = &proxy->network;
    const char *name;

    if (!proxy->blowing || now < proxy->spell_end_us)
        return;
    proxy->spell_end_us = now + test_weather_next(&proxy->spells, &network->weather, &name);
    for (struct link *link = proxy->links; link != NULL && network->weather.garbage > 0;
         link = link->next) {
        if (test_chance_of(&network->chance, LIES))
            test_way_lie(&link->replies, now, network);
    }
}

static void *run(void *data)
{
    struct test_fault_proxy *proxy = data;

    pthread_mutex_lock(&proxy->mutex);
    while (!proxy->ending) {
        uint64_t due_us;
        size_t len = prepare(proxy, &due_us);
        size_t i = OTHERS;

        wait_until(proxy, len, due_us);
        turn_weather(proxy, now_us());
        /* Connections are only added at the front meanwhile, and by this thread. */
        for (struct link *link = proxy->links; link != NULL && i < len; link = link->next, i += 2)
            take_from(proxy, link, proxy->polled[i].revents, proxy->polled[i + 1].revents);
        pass(proxy, now_us());
        if (proxy->polled[LISTENER].revents != 0)
            accept_one(proxy);
    }
    pthread_mutex_unlock(&proxy->mutex);
    return NULL;
}

/* ---- From outside --------------------------------------------------------------------------- */

static bool listen_at(struct test_fault_proxy *proxy)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    proxy->fds[LISTENER] = fd;
    proxy->fds[WAKER] = eventfd(0, EFD_CLOEXEC);
    if (fd < 0 || proxy->fds[WAKER] < 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, BACKLOG) != 0 || getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return false;
    proxy->port = ntohs(address.sin_port);
    return true;
}

static void release(struct test_fault_proxy *proxy)
{
    while (proxy->links != NULL)
        end_link(proxy, &proxy->links, false);
    for (size_t i = 0; i < OTHERS; i++) {
        if (proxy->fds[i] >= 0)
            close(proxy->fds[i]);
    }
    pthread_mutex_destroy(&proxy->mutex);
    free(proxy->polled);
    free(proxy);
}

struct test_fault_proxy *test_fault_proxy_start(uint64_t seed)
{
    struct test_fault_proxy *proxy = calloc(1, sizeof *proxy);

    if (proxy == NULL)
        return NULL;
    proxy->spells = test_chance_begin(seed);
    proxy->network.chance = test_chance_begin(~seed);
    pthread_mutex_init(&proxy->mutex, NULL);
    if (listen_at(proxy) && pthread_create(&proxy->thread, NULL, run, proxy) == 0)
        return proxy;
    release(proxy);
    return NULL;
}

void test_fault_proxy_stop(struct test_fault_proxy *proxy)
{
    if (proxy == NULL)
        return;
    pthread_mutex_lock(&proxy->mutex);
    proxy->ending = true;
    pthread_mutex_unlock(&proxy->mutex);
    wake(proxy);
    pthread_join(proxy->thread, NULL);
    release(proxy);
}

int test_fault_proxy_port(const struct test_fault_proxy *proxy)
{
    return proxy->port;
}

void test_fault_proxy_aim(struct test_fault_proxy *proxy, int port)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->target = port;
    pthread_mutex_unlock(&proxy->mutex);
}

void test_fault_proxy_seal(struct test_fault_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->network.sealed = true;
    pthread_mutex_unlock(&proxy->mutex);
}

static void set(struct test_fault_proxy *proxy, const struct test_weather *weather, bool blowing)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->network.weather = *weather;
    proxy->blowing = blowing;
    proxy->spell_end_us = 0;
    pthread_mutex_unlock(&proxy->mutex);
    wake(proxy);
}

void test_fault_proxy_set(struct test_fault_proxy *proxy, const struct test_weather *weather)
{
    set(proxy, weather, false);
}

void test_fault_proxy_blow(struct test_fault_proxy *proxy)
{
    set(proxy, &(struct test_weather){0}, true);
}

/* How many connections have something waiting. Dead ones are ended meanwhile. */
static unsigned hurry(struct test_fault_proxy *proxy)
{
    unsigned busy = 0;

    pthread_mutex_lock(&proxy->mutex);
    for (struct link *link = proxy->links; link != NULL; link = link->next) {
        if (link->requests.deaf || link->replies.deaf)
            link->requests.cut = true;
        test_way_hurry(&link->requests);
        test_way_hurry(&link->replies);
        busy += link->requests.cut || link->requests.first != NULL || link->replies.first != NULL ||
                link->client_gone;
    }
    pthread_mutex_unlock(&proxy->mutex);
    wake(proxy);
    return busy;
}

void test_fault_proxy_calm(struct test_fault_proxy *proxy)
{
    test_fault_proxy_set(proxy, &(struct test_weather){0});
    while (hurry(proxy) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void test_fault_proxy_cut(struct test_fault_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    for (struct link *link = proxy->links; link != NULL; link = link->next) {
        test_way_clear(&link->requests);
        link->requests.cut = true;
    }
    pthread_mutex_unlock(&proxy->mutex);
    wake(proxy);
}

void test_fault_proxy_counts(struct test_fault_proxy *proxy, struct test_fault_counts *counts)
{
    pthread_mutex_lock(&proxy->mutex);
    *counts = proxy->network.counts;
    pthread_mutex_unlock(&proxy->mutex);
}

unsigned test_fault_proxy_open(struct test_fault_proxy *proxy)
{
    unsigned open;

    pthread_mutex_lock(&proxy->mutex);
    open = proxy->links_len;
    pthread_mutex_unlock(&proxy->mutex);
    return open;
}
