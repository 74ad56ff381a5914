/* SPDX-License-Identifier: MIT */
/*
 * A program that uses a store on a server, with what every test of faults wants of it: limits, one
 * request in a line, events counted, the time that calls take held against what this machine gives
 * to somebody who only sleeps.
 *
 * Whatever the store says of a failure is searched for TEST_SECRET, which tests use as password.
 */
#ifndef TEST_HOST_H
#define TEST_HOST_H

#include "redbucket/redbucket.h"

#include <stdatomic.h>

#define TEST_SECRET "hunter2-marker"

struct test_host {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    atomic_int down;
    atomic_int back;
    atomic_int degraded;
};

/* Opens a store, without a limit. Fails the test when the URL is wrong; no server is asked. */
void test_host_open(struct test_host *host, const char *url);

/* Adds a limit, whose zone has its name. */
void test_host_limit(struct test_host *host, const char *name, double rate, double burst);

/* Closes both. */
void test_host_close(struct test_host *host);

/* One request of cost 1 under limit "a" for `key`; the answer in *response, which may be NULL. Safe
 * from any thread. */
enum redbucket_status test_host_ask(struct test_host *host, const char *key,
                                    struct redbucket_response *response);

/* The same, and the seconds that it took in *took. */
enum redbucket_status test_host_time(struct test_host *host, const char *key, double *took);

/* Asks until the store answers, and fails the test when it doesn't within some seconds: longer than
 * the longest pause of the circuit. Returns the status of the first try. */
enum redbucket_status test_host_recover(struct test_host *host, const char *key);

/* Waits until the circuit lets the next one try. */
void test_host_rest(void);

/* Fails the test when TEST_SECRET is in what the store says of its last failure, which is copied to
 * *error unless that is NULL. */
void test_host_failure(struct test_host *host, struct redbucket_error *error);

/* The state of `key` under limit "a": its value, 0 when there is none. Fails the test when it can't
 * be read. */
double test_host_value(struct test_host *host, const char *key);

uint64_t test_host_counted_degraded(struct test_host *host);

/*
 * A control: threads that only sleep, and how much too late one of them woke at worst since the
 * last reset; and how long the thread that did the reset was kept from a processor since then.
 * Whoever else wakes at a deadline can't be blamed for less than that.
 */
void test_control_start(void);
void test_control_stop(void);
void test_control_reset(void);

/* How late it was, at worst, in seconds. */
double test_control_late(void);

/* Fails the test unless `took` is at most `seconds` and what the machine may add. */
void test_control_check(double took, double seconds);

/* How many descriptors this process has open. */
int test_open_descriptors(void);

#endif
