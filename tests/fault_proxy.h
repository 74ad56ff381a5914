/* SPDX-License-Identifier: MIT */
/*
 * A bad network between a store and a real server, on TCP: everything comes late, in pieces, cut
 * off, not at all, after what was sent later on another connection, or spoilt, in a way that a test
 * sets or that a seed draws. It knows nothing of requests, so what reaches the server after its
 * client has given up still reaches it, as it would.
 *
 * It listens before it is told for whom, so that a server can be told to call itself by its place.
 */
#ifndef TEST_FAULT_PROXY_H
#define TEST_FAULT_PROXY_H

#include "fault_weather.h"

struct test_fault_proxy;

/* Listens on a free port of the loopback address; what it draws begins with `seed`. NULL when it
 * can't. A child after fork must not use it. */
struct test_fault_proxy *test_fault_proxy_start(uint64_t seed);

/* NULL does nothing. */
void test_fault_proxy_stop(struct test_fault_proxy *proxy);

int test_fault_proxy_port(const struct test_fault_proxy *proxy);

/* Where connections go from now on: a port of the loopback address. */
void test_fault_proxy_aim(struct test_fault_proxy *proxy, int port);

/* What goes through is encrypted, so that garbage may be anywhere in it. Before it is used. */
void test_fault_proxy_seal(struct test_fault_proxy *proxy);

/* This weather from now on. */
void test_fault_proxy_set(struct test_fault_proxy *proxy, const struct test_weather *weather);

/* Weather by chance from now on, spell after spell. */
void test_fault_proxy_blow(struct test_fault_proxy *proxy);

/* Good weather from now on. What waits goes at once, dead connections end; returns when nothing of
 * that is left. */
void test_fault_proxy_calm(struct test_fault_proxy *proxy);

/* Ends all connections there are now. */
void test_fault_proxy_cut(struct test_fault_proxy *proxy);

void test_fault_proxy_counts(struct test_fault_proxy *proxy, struct test_fault_counts *counts);

/* How many connections there are. */
unsigned test_fault_proxy_open(struct test_fault_proxy *proxy);

#endif
