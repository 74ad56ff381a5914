/* SPDX-License-Identifier: MIT */
/*
 * A spell has one fault above all, as strong as chance has it, since what is to be found needs time
 * with that fault alone; now and then everything comes together.
 */
#include "fault_weather.h"

#include <stddef.h>

#define BAD_MIN_US  50000u
#define BAD_MAX_US  900000u
#define GOOD_MIN_US 100000u
#define GOOD_MAX_US 1800000u

struct kind {
    const char *name;
    unsigned share;
    struct test_weather most;
};

static const struct kind kinds[] = {
    {"good", 10, {0}},
    {"slow", 2, {.latency_us = 60000, .jitter_us = 5000}},
    {"too slow", 1, {.latency_us = 400000}},
    {"uneven", 2, {.latency_us = 2000, .jitter_us = 60000}},
    {"in pieces", 2, {.piece_max = 12, .gap_us = 3000}},
    {"in pieces, too slowly", 1, {.piece_max = 3, .gap_us = 40000}},
    {"cutting", 3, {.jitter_us = 1000, .cut = 1500}},
    {"half open", 2, {.deaf = 1200}},
    {"out of order", 4, {.hold = 4000, .hold_us = 700000}},
    {"lying", 3, {.garbage = 2500}},
    {"refusing", 2, {.cut = 1000, .refused = 9000}},
    {"silent", 1, {.deaf = 500, .silent = 9000}},
    {"stormy",
     3,
     {.latency_us = 5000,
      .jitter_us = 30000,
      .piece_max = 200,
      .gap_us = 3000,
      .hold = 400,
      .hold_us = 400000,
      .cut = 400,
      .deaf = 150,
      .garbage = 300,
      .refused = 2000,
      .silent = 500}},
};

#define KINDS (sizeof kinds / sizeof kinds[0])

struct test_chance test_chance_begin(uint64_t seed)
{
    return (struct test_chance){seed};
}

/* SplitMix64: any seed is a good one, also those next to each other. */
unsigned test_chance_below(struct test_chance *chance, unsigned bound)
{
    uint64_t z = chance->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (unsigned)(((z >> 32) * bound) >> 32);
}

bool test_chance_of(struct test_chance *chance, unsigned chances)
{
    return chances > 0 && test_chance_below(chance, TEST_CHANCES) < chances;
}

static const struct kind *draw_kind(struct test_chance *chance)
{
    unsigned shares = 0;
    size_t i = 0;

    for (size_t j = 0; j < KINDS; j++)
        shares += kinds[j].share;
    for (unsigned left = test_chance_below(chance, shares); left >= kinds[i].share; i++)
        left -= kinds[i].share;
    return &kinds[i];
}

/* Anything up to the most. */
static unsigned some_of(struct test_chance *chance, unsigned most)
{
    return most == 0 ? 0 : 1 + test_chance_below(chance, most);
}

uint64_t test_weather_next(struct test_chance *chance, struct test_weather *weather,
                           const char **name)
{
    const struct kind *kind = draw_kind(chance);
    const struct test_weather *most = &kind->most;
    bool good = kind == &kinds[0];

    *name = kind->name;
    *weather = (struct test_weather){
        .latency_us = some_of(chance, most->latency_us),
        .jitter_us = some_of(chance, most->jitter_us),
        .piece_max = some_of(chance, most->piece_max),
        .gap_us = some_of(chance, most->gap_us),
        .hold = some_of(chance, most->hold),
        .hold_us = some_of(chance, most->hold_us),
        .cut = some_of(chance, most->cut),
        .deaf = some_of(chance, most->deaf),
        .garbage = some_of(chance, most->garbage),
        .refused = some_of(chance, most->refused),
        .silent = some_of(chance, most->silent),
    };
    return good ? GOOD_MIN_US + test_chance_below(chance, GOOD_MAX_US - GOOD_MIN_US)
                : BAD_MIN_US + test_chance_below(chance, BAD_MAX_US - BAD_MIN_US);
}
