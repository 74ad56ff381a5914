/* SPDX-License-Identifier: MIT */
/*
 * What a bad network does, as numbers, and bad networks by chance: a schedule of spells that a seed
 * repeats.
 */
#ifndef TEST_FAULT_WEATHER_H
#define TEST_FAULT_WEATHER_H

#include <stdbool.h>
#include <stdint.h>

/* Of what chances are told in. */
#define TEST_CHANCES 10000u

/*
 * All 0 is a good network.
 *
 *   latency_us, jitter_us  how much later everything comes, each way, and by how much more at most
 *   piece_max, gap_us      how many bytes come at a time at most, and what is between them at most;
 *                          0 for all at once
 *   hold, hold_us          the chance that a connection stands still from here on, for so long at
 *                          most, while others go on
 *   cut                    that a connection ends in the middle of what comes, one way or the other
 *   deaf                   that nothing comes through any more and nobody is told, one way or both
 *   garbage                that the client is given what no server says
 *   refused, silent        that a new connection is closed at once; that it is never served
 *
 * Chances are for each time that something comes, the last two for each connection.
 */
struct test_weather {
    unsigned latency_us;
    unsigned jitter_us;
    unsigned piece_max;
    unsigned gap_us;
    unsigned hold;
    unsigned hold_us;
    unsigned cut;
    unsigned deaf;
    unsigned garbage;
    unsigned refused;
    unsigned silent;
};

/* How often each of it happened. `late` is what reached the server after its client had gone. */
struct test_fault_counts {
    uint64_t connections;
    uint64_t pieces;
    uint64_t held;
    uint64_t cut;
    uint64_t deaf;
    uint64_t garbage;
    uint64_t refused;
    uint64_t silent;
    uint64_t late;
};

struct test_chance {
    uint64_t state;
};

struct test_chance test_chance_begin(uint64_t seed);

/* A number from 0 on, below `bound`; 0 for a bound of 0. */
unsigned test_chance_below(struct test_chance *chance, unsigned bound);

/* True so many times in TEST_CHANCES. */
bool test_chance_of(struct test_chance *chance, unsigned chances);

/* The next spell: its weather in *weather, its kind as a static text in *name. Returns how long it
 * lasts, in microseconds. Nearly half of the time the weather is good. */
uint64_t test_weather_next(struct test_chance *chance, struct test_weather *weather,
                           const char **name);

#endif
