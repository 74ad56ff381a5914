/* SPDX-License-Identifier: MIT */
/*
 * Lateness is noted for each tenth of a second that it touched.
 */
#include "sleepers.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SLEEPERS 5
#define SHORT_S  0.005
#define LONG_S   0.05
#define BIN_S    0.1

#define THREADS_MAX 256
#define WATCH_S     0.05
#define KEPT_LONG_S 0.005

static __thread int kept_fd = -1;

/* What the system has said of one thread so far. */
static struct watched {
    pid_t thread;
    double kept_s;
} watched[THREADS_MAX];

static const double pieces[SLEEPERS] = {SHORT_S, LONG_S, LONG_S, LONG_S, LONG_S};

static struct {
    pthread_t threads[SLEEPERS];
    pthread_t watcher;
    atomic_bool ending;
    atomic_int others; /* a process besides this one, or 0 */
    double begin;
    size_t bins_len;
    _Atomic double *bins;
} all;

double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double read_kept(int fd)
{
    char text[64] = "";
    unsigned long long kept_ns = 0;

    if (fd < 0 || pread(fd, text, sizeof text - 1, 0) <= 0 ||
        sscanf(text, "%*u %llu", &kept_ns) != 1)
        return 0.0;
    return (double)kept_ns * 1e-9;
}

double kept_s(void)
{
    if (kept_fd < 0)
        kept_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    return read_kept(kept_fd);
}

double used_s(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

void kept_end(void)
{
    if (kept_fd >= 0)
        close(kept_fd);
    kept_fd = -1;
}

static size_t bin_of(double time)
{
    double bin = (time - all.begin) / BIN_S;

    if (bin < 0.0)
        return 0;
    return (size_t)bin < all.bins_len ? (size_t)bin : all.bins_len - 1;
}

void sleepers_note(double begin, double end, double late)
{
    for (size_t i = bin_of(begin); i <= bin_of(end); i++) {
        double before = atomic_load(&all.bins[i]);

        while (late > before && !atomic_compare_exchange_weak(&all.bins[i], &before, late))
            continue;
    }
}

static void *only_sleep(void *data)
{
    double piece = *(const double *)data;

    while (!atomic_load(&all.ending)) {
        double begin = now_s();
        double end;

        nanosleep(&(struct timespec){.tv_nsec = (long)(piece * 1e9)}, NULL);
        end = now_s();
        sleepers_note(begin, end, end - begin - piece);
    }
    return NULL;
}

/* ---- Threads that are kept ------------------------------------------------------------------ */

static void look_at(int folder, const char *name)
{
    char path[64];
    pid_t thread = (pid_t)strtol(name, NULL, 10);
    struct watched *one = &watched[thread % THREADS_MAX];
    double now = now_s();
    double kept;
    int fd;

    (void)snprintf(path, sizeof path, "%.32s/schedstat", name);
    fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    kept = read_kept(fd);
    if (fd >= 0)
        close(fd);
    if (one->thread == thread && kept - one->kept_s > KEPT_LONG_S)
        sleepers_note(now - (kept - one->kept_s) - WATCH_S, now, kept - one->kept_s);
    *one = (struct watched){thread, kept};
}

static void look_at_all(const char *path)
{
    DIR *folder = opendir(path);

    if (folder == NULL)
        return;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] != '.')
            look_at(dirfd(folder), entry->d_name);
    }
    (void)closedir(folder);
}

static void *watch(void *data)
{
    (void)data;
    while (!atomic_load(&all.ending)) {
        char path[64];

        look_at_all("/proc/self/task");
        (void)snprintf(path, sizeof path, "/proc/%d/task", atomic_load(&all.others));
        if (atomic_load(&all.others) != 0)
            look_at_all(path);
        nanosleep(&(struct timespec){.tv_nsec = (long)(WATCH_S * 1e9)}, NULL);
    }
    return NULL;
}

void sleepers_watch(pid_t process)
{
    atomic_store(&all.others, process);
}

void sleepers_start(double seconds)
{
    all.begin = now_s();
    all.bins_len = (size_t)(seconds / BIN_S) + 1;
    all.bins = calloc(all.bins_len, sizeof all.bins[0]);
    if (all.bins == NULL)
        abort();
    for (int i = 0; i < SLEEPERS; i++) {
        if (pthread_create(&all.threads[i], NULL, only_sleep, (void *)&pieces[i]) != 0)
            abort();
    }
    if (pthread_create(&all.watcher, NULL, watch, NULL) != 0)
        abort();
}

void sleepers_stop(void)
{
    atomic_store(&all.ending, true);
    for (int i = 0; i < SLEEPERS; i++)
        (void)pthread_join(all.threads[i], NULL);
    (void)pthread_join(all.watcher, NULL);
}

double sleepers_late(double begin, double end)
{
    double late = 0.0;

    for (size_t i = bin_of(begin); i <= bin_of(end); i++) {
        double one = atomic_load(&all.bins[i]);

        late = one > late ? one : late;
    }
    return late;
}
