/* SPDX-License-Identifier: MIT */
#include "slow_store.h"

#include "deadline.h"
#include "test.h"
#include "wait.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct slow_store slow;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock != CLOCK_MONOTONIC)
        return __real_clock_gettime(clock, time);
    time->tv_sec = (time_t)slow.now;
    time->tv_nsec = (long)((slow.now - (double)time->tv_sec) * 1e9);
    return 0;
}

/* True when the test has ended the call. */
static bool wait_for_end(struct slow_call *call, const struct rbk_deadline *deadline)
{
    int fd = slow.same_pipe ? slow.calls[0].pipe[0] : call->pipe[0];
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    char byte;

    while (rbk_deadline_left(deadline) > 0.0) {
        if (rbk_wait_poll(&polled, 1, rbk_deadline_left_ms(deadline)) > 0 &&
            read(fd, &byte, 1) == 1)
            return true;
    }
    return false;
}

/* What it answers can be told from what it was asked: the cost remains. */
static void settle(struct rbk_request *request, enum redbucket_status status)
{
    request->status = status;
    request->failed = RBK_NONE;
    request->ask.now = 7.0;
    request->answer = (struct rbk_answer){
        .accepted = true, .remaining = (int64_t)request->ask.cost, .decided = RBK_NONE};
    for (size_t i = 0; i < request->len; i++)
        request->claims[i].verdict =
            (struct rbk_verdict){.accepted = true, .remaining = (int64_t)request->ask.cost};
}

static void decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                   struct rbk_batch *batch)
{
    struct slow_call *call = &slow.calls[slow.begun++ % SLOW_CALLS];
    enum redbucket_status status = REDBUCKET_OK;
    struct rbk_deadline deadline;
    double left = SLOW_TIMEOUT - batch->waited;

    call->len = len;
    call->waited = batch->waited;
    call->ended = false;
    (void)snprintf(call->first, sizeof call->first, "%.*s", (int)requests[0].keys[0].key_len,
                   (const char *)requests[0].keys[0].key);
    if (slow.tells)
        rbk_store_tell(store, REDBUCKET_EVENT_DOWN, "by a call");
    rbk_deadline_start(&deadline, left > 0.0 ? left : 0.0);
    if (!slow.at_once && !wait_for_end(call, &deadline))
        status = REDBUCKET_ERROR_TIMEOUT;
    for (size_t i = 0; i < len; i++)
        settle(&requests[i], status);
    call->ended = true;
}

static size_t key_max(const struct redbucket_store *store)
{
    (void)store;
    return 15;
}

static enum redbucket_status statistics(struct redbucket_store *store,
                                        struct redbucket_statistics *out)
{
    (void)store;
    (void)out;
    return REDBUCKET_OK;
}

/* A key that begins with a digit has that lane, any other none. */
static size_t lane(const struct redbucket_store *store, const struct rbk_request *request)
{
    unsigned char first = request->keys[0].key[0];

    (void)store;
    return first >= '0' && first <= '9' ? (size_t)(first - '0') : RBK_NONE;
}

static void do_nothing(struct redbucket_store *store)
{
    (void)store;
}

static struct rbk_store_ops ops = {.decide = decide,
                                   .statistics = statistics,
                                   .key_max = key_max,
                                   .close = do_nothing,
                                   .far = true};

struct redbucket_limiter *slow_open(unsigned connections)
{
    struct redbucket_limiter *limiter = NULL;
    struct redbucket_limit limit = {.rate = 1.0};

    slow = (struct slow_store){.now = 1e9};
    ops.lane = NULL;
    slow.store =
        (struct redbucket_store){.ops = &ops, .timeout = SLOW_TIMEOUT, .connections = connections};
    for (int i = 0; i < SLOW_CALLS; i++)
        assert_int_equal(pipe2(slow.calls[i].pipe, O_NONBLOCK), 0);
    assert_int_equal(redbucket_limiter_create(&slow.store, &limiter, NULL), REDBUCKET_OK);
    assert_int_equal(redbucket_limiter_add(limiter, "a", &limit, NULL), REDBUCKET_OK);
    return limiter;
}

void slow_divide(void)
{
    ops.lane = lane;
    ops.lanes = 10;
}

void slow_close(struct redbucket_limiter *limiter)
{
    redbucket_limiter_destroy(limiter);
    for (int i = 0; i < SLOW_CALLS; i++) {
        (void)close(slow.calls[i].pipe[0]);
        (void)close(slow.calls[i].pipe[1]);
    }
}

void slow_end(unsigned call)
{
    assert_int_equal(write(slow.calls[slow.same_pipe ? 0 : call].pipe[1], "x", 1), 1);
}
