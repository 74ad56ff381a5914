/* SPDX-License-Identifier: MIT */
/*
 * Decisions a second of the asynchronous form: one thread with one event loop, and always as many
 * requests outstanding, each for another key, each asked by the callback of one before. Prints
 * "NAME VALUE" for bench/report.py.
 *
 * usage: bench_async NAME URL OUTSTANDING KEYS
 */
#include "redbucket/async.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SECONDS 1.5

static struct {
    struct redbucket_async *async;
    unsigned next;
    unsigned keys;
    unsigned long long decided;
    double until;
} load;

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

_Noreturn static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

static void ask(void);

static void count(void *data, const struct redbucket_request *decided)
{
    (void)data;
    if (decided->status != REDBUCKET_OK)
        die("request", redbucket_status_text(decided->status));
    load.decided++;
    if (load.until > 0.0)
        ask();
}

static void ask(void)
{
    char text[16];
    int len = snprintf(text, sizeof text, "%012u", load.next++ * 7919u % load.keys);
    struct redbucket_key key = {"user", text, (size_t)len, 4};
    struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1.0};

    if (redbucket_async_request(load.async, &request, count, NULL, NULL) != REDBUCKET_OK)
        die("request", "refused");
}

static struct redbucket_limiter *open_limiter(const char *url)
{
    struct redbucket_limit limit = {.rate = 1e6, .burst = 1e9, .expiry = 60};
    struct redbucket_limiter *limiter = NULL;
    struct redbucket_store *store = NULL;
    struct redbucket_error error;

    if (redbucket_store_open(url, &store, &error) != REDBUCKET_OK ||
        redbucket_limiter_create(store, &limiter, &error) != REDBUCKET_OK ||
        redbucket_limiter_add(limiter, "user", &limit, &error) != REDBUCKET_OK ||
        redbucket_async_create(limiter, &load.async, &error) != REDBUCKET_OK)
        die(url, error.message);
    return limiter;
}

static void turn(void)
{
    struct pollfd polled = {.fd = redbucket_async_descriptor(load.async), .events = POLLIN};

    if (poll(&polled, 1, 10000) != 1)
        die("loop", "nothing comes");
    redbucket_async_dispatch(load.async);
}

int main(int argc, char **argv)
{
    double outstanding = 0.0, keys = 0.0, begin;

    if (argc != 5 || redbucket_number_parse(argv[3], &outstanding, NULL) != REDBUCKET_OK ||
        redbucket_number_parse(argv[4], &keys, NULL) != REDBUCKET_OK || outstanding < 1.0 ||
        outstanding > REDBUCKET_ASYNC_MAX || keys < 1.0 || keys > 1e9)
        die("usage", "bench_async NAME URL OUTSTANDING KEYS");
    (void)open_limiter(argv[2]);
    load.keys = (unsigned)keys;
    begin = now();
    load.until = begin + SECONDS;
    for (double i = 0.0; i < outstanding; i++)
        ask();
    while (now() < load.until)
        turn();
    printf("%s %.0f\n", argv[1], (double)load.decided / (now() - begin));
    load.until = 0.0;
    while (redbucket_async_outstanding(load.async) > 0)
        turn();
    redbucket_async_destroy(load.async);
    return 0;
}
