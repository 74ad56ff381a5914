/* SPDX-License-Identifier: MIT */
/*
 * One hot key of two processes on one server, with a lease and without: decisions a second of both
 * together. Prints "NAME VALUE" lines for bench/report.py.
 *
 * usage: bench_leases SOCKET
 */
#include "redbucket/redbucket.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES 2
#define SECONDS   1.5
#define ROUNDS    3 /* of which the best counts */

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

static struct redbucket_limiter *open_limiter(const char *url, double lease,
                                              struct redbucket_store **store)
{
    struct redbucket_limit limit = {.rate = 1e9, .burst = 1e10, .expiry = 60, .lease = lease};
    struct redbucket_limiter *limiter = NULL;
    struct redbucket_error error;

    if (redbucket_store_open(url, store, &error) != REDBUCKET_OK ||
        redbucket_limiter_create(*store, &limiter, &error) != REDBUCKET_OK ||
        redbucket_limiter_add(limiter, "user", &limit, &error) != REDBUCKET_OK)
        die(url, error.message);
    return limiter;
}

/* Looks at the clock once in a while, so that it isn't what is measured. */
static double ask_for_a_while(const char *url, double lease)
{
    struct redbucket_key key = {"user", "192.0.2.7", 9, 4};
    struct redbucket_store *store = NULL;
    struct redbucket_limiter *limiter = open_limiter(url, lease, &store);
    struct redbucket_response response;
    double begin = now();
    double decided = 0;

    while (now() - begin < SECONDS) {
        for (int i = 0; i < 64; i++) {
            if (redbucket_request(limiter, &key, 1, &response) != REDBUCKET_OK ||
                !response.accepted)
                die("request", "failed");
        }
        decided += 64;
    }
    decided /= now() - begin;
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    return decided;
}

static double measure_round(const char *url, double lease)
{
    double *rates = mmap(NULL, PROCESSES * sizeof *rates, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double sum = 0.0;

    if (rates == MAP_FAILED)
        die("memory", "can't be shared");
    for (int i = 0; i < PROCESSES; i++) {
        pid_t pid = fork();

        if (pid < 0)
            die("process", "can't start");
        if (pid == 0) {
            rates[i] = ask_for_a_while(url, lease);
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;

        if (wait(&status) < 0 || status != 0)
            die("process", "failed");
    }
    for (int i = 0; i < PROCESSES; i++)
        sum += rates[i];
    (void)munmap(rates, PROCESSES * sizeof *rates);
    return sum;
}

static void measure(const char *url, double lease, const char *name)
{
    double best = 0.0;

    for (int i = 0; i < ROUNDS; i++) {
        double rate = measure_round(url, lease);

        best = rate > best ? rate : best;
    }
    printf("%s %.0f\n", name, best);
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    char url[512];

    if (argc != 2)
        die("usage", "bench_leases SOCKET");
    (void)snprintf(url, sizeof url, "unix://%s", argv[1]);
    measure(url, 0.0, "hot_unleased");
    measure(url, 1e6, "hot_leased");
    return 0;
}
