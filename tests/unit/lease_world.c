/* SPDX-License-Identifier: MIT */
/*
 * Keeping a world, telling it from others, and its steps.
 */
#include "lease_world.h"

#include "test.h"

#include <stdlib.h>

/* Of a trip, so much is used here. */
#define TRIP 4

/* What a process has beside the world: in its table the place of the one bucket, and what is not in
 * sets; and its call. */
struct kept {
    struct rbk_lease_place place;
    uint64_t bucket;
    uint64_t held[RBK_LEASE_PLACES_ALL / 64];
    unsigned holding;
    double due, rest;
    enum rbk_lease_stage stage;
    double here;
    size_t len, extras_len;
    struct rbk_request requests[TRIP];
    size_t origin[TRIP];
    struct rbk_extra extras[TRIP];
};

struct world world;
struct rbk_limit world_limit;
unsigned long world_served;

static struct rbk_lease_places *tables[PROCESSES];
static struct rbk_lease_call calls[PROCESSES];
static struct world worlds[DEPTH_MAX];
static struct kept kepts[DEPTH_MAX][PROCESSES];
static unsigned set_number;

/* ---- Worlds ------------------------------------------------------------------------------------
 */

static struct rbk_lease_place *place_of(unsigned number)
{
    return &tables[number]->sets[set_number].places[0];
}

static void keep_call(struct kept *kept, const struct rbk_lease_call *call)
{
    const struct rbk_lease_trip *trip = &call->trip;

    assert_true(trip->len <= TRIP && trip->extras_len <= TRIP && trip->memory == NULL);
    kept->stage = call->stage;
    kept->here = call->here;
    kept->len = trip->len;
    kept->extras_len = trip->extras_len;
    memcpy(kept->requests, trip->requests, trip->len * sizeof trip->requests[0]);
    memcpy(kept->origin, trip->origin, trip->len * sizeof trip->origin[0]);
    memcpy(kept->extras, trip->extras, trip->extras_len * sizeof trip->extras[0]);
}

static void put_call(const struct kept *kept, struct process *process)
{
    struct rbk_lease_call *call = process->call;
    struct rbk_lease_trip *trip = &call->trip;

    assert_true(rbk_lease_trip_init(trip, 1));
    call->leases = &process->leases;
    call->requests = &process->ask.request;
    call->len = 1;
    call->batch = &process->batch;
    call->stage = kept->stage;
    call->here = kept->here;
    trip->len = kept->len;
    trip->extras_len = kept->extras_len;
    memcpy(trip->requests, kept->requests, kept->len * sizeof trip->requests[0]);
    memcpy(trip->origin, kept->origin, kept->len * sizeof trip->origin[0]);
    memcpy(trip->extras, kept->extras, kept->extras_len * sizeof trip->extras[0]);
}

static bool has_call(const struct process *process)
{
    return process->phase == SENT || process->phase == DECIDED;
}

void world_keep(unsigned depth)
{
    worlds[depth] = world;
    for (unsigned i = 0; i < PROCESSES; i++) {
        struct rbk_lease_places *table = tables[i];
        struct kept *kept = &kepts[depth][i];

        kept->place = *place_of(i);
        kept->bucket = table->sets[set_number].buckets[0];
        memcpy(kept->held, table->held, sizeof kept->held);
        kept->holding = table->holding;
        kept->due = table->due;
        kept->rest = table->rest;
        if (has_call(&world.processes[i]))
            keep_call(kept, &calls[i]);
    }
}

void world_go_back(unsigned depth)
{
    world = worlds[depth];
    for (unsigned i = 0; i < PROCESSES; i++) {
        struct rbk_lease_places *table = tables[i];
        const struct kept *kept = &kepts[depth][i];

        *place_of(i) = kept->place;
        table->sets[set_number].buckets[0] = kept->bucket;
        memcpy(table->held, kept->held, sizeof kept->held);
        table->holding = kept->holding;
        table->due = kept->due;
        table->rest = kept->rest;
        if (has_call(&world.processes[i]))
            put_call(kept, &world.processes[i]);
    }
}

static uint64_t mixed(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;

    for (; len > 0; len -= len < 8 ? len : 8, at += 8) {
        uint64_t word = 0;

        memcpy(&word, at, len < 8 ? len : 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    return hash;
}

#define MIX(hash, thing) mixed(hash, &(thing), sizeof(thing))

static uint64_t mix_request(uint64_t hash, const struct rbk_request *request, bool decided)
{
    hash = MIX(hash, request->ask.operation);
    hash = MIX(hash, request->ask.cost);
    hash = MIX(hash, request->ask.taken_at);
    if (!decided)
        return hash;
    hash = MIX(hash, request->status);
    hash = MIX(hash, request->ask.now);
    return mixed(hash, &request->answer.accepted, 1);
}

static uint64_t mix_process(uint64_t hash, unsigned number)
{
    struct process *process = &world.processes[number];

    hash = MIX(hash, process->phase);
    if (process->phase == GONE)
        return hash;
    hash = MIX(hash, process->asks);
    hash = MIX(hash, process->others);
    hash = MIX(hash, *place_of(number));
    hash = MIX(hash, tables[number]->held);
    hash = MIX(hash, tables[number]->due);
    hash = MIX(hash, tables[number]->rest);
    if (process->phase == IDLE)
        return hash;
    hash = MIX(hash, process->call->stage);
    hash = MIX(hash, process->call->here);
    for (size_t i = 0; i < process->call->trip.len; i++)
        hash = mix_request(hash, &process->call->trip.requests[i], process->phase == DECIDED);
    return hash;
}

static int by_all(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct admitted));
}

/* The order of what was admitted at the same time says nothing. */
uint64_t world_hash(void)
{
    struct admitted sorted[HISTORY];
    uint64_t hash = 14695981039346656037u;

    memcpy(sorted, world.history, sizeof sorted);
    qsort(sorted, world.history_len, sizeof sorted[0], by_all);
    hash = mixed(hash, sorted, world.history_len * sizeof sorted[0]);
    hash = MIX(hash, world.states[0]);
    hash = MIX(hash, world.elapsed);
    hash = MIX(hash, world.ticks);
    hash = MIX(hash, world.kills);
    hash = MIX(hash, world.failures);
    hash = MIX(hash, world.closes);
    hash = MIX(hash, world.killed);
    for (unsigned i = 0; i < PROCESSES; i++)
        hash = mix_process(hash, i);
    return hash == 0 ? 1 : hash;
}

/* ---- Steps -------------------------------------------------------------------------------------
 */

static double now(void)
{
    return model_store.now;
}

static double clock_here(void)
{
    return model_here;
}

void world_set_clocks(void)
{
    model_store.now = 1700000000.0 + world.elapsed;
    model_here = 5000.0 + world.elapsed;
}

static void decide_on_server(struct rbk_request *requests, size_t len)
{
    struct rbk_batch batch = {.waited = 0.0};

    memcpy(model_store.states, world.states, sizeof world.states);
    model_store_decide(&model_store.store, requests, len, &batch);
    memcpy(world.states, model_store.states, sizeof world.states);
}

/* The call is over: what was admitted is noted. */
static void hear(struct process *process)
{
    const struct rbk_request *request = &process->ask.request;
    double at = request->here ? now() : request->ask.now;

    rbk_lease_call_fini(process->call);
    process->phase = IDLE;
    if (!process->here || request->status != REDBUCKET_OK || !request->answer.accepted)
        return;
    world_served += request->here;
    assert_true(world.history_len < HISTORY);
    world.history[world.history_len++] =
        (struct admitted){at, at + request->answer.delay, request->ask.now, request->ask.cost};
}

static void ask(struct process *process, bool other)
{
    struct rbk_lease_call *call = process->call;

    if (other)
        (void)model_ask(&process->ask, RBK_REQUEST, 1, leased_large, "b");
    else
        (void)leased_ask(&process->ask, RBK_REQUEST, 1, world_limit, "a");
    process->here = !other;
    process->batch = (struct rbk_batch){.waited = 0.0};
    call->leases = &process->leases;
    call->requests = &process->ask.request;
    call->len = 1;
    call->batch = &process->batch;
    if (rbk_lease_call_begin(call))
        process->phase = SENT;
    else
        hear(process);
}

static void be_decided(struct process *process)
{
    struct rbk_lease_trip *trip = &process->call->trip;

    decide_on_server(trip->requests, trip->len);
    for (size_t i = 0; i < trip->len; i++)
        world.taken += trip->requests[i].aside && trip->requests[i].ask.operation == RBK_REQUEST;
    process->phase = DECIDED;
}

/* Nothing is heard of what the server has done; or it has done nothing. */
static void lose(struct process *process, bool done)
{
    struct rbk_lease_trip *trip = &process->call->trip;

    if (done)
        decide_on_server(trip->requests, trip->len);
    for (size_t i = 0; done && i < trip->len; i++) {
        if (trip->requests[i].ask.operation == RBK_REQUEST && trip->requests[i].answer.accepted)
            world.killed += trip->requests[i].ask.cost;
    }
    for (size_t i = 0; !done && i < trip->len; i++) {
        if (trip->requests[i].ask.operation == RBK_GIVE_BACK)
            world.killed += trip->requests[i].ask.cost;
        /* What isn't said may be anything. */
        trip->requests[i].answer.accepted = true;
        trip->requests[i].ask.now = now();
    }
    rbk_requests_fail(trip->requests, trip->len, REDBUCKET_ERROR_TIMEOUT);
    process->phase = DECIDED;
}

static void get_reply(struct process *process)
{
    if (rbk_lease_call_next(process->call))
        process->phase = SENT;
    else
        hear(process);
}

/* All that it has, on its way or decided and not heard of. */
static void be_killed(unsigned number)
{
    struct process *process = &world.processes[number];
    struct rbk_lease_trip *trip = &process->call->trip;
    bool sent = has_call(process);

    world.killed += rbk_purse_permits(rbk_purse_now(&place_of(number)->purse));
    for (size_t i = 0; sent && i < trip->len; i++) {
        const struct rbk_request *request = &trip->requests[i];
        bool gives = request->ask.operation == RBK_GIVE_BACK;

        if (gives ? process->phase == SENT : process->phase == DECIDED && request->answer.accepted)
            world.killed += request->ask.cost;
    }
    process->phase = GONE;
}

void world_close(unsigned number)
{
    struct process *process = &world.processes[number];
    struct rbk_lease_trip *trip = &process->call->trip;

    if (process->phase == GONE)
        return;
    assert_true(rbk_lease_trip_init(trip, 0));
    if (rbk_lease_collect(&process->leases, clock_here(), true, trip))
        decide_on_server(trip->requests, trip->len);
    process->phase = GONE;
}

/* Takes a step, if it can be taken. */
bool world_step(unsigned number, unsigned what)
{
    struct process *process = &world.processes[number];
    bool idle = process->phase == IDLE, sent = process->phase == SENT;

    if (what == ASK && idle && process->asks > 0) {
        process->asks--;
        ask(process, false);
    } else if (what == ASK_OTHER && idle && process->others > 0) {
        process->others--;
        ask(process, true);
    } else if (what == DECIDE && sent) {
        be_decided(process);
    } else if ((what == FAIL || what == FAIL_LATE) && sent && world.failures > 0) {
        world.failures--;
        lose(process, what == FAIL_LATE);
    } else if (what == REPLY && process->phase == DECIDED) {
        get_reply(process);
    } else if (what == KILL && process->phase != GONE && world.kills > 0) {
        world.kills--;
        be_killed(number);
    } else if (what == CLOSE && idle && world.closes > 0) {
        world.closes--;
        world_close(number);
    } else {
        return false;
    }
    return true;
}

/* ---- Beginnings --------------------------------------------------------------------------------
 */

/* A process that has asked for the bucket once, and knows that it is hot. */
static void make_process(unsigned number, unsigned asks, unsigned others)
{
    struct process *process = &world.processes[number];

    memset(&tables[number]->sets[set_number], 0, sizeof tables[number]->sets[set_number]);
    memset(tables[number]->held, 0, sizeof tables[number]->held);
    tables[number]->holding = 0;
    tables[number]->due = 0.0;
    tables[number]->rest = 0.0;
    process->call = &calls[number];
    process->leases.places = tables[number];
    process->leases.clock = clock_here;
    process->leases.timeout = LEASED_TIMEOUT;
    process->leases.one_server = true;
    ask(process, false);
    be_decided(process);
    get_reply(process);
    place_of(number)->pace.next = 2.0;
    process->asks = asks;
    process->others = number == 0 ? others : 0;
}

void world_begin(const struct rbk_limit *limit, unsigned asks, unsigned others)
{
    struct model_ask any;
    static const uint64_t secret[2];

    world_limit = *limit;
    leased_begin(true);
    memset(&world, 0, sizeof world);
    world_served = 0;
    world_set_clocks();
    (void)model_ask(&any, RBK_REQUEST, 1, world_limit, "a");
    set_number = (unsigned)(rbk_lease_bucket(secret, &any.keys[0]) % RBK_LEASE_PLACES_SETS);
    for (unsigned i = 0; i < PROCESSES; i++)
        make_process(i, asks, others);
    /* That was long ago. */
    memset(world.states, 0, sizeof world.states);
    world.history_len = 0;
    world.taken = 0;
}

int world_setup(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROCESSES; i++)
        tables[i] = calloc(1, sizeof *tables[i]);
    return tables[PROCESSES - 1] == NULL;
}

int world_teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROCESSES; i++)
        free(tables[i]);
    return 0;
}
