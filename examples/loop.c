/* SPDX-License-Identifier: MIT */
/*
 * The least that a program with a loop of its own does to ask without ever waiting: watch one
 * descriptor, dispatch when it is readable, and be called back. Asks for ten permits at once, and
 * waits delays out side by side.
 *
 * usage: loop [STORE]
 */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include <redbucket/async.h>

#define REQUESTS 10

struct errand {
    int number;
    double ready_at; /* 0: not known yet */
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Here, and nowhere else, is an answer. */
static void answered(void *data, const struct redbucket_request *request)
{
    struct errand *errand = data;
    struct redbucket_error error;

    errand->ready_at = INFINITY;
    if (request->status != REDBUCKET_OK) {
        redbucket_request_error(request, &error);
        printf("%d: %s\n", errand->number, error.message);
    } else if (!request->response.accepted) {
        printf("%d: rejected, retry after %.3f s\n", errand->number, request->response.retry_after);
    } else {
        errand->ready_at = now() + request->response.delay;
        printf("%d: accepted, goes on after %.3f s\n", errand->number, request->response.delay);
    }
}

/* Seconds until the next one goes on; INFINITY when none is to. */
static double go_on(struct errand *errands)
{
    double next = INFINITY;

    for (int i = 0; i < REQUESTS; i++) {
        double left = errands[i].ready_at - now();

        if (errands[i].ready_at == 0.0 || isinf(errands[i].ready_at))
            continue;
        if (left > 0.0) {
            next = fmin(next, left);
            continue;
        }
        printf("%d: goes on\n", errands[i].number);
        errands[i].ready_at = INFINITY;
    }
    return next;
}

static void run(struct redbucket_async *async, struct errand *errands)
{
    double next = go_on(errands);

    while (redbucket_async_outstanding(async) > 0 || !isinf(next)) {
        struct pollfd polled = {.fd = redbucket_async_descriptor(async), .events = POLLIN};

        poll(&polled, 1, isinf(next) ? -1 : (int)ceil(next * 1e3));
        redbucket_async_dispatch(async);
        next = go_on(errands);
    }
}

static void ask(struct redbucket_async *async, struct errand *errands)
{
    struct redbucket_key key = {.limit = "user", .key = "alice"};
    struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1.0};

    for (int i = 0; i < REQUESTS; i++) {
        enum redbucket_status status;

        errands[i] = (struct errand){.number = i + 1};
        status = redbucket_async_request(async, &request, answered, &errands[i], NULL);
        if (status != REDBUCKET_OK) {
            printf("%d: %s\n", errands[i].number, redbucket_status_text(status));
            errands[i].ready_at = INFINITY;
        }
    }
}

int main(int argc, char **argv)
{
    const struct redbucket_limit limit = {.rate = 10, .burst = 2, .delay = 4};
    struct redbucket_store *store = NULL;
    struct redbucket_limiter *limiter = NULL;
    struct redbucket_async *async = NULL;
    struct redbucket_error error;
    struct errand errands[REQUESTS];
    int failed = 0;

    if (redbucket_store_open(argc > 1 ? argv[1] : "memory:", &store, &error) != REDBUCKET_OK ||
        redbucket_limiter_create(store, &limiter, &error) != REDBUCKET_OK ||
        redbucket_limiter_add(limiter, "user", &limit, &error) != REDBUCKET_OK ||
        redbucket_async_create(limiter, &async, &error) != REDBUCKET_OK) {
        fprintf(stderr, "loop: %s\n", error.message);
        failed = 1;
    } else {
        ask(async, errands);
        run(async, errands);
    }
    redbucket_async_destroy(async);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    return failed;
}
