/* SPDX-License-Identifier: MIT */
/*
 * What a worker of the soak measures: times, itself, and how much of a key was accepted.
 *
 * The book is a counter from outside: a key's bucket again, but in one word, which says until when
 * what was accepted takes to drain. It knows nothing of the library but what that answered. Moments
 * are uncertain, so whatever is in doubt is decided for the library: nothing is found that isn't
 * there.
 */
#include "soak.h"

#include "processes.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S  1e9
#define BIN_BITS  3
#define BIN_FIRST 6 /* times of less than 64 ns are one */

uint64_t soak_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void soak_note_time(struct soak_histogram *histogram, uint64_t ns)
{
    unsigned exponent = 63u - (unsigned)__builtin_clzll(ns | 1u);
    size_t bin = 0;

    if (exponent >= BIN_FIRST)
        bin = (size_t)(exponent - BIN_FIRST) << BIN_BITS |
              (ns >> (exponent - BIN_BITS) & ((1u << BIN_BITS) - 1));
    (void)atomic_fetch_add(&histogram->bins[bin < SOAK_BINS ? bin : SOAK_BINS - 1], 1);
}

uint64_t soak_bin_ns(size_t bin)
{
    uint64_t first = (1u << BIN_BITS) + (bin & ((1u << BIN_BITS) - 1));

    return first << ((bin >> BIN_BITS) + BIN_FIRST - BIN_BITS);
}

/* ---- Itself --------------------------------------------------------------------------------- */

static uint64_t entries(const char *folder)
{
    DIR *open = opendir(folder);
    uint64_t count = 0;

    while (open != NULL && readdir(open) != NULL)
        count++;
    if (open != NULL)
        (void)closedir(open);
    return count;
}

static uint64_t lines(const char *path)
{
    FILE *file = fopen(path, "re");
    uint64_t count = 0;
    int byte;

    while (file != NULL && (byte = fgetc(file)) != EOF)
        count += byte == '\n';
    if (file != NULL)
        (void)fclose(file);
    return count;
}

/* What a line of such a file says behind `word`, in KiB. */
static uint64_t kib_of(const char *path, const char *word)
{
    FILE *file = fopen(path, "re");
    char line[128];
    uint64_t kib = 0;

    while (file != NULL && kib == 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, word, strlen(word)) == 0)
            kib = strtoull(line + strlen(word), NULL, 10);
    }
    if (file != NULL)
        (void)fclose(file);
    return kib;
}

static uint64_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

void soak_measure(soak_count measures[SOAK_MEASURES])
{
    atomic_store(&measures[SOAK_HEAP], heap_bytes());
    atomic_store(&measures[SOAK_RSS], kib_of("/proc/self/smaps_rollup", "Rss:"));
    atomic_store(&measures[SOAK_DATA], kib_of("/proc/self/status", "VmData:"));
    atomic_store(&measures[SOAK_DESCRIPTORS], entries("/proc/self/fd") - 3);
    atomic_store(&measures[SOAK_THREADS], entries("/proc/self/task") - 2);
    atomic_store(&measures[SOAK_MAPPINGS], lines("/proc/self/maps"));
}

/* ---- The book ------------------------------------------------------------------------------- */

unsigned soak_generation(const struct soak *soak)
{
    return (unsigned)((test_now() - soak->began) / soak->pace.generation);
}

static double bound_of(const struct soak *soak, enum soak_worker_name worker, unsigned generation,
                       size_t key)
{
    const struct soak_group *group = &soak->groups[soak_roles[worker].group];
    bool leased = key >= SOAK_PLAIN_KEYS;
    double rate = leased ? SOAK_LEASED_RATE : SOAK_RATE;
    double full = leased ? SOAK_LEASED_BURST + 1 : SOAK_BURST + 1 + SOAK_DELAY;
    /* In this order: what is lost is counted before it is no longer being lost. */
    uint64_t losing = atomic_load(&group->losing);
    double lost = (double)(losing + atomic_load(&group->lost[generation % SOAK_GENERATIONS]));

    if (leased && soak_roles[worker].served)
        full += SOAK_LEASED_RATE * SOAK_LEASE_TIME;
    return full * (1 + lost) + rate * SOAK_PROMPT_S;
}

void soak_book(struct soak *soak, enum soak_worker_name name, unsigned generation, size_t key,
               uint64_t from_ns)
{
    struct soak_worker *worker = &soak->workers[name];
    soak_count *until = &worker->book[generation % SOAK_GENERATIONS][key];
    double rate = key >= SOAK_PLAIN_KEYS ? SOAK_LEASED_RATE : SOAK_RATE;
    uint64_t one = (uint64_t)(NS_PER_S / rate);
    uint64_t known = atomic_load(until);
    uint64_t now = soak_ns(), next;

    if ((double)(now - from_ns) > SOAK_PROMPT_S * NS_PER_S) {
        (void)atomic_fetch_add(&worker->late, 1);
        return;
    }
    do
        next = (known > now ? known : now) + one;
    while (!atomic_compare_exchange_weak(until, &known, next));
    now = soak_ns();

    double level = next > now ? (double)(next - now) / NS_PER_S * rate : 0.0;
    double over = (level - bound_of(soak, name, generation, key)) * 1000.0;
    uint64_t worst = atomic_load(&worker->excess);

    while (over > (double)worst &&
           !atomic_compare_exchange_weak(&worker->excess, &worst, (uint64_t)over))
        continue;
}
