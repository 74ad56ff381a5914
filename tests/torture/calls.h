/* SPDX-License-Identifier: MIT */
/*
 * What is asked for under faults, by chance, and what an answer must be like, whoever asked in
 * whatever form: everything that a caller can see is held against what he has been told before.
 */
#ifndef TORTURE_CALLS_H
#define TORTURE_CALLS_H

#include "accounts.h"
#include "fault_weather.h"

#define CALL_KEYS     3
#define CALL_STATUSES (REDBUCKET_CANCELLED + 1)
#define TIMEOUT_S     0.25
#define TIMEOUT_QUERY "timeout=250ms"

/*
 * A store that is asked.
 *
 *   degrades  a policy may answer in its place
 *   splits    its buckets are in several places
 *   wavers    it can say SERVER and STATE of what is just garbled, and SERVER of what was done in
 *             part: by transaction a reply is a line
 *   sealed    it is encrypted
 */
struct client {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    bool degrades;
    bool splits;
    bool wavers;
    bool sealed;
};

/* Who asks: one thread. What is drawn begins with `chance`. */
struct worker {
    struct client *client;
    unsigned number;
    double until_s;
    struct test_chance chance;
};

/* One request and what it is about. */
struct call {
    const struct worker *worker;
    struct redbucket_request request;
    struct redbucket_key keys[CALL_KEYS];
    char texts[CALL_KEYS][32];
    struct account *accounts[CALL_KEYS];
    bool whole; /* taken from all or none, also where it fails */
    double begin_s;
    double kept_s; /* when it began, see sleepers.h, as the next */
    double used_s;
    double told; /* what the first account had been told by then */
};

/* All of them together, by whoever. */
struct tally {
    unsigned long calls;
    unsigned long granted;
    unsigned long rejected;
    unsigned long degraded;
    unsigned long failed[CALL_STATUSES];
    double latest_s; /* the worst end after a deadline, without what the system kept it */
};

/* What each worker's bucket of its own has at first: nobody's answer looks like another's. */
double call_base(unsigned worker);

/* Of no request yet, which then names a key under a limit after the other. */
void call_start(struct call *call, const struct worker *worker);
void call_name(struct call *call, const char *limit, const char *key);

/* The next request. It must stay where it is until it has ended. */
void call_draw(struct call *call, struct worker *worker);

/* A request for the bucket that drains and is the worker's alone. */
void call_own(struct call *call, const struct worker *worker);

/* It goes out then. */
struct moment {
    double now_s;
    double kept_s;
    double used_s;
};
struct moment moment_now(void);
void call_begin(struct call *call, const struct moment *moment);

/* It is answered then: `decided` has the status and the response. */
void call_end(struct call *call, const struct redbucket_request *decided,
              const struct moment *moment);

void calls_tally(struct tally *tally);

/* Holds what ended late against the sleepers. */
void calls_judge_lateness(void);

#endif
