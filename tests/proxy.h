/* SPDX-License-Identifier: MIT */
/*
 * Stands between a store and a real server: passes every byte on, counts what passed, and at a
 * test's word holds, delays or cuts. It reads no command, so that TLS goes through as well.
 */
#ifndef TEST_PROXY_H
#define TEST_PROXY_H

#include "server.h"

#include <stdint.h>

struct test_proxy;

/*
 * What has passed since the start, over all connections.
 *
 *   writes    pieces that came from the client: what it wrote at once is one piece as long as it
 *             fits into 256 KiB and the machine keeps up
 *   turns     round trips: how often the client spoke after the server had, or first
 *   sent      bytes from the client
 *   received  bytes that the client was given
 */
struct test_traffic {
    uint64_t connections;
    uint64_t writes;
    uint64_t turns;
    uint64_t sent;
    uint64_t received;
};

/* Listens in the way in which it reaches the server. NULL when it can't. */
struct test_proxy *test_proxy_start(const struct test_server *server, enum test_server_way way);

/* NULL does nothing. Stop it before its server. */
void test_proxy_stop(struct test_proxy *proxy);

/* As test_server_url, by way of the proxy. */
void test_proxy_url(const struct test_proxy *proxy, const char *query, char *url, size_t size);

void test_proxy_traffic(struct test_proxy *proxy, struct test_traffic *traffic);

/* Keeps what the server says from the client while `held`, and lets it go then. */
void test_proxy_hold(struct test_proxy *proxy, bool held);

/* Passes on what the server says so much later. */
void test_proxy_delay(struct test_proxy *proxy, unsigned delay_us);

/* Closes all connections. */
void test_proxy_cut(struct test_proxy *proxy);

/* Closes a connection as soon as clients were given so many bytes more: in the middle of a reply.
 */
void test_proxy_cut_after(struct test_proxy *proxy, uint64_t bytes);

/* Closes every new connection at once while `refused`. */
void test_proxy_refuse(struct test_proxy *proxy, bool refused);

#endif
