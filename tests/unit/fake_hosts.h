/* SPDX-License-Identifier: MIT */
/*
 * Hosts of the imagination behind the functions of src/redis/connection.h, each of which is a
 * sentinel or a server and behaves as a test says. Linked into a program, they keep the real ones
 * out of it. Time stands still, but while somebody waits for one that is silent.
 */
#ifndef TEST_FAKE_HOSTS_H
#define TEST_FAKE_HOSTS_H

#include "redis/connection.h"

#include <stdatomic.h>

#define FAKE_HOSTS_MAX 8

/*
 *   where   "a:26379"
 *   open    how a connection to it fares; TIMEOUT: it takes all the time there is
 *   call    how what is said on one fares, likewise
 *   named   "HOST PORT" that a sentinel names, or NULL for a service unknown to it
 *   answer  to SENTINEL instead of that, or NULL
 *   role    of a server: "master", "slave"
 *   auth    an error's text in answer to AUTH, or NULL
 *   shy     it won't say anything unasked
 *   spoken  it has said something unasked, on every connection that it has
 *   held    opening waits until this is 0 again
 */
struct fake_host {
    const char *where;
    enum redbucket_status open;
    enum redbucket_status call;
    const char *named;
    const struct rbk_reply *answer;
    const char *role;
    const char *auth;
    bool shy;
    atomic_bool spoken;
    atomic_int held;
};

/*
 *   log      of each opening: where, and the milliseconds that there were for it; "a:26379 333 "
 *   said     all words on all connections, a space behind each
 *   opened   connections, and those of them that are
 *   closed   closed again
 *   waiting  threads that have begun to wait for another's search
 *   now      what time it is
 */
struct fake_hosts {
    struct fake_host hosts[FAKE_HOSTS_MAX];
    char log[512];
    char said[512];
    atomic_uint opened;
    atomic_uint closed;
    atomic_int waiting;
    _Atomic double now;
};

extern struct fake_hosts fake_hosts;

/* No hosts, and nothing done yet. */
void fake_hosts_reset(void);

/* What is in the log by now, and then it is empty: in a text that the caller frees. Safe from any
 * thread. */
char *fake_hosts_take_log(void);

/* Puts a sentinel there, or a server; returns it. */
struct fake_host *fake_sentinel(const char *where, const char *named);
struct fake_host *fake_server(const char *where, const char *role);

#endif
