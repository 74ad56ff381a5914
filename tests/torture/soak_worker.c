/* SPDX-License-Identifier: MIT */
/*
 * A worker of the soak: a process with one store, threads that ask it, and a keeper, its first
 * thread, that opens and closes the same store once more, forks, and measures while nobody asks.
 *
 * Before it all and after it all everything is opened and closed once: descriptors, threads and
 * memory have to be the same then, to the last one.
 */
#include "soak.h"

#include "client.h"
#include "processes.h"
#include "redbucket/async.h"
#include "redbucket/redbucket.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define PAUSE_S    0.006
#define TICK_S     0.01
#define BATCH      4
#define CROWD      16
#define ASKERS     2
#define TURNS      64 /* of a loop, until its redbucket_async is made anew */
#define TEXT       32
#define STRANGER   SOAK_KEYS
#define CHILD_ASKS 3
#define SPIN       300

struct home;

struct asker {
    struct home *home;
    pthread_t thread;
    unsigned seed;
    bool arrays;
    struct redbucket_async *async;
    unsigned turns;
    unsigned outstanding;
    struct test_client *control;
};

/*
 *   silent  no times are taken
 *   apart   what is accepted is of other buckets than the worker's
 */
struct home {
    struct soak *soak;
    enum soak_worker_name name;
    struct soak_worker *worker;
    struct soak_group *group;
    const char *url;
    bool silent;
    bool apart;
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    pthread_rwlock_t asking;
    atomic_bool ending;
    unsigned seed; /* the keeper's */
    struct asker askers[ASKERS];
};

/* One question, and what has to be known when its answer comes. */
struct question {
    struct asker *asker;
    struct redbucket_key keys[2];
    struct redbucket_request request;
    char text[TEXT];
    size_t numbers[2];
    unsigned generation;
    uint64_t harmed;
    bool troubled;
    uint64_t began_ns;
};

const struct soak_role soak_roles[SOAK_WORKERS] = {
    [SOAK_W_MEMORY] = {"memory", SOAK_LOCAL, false},
    [SOAK_W_SHM] = {"shm", SOAK_SHARED, false},
    [SOAK_W_REDIS] = {"redis", SOAK_REDIS, true},
    [SOAK_W_ASYNC] = {"async", SOAK_REDIS, true},
    [SOAK_W_SENTINEL] = {"sentinel", SOAK_SENTINEL, true},
    [SOAK_W_CLUSTER] = {"cluster", SOAK_CLUSTER, true},
    [SOAK_W_PYTHON] = {"python", SOAK_REDIS, true},
};

static void hear(void *data, enum redbucket_event event, const char *message)
{
    struct soak_worker *worker = data;

    (void)atomic_fetch_add(&worker->events[event], message[0] != '\0');
}

static void add_limit(struct redbucket_limiter *limiter, const char *worker, const char *name,
                      const struct redbucket_limit *like)
{
    struct redbucket_limit limit = *like;
    char zone[TEXT];

    (void)snprintf(zone, sizeof zone, "%s-%s", worker, name);
    limit.zone = zone;
    child_check(redbucket_limiter_add(limiter, name, &limit, NULL) == REDBUCKET_OK);
}

static void open_store(const struct home *home, struct redbucket_store **store,
                       struct redbucket_limiter **limiter)
{
    static const struct redbucket_limit plain = {
        .rate = SOAK_RATE, .burst = SOAK_BURST, .delay = SOAK_DELAY};
    static const struct redbucket_limit leased = {.rate = SOAK_LEASED_RATE,
                                                  .burst = SOAK_LEASED_BURST,
                                                  .lease = SOAK_LEASE,
                                                  .lease_time = SOAK_LEASE_TIME};
    const char *name = soak_roles[home->name].name;

    child_check(redbucket_store_open(home->url, store, NULL) == REDBUCKET_OK);
    redbucket_store_listen(*store, hear, home->worker);
    child_check(redbucket_limiter_create(*store, limiter, NULL) == REDBUCKET_OK);
    add_limit(*limiter, name, "a", &plain);
    add_limit(*limiter, name, "b", &leased);
}

/* ---- Questions ------------------------------------------------------------------------------ */

static void name_key(struct question *question, size_t i, size_t number)
{
    bool leased = number >= SOAK_PLAIN_KEYS && number != STRANGER;

    question->numbers[i] = number;
    question->keys[i] = (struct redbucket_key){.limit = leased ? "b" : "a", .key = question->text};
}

/* Half of all is for leased keys, so that these are hot; a few questions are for two keys, and some
 * for one that nobody ever asks for again. */
static void choose(struct question *question, struct asker *asker)
{
    unsigned *seed = &asker->seed;
    unsigned dice = test_random(seed, 16);
    unsigned number = test_random(seed, SOAK_LEASED_KEYS);

    *question = (struct question){.asker = asker, .generation = soak_generation(asker->home->soak)};
    question->request =
        (struct redbucket_request){.keys = question->keys, .keys_len = 1, .cost = 1};
    (void)snprintf(question->text, sizeof question->text, "g%u-k%u", question->generation, number);
    if (dice < 8) {
        name_key(question, 0, SOAK_PLAIN_KEYS + number);
    } else if (dice < 10) {
        name_key(question, 0, number);
        name_key(question, 1, SOAK_PLAIN_KEYS + number);
        question->request.keys_len = 2;
    } else if (dice < 14) {
        number = test_random(seed, SOAK_PLAIN_KEYS);
        (void)snprintf(question->text, sizeof question->text, "g%u-k%u", question->generation,
                       number);
        name_key(question, 0, number);
    } else {
        (void)snprintf(question->text, sizeof question->text, "stranger-%llu",
                       (unsigned long long)soak_ns());
        name_key(question, 0, STRANGER);
    }
}

static void begin(struct question *question)
{
    const struct soak_group *group = question->asker->home->group;

    question->harmed = atomic_load(&group->harmed);
    question->troubled = atomic_load(&group->troubled) != 0;
    question->began_ns = soak_ns();
}

static void note(const struct question *question, const struct redbucket_request *decided)
{
    const struct home *home = question->asker->home;
    struct soak_worker *worker = home->worker;
    uint64_t took = soak_ns() - question->began_ns;
    bool disturbed = question->troubled || atomic_load(&home->group->troubled) != 0 ||
                     atomic_load(&home->group->harmed) != question->harmed;

    if (!home->silent)
        soak_note_time(disturbed ? &worker->disturbed : &worker->calls, took);
    if (decided->status != REDBUCKET_OK) {
        (void)atomic_fetch_add(&worker->failed[disturbed][decided->status], 1);
        return;
    }
    (void)atomic_fetch_add(decided->response.accepted ? &worker->accepted : &worker->rejected, 1);
    if (!decided->response.accepted || home->apart)
        return;
    for (size_t i = 0; i < question->request.keys_len; i++) {
        if (question->numbers[i] != STRANGER)
            soak_book(home->soak, home->name, question->generation, question->numbers[i],
                      question->began_ns);
    }
}

/* ---- Control: something that isn't ours, as near as can be ---------------------------------- */

static void spin(void)
{
    volatile uint64_t number = 1;

    for (int i = 0; i < SPIN; i++)
        number = number * 6364136223846793005u + 1;
}

static bool ping(struct asker *asker)
{
    redisReply *reply;

    if (asker->control == NULL)
        asker->control = test_client_open(asker->home->soak->groups[SOAK_CONTROL].url);
    reply = asker->control == NULL ? NULL : test_client_ask(asker->control, "PING", NULL);
    freeReplyObject(reply);
    return reply != NULL;
}

static void ask_control(struct asker *asker)
{
    uint64_t began = soak_ns();

    if (asker->home->silent)
        return;
    if (soak_roles[asker->home->name].served)
        child_check(ping(asker));
    else
        spin();
    soak_note_time(&asker->home->worker->control, soak_ns() - began);
}

/* ---- Asking --------------------------------------------------------------------------------- */

static void ask_one(struct asker *asker)
{
    struct question question;
    struct redbucket_request *request = &question.request;

    choose(&question, asker);
    begin(&question);
    request->status = redbucket_request(asker->home->limiter, request->keys, request->keys_len,
                                        &request->response);
    note(&question, request);
}

static void ask_array(struct asker *asker)
{
    struct question questions[BATCH];
    struct redbucket_request array[BATCH];

    for (size_t i = 0; i < BATCH; i++) {
        choose(&questions[i], asker);
        array[i] = questions[i].request;
    }
    for (size_t i = 0; i < BATCH; i++)
        begin(&questions[i]);

    enum redbucket_status status = redbucket_decide(asker->home->limiter, array, BATCH);

    for (size_t i = 0; i < BATCH; i++)
        note(&questions[i], &array[i]);
    child_check(status == REDBUCKET_OK || status != REDBUCKET_ERROR_ARGUMENT);
}

static void hear_answer(void *data, const struct redbucket_request *decided)
{
    struct question *question = data;

    question->asker->outstanding--;
    if (decided->status != REDBUCKET_CANCELLED)
        note(question, decided);
}

/* A turn ends when all is answered; now and then it begins on a new descriptor. */
static void turn_loop(struct asker *asker)
{
    struct question questions[BATCH];
    uint64_t ids[BATCH];

    if (asker->turns++ % TURNS == 0) {
        redbucket_async_destroy(asker->async);
        child_check(redbucket_async_create(asker->home->limiter, &asker->async, NULL) ==
                    REDBUCKET_OK);
    }
    for (size_t i = 0; i < BATCH; i++) {
        choose(&questions[i], asker);
        begin(&questions[i]);
        child_check(redbucket_async_request(asker->async, &questions[i].request, hear_answer,
                                            &questions[i], &ids[i]) == REDBUCKET_OK);
        asker->outstanding++;
    }
    if (test_random(&asker->seed, 8) == 0)
        (void)redbucket_async_cancel(asker->async, ids[0]);
    while (asker->outstanding > 0) {
        struct pollfd polled = {redbucket_async_descriptor(asker->async), POLLIN, 0};

        (void)poll(&polled, 1, 1000);
        redbucket_async_dispatch(asker->async);
    }
}

/* Keys that never end, whose buckets are empty sooner than those that are counted. */
static void ask_strangers(struct asker *asker)
{
    char texts[CROWD][TEXT];
    struct redbucket_key keys[CROWD];
    struct redbucket_request array[CROWD];

    for (size_t i = 0; i < CROWD; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "stranger-%llu-%zu",
                       (unsigned long long)soak_ns(), i);
        keys[i] = (struct redbucket_key){.limit = "a", .key = texts[i]};
        array[i] = (struct redbucket_request){.keys = &keys[i], .keys_len = 1, .cost = 1};
    }
    child_check(redbucket_decide(asker->home->limiter, array, CROWD) == REDBUCKET_OK);
}

static void *ask_on(void *data)
{
    struct asker *asker = data;
    struct home *home = asker->home;

    while (!atomic_load(&home->ending)) {
        (void)pthread_rwlock_rdlock(&home->asking);
        ask_control(asker);
        if (home->name == SOAK_W_ASYNC)
            turn_loop(asker);
        else if (asker->arrays)
            ask_array(asker);
        else
            ask_one(asker);
        if (home->name == SOAK_W_MEMORY)
            ask_strangers(asker);
        (void)pthread_rwlock_unlock(&home->asking);
        test_pause(asker->arrays ? 2 * PAUSE_S : PAUSE_S);
    }
    redbucket_async_destroy(asker->async);
    test_client_close(asker->control);
    return NULL;
}

static void start_askers(struct home *home)
{
    atomic_store(&home->ending, false);
    for (size_t i = 0; i < ASKERS; i++) {
        home->askers[i] = (struct asker){
            .home = home,
            .arrays = i % 2 == 1,
            .seed = home->soak->seed + 7919u * (ASKERS * (unsigned)home->name + (unsigned)i)};
        child_check(pthread_create(&home->askers[i].thread, NULL, ask_on, &home->askers[i]) == 0);
    }
}

static void stop_askers(struct home *home)
{
    atomic_store(&home->ending, true);
    for (size_t i = 0; i < ASKERS; i++)
        (void)pthread_join(home->askers[i].thread, NULL);
}

/* ---- The keeper ----------------------------------------------------------------------------- */

/* The same store once more, from the beginning to the end; of a process's own memory, another. */
static void open_again(struct home *home)
{
    struct home other = *home;
    struct asker asker = {.home = &other, .seed = home->seed};
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct redbucket_health health = {.size = sizeof health};

    other.apart = home->name == SOAK_W_MEMORY;
    open_store(home, &other.store, &other.limiter);
    ask_one(&asker);
    ask_array(&asker);
    child_check(redbucket_store_statistics(other.store, &statistics) == REDBUCKET_OK);
    if (redbucket_store_check(other.store, &health) == REDBUCKET_OK)
        (void)atomic_fetch_add(&home->worker->opened, 1);
    redbucket_limiter_destroy(other.limiter);
    redbucket_store_close(other.store);
    home->seed = asker.seed;
}

static void ask_in_child(void *data)
{
    struct home *home = data;
    struct asker asker = {.home = home, .seed = (unsigned)soak_ns()};

    home->apart = home->name == SOAK_W_MEMORY;
    for (int i = 0; i < CHILD_ASKS; i++)
        ask_one(&asker);
}

static void fork_once(struct home *home)
{
    test_join(test_fork(ask_in_child, home));
    (void)atomic_fetch_add(&home->worker->forked, 1);
}

static void stand_still(struct home *home)
{
    uint64_t round = atomic_load(&home->soak->round);

    (void)pthread_rwlock_wrlock(&home->asking);
    soak_measure(home->worker->measures);
    atomic_store(&home->worker->parked, round);
    (void)pthread_rwlock_unlock(&home->asking);
}

static void keep(struct home *home)
{
    const struct soak_pace *pace = &home->soak->pace;
    double next_open = test_now(), next_fork = test_now() + pace->fork;

    while (atomic_load(&home->soak->ending) == 0) {
        test_pause(TICK_S);
        if (atomic_load(&home->soak->round) != atomic_load(&home->worker->parked))
            stand_still(home);
        if (test_now() >= next_open) {
            open_again(home);
            next_open = test_now() + pace->open;
        }
        if (test_now() >= next_fork) {
            fork_once(home);
            next_fork = test_now() + pace->fork;
        }
    }
}

/* ---- From beginning to end ------------------------------------------------------------------ */

static void settle_in(struct home *home, const struct soak_job *job)
{
    pthread_rwlockattr_t attributes;

    *home = (struct home){.soak = job->soak, .name = job->worker, .seed = job->soak->seed};
    home->worker = &home->soak->workers[home->name];
    home->group = &home->soak->groups[soak_roles[home->name].group];
    home->url = home->name == SOAK_W_ASYNC ? home->group->safe_url : home->group->url;
    (void)pthread_rwlockattr_init(&attributes);
    (void)pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    child_check(pthread_rwlock_init(&home->asking, &attributes) == 0);
    while (atomic_load(&home->group->ready) == 0 ||
           atomic_load(&home->soak->groups[SOAK_CONTROL].ready) == 0)
        test_pause(TICK_S);
}

/* All that a process makes once for itself is made in here. */
static void rehearse(struct home *home)
{
    home->silent = true;
    home->apart = home->name == SOAK_W_MEMORY;
    for (int i = 0; i < 2; i++) {
        open_store(home, &home->store, &home->limiter);
        start_askers(home);
        open_again(home);
        fork_once(home);
        test_pause(0.1);
        stop_askers(home);
        redbucket_limiter_destroy(home->limiter);
        redbucket_store_close(home->store);
    }
    home->silent = false;
    home->apart = false;
    soak_measure(home->worker->before);
    soak_measure(home->worker->before);
}

void soak_work(void *data)
{
    static struct home home;

    settle_in(&home, data);
    rehearse(&home);
    open_store(&home, &home.store, &home.limiter);
    atomic_store(&home.worker->ready, 1);
    start_askers(&home);
    keep(&home);
    stop_askers(&home);
    redbucket_limiter_destroy(home.limiter);
    redbucket_store_close(home.store);
    soak_measure(home.worker->after);
    atomic_store(&home.worker->ended, 1);
}

void soak_work_until_killed(void *data)
{
    static struct home home;

    settle_in(&home, data);
    home.silent = true;
    open_store(&home, &home.store, &home.limiter);
    start_askers(&home);
    for (;;) {
        open_again(&home);
        test_pause(TICK_S);
    }
}
