/* SPDX-License-Identifier: MIT */
/*
 * The verdict of the soak. Nothing of it is by the eye: what a worker is at the end is compared
 * with what it was when it had warmed up, by the least or the middle of many looks, and by the
 * slope of the line through all of them; the time that a call takes, with what something that isn't
 * ours took in the same fifth of the run, for the machine has others to serve.
 *
 * Said as TAP: a case for each worker and thing that must hold.
 */
#include "soak.h"

#include "processes.h"
#include "redbucket/redbucket.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIFTHS     5
#define POINTS_MAX 200 /* for a slope */
#define ROWS       12
#define CALLS_MIN  2000 /* in a fifth, for its times to mean something */

#define HEAP_KIB 8.0
#define CONNECTION_KIB                                                         \
    100.0 /* which one more of them takes, by TLS, with all that belongs to it \
           */
#define MANY           8.0
#define WARM_S         60.0 /* whoever has asked for less has made no more than a part of them */
#define CLOSED_KIB     3.0
#define RSS_KIB        256.0
#define YOUNG_KIB      20480.0 /* stacks of the first look-ups of names, which are kept, and some */
#define RSS_SHARE      0.02
#define MAPPINGS       6.0
#define CONNECTIONS    2.0
#define SLOWER         1.5
#define FAILED_SHARE   1e-3
#define EXCESS_ALLOWED 1000u

/* Python's own memory comes and goes, and some of it stays. */
#define PYTHON_KIB        96.0
#define PYTHON_CLOSED_KIB 512.0

struct sample {
    double at;
    double measures[SOAK_WORKERS][SOAK_MEASURES];
};

/* What was counted until the end of a fifth. */
struct edge {
    uint64_t accepted;
    uint64_t rejected;
    uint64_t calls[SOAK_BINS];
    uint64_t control[SOAK_BINS];
};

struct soak_series {
    const struct soak *soak;
    struct sample *samples;
    size_t len;
    size_t size;
    struct edge edges[FIFTHS + 1][SOAK_WORKERS];
    struct edge spoken[SOAK_WORKERS];
    size_t edges_len;
    unsigned cases;
    unsigned bad;
};

static const char *const measure_names[SOAK_MEASURES] = {
    [SOAK_HEAP] = "allocated KiB",      [SOAK_RSS] = "resident KiB", [SOAK_DATA] = "taken KiB",
    [SOAK_DESCRIPTORS] = "descriptors", [SOAK_THREADS] = "threads",  [SOAK_MAPPINGS] = "mappings",
};

/* ---- Taking --------------------------------------------------------------------------------- */

struct soak_series *soak_series_create(const struct soak *soak)
{
    struct soak_series *series = calloc(1, sizeof *series);

    if (series == NULL)
        abort();
    series->soak = soak;
    series->size = (size_t)(soak->pace.seconds / soak->pace.round) + 64;
    series->samples = calloc(series->size, sizeof *series->samples);
    if (series->samples == NULL)
        abort();
    return series;
}

void soak_series_destroy(struct soak_series *series)
{
    free(series->samples);
    free(series);
}

static double scaled(enum soak_measure measure, uint64_t value)
{
    return measure == SOAK_HEAP ? (double)value / 1024.0 : (double)value;
}

static void take_edge(const struct soak_worker *worker, struct edge *edge)
{
    edge->accepted = atomic_load(&worker->accepted);
    edge->rejected = atomic_load(&worker->rejected);
    for (size_t i = 0; i < SOAK_BINS; i++) {
        edge->calls[i] = atomic_load(&worker->calls.bins[i]);
        edge->control[i] = atomic_load(&worker->control.bins[i]);
    }
}

/* ---- Times ---------------------------------------------------------------------------------- */

static uint64_t count_between(const uint64_t *from, const uint64_t *to)
{
    uint64_t count = 0;

    for (size_t i = 0; i < SOAK_BINS; i++)
        count += to[i] - from[i];
    return count;
}

/* Microseconds that `share` of the calls between two edges took at most. */
static double quantile_us(const uint64_t *from, const uint64_t *to, double share)
{
    double wanted = share * (double)count_between(from, to), seen = 0;
    size_t i = 0;

    for (; i < SOAK_BINS - 1; i++) {
        seen += (double)(to[i] - from[i]);
        if (seen >= wanted && to[i] > from[i])
            break;
    }
    if (wanted <= 0)
        return 0.0;
    return (double)soak_bin_ns(i) / 1e3;
}

static void say(struct soak_series *series, const struct sample *sample)
{
    printf("# %6.0f s  ", sample->at);
    for (size_t i = 0; i < series->soak->workers_len; i++) {
        struct edge now;
        struct edge *last = &series->spoken[i];

        take_edge(&series->soak->workers[i], &now);
        printf(" %s %.0f KiB %.0f fd p99 %.0f/%.0f us", soak_roles[i].name,
               sample->measures[i][SOAK_HEAP], sample->measures[i][SOAK_DESCRIPTORS],
               quantile_us(last->calls, now.calls, 0.99),
               quantile_us(last->control, now.control, 0.99));
        *last = now;
    }
    putchar('\n');
    (void)fflush(stdout);
}

void soak_series_take(struct soak_series *series, bool aloud)
{
    const struct soak *soak = series->soak;
    double at = test_now() - soak->began;
    struct sample *sample = &series->samples[series->len];

    if (series->len == series->size)
        return;
    series->len++;
    sample->at = at;
    for (size_t i = 0; i < series->soak->workers_len; i++) {
        for (int k = 0; k < SOAK_MEASURES; k++)
            sample->measures[i][k] = scaled((enum soak_measure)k, soak->workers[i].measures[k]);
    }
    while (series->edges_len <= FIFTHS &&
           at >= soak->pace.seconds * (double)series->edges_len / FIFTHS) {
        for (size_t i = 0; i < series->soak->workers_len; i++)
            take_edge(&soak->workers[i], &series->edges[series->edges_len][i]);
        series->edges_len++;
    }
    if (aloud)
        say(series, sample);
}

/* ---- Trends --------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Of the looks between two shares of the run: the least, the middle, the mean. */
struct part {
    double least;
    double middle;
    double mean;
};

static struct part part_of(const struct soak_series *series, size_t worker, int measure,
                           const double shares[2])
{
    double *values = calloc(series->len + 1, sizeof *values);
    struct part part = {0, 0, 0};
    size_t len = 0;

    if (values == NULL)
        abort();
    for (size_t i = 0; i < series->len; i++) {
        double share = series->samples[i].at / series->soak->pace.seconds;

        /* Of a short run on a busy machine there may be one look alone, and that one late. */
        if (share >= shares[0] && (share <= shares[1] || len == 0))
            values[len++] = series->samples[i].measures[worker][measure];
    }
    qsort(values, len, sizeof *values, by_size);
    for (size_t i = 0; i < len; i++)
        part.mean += values[i] / (double)len;
    if (len > 0) {
        part.least = values[0];
        part.middle = values[len / 2];
    }
    free(values);
    return part;
}

/* What the line through all looks grows by until the end: the middle one of the slopes between any
 * two of them, which single looks can't turn. */
static double grown(const struct soak_series *series, size_t worker, int measure)
{
    static double slopes[POINTS_MAX * POINTS_MAX / 2];
    size_t step = series->len / POINTS_MAX + 1, len = 0;
    size_t first = series->len / 10;

    for (size_t i = first; i < series->len; i += step) {
        for (size_t k = i + step; k < series->len && len < POINTS_MAX * POINTS_MAX / 2; k += step)
            slopes[len++] = (series->samples[k].measures[worker][measure] -
                             series->samples[i].measures[worker][measure]) /
                            (series->samples[k].at - series->samples[i].at);
    }
    qsort(slopes, len, sizeof *slopes, by_size);
    return len > 0 ? slopes[len / 2] * series->soak->pace.seconds * 0.9 : 0.0;
}

/* ---- Cases ---------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static void say_case(struct soak_series *series, bool good,
                                                           size_t worker, const char *format, ...)
{
    va_list rest;

    series->cases++;
    series->bad += !good;
    printf("%s %u - %s: ", good ? "ok" : "not ok", series->cases, soak_roles[worker].name);
    va_start(rest, format);
    (void)vprintf(format, rest);
    va_end(rest);
    putchar('\n');
}

static const double early[2] = {0.1, 0.3};
static const double late[2] = {0.8, 2.0};

static void judge_memory(struct soak_series *series, size_t worker)
{
    const double soon[2] = {0.1, 0.2}, last[2] = {0.9, 2.0};
    double from = part_of(series, worker, SOAK_HEAP, early).least;
    double to = part_of(series, worker, SOAK_HEAP, late).least;
    double slope = grown(series, worker, SOAK_HEAP);
    double allowed = worker == SOAK_W_PYTHON ? PYTHON_KIB : HEAP_KIB;

    if (soak_roles[worker].served)
        allowed += CONNECTION_KIB * (series->soak->pace.seconds < WARM_S ? MANY : 1.0);
    say_case(series, to - from <= allowed && slope <= allowed, worker,
             "allocated %.1f -> %.1f KiB, by the slope %+.1f", from, to, slope);
    /* What is resident grows for as long as there are pages of tables that nobody has touched; what
     * was taken from the system is the bound of that. */
    from = part_of(series, worker, SOAK_DATA, soon).mean;
    to = part_of(series, worker, SOAK_DATA, last).mean;
    slope = grown(series, worker, SOAK_DATA);
    allowed = from * RSS_SHARE + (series->soak->pace.seconds < WARM_S ? YOUNG_KIB : RSS_KIB);
    say_case(series, to - from <= allowed && slope <= allowed, worker,
             "taken %.0f -> %.0f KiB, by the slope %+.0f; resident %.0f -> %.0f", from, to, slope,
             part_of(series, worker, SOAK_RSS, soon).mean,
             part_of(series, worker, SOAK_RSS, last).mean);
}

static void judge_counts(struct soak_series *series, size_t worker)
{
    static const double allowed[SOAK_MEASURES] = {
        [SOAK_DESCRIPTORS] = CONNECTIONS, [SOAK_THREADS] = 0.0, [SOAK_MAPPINGS] = MAPPINGS};

    for (int measure = SOAK_DESCRIPTORS; measure <= SOAK_MAPPINGS; measure++) {
        double from = part_of(series, worker, measure, early).middle;
        double to = part_of(series, worker, measure, late).middle;
        double slope = grown(series, worker, measure);

        say_case(series, to - from <= allowed[measure] && slope <= allowed[measure] + 0.5, worker,
                 "%s %.0f -> %.0f, by the slope %+.1f", measure_names[measure], from, to, slope);
    }
}

/* What is closed is gone: to the last descriptor, and but for a few bytes. */
static void judge_closed(struct soak_series *series, size_t index)
{
    const struct soak_worker *worker = &series->soak->workers[index];
    double grown_kib =
        ((double)worker->after[SOAK_HEAP] - (double)worker->before[SOAK_HEAP]) / 1024;
    int64_t descriptors =
        (int64_t)worker->after[SOAK_DESCRIPTORS] - (int64_t)worker->before[SOAK_DESCRIPTORS];
    int64_t threads = (int64_t)worker->after[SOAK_THREADS] - (int64_t)worker->before[SOAK_THREADS];
    double allowed = index == SOAK_W_PYTHON ? PYTHON_CLOSED_KIB : CLOSED_KIB;

    say_case(series, worker->ended != 0 && descriptors == 0 && threads == 0 && grown_kib <= allowed,
             index,
             "closed, it has %+" PRId64 " descriptors, %+" PRId64 " threads, %+.1f KiB allocated",
             descriptors, threads, grown_kib);
}

static void judge_time(struct soak_series *series, size_t worker, double share)
{
    const struct edge *a = &series->edges[0][worker], *b = &series->edges[1][worker];
    const struct edge *y = &series->edges[FIFTHS - 1][worker];
    const struct edge *z = &series->edges[FIFTHS][worker];
    double first = quantile_us(a->calls, b->calls, share);
    double first_control = quantile_us(a->control, b->control, share);
    double last = quantile_us(y->calls, z->calls, share);
    double last_control = quantile_us(y->control, z->control, share);
    double times = (last / first) / (last_control / first_control);
    bool few = count_between(a->calls, b->calls) < CALLS_MIN ||
               count_between(y->calls, z->calls) < CALLS_MIN;

    say_case(series, few || last / first <= SLOWER || times <= SLOWER, worker,
             "p%.0f %.1f -> %.1f us, the control %.1f -> %.1f: %.2f times as much%s", share * 100,
             first, last, first_control, last_control, times, few ? " (too few to judge)" : "");
}

static void judge_answers(struct soak_series *series, size_t index)
{
    const struct soak_worker *worker = &series->soak->workers[index];
    uint64_t asked = worker->accepted + worker->rejected, failed = 0;
    bool is_short = series->soak->pace.seconds < WARM_S;
    bool all_along = is_short || series->edges_len == FIFTHS + 1;

    for (size_t i = 0; i < SOAK_STATUSES; i++)
        failed += worker->failed[0][i];
    say_case(series, (double)failed <= FAILED_SHARE * (double)asked, index,
             "%" PRIu64 " of %" PRIu64 " failed while all was well", failed, asked);
    for (size_t i = 0; all_along && !is_short && i < FIFTHS; i++)
        all_along = series->edges[i + 1][index].accepted > series->edges[i][index].accepted &&
                    series->edges[i + 1][index].rejected > series->edges[i][index].rejected;
    all_along = all_along && worker->accepted > 0 && (is_short || worker->rejected > 0);
    say_case(series, all_along, index, "answers all along: %" PRIu64 " accepted, %" PRIu64 " not",
             (uint64_t)worker->accepted, (uint64_t)worker->rejected);
    say_case(series, worker->excess <= EXCESS_ALLOWED, index,
             "of a key at most %.3f requests beyond its bound (%" PRIu64 " late answers left out)",
             (double)worker->excess / 1000.0, (uint64_t)worker->late);
}

/* Without harm there is nothing to stand. */
static void judge_harm(struct soak_series *series)
{
    const struct soak_group *groups = series->soak->groups;
    const uint64_t restarted =
        groups[SOAK_REDIS].harms[SOAK_KILLED] + groups[SOAK_REDIS].harms[SOAK_ENDED];

    say_case(series, groups[SOAK_SHARED].harms[SOAK_KILLED] > 0, SOAK_W_SHM,
             "%" PRIu64 " processes killed", (uint64_t)groups[SOAK_SHARED].harms[SOAK_KILLED]);
    say_case(series, groups[SOAK_REDIS].harms[SOAK_CUT] > 0 && restarted > 0, SOAK_W_REDIS,
             "%" PRIu64 " restarts, %" PRIu64 " times stopped, %" PRIu64 " times cut off",
             restarted, (uint64_t)groups[SOAK_REDIS].harms[SOAK_STOPPED],
             (uint64_t)groups[SOAK_REDIS].harms[SOAK_CUT]);
    say_case(series, groups[SOAK_SENTINEL].harms[SOAK_FAILOVER] > 0, SOAK_W_SENTINEL,
             "%" PRIu64 " failovers asked for, %" PRIu64 " masters killed",
             (uint64_t)groups[SOAK_SENTINEL].harms[SOAK_FAILOVER],
             (uint64_t)groups[SOAK_SENTINEL].harms[SOAK_KILLED]);
    say_case(series,
             groups[SOAK_CLUSTER].harms[SOAK_FAILOVER] + groups[SOAK_CLUSTER].harms[SOAK_MOVED] > 0,
             SOAK_W_CLUSTER, "%" PRIu64 " failovers, %" PRIu64 " times slots moved",
             (uint64_t)groups[SOAK_CLUSTER].harms[SOAK_FAILOVER],
             (uint64_t)groups[SOAK_CLUSTER].harms[SOAK_MOVED]);
}

/* ---- Tables --------------------------------------------------------------------------------- */

static void tell_failures(const struct soak_worker *worker, const char *name)
{
    static const char *const when[2] = {"while all was well", "beside a stated harm"};

    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < SOAK_STATUSES; i++) {
            if (worker->failed[k][i] > 0)
                printf("# %-9s %" PRIu64 " %s %s\n", name, (uint64_t)worker->failed[k][i],
                       redbucket_status_name((enum redbucket_status)i), when[k]);
        }
    }
}

static void tell_counts(const struct soak_series *series)
{
    printf("#\n# %-9s %10s %10s %8s %8s %8s %8s %8s %8s %8s\n", "", "accepted", "rejected",
           "opened", "forked", "full", "undone", "down", "back", "degraded");
    for (size_t i = 0; i < series->soak->workers_len; i++) {
        const struct soak_worker *worker = &series->soak->workers[i];

        printf("# %-9s %10" PRIu64 " %10" PRIu64 " %8" PRIu64 " %8" PRIu64, soak_roles[i].name,
               (uint64_t)worker->accepted, (uint64_t)worker->rejected, (uint64_t)worker->opened,
               (uint64_t)worker->forked);
        for (size_t k = 0; k < SOAK_EVENTS; k++)
            printf(" %8" PRIu64, (uint64_t)worker->events[k]);
        putchar('\n');
    }
    for (size_t i = 0; i < series->soak->workers_len; i++)
        tell_failures(&series->soak->workers[i], soak_roles[i].name);
}

static void tell_times(const struct soak_series *series)
{
    static const uint64_t none[SOAK_BINS];

    printf("#\n# microseconds, and of the control; then beside a stated harm\n"
           "# %-9s %9s %9s %9s | %9s %9s %9s | %9s %9s\n",
           "", "p50", "p99", "most", "p50", "p99", "most", "p50", "most");
    for (size_t i = 0; i < series->soak->workers_len; i++) {
        struct edge all;
        uint64_t disturbed[SOAK_BINS];

        take_edge(&series->soak->workers[i], &all);
        for (size_t k = 0; k < SOAK_BINS; k++)
            disturbed[k] = atomic_load(&series->soak->workers[i].disturbed.bins[k]);
        printf("# %-9s %9.1f %9.1f %9.0f | %9.1f %9.1f %9.0f | %9.1f %9.0f\n", soak_roles[i].name,
               quantile_us(none, all.calls, 0.5), quantile_us(none, all.calls, 0.99),
               quantile_us(none, all.calls, 1), quantile_us(none, all.control, 0.5),
               quantile_us(none, all.control, 0.99), quantile_us(none, all.control, 1),
               quantile_us(none, disturbed, 0.5), quantile_us(none, disturbed, 1));
    }
}

static void tell_measure(const struct soak_series *series, int measure)
{
    printf("#\n# %s\n# %8s", measure_names[measure], "second");
    for (size_t i = 0; i < series->soak->workers_len; i++)
        printf(" %9s", soak_roles[i].name);
    putchar('\n');
    for (size_t row = 0; row < ROWS && row < series->len; row++) {
        const struct sample *sample = &series->samples[row * (series->len - 1) / (ROWS - 1)];

        printf("# %8.0f", sample->at);
        for (size_t i = 0; i < series->soak->workers_len; i++)
            printf(" %9.0f", sample->measures[i][measure]);
        putchar('\n');
    }
}

unsigned soak_series_judge(struct soak_series *series)
{
    tell_counts(series);
    tell_times(series);
    if (series->len > 1) {
        for (int measure = 0; measure < SOAK_MEASURES; measure++)
            tell_measure(series, measure);
    }
    for (size_t i = 0; i < series->soak->workers_len; i++) {
        judge_memory(series, i);
        judge_counts(series, i);
        judge_closed(series, i);
        judge_time(series, i, 0.5);
        judge_time(series, i, 0.99);
        judge_answers(series, i);
    }
    if (series->soak->workers_len < SOAK_WORKERS)
        printf("ok %u - python # SKIP no Python that has the package\n", ++series->cases);
    judge_harm(series);
    printf("1..%u\n", series->cases);
    return series->bad;
}
