/* SPDX-License-Identifier: MIT */
/*
 * A world of three processes with leases on one bucket, their calls that are under way, and the
 * model as the server of all: small enough to be kept, and gone back to, to try another step.
 */
#ifndef TEST_LEASE_WORLD_H
#define TEST_LEASE_WORLD_H

#include "lease_call.h"
#include "lease_witness.h"
#include "leased.h"

#define PROCESSES 3
#define HISTORY   16
#define DEPTH_MAX 48

enum phase { IDLE, SENT, DECIDED, GONE };

struct process {
    enum phase phase;
    unsigned asks; /* still to come, for bucket a */
    unsigned others;
    bool here; /* a request is being asked that isn't of bucket b */
    struct rbk_leases leases;
    struct rbk_lease_call *call; /* of which so much is worth keeping as is used */
    struct rbk_batch batch;
    struct model_ask ask;
};

struct world {
    struct rbk_state states[MODEL_BUCKETS];
    double elapsed, tick;                    /* seconds */
    unsigned ticks, kills, failures, closes; /* still to come */
    double killed;  /* permits that a killed process held, or had taken for it */
    unsigned taken; /* leases */
    size_t history_len;
    struct admitted history[HISTORY];
    struct process processes[PROCESSES];
};

extern struct world world;
extern struct rbk_limit world_limit;
extern unsigned long world_served; /* requests that leases have served */

/* Memory for all of it. */
int world_setup(void **state);
int world_teardown(void **state);

/* Processes that have asked for the bucket once, and know that it is hot; each may ask for it so
 * many times more, and the first for another, without leases. */
void world_begin(const struct rbk_limit *limit, unsigned asks, unsigned others);

/* Has the clocks of model_store.h tell the world's time. */
void world_set_clocks(void);

/* The same for worlds from which the same can come. */
uint64_t world_hash(void);

void world_keep(unsigned depth);
void world_go_back(unsigned depth);

enum world_step { ASK, ASK_OTHER, DECIDE, FAIL, FAIL_LATE, REPLY, KILL, CLOSE, STEPS };

/* Has a process take a step, if it can be taken. */
bool world_step(unsigned number, unsigned what);

/* A process gives back all that it holds, if it is still there. */
void world_close(unsigned number);

#endif
