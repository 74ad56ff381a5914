/* SPDX-License-Identifier: MIT */
/*
 * A program with an event loop of the simplest kind around a store on a server, which counts the
 * answers and knows how long it was kept at a time.
 *
 * Programs that link this look names up by a getaddrinfo that can be slow.
 */
#ifndef TEST_TURNER_H
#define TEST_TURNER_H

#include "host.h"
#include "redbucket/async.h"

/*
 *   accepted, rejected, degraded, cancelled   answers; a degraded one is also one of the first two
 *   failed         by status
 *   longest        seconds that one dispatch took at most
 *   latest         seconds from asking to the answer at most
 *   each           called for every answer, or NULL
 */
struct turner {
    struct test_host host;
    struct redbucket_async *async;
    int accepted;
    int rejected;
    int degraded;
    int cancelled;
    int failed[REDBUCKET_CANCELLED + 1];
    double longest;
    double latest;
    void (*each)(struct turner *turner);
};

/* Opens a store, with a limit "a" that lets `burst` + 1 through and next to nothing more. */
void turner_open(struct turner *turner, const char *url, double burst);
void turner_close(struct turner *turner);

/* One request, or some, of cost 1 for a key under limit "a". */
void turner_ask(struct turner *turner, const char *key);
void turner_ask_times(struct turner *turner, const char *key, int times);

/* Turns the loop once: waits for something to do, at most for so many milliseconds. */
void turner_turn(struct turner *turner, int ms);

/* Turns it until all are answered. */
void turner_run(struct turner *turner);

/* Asks again and again until a request is answered by the store itself. */
void turner_recover(struct turner *turner, const char *key);

int turner_failures(const struct turner *turner);

/* From now on a name with "slow" in it takes as long as the test lasts, or no time again. */
void turner_names_hang(bool hang);

#endif
