/* SPDX-License-Identifier: MIT */
/*
 * What one request on a server takes, for one caller who has no other: beside it, what a language
 * adds can be told. Prints a "NAME VALUE" line; the best of a few rounds, in microseconds.
 */
#include <redbucket/redbucket.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 5
#define COUNT  4000

static double now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static double round_us(struct redbucket_limiter *limiter)
{
    const struct redbucket_key key = {"user", "192.0.2.7", 0, 0};
    struct redbucket_response response;
    double begin = now_us();

    for (int i = 0; i < COUNT; i++) {
        if (redbucket_request(limiter, &key, 1, &response) != REDBUCKET_OK || !response.accepted)
            exit(1);
    }
    return (now_us() - begin) / COUNT;
}

int main(int argc, char **argv)
{
    const struct redbucket_limit limit = {.rate = 1e6, .burst = 1e9, .expiry = 3600};
    struct redbucket_limiter *limiter;
    struct redbucket_store *store;
    double best = 1e9;

    if (argc != 2 || redbucket_store_open(argv[1], &store, NULL) != REDBUCKET_OK ||
        redbucket_limiter_create(store, &limiter, NULL) != REDBUCKET_OK ||
        redbucket_limiter_add(limiter, "user", &limit, NULL) != REDBUCKET_OK)
        return 1;
    for (int i = 0; i < ROUNDS; i++) {
        double took = round_us(limiter);

        best = took < best ? took : best;
    }
    printf("bare_us %.3f\n", best);
    redbucket_limiter_destroy(limiter);
    redbucket_store_close(store);
    return 0;
}
