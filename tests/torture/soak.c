/* SPDX-License-Identifier: MIT */
/*
 * The conductor of the soak (soak.h): starts everybody, has all workers stand still and measure
 * themselves every few seconds, and judges in the end. It ends early, with the same verdict, when
 * it is told to by a signal, and at once when anybody else ends before his time.
 *
 * usage: soak SECONDS SEED PYTHON PROGRAM     the last two: Python, or `-` where
 * there is none to be had, and its worker
 */
#include "soak.h"

#include "processes.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIRECTORS  5
#define TICK_S     0.01
#define PATIENCE_S 120.0
#define ROUND_S    30.0 /* in which everybody stands still, or hangs */
#define SPOKEN     60   /* lines while it goes on */
#define TUNABLES   "GLIBC_TUNABLES"

static volatile sig_atomic_t told_to_end;

static void take_signal(int number)
{
    (void)number;
    told_to_end = 1;
}

struct conductor {
    struct soak *soak;
    int fd;
    char *const *words; /* of Python's worker */
    pid_t directors[DIRECTORS];
    pid_t workers[SOAK_WORKERS];
};

static struct soak_pace pace_for(double seconds)
{
    static const struct soak_pace quick = {.round = 0.25,
                                           .generation = 3.0,
                                           .restart = 1.5,
                                           .cut = 0.4,
                                           .failover = 1.0,
                                           .move = 1.0,
                                           .kill = 0.3,
                                           .open = 0.3,
                                           .fork = 0.5};
    static const struct soak_pace calm = {.round = 5.0,
                                          .generation = 20.0,
                                          .restart = 15.0,
                                          .cut = 4.0,
                                          .failover = 60.0,
                                          .move = 40.0,
                                          .kill = 2.0,
                                          .open = 1.0,
                                          .fork = 5.0};
    struct soak_pace pace = seconds < SOAK_LONG_S ? quick : calm;

    pace.seconds = seconds;
    return pace;
}

/* ---- Everybody ------------------------------------------------------------------------------ */

static void start_directors(struct conductor *conductor)
{
    static void (*const bodies[DIRECTORS])(void *data) = {soak_direct_control, soak_direct_shared,
                                                          soak_direct_redis, soak_direct_sentinel,
                                                          soak_direct_cluster};
    struct soak_group *local = &conductor->soak->groups[SOAK_LOCAL];

    (void)snprintf(local->url, sizeof local->url, "memory:?size=1m");
    atomic_store(&local->ready, 1);
    for (size_t i = 0; i < DIRECTORS; i++)
        conductor->directors[i] = test_fork(bodies[i], conductor->soak);
}

/* Where things are in the memory that it shares with us, in words of 64 bits. */
static void write_places(char *text, size_t size)
{
#define PLACE(member) (offsetof(struct soak, member) / 8)
#define WORKER(member)                                                 \
    (PLACE(workers) + SOAK_W_PYTHON * sizeof(struct soak_worker) / 8 + \
     offsetof(struct soak_worker, member) / 8)
#define GROUP(member)                                             \
    (PLACE(groups) + SOAK_REDIS * sizeof(struct soak_group) / 8 + \
     offsetof(struct soak_group, member) / 8)
    (void)snprintf(
        text, size,
        "ending=%zu round=%zu ready=%zu parked=%zu ended=%zu accepted=%zu rejected=%zu late=%zu "
        "excess=%zu opened=%zu forked=%zu measures=%zu before=%zu after=%zu failed=%zu calls=%zu "
        "control=%zu disturbed=%zu harmed=%zu troubled=%zu lost=%zu",
        PLACE(ending), PLACE(round), WORKER(ready), WORKER(parked), WORKER(ended), WORKER(accepted),
        WORKER(rejected), WORKER(late), WORKER(excess), WORKER(opened), WORKER(forked),
        WORKER(measures), WORKER(before), WORKER(after), WORKER(failed), WORKER(calls),
        WORKER(control), WORKER(disturbed), GROUP(harmed), GROUP(troubled), GROUP(lost));
#undef PLACE
#undef WORKER
#undef GROUP
}

static void become_python(void *data)
{
    struct conductor *conductor = data;
    const struct soak *soak = conductor->soak;
    char places[512], fd[16], numbers[96];
    char *argv[] = {conductor->words[0], conductor->words[1], NULL, NULL, NULL, NULL, NULL, NULL};

    while (atomic_load(&soak->groups[SOAK_REDIS].ready) == 0 ||
           atomic_load(&soak->groups[SOAK_CONTROL].ready) == 0)
        test_pause(TICK_S);
    write_places(places, sizeof places);
    (void)snprintf(fd, sizeof fd, "%d", conductor->fd);
    (void)snprintf(numbers, sizeof numbers, "%.9f %.9f %.9f %.9f %u", soak->began,
                   soak->pace.generation, soak->pace.open, soak->pace.fork, soak->seed);
    argv[2] = fd;
    argv[3] = places;
    argv[4] = numbers;
    argv[5] = (char *)soak->groups[SOAK_REDIS].url;
    argv[6] = (char *)soak->groups[SOAK_CONTROL].url;
    (void)execvp(argv[0], argv);
    _exit(9);
}

static void start_workers(struct conductor *conductor)
{
    static struct soak_job jobs[SOAK_WORKERS];

    for (size_t i = 0; i < conductor->soak->workers_len; i++) {
        jobs[i] = (struct soak_job){conductor->soak, (enum soak_worker_name)i};
        conductor->workers[i] = i == SOAK_W_PYTHON ? test_fork(become_python, conductor)
                                                   : test_fork(soak_work, &jobs[i]);
    }
}

/* False, and says who, when somebody has ended who shouldn't have. */
static bool are_alive(const struct conductor *conductor)
{
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);

    if (pid <= 0)
        return true;
    for (size_t i = 0; i < conductor->soak->workers_len; i++) {
        if (conductor->workers[i] == pid)
            printf("# worker %s has ended, by %#x\n", soak_roles[i].name, (unsigned)status);
    }
    for (size_t i = 0; i < DIRECTORS; i++) {
        if (conductor->directors[i] == pid)
            printf("# director %zu has ended, by %#x\n", i, (unsigned)status);
    }
    return false;
}

/* ---- While it goes on ----------------------------------------------------------------------- */

static bool await_ready(const struct conductor *conductor)
{
    double until = test_now() + PATIENCE_S;

    for (size_t i = 0; i < conductor->soak->workers_len; i++) {
        while (atomic_load(&conductor->soak->workers[i].ready) == 0) {
            if (!are_alive(conductor) || told_to_end)
                return false;
            if (test_now() > until) {
                printf("# worker %s never began\n", soak_roles[i].name);
                return false;
            }
            test_pause(TICK_S);
        }
    }
    return true;
}

/* All stand still once, each when it is ready to. */
static bool have_a_round(struct conductor *conductor)
{
    struct soak *soak = conductor->soak;
    uint64_t round = atomic_fetch_add(&soak->round, 1) + 1;
    double until = test_now() + ROUND_S;
    unsigned next = soak_generation(soak) + SOAK_GENERATIONS / 2;

    for (size_t i = 0; i < SOAK_GROUPS; i++)
        atomic_store(&soak->groups[i].lost[next % SOAK_GENERATIONS], 0);
    for (size_t i = 0; i < soak->workers_len; i++) {
        while (atomic_load(&soak->workers[i].parked) < round) {
            if (!are_alive(conductor))
                return false;
            if (test_now() > until) {
                printf("# worker %s doesn't come to a stand\n", soak_roles[i].name);
                return false;
            }
            test_pause(TICK_S / 5);
        }
    }
    return true;
}

static bool go_on(struct conductor *conductor, struct soak_series *series)
{
    const struct soak_pace *pace = &conductor->soak->pace;
    double began = conductor->soak->began, next = began, spoken = began;
    bool good = true;

    while (good && !told_to_end) {
        bool last = test_now() >= began + pace->seconds;

        good = have_a_round(conductor);
        soak_series_take(series, test_now() >= spoken && pace->seconds >= SOAK_LONG_S);
        if (test_now() >= spoken)
            spoken += pace->seconds / SPOKEN;
        if (last)
            break;
        next += pace->round;
        while (!told_to_end && test_now() < next)
            test_pause(TICK_S);
    }
    return good;
}

static bool end_well(pid_t pid, const char *who)
{
    double until = test_now() + PATIENCE_S;
    int status = 0;
    pid_t ended;

    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 && test_now() < until)
        test_pause(TICK_S);
    if (ended == pid && status == 0)
        return true;
    printf("# %s doesn't end well: %#x\n", who, (unsigned)status);
    if (ended == 0)
        test_kill(pid);
    return false;
}

static bool end_all(struct conductor *conductor)
{
    bool good = true;

    atomic_store(&conductor->soak->ending, 1);
    for (size_t i = 0; i < conductor->soak->workers_len; i++)
        good = end_well(conductor->workers[i], soak_roles[i].name) && good;
    atomic_store(&conductor->soak->ending, 2);
    for (size_t i = 0; i < DIRECTORS; i++)
        good = end_well(conductor->directors[i], "a director") && good;
    return good;
}

/* ---- From beginning to end ------------------------------------------------------------------ */

/* Threads keep what they freed for themselves, by which nothing would tell what is in use. */
static void begin_without_caches(char *const argv[])
{
    if (getenv(TUNABLES) != NULL)
        return;
    (void)setenv(TUNABLES, "glibc.malloc.tcache_count=0", 1);
    (void)execv("/proc/self/exe", argv);
}

static unsigned run(double seconds, unsigned seed, char *const words[])
{
    struct conductor conductor = {.words = words};
    struct soak *soak = conductor.soak = test_share_fd(sizeof *soak, &conductor.fd);
    struct soak_series *series;
    bool good;
    unsigned bad;

    soak->seed = seed;
    soak->workers_len = strcmp(words[0], "-") == 0 ? SOAK_W_PYTHON : SOAK_WORKERS;
    soak->pace = pace_for(seconds);
    soak->began = test_now();
    start_directors(&conductor);
    start_workers(&conductor);
    good = await_ready(&conductor);
    soak->began = test_now();
    series = soak_series_create(soak);
    good = good && go_on(&conductor, series);
    good = end_all(&conductor) && good;
    bad = soak_series_judge(series) + !good;
    soak_series_destroy(series);
    test_unshare(soak, sizeof *soak);
    return bad;
}

int main(int argc, char *argv[])
{
    const struct sigaction action = {.sa_handler = take_signal};
    unsigned bad;

    if (argc != 5) {
        fputs("usage: soak SECONDS SEED PYTHON PROGRAM\n", stderr);
        return 2;
    }
    begin_without_caches(argv);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    printf("# seed %s, %s seconds; again: soak %s %s PYTHON PROGRAM\n", argv[2], argv[1], argv[1],
           argv[2]);
    (void)fflush(stdout);
    bad = run(strtod(argv[1], NULL), (unsigned)strtoul(argv[2], NULL, 10), argv + 3);
    return bad == 0 ? 0 : 1;
}
