/* SPDX-License-Identifier: MIT */
/*
 * The store, and who asks it.
 */
#include "gated.h"

#include <sched.h>
#include <stdlib.h>

struct gated gated;

static void settle(struct rbk_request *request, bool broken)
{
    request->failed = RBK_NONE;
    if (broken) {
        request->status = REDBUCKET_ERROR_IO;
    } else if (request->keys[0].key[0] == 'f') {
        request->status = REDBUCKET_ERROR_STATE;
        request->failed = 0;
    } else {
        request->status = REDBUCKET_OK;
        request->ask.now = (double)request->keys[0].key[1];
        for (size_t i = 0; i < request->len; i++) {
            request->claims[i].state = (struct rbk_state){.exists = false};
            request->claims[i].verdict.remaining = request->keys[i].key[1];
        }
        request->answer =
            (struct rbk_answer){.accepted = true, .remaining = 7, .decided = RBK_NONE};
    }
}

static size_t lane(const struct redbucket_store *store, const struct rbk_request *request)
{
    (void)store;
    if (gated.one_by_one || request->keys[0].key[0] == 's')
        return RBK_NONE;
    return request->keys[0].key[0] == 'b';
}

/* That of all requests, or the last for those of several. */
static struct gated_lane *gate_of(const struct rbk_request *requests, size_t len)
{
    size_t number = len > 0 ? lane(&gated.store, &requests[0]) : RBK_NONE;

    for (size_t i = 1; i < len; i++) {
        if (lane(&gated.store, &requests[i]) != number)
            number = RBK_NONE;
    }
    return &gated.lanes[number == RBK_NONE ? GATED_LANES - 1 : number];
}

static void decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                   struct rbk_batch *batch)
{
    struct gated_lane *gate = gate_of(requests, len);
    unsigned number = atomic_fetch_add(&gate->begun, 1);
    bool broken = false;

    (void)store;
    assert_true(batch->waited >= 0.0);
    atomic_store(&gate->lens[number % GATED_CALLS], (unsigned)len);
    atomic_fetch_add(&gated.asked, (unsigned)len);
    while (number >= atomic_load(&gate->open))
        (void)sched_yield();
    for (size_t i = 0; i < len; i++)
        broken = broken || requests[i].keys[0].key[0] == 'x';
    for (size_t i = 0; i < len; i++)
        settle(&requests[i], broken);
}

static size_t key_max(const struct redbucket_store *store)
{
    (void)store;
    return 77;
}

static void close_gated(struct redbucket_store *store)
{
    (void)store;
    gated.closed = true;
}

struct redbucket_store *gated_make(double timeout, unsigned flights, size_t together)
{
    static struct rbk_store_ops ops = {.decide = decide,
                                       .key_max = key_max,
                                       .lane = lane,
                                       .close = close_gated,
                                       .lanes = GATED_LANES - 1,
                                       .far = true};
    struct redbucket_store *store = NULL;
    struct redbucket_error error;

    memset(&gated, 0, sizeof gated);
    ops.together = together != 0 ? together : 1000;
    gated.store.ops = &ops;
    assert_int_equal(rbk_gather_create(&gated.store, timeout, flights, &store, &error),
                     REDBUCKET_OK);
    return store;
}

void gated_open(unsigned lane_number, unsigned number)
{
    atomic_store(&gated.lanes[lane_number].open, number);
}

void gated_await_begun(unsigned lane_number, unsigned calls)
{
    while (atomic_load(&gated.lanes[lane_number].begun) < calls)
        (void)sched_yield();
}

/* ---- Callers -----------------------------------------------------------------------------------
 */

struct asked {
    struct rbk_request requests[GATED_ARRAY];
    struct rbk_key keys[GATED_ARRAY];
    struct rbk_claim claims[GATED_ARRAY];
    unsigned char bytes[GATED_ARRAY][2];
};

static void fill(const struct gated_caller *caller, struct asked *asked)
{
    for (size_t i = 0; i < caller->len; i++) {
        bool last = i == caller->len - 1 && caller->last != 0;

        asked->bytes[i][0] = (unsigned char)(last ? caller->last : caller->kind);
        asked->bytes[i][1] = (unsigned char)(caller->number + i);
        asked->keys[i] = (struct rbk_key){.key = asked->bytes[i], .key_len = 2};
        asked->requests[i] = (struct rbk_request){.ask = {.operation = RBK_REQUEST, .cost = 1},
                                                  .keys = &asked->keys[i],
                                                  .claims = &asked->claims[i],
                                                  .len = 1};
    }
}

void gated_ask(struct gated_caller *caller, struct rbk_batch *batch)
{
    struct asked *asked = calloc(1, sizeof *asked);

    assert_non_null(asked);
    fill(caller, asked);
    atomic_store(&caller->entered, true);
    caller->store->ops->decide(caller->store, asked->requests, caller->len, batch);
    for (size_t i = 0; i < caller->len; i++) {
        assert_ptr_equal(asked->requests[i].keys, &asked->keys[i]);
        assert_ptr_equal(asked->requests[i].claims, &asked->claims[i]);
        if (asked->requests[i].status == REDBUCKET_OK) {
            assert_same(asked->requests[i].ask.now, (double)asked->bytes[i][1]);
            assert_int_equal(asked->claims[i].verdict.remaining, asked->bytes[i][1]);
        }
    }
    caller->requests = malloc(sizeof asked->requests);
    assert_non_null(caller->requests);
    memcpy(caller->requests, asked->requests, sizeof asked->requests);
    free(asked);
}

static void *run(void *data)
{
    struct gated_caller *caller = data;
    struct rbk_batch batch = {.waited = 0.0};

    gated_ask(caller, &batch);
    caller->waited = batch.waited;
    atomic_store(&caller->left, true);
    return NULL;
}

void gated_start(struct gated_caller *caller, struct redbucket_store *store, char kind,
                 unsigned number)
{
    *caller = (struct gated_caller){
        .store = store, .len = 1, .kind = kind, .number = (unsigned char)number};
    gated_start_array(caller);
}

void gated_start_array(struct gated_caller *caller)
{
    assert_int_equal(pthread_create(&caller->thread, NULL, run, caller), 0);
}

enum redbucket_status gated_join(struct gated_caller *caller)
{
    enum redbucket_status status;

    assert_int_equal(pthread_join(caller->thread, NULL), 0);
    status = caller->requests[0].status;
    free(caller->requests);
    return status;
}

void gated_await_queued(const struct gated_caller *callers, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        while (!atomic_load(&callers[i].entered))
            (void)sched_yield();
    }
    /* What lies between entering and waiting is a few instructions; whoever is later than this
     * only goes with the call after the next. */
    for (int i = 0; i < 2000; i++)
        (void)sched_yield();
}
