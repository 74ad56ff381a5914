/* SPDX-License-Identifier: MIT */
#include "random.h"

#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SEED_DEFAULT 20240229u

static uint64_t number_from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

void random_begin(struct random *random, unsigned rounds)
{
    random->seed = number_from_environment("REDBUCKET_TEST_SEED", SEED_DEFAULT) - 1;
    random->rounds_left = rounds * (unsigned)number_from_environment("REDBUCKET_TEST_ROUNDS", 1);
}

bool random_next_round(struct random *random)
{
    random->state = ++random->seed;
    return random->rounds_left-- > 0;
}

/* Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t next(struct random *random)
{
    uint64_t word = random->state += 0x9e3779b97f4a7c15;

    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

unsigned random_below(struct random *random, unsigned bound)
{
    return (unsigned)((next(random) >> 32) * bound >> 32);
}

bool random_one_in(struct random *random, unsigned count)
{
    return random_below(random, count) == 0;
}

double random_even(struct random *random, double low, double high)
{
    return low + (high - low) * ((double)(next(random) >> 11) / 9007199254740992.0);
}

double random_log(struct random *random, double low, double high)
{
    double number = exp(random_even(random, log(low), log(high)));

    return number < low ? low : number > high ? high : number;
}

/* A number of requests from 0 to `most`, often a small and whole one. */
static double random_depth(struct random *random, double most)
{
    switch (random_below(random, 5)) {
    case 0:
        return 0;
    case 1:
        return random_below(random, 12);
    case 2:
        return floor(random_log(random, 1, most));
    case 3:
        return random_even(random, 0, 5);
    default:
        return random_log(random, 1e-3, most);
    }
}

struct redbucket_limit random_limit(struct random *random)
{
    static const double rates[] = {1, 2, 5, 10, 0.1, 1.0 / 3, 100, 5e5, 1.5e6, 1e-9, 1e12};
    bool plain = random_one_in(random, 2);

    return (struct redbucket_limit){
        .rate = plain ? rates[random_below(random, sizeof rates / sizeof rates[0])]
                      : random_log(random, 1e-9, 1e12),
        .burst = random_depth(random, 5e11),
        .delay = random_depth(random, 5e11),
    };
}

double random_cost(struct random *random, const struct redbucket_limit *limit)
{
    double most = capacity(limit) * (random_one_in(random, 8) ? 1.1 : 1);
    double cost = 1;

    switch (random_below(random, 6)) {
    case 0:
        cost = most;
        break;
    case 1:
        cost = limit->burst + 1;
        break;
    case 2:
        cost = random_log(random, 1e-3, most);
        break;
    case 3:
        cost = random_even(random, 1e-3, most);
        break;
    default:
        break;
    }
    return cost < 1e12 ? cost : 1e12;
}

double random_time(struct random *random)
{
    static const double times[] = {0, 123.4, 1582534960.134661, 4294967296.0, 5e9};

    return random_one_in(random, 3) ? times[random_below(random, sizeof times / sizeof times[0])]
                                    : random_even(random, 0, 5e9);
}

double random_gap(struct random *random, const struct redbucket_limit *limit)
{
    switch (random_below(random, 7)) {
    case 0:
        return 0;
    case 1:
        return 1 / limit->rate;
    case 2:
        return random_even(random, 0, 2) / limit->rate;
    case 3:
        return random_even(random, 0, capacity(limit)) / limit->rate;
    case 4:
        return random_log(random, 1e-9, 1);
    case 5:
        return random_even(random, 0, 0.2) * capacity(limit) / limit->rate;
    default:
        return random_log(random, 1e-3, capacity(limit)) / limit->rate;
    }
}

double ulp(double number)
{
    return nextafter(number, INFINITY) - number;
}

double capacity(const struct redbucket_limit *limit)
{
    return limit->burst + 1 + limit->delay;
}

void random_failed(const struct random *random, const char *file, int line, const char *condition)
{
    print_error("%s:%d: %s\nagain with REDBUCKET_TEST_SEED=%llu\n", file, line, condition,
                (unsigned long long)random->seed);
    _fail(file, line);
    abort();
}
