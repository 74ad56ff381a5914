/* SPDX-License-Identifier: MIT */
/*
 * What a decision of the embedded stores costs. Prints "NAME VALUE" lines for bench/report.py:
 * rates in decisions a second, each the best of several rounds, with the stores that are compared
 * taking turns, so that a noisy moment hits both. With the argument "versions", what is measured.
 */
#include "redbucket/redbucket.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEYS   1000000u
#define DRAWS  (1u << 20)
#define ROUNDS 7

struct traffic {
    char (*keys)[16];
    uint32_t *draws;
};

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

static struct redbucket_store *open_store(const char *url)
{
    struct redbucket_error error;
    struct redbucket_store *store;

    if (redbucket_store_open(url, &store, &error) != REDBUCKET_OK)
        die(url, error.message);
    return store;
}

/* A limit that accepts everything here, one that rejects nearly everything, and one by which a
 * bucket lives for hours. */
static struct redbucket_limiter *make_limiter(struct redbucket_store *store)
{
    static const struct {
        const char *name;
        struct redbucket_limit limit;
    } limits[] = {
        {"user", {.rate = 1e6, .burst = 1e9}},
        {"slow", {.rate = 1e-3}},
        {"live", {.rate = 1e-4, .burst = 1e6}},
    };
    struct redbucket_limiter *limiter;
    struct redbucket_error error;

    if (redbucket_limiter_create(store, &limiter, &error) != REDBUCKET_OK)
        die("limiter", error.message);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (redbucket_limiter_add(limiter, limits[i].name, &limits[i].limit, &error) !=
            REDBUCKET_OK)
            die(limits[i].name, error.message);
    }
    return limiter;
}

/* Keys drawn by Zipf's law with exponent 1: rank r is proportional to 1 / r. */
static void make_traffic(struct traffic *traffic)
{
    uint64_t seed = 88172645463325252u;
    double harmonic = log((double)KEYS);

    traffic->keys = malloc(KEYS * sizeof traffic->keys[0]);
    traffic->draws = malloc(DRAWS * sizeof traffic->draws[0]);
    if (traffic->keys == NULL || traffic->draws == NULL)
        die("traffic", "out of memory");
    for (uint32_t i = 0; i < KEYS; i++)
        (void)snprintf(traffic->keys[i], sizeof traffic->keys[i], "user%07u", i);
    for (uint32_t i = 0; i < DRAWS; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        double uniform = (double)(seed >> 11) * 0x1p-53;
        uint32_t rank = (uint32_t)exp(uniform * harmonic);

        /* Ranks that are neighbours shall not be neighbours in memory too. */
        traffic->draws[i] = (uint32_t)((uint64_t)rank * 7919 % KEYS);
    }
}

static double rate_hot(struct redbucket_limiter *limiter, const char *limit, unsigned count)
{
    struct redbucket_key key = {limit, "192.0.2.7", 9, strlen(limit)};
    struct redbucket_response response;
    double begin = now();

    for (unsigned i = 0; i < count; i++) {
        if (redbucket_request(limiter, &key, 1, &response) != REDBUCKET_OK)
            die("hot key", "a request failed");
    }
    return count / (now() - begin);
}

static double rate_skewed(struct redbucket_limiter *limiter, const struct traffic *traffic)
{
    struct redbucket_response response;
    double begin = now();

    for (unsigned i = 0; i < DRAWS; i++) {
        struct redbucket_key key = {"live", traffic->keys[traffic->draws[i]], 11, 4};

        if (redbucket_request(limiter, &key, 1, &response) != REDBUCKET_OK)
            die("skewed keys", "a request failed");
    }
    return DRAWS / (now() - begin);
}

static void fill(struct redbucket_limiter *limiter, const struct traffic *traffic)
{
    struct redbucket_response response;

    for (uint32_t i = 0; i < KEYS; i++) {
        struct redbucket_key key = {"live", traffic->keys[i], 11, 4};

        if (redbucket_request(limiter, &key, 1, &response) != REDBUCKET_OK)
            die("million keys", "a request failed");
    }
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The smallest table, in whole MB, that holds a million live keys and gives none of them up. */
static void measure_memory(const struct traffic *traffic)
{
    struct redbucket_store *store = open_store("memory:?size=64000000");
    struct redbucket_limiter *limiter = make_limiter(store);
    struct redbucket_statistics statistics = {.size = sizeof statistics};

    fill(limiter, traffic);
    if (redbucket_store_statistics(store, &statistics) != REDBUCKET_OK)
        die("statistics", "failed");
    printf("live_keys %llu\n", (unsigned long long)statistics.buckets);
    printf("evicted_keys %llu\n", (unsigned long long)statistics.evicted);
    printf("bytes_a_key %.2f\n", (double)statistics.bytes / (double)statistics.buckets);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
}

static void measure_speed(const struct traffic *traffic, const char *shm_url)
{
    static const char *const names[] = {"memory", "shm"};
    struct redbucket_store *stores[] = {open_store("memory:?size=80m"), open_store(shm_url)};
    struct redbucket_limiter *limiters[] = {make_limiter(stores[0]), make_limiter(stores[1])};
    double hot[2] = {0}, rejected[2] = {0}, skewed[2] = {0};

    for (int i = 0; i < 2; i++)
        fill(limiters[i], traffic);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            hot[i] = larger(hot[i], rate_hot(limiters[i], "user", 1000000));
            rejected[i] = larger(rejected[i], rate_hot(limiters[i], "slow", 1000000));
            skewed[i] = larger(skewed[i], rate_skewed(limiters[i], traffic));
        }
    }
    for (int i = 0; i < 2; i++) {
        printf("%s_hot %.0f\n%s_rejected %.0f\n%s_skewed %.0f\n", names[i], hot[i], names[i],
               rejected[i], names[i], skewed[i]);
        redbucket_limiter_destroy(limiters[i]);
        redbucket_store_close(stores[i]);
    }
}

/* What is measured, and what made it: this program is compiled as the library is. */
static void print_versions(void)
{
#if defined(__clang__)
    const char *compiler = "clang " __clang_version__;
#elif defined(__GNUC__)
    const char *compiler = "gcc " __VERSION__;
#else
    const char *compiler = "an unknown compiler";
#endif
#ifdef __OPTIMIZE__
    const char *how = "";
#else
    const char *how = ", not optimized";
#endif

    printf("redbucket %s by %s%s\n", redbucket_version(), compiler, how);
}

int main(int argc, char **argv)
{
    struct traffic traffic;
    char name[64], url[96], path[96];

    if (argc == 2 && strcmp(argv[1], "versions") == 0) {
        print_versions();
        return 0;
    }
    (void)snprintf(name, sizeof name, "redbucket-bench-%ld", (long)getpid());
    (void)snprintf(url, sizeof url, "shm:%s?size=80m", name);
    (void)snprintf(path, sizeof path, "/dev/shm/%s", name);
    make_traffic(&traffic);
    measure_memory(&traffic);
    measure_speed(&traffic, url);
    (void)unlink(path);
    free(traffic.keys);
    free(traffic.draws);
    return 0;
}
