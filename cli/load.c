/* SPDX-License-Identifier: MIT */
/*
 * The threads of a load begin together, at a flag, and each counts for itself, so that they share
 * nothing but the store that is measured.
 */
#include "load.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* Reading the clock takes some ten nanoseconds. Where that is much beside a decision, one of so
 * many is timed; one that took so many nanoseconds has the next one timed as well. */
#define TIMED_EVERY 32u
#define TIMED_NEXT  5000u
#define KEY_SIZE    9

/* `failed` is the request that ended the work early; its status isn't OK. */
struct worker {
    const struct cli_load *load;
    const atomic_bool *go; /* acquire after release, so the load is seen as it was set up */
    pthread_t thread;
    uint64_t seed;
    uint64_t decisions;
    struct redbucket_request failed;
    struct cli_latency latency;
};

static uint64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void write_key(uint64_t number, char key[KEY_SIZE])
{
    for (int i = KEY_SIZE - 2; i >= 0; i--) {
        key[i] = "0123456789abcdef"[number & 15];
        number >>= 4;
    }
    key[KEY_SIZE - 1] = '\0';
}

static bool operate(const struct cli_load *load, enum redbucket_operation operation,
                    uint64_t number, struct redbucket_request *request)
{
    char text[KEY_SIZE];
    const struct redbucket_key key = {CLI_LOAD_LIMIT, text, KEY_SIZE - 1,
                                      sizeof(CLI_LOAD_LIMIT) - 1};
    bool good;

    write_key(number, text);
    *request = (struct redbucket_request){
        .operation = operation,
        .keys = &key,
        .keys_len = 1,
        .cost = 1.0,
    };
    good = redbucket_decide(load->limiter, request, 1) == REDBUCKET_OK;
    request->keys = NULL; /* it ends here, and so does what a report may say about it */
    request->keys_len = 0;
    request->failed = REDBUCKET_NONE;
    return good;
}

static bool request_any(struct worker *worker)
{
    return operate(worker->load, REDBUCKET_REQUEST, next_random(&worker->seed) % worker->load->keys,
                   &worker->failed);
}

/* Some that aren't timed, and one that is; *now is when it was over. */
static bool request_some(struct worker *worker, unsigned untimed, uint64_t *now, uint64_t *took_ns)
{
    uint64_t start;

    for (unsigned i = 0; i < untimed; i++) {
        if (!request_any(worker))
            return false;
    }
    start = monotonic_ns();
    if (!request_any(worker))
        return false;
    *now = monotonic_ns();
    *took_ns = *now - start;
    rbk_latency_add(&worker->latency, *took_ns);
    worker->decisions += untimed + 1;
    return true;
}

static void *work(void *data)
{
    struct worker *worker = data;
    uint64_t took_ns = TIMED_NEXT;
    uint64_t now;
    uint64_t end;

    while (!atomic_load_explicit(worker->go, memory_order_acquire))
        sched_yield();
    now = monotonic_ns();
    end = now + (uint64_t)(worker->load->seconds * 1e9);
    while (now < end &&
           request_some(worker, took_ns < TIMED_NEXT ? TIMED_EVERY - 1 : 0, &now, &took_ns))
        continue;
    return NULL;
}

static size_t start_workers(struct worker *workers, const struct cli_load *load,
                            const atomic_bool *go)
{
    size_t started = 0;

    for (; started < load->threads; started++) {
        struct worker *worker = &workers[started];

        worker->load = load;
        worker->go = go;
        worker->seed = 0x9e3779b97f4a7c15u * (uint64_t)(started + 1);
        if (pthread_create(&worker->thread, NULL, work, worker) != 0)
            break;
    }
    return started;
}

static int collect(struct worker *workers, size_t started, struct cli_load_result *result)
{
    struct redbucket_error error;
    int status = CLI_DONE;

    for (size_t i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].failed.status != REDBUCKET_OK && status == CLI_DONE) {
            redbucket_request_error(&workers[i].failed, &error);
            status = rbk_cli_fail_error("bench", &error);
        }
        result->decisions += workers[i].decisions;
        rbk_latency_merge(&result->latency, &workers[i].latency);
    }
    return status;
}

int rbk_load_run(const struct cli_load *load, struct cli_load_result *result)
{
    struct worker *workers = calloc((size_t)load->threads, sizeof(*workers));
    atomic_bool go = false;
    size_t started;
    uint64_t start;
    int status;

    if (workers == NULL)
        return rbk_cli_fail(CLI_STORE, "bench", "out of memory");
    started = start_workers(workers, load, &go);
    start = monotonic_ns();
    atomic_store_explicit(&go, true, memory_order_release);
    status = collect(workers, started, result);
    result->seconds += (double)(monotonic_ns() - start) * 1e-9;
    if (status == CLI_DONE && started < load->threads)
        status = rbk_cli_fail(CLI_STORE, "bench", "can't start %llu threads",
                              (unsigned long long)load->threads);
    free(workers);
    return status;
}

void rbk_load_forget(const struct cli_load *load)
{
    struct redbucket_request request;

    for (uint64_t i = 0; i < load->keys; i++)
        if (!operate(load, REDBUCKET_RESET, i, &request))
            return;
}
