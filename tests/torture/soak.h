/* SPDX-License-Identifier: MIT */
/*
 * A soak: every kind of store at once, in processes of their own, for as long as one likes, while
 * servers are restarted, masters change, slots move, processes fork and are killed, and stores are
 * opened and closed again and again. What may not happen is that anything grows: memory,
 * descriptors, threads, mappings, or the time that a call takes.
 *
 * A conductor (soak.c) starts directors (soak_directors.c), which have the servers and do the harm,
 * and workers (soak_worker.c), which ask and measure themselves. They share one struct soak. All
 * numbers of a worker are 64 bits wide and at fixed places, since one of them is a Python program.
 *
 * The numbers are judged by the conductor alone (soak_verdict.c), by trends and not by the eye.
 */
#ifndef TEST_SOAK_H
#define TEST_SOAK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOAK_BINS        224 /* of a histogram: eight for each doubling */
#define SOAK_STATUSES    25
#define SOAK_EVENTS      5
#define SOAK_URL_SIZE    1024
#define SOAK_GENERATIONS 8 /* of keys, whose names come again in no other */
#define SOAK_PLAIN_KEYS  4
#define SOAK_LEASED_KEYS 2
#define SOAK_KEYS        (SOAK_PLAIN_KEYS + SOAK_LEASED_KEYS)

#define SOAK_RATE         5.0
#define SOAK_BURST        9.0
#define SOAK_DELAY        3.0
#define SOAK_LEASED_RATE  40.0
#define SOAK_LEASED_BURST 20.0
#define SOAK_LEASE        10.0
#define SOAK_LEASE_TIME   0.25

/* From here on it is no test of a few seconds, where things have to happen quickly. */
#define SOAK_LONG_S 60.0

/* An answer that took longer isn't counted against the bound: nobody knows when it was decided. */
#define SOAK_PROMPT_S 0.05

typedef _Atomic uint64_t soak_count;

/* What a worker knows about itself when it stands still. */
enum soak_measure {
    SOAK_HEAP,        /* bytes that are allocated */
    SOAK_RSS,         /* KiB of memory that it holds */
    SOAK_DATA,        /* KiB that it has asked the system for, touched or not */
    SOAK_DESCRIPTORS, /* that are open */
    SOAK_THREADS,
    SOAK_MAPPINGS,
    SOAK_MEASURES,
};

struct soak_histogram {
    soak_count bins[SOAK_BINS];
};

/* Who disturbs whom: workers of one group feel the same director. */
enum soak_group_name {
    SOAK_LOCAL,
    SOAK_SHARED,
    SOAK_REDIS,
    SOAK_SENTINEL,
    SOAK_CLUSTER,
    SOAK_CONTROL,
    SOAK_GROUPS,
};

enum soak_harm {
    SOAK_KILLED,   /* a process or a server, by SIGKILL */
    SOAK_ENDED,    /* a server, which was started again */
    SOAK_STOPPED,  /* a server, which stood still */
    SOAK_CUT,      /* all connections of a server */
    SOAK_FAILOVER, /* a master gave up its place */
    SOAK_MOVED,    /* a slot */
    SOAK_HARMS,
};

/*
 *   ready     the URL is there
 *   harmed    how often something was done, so that a call can tell whether it was meanwhile
 *   troubled  not 0 while something is being done, and until all should be well again
 *   lost      how many buckets' worth of state was lost at most, for each generation of keys
 *   losing    how many more may be lost while this goes on, of keys of any generation
 */
struct soak_group {
    soak_count ready;
    soak_count harmed;
    soak_count troubled;
    soak_count harms[SOAK_HARMS];
    soak_count lost[SOAK_GENERATIONS];
    soak_count losing;
    char url[SOAK_URL_SIZE];
    char safe_url[SOAK_URL_SIZE]; /* by TLS, where there is TLS */
};

/*
 *   calls, control    nanoseconds, of a call and of something that isn't ours, while all is well
 *   disturbed         calls beside a stated harm
 *   failed            by status: while all is well, and beside a stated harm
 *   late              accepted, but too late to be counted against the bound
 *   excess            of any key, in thousandths of a request beyond its bound
 *   parked            the last round in which it stood still
 *   before, after     its measures with everything closed, before and after it all
 *   book              for each key, until when what it has taken lasts, in nanoseconds
 */
struct soak_worker {
    soak_count ready;
    soak_count parked;
    soak_count ended;
    soak_count accepted;
    soak_count rejected;
    soak_count late;
    soak_count excess;
    soak_count opened;
    soak_count forked;
    soak_count measures[SOAK_MEASURES];
    soak_count before[SOAK_MEASURES];
    soak_count after[SOAK_MEASURES];
    soak_count failed[2][SOAK_STATUSES];
    soak_count events[SOAK_EVENTS];
    soak_count book[SOAK_GENERATIONS][SOAK_KEYS];
    struct soak_histogram calls;
    struct soak_histogram control;
    struct soak_histogram disturbed;
};

enum soak_worker_name {
    SOAK_W_MEMORY,
    SOAK_W_SHM,
    SOAK_W_REDIS,
    SOAK_W_ASYNC,
    SOAK_W_SENTINEL,
    SOAK_W_CLUSTER,
    SOAK_W_PYTHON,
    SOAK_WORKERS,
};

/* How often things happen, in seconds; `round` is from one look at everybody to the next. */
struct soak_pace {
    double seconds;
    double round;
    double generation;
    double restart;
    double cut;
    double failover;
    double move;
    double kill;
    double open;
    double fork;
};

/* `ending`: 1 for workers, 2 for directors. `round`: workers stand still when it is new. */
struct soak {
    soak_count ending;
    soak_count round;
    unsigned seed;
    size_t workers_len; /* without Python, that is the last, which isn't there then */
    double began;
    struct soak_pace pace;
    struct soak_group groups[SOAK_GROUPS];
    struct soak_worker workers[SOAK_WORKERS];
};

/* What a worker is: its name, its group, whether a server decides. */
struct soak_role {
    const char *name;
    enum soak_group_name group;
    bool served;
};

extern const struct soak_role soak_roles[SOAK_WORKERS];

/* ---- Measures (soak_measure.c) -------------------------------------------------------------- */

uint64_t soak_ns(void);
void soak_note_time(struct soak_histogram *histogram, uint64_t ns);
uint64_t soak_bin_ns(size_t bin);
void soak_measure(soak_count measures[SOAK_MEASURES]);
unsigned soak_generation(const struct soak *soak);

/* Takes one accepted request of a key, of this generation and asked for at `from_ns`, into the
 * book: whether that is beyond the bound shows in the worker's `excess`. */
void soak_book(struct soak *soak, enum soak_worker_name worker, unsigned generation, size_t key,
               uint64_t from_ns);

/* ---- Workers (soak_worker.c) ---------------------------------------------------------------- */

struct soak_job {
    struct soak *soak;
    enum soak_worker_name worker;
};

/* The body of a worker's process; `data` is its struct soak_job. */
void soak_work(void *data);

/* The same for one that is to be killed. */
void soak_work_until_killed(void *data);

/* ---- Directors (soak_directors.c) ----------------------------------------------------------- */

/* The bodies of their processes; `data` is the struct soak. */
void soak_direct_shared(void *data);
void soak_direct_redis(void *data);
void soak_direct_sentinel(void *data);
void soak_direct_cluster(void *data);
void soak_direct_control(void *data);

/* ---- The verdict (soak_verdict.c) ----------------------------------------------------------- */

struct soak_series;

struct soak_series *soak_series_create(const struct soak *soak);
void soak_series_destroy(struct soak_series *series);

/* Everybody stands still: takes it all down; says it too, if so wanted. */
void soak_series_take(struct soak_series *series, bool aloud);

/* Prints tables and verdicts; returns how many of these are bad. */
unsigned soak_series_judge(struct soak_series *series);

#endif
