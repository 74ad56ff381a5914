/* SPDX-License-Identifier: MIT */
/*
 * A store behind a bad network, in one form, for some seconds: tests/torture/world.c has the
 * servers and the network, calls.c what is asked for, accounts.c what must hold in the end.
 *
 *     faults WORLD STORE FORM SECONDS SEED       blocking, array, async, python
 *
 * Two stores share the buckets: one that fails as it does, with all that makes it fast, and one
 * that has a policy and no memory of rejections. When the faults are over, both must be back at
 * once, and when they are closed, no descriptor may be open that wasn't before.
 *
 * Broken in these ways the library fails here within a quarter of a minute: what was sent is sent
 * again, or a break in the middle said to have taken nothing (more taken than told and in doubt); a
 * late reply left to the next call (a bucket has what it can't have); a deadline three times as
 * late; rejections remembered until denial_time, whatever they said (rejected after the wait); half
 * of a request written, more given back than taken, a permit spent twice (less taken than told); a
 * circuit that stays open; a descriptor that stays open.
 */
#include "forms.h"
#include "sleepers.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS     2
#define WORKERS_MAX 4
#define EXTRA_S     60.0 /* beside the time of the faults */
#define BACK_S      3.0  /* docs/failure.md says a second; a slow machine may fail the first try */

struct form {
    const char *name;
    void (*ask)(struct worker *worker); /* NULL: in another process */
    unsigned workers;                   /* half of them for each store */
};

static const struct form forms[] = {
    {"blocking", ask_blocking, 4},
    {"array", ask_arrays, 4},
    {"async", ask_async, 2},
    {"python", NULL, 4},
};

static const char *const policies[] = {"open", "closed", "local", "fail"};

struct run {
    const char *world;
    const char *store;
    const struct form *form;
    double seconds;
    uint64_t seed;
    char url[BEHIND_LINE];
    struct behind *behind;
    struct client clients[CLIENTS];
    struct worker workers[WORKERS_MAX];
    struct python *python;
    uint64_t denied; /* answered by what makes a store fast, without asking it */
    uint64_t leased;
};

static int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    if (folder == NULL)
        abort();
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    return count;
}

static void open_client(const struct run *run, struct client *client, const char *query)
{
    char url[BEHIND_LINE + 128];
    struct redbucket_error error = {.message = ""};

    (void)snprintf(url, sizeof url, "%s%c%s", run->url, strchr(run->url, '?') == NULL ? '?' : '&',
                   query);
    if (redbucket_store_open(url, &client->store, &error) != REDBUCKET_OK ||
        redbucket_limiter_create(client->store, &client->limiter, &error) != REDBUCKET_OK) {
        fprintf(stderr, "# %s: %s\n", url, error.message);
        exit(1);
    }
    for (size_t i = 0; i < account_limits_len; i++) {
        if (redbucket_limiter_add(client->limiter, account_limits[i].name, &account_limits[i].limit,
                                  &error) != REDBUCKET_OK)
            abort();
    }
    client->splits = strcmp(run->store, "cluster") == 0;
    client->wavers = strcmp(run->store, "old-redis") == 0;
    client->sealed = strcmp(run->store, "tls") == 0;
}

static void open_clients(struct run *run)
{
    const char *policy = policies[run->seed % 4];
    char query[96];

    (void)snprintf(query, sizeof query, TIMEOUT_QUERY "&connections=2&denial_time=0&on_error=%s",
                   policy);
    open_client(run, &run->clients[0], TIMEOUT_QUERY "&connections=4");
    open_client(run, &run->clients[1], query);
    run->clients[1].degrades = strcmp(policy, "fail") != 0;
}

static void count_fast(struct run *run, const struct client *client)
{
    struct redbucket_statistics statistics = {.size = sizeof statistics};

    if (redbucket_store_statistics(client->store, &statistics) != REDBUCKET_OK)
        fault("no statistics");
    run->denied += statistics.denied;
    run->leased += statistics.leased;
}

static void close_client(struct client *client)
{
    redbucket_limiter_destroy(client->limiter);
    redbucket_store_close(client->store);
}

/* Each worker's book begins with something that no other has, which is put there in all patience.
 */
static void hire(struct run *run)
{
    struct client patient;

    open_client(run, &patient, "timeout=60s");
    for (unsigned i = 0; i < run->form->workers; i++) {
        char key[16];
        const struct redbucket_key named = {.limit = "book", .key = key};
        struct redbucket_request charge = {
            .operation = REDBUCKET_CHARGE, .keys = &named, .keys_len = 1, .cost = call_base(i)};

        (void)snprintf(key, sizeof key, "w%u", i);
        run->workers[i] =
            (struct worker){.client = &run->clients[i % CLIENTS],
                            .number = i,
                            .chance = test_chance_begin(run->seed * UINT64_C(7919) + i)};
        (void)account_of("book", key, call_base(i));
        if (redbucket_decide(patient.limiter, &charge, 1) != REDBUCKET_OK)
            fault("%s before the faults", redbucket_status_name(charge.status));
    }
    close_client(&patient);
}

struct shift {
    void (*ask)(struct worker *worker);
    struct worker *worker;
};

static void *work(void *data)
{
    const struct shift *shift = data;

    shift->ask(shift->worker);
    return NULL;
}

static void ask_all(struct run *run)
{
    pthread_t threads[WORKERS_MAX];
    struct shift shifts[WORKERS_MAX];
    double until_s = now_s() + run->seconds;

    if (run->python != NULL) {
        python_ask(run->python);
        return;
    }
    for (unsigned i = 0; i < run->form->workers; i++) {
        run->workers[i].until_s = until_s;
        shifts[i] = (struct shift){run->form->ask, &run->workers[i]};
        if (pthread_create(&threads[i], NULL, work, &shifts[i]) != 0)
            abort();
    }
    for (unsigned i = 0; i < run->form->workers; i++)
        (void)pthread_join(threads[i], NULL);
}

/* Seconds until the store itself answers again, for buckets of all its places. */
static double time_back(struct worker *worker)
{
    double begin_s = now_s();
    struct call call;
    unsigned answers = 0;

    while (answers < 20 && now_s() < begin_s + 10.0 * BACK_S) {
        struct moment moment = moment_now();

        call_draw(&call, worker);
        call_begin(&call, &moment);
        call.request.status = redbucket_decide(worker->client->limiter, &call.request, 1);
        moment = moment_now();
        call_end(&call, &call.request, &moment);
        answers = call.request.status == REDBUCKET_OK && !call.request.response.degraded
                      ? answers + 1
                      : 0;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return now_s() - begin_s;
}

/* Somebody who asks the servers past the network, and notes how long that takes: a store can't be
 * back before they are. */
struct probe {
    struct behind *behind;
    atomic_bool ending;
};

static void *ask_past_it(void *data)
{
    struct probe *probe = data;

    while (!atomic_load(&probe->ending)) {
        double begin_s = now_s();
        double value;

        (void)behind_value(probe->behind, "no", "key", &value);
        sleepers_note(begin_s, now_s(), now_s() - begin_s);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return NULL;
}

static double come_back(struct run *run)
{
    struct probe probe = {.behind = run->behind};
    pthread_t thread;
    double begin_s = now_s();
    double worst;

    if (pthread_create(&thread, NULL, ask_past_it, &probe) != 0)
        abort();
    worst = run->python != NULL ? python_back(run->python, &run->leased, &run->denied) : 0.0;

    for (int i = 0; i < CLIENTS && run->python == NULL; i++) {
        double took = time_back(&run->workers[i]);

        worst = took > worst ? took : worst;
    }
    kept_end();
    atomic_store(&probe.ending, true);
    (void)pthread_join(thread, NULL);
    if (worst > BACK_S + 10.0 * sleepers_late(begin_s, now_s()))
        fault("not back %.1f s after the faults", worst);
    return worst;
}

static void print(const struct run *run, double use, const char *where, double back_s)
{
    struct tally tally;

    calls_tally(&tally);
    printf("%s %s, seed %llu, %g s: %lu calls, %lu granted (%llu by lease), "
           "%lu rejected (%llu known), %lu by policy",
           run->store, run->form->name, (unsigned long long)run->seed, run->seconds, tally.calls,
           tally.granted, (unsigned long long)run->leased, tally.rejected,
           (unsigned long long)run->denied, tally.degraded);
    for (int i = 0; i < (int)CALL_STATUSES; i++) {
        if (tally.failed[i] > 0)
            printf(", %lu %s", tally.failed[i],
                   redbucket_status_name((enum redbucket_status)i) + strlen("REDBUCKET_"));
    }
    printf("; %.0f ms past the deadline at worst (sleepers %.0f ms)", 1e3 * tally.latest_s,
           1e3 * sleepers_late(0.0, now_s()));
    printf("; %.2f %% of the bound (%s); back after %.2f s; %u faults\n", use, where, back_s,
           faults_found());
}

static void begin(struct run *run)
{
    open_clients(run);
    hire(run);
    if (run->form->ask == NULL)
        run->python = python_start(run->workers, run->url, run->seconds, run->seed);
    if (run->clients[0].splits)
        (void)behind_ask(run->behind, "move redbucket:book:w0 redbucket:tight:t0 redbucket:left:c "
                                      "redbucket:gate:c redbucket:left:{p} redbucket:hot:h");
}

/* Everything in its order: what is closed can still be late, until the network is calm again. */
static void torment(struct run *run)
{
    int descriptors;
    double back_s;
    double use;
    char where[64];

    run->behind = behind_start(run->world, run->store, run->seed, run->url);
    descriptors = open_descriptors();
    sleepers_start(run->seconds + EXTRA_S);
    begin(run);
    (void)behind_ask(run->behind, "blow");
    ask_all(run);
    (void)behind_ask(run->behind, "calm");
    back_s = come_back(run);
    for (int i = 0; i < CLIENTS; i++) {
        count_fast(run, &run->clients[i]);
        close_client(&run->clients[i]);
    }
    (void)behind_ask(run->behind, "calm");
    use = accounts_close(run->behind, where);
    sleepers_stop();
    if (open_descriptors() != descriptors)
        fault("%d descriptors open, %d before", open_descriptors(), descriptors);
    calls_judge_lateness();
    print(run, use, where, back_s);
    printf("    %s\n", behind_ask(run->behind, "counts"));
    behind_stop(run->behind);
}

int main(int argc, char **argv)
{
    struct run run = {.store = argc > 2 ? argv[2] : ""};

    for (size_t i = 0; argc == 6 && i < sizeof forms / sizeof forms[0]; i++) {
        if (strcmp(argv[3], forms[i].name) == 0)
            run.form = &forms[i];
    }
    if (run.form == NULL) {
        fprintf(stderr, "usage: faults WORLD STORE blocking|array|async|python SECONDS SEED\n");
        return 2;
    }
    run.world = argv[1];
    run.seconds = atof(argv[4]);
    run.seed = strtoull(argv[5], NULL, 10);
    alarm((unsigned)(run.seconds + 2.0 * EXTRA_S)); /* whoever waits for ever fails as well */
    torment(&run);
    return faults_found() == 0 ? 0 : 1;
}
