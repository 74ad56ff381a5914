/* SPDX-License-Identifier: MIT */
/*
 * Chance, the same on every machine, for tests of properties.
 *
 * Each round of a test has a seed of its own, told when the test fails; with REDBUCKET_TEST_SEED
 * set to it, that round is the first. REDBUCKET_TEST_ROUNDS, a number, has each test run so many
 * times its rounds.
 */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include "redbucket/redbucket.h"

struct random {
    uint64_t seed;
    uint64_t state;
    unsigned rounds_left;
};

/* For loops: random_begin(&random, rounds); while (random_next_round(&random)) ... */
void random_begin(struct random *random, unsigned rounds);
bool random_next_round(struct random *random);

/* Below `bound`, which is above 0. */
unsigned random_below(struct random *random, unsigned bound);

/* True once in so many times. */
bool random_one_in(struct random *random, unsigned count);

/* Evenly between two numbers; evenly in their logarithms. */
double random_even(struct random *random, double low, double high);
double random_log(struct random *random, double low, double high);

/* Any limit there is: the whole range of rates, bursts and delays. */
struct redbucket_limit random_limit(struct random *random);

/* A cost that the limit might take: 1, a part of what it holds, all that it holds, or a bit more.
 */
double random_cost(struct random *random, const struct redbucket_limit *limit);

/* A time as a program might have it: from 0 to 5e9. */
double random_time(struct random *random);

/* How long until the next request: not at all, or what a request, or a full bucket, or a part of
 * either takes to drain. */
double random_gap(struct random *random, const struct redbucket_limit *limit);

/* One unit in the last place of a number above 0. */
double ulp(double number);

/* What a bucket of the limit holds. */
double capacity(const struct redbucket_limit *limit);

_Noreturn void random_failed(const struct random *random, const char *file, int line,
                             const char *condition);

/* Fails the test, telling the round's seed. */
#define HOLDS(random, condition) \
    ((condition) ? (void)0 : random_failed(random, __FILE__, __LINE__, #condition))

#endif
