/* SPDX-License-Identifier: MIT */
/*
 * src/gather.c itself, in every order that its threads can take turns in within bounds: nobody
 * waits for ever, each request is asked for once at most, and told what became of it and nothing
 * else, whoever is gone is not written to, and no more calls fly than may.
 *
 * Each of these, done to src/gather.c, is found here:
 *
 *   nobody is woken to lead; nobody is woken who was served; the last of a crew isn't
 *   a call that ends hands on to nobody; or, with nobody there, or only some who lead, keeps its
 * place a leader whose time has come leaves without handing on; or calls all the same somebody is
 * called upon to lead twice; or one who hasn't the most time who leaves stays in the queue; or on
 * the flight; or doesn't look again under the lock; or has no seat of his own; or can't leave once
 * he is aboard the crew stays in the queue; the leader does; only he goes; the end of the queue
 * isn't moved back who is served is told so before he has his answer; or his answer is another's a
 * place is taken by what was seen without the lock; one call too many flies who waits stands in the
 * queue only after the lock is gone; or waits for another stage than he saw nobody is told that
 * there was no memory
 */
#include "gather_points.h"

#include "gather.h"
#include "processes.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define TIMEOUT  10.0
#define EACH_MAX 2
#define ASKS_MAX (SCHEDULE_THREADS * EACH_MAX)
#define CALLS    (ASKS_MAX + 8)
#define GONE     0x5a

/* The word of whoever is to lead, in src/gather.c. */
#define LEADING 1u

/* What a plan is about, beside its bounds. */
struct scene {
    const char *name;
    struct schedule_plan plan;
    unsigned flights;
    unsigned each;  /* requests of the first thread; the others have one */
    bool stuck;     /* the first call ends after everything else */
    bool no_memory; /* for more than one in a call */
    bool breaks;    /* every second call fails */
};

static const struct scene *scene;

struct asked {
    struct rbk_request request;
    struct rbk_key key;
    struct rbk_claim claim;
    unsigned char byte;
};

/* One run. */
static struct {
    struct redbucket_store inner;
    struct redbucket_store *store;
    struct asked *asked[ASKS_MAX];
    enum redbucket_status became[ASKS_MAX]; /* of each that was asked for */
    unsigned times[ASKS_MAX];               /* asked for */
    unsigned waits[ASKS_MAX];               /* since which step, or 0 */
    unsigned taken[ASKS_MAX]; /* when its call's crew was, or 0 for straight through */
    bool leads[ASKS_MAX];
    unsigned number[SCHEDULE_THREADS]; /* of the request that each thread is at */
    struct {
        unsigned step;
        double now;
    } locked[SCHEDULE_THREADS]; /* when each had the lock last */
    unsigned called;            /* when somebody was called upon to lead last */
    double until[ASKS_MAX];     /* their deadlines */
    unsigned crews[CALLS];
    unsigned crews_len;
    unsigned flying;
    unsigned calls;
    bool no_memory_met;
    unsigned after; /* calls that are made when all is over */
} world;

/* ---- Points ------------------------------------------------------------------------------------
 */

unsigned point_load(const atomic_uint *word)
{
    schedule_point();
    return atomic_load(word);
}

/* Others may see it before anything else is done. */
void point_store(atomic_uint *word, unsigned value)
{
    if (value == LEADING)
        world.called = schedule_step();
    atomic_store(word, value);
    schedule_point();
}

int point_lock(pthread_mutex_t *mutex)
{
    schedule_lock(mutex);
    if (schedule_thread() < SCHEDULE_THREADS) {
        world.locked[schedule_thread()].step = schedule_step();
        world.locked[schedule_thread()].now = schedule_now();
    }
    return 0;
}

int point_unlock(pthread_mutex_t *mutex)
{
    schedule_unlock(mutex);
    return 0;
}

static double moment_of(const struct rbk_deadline *deadline)
{
    return (double)deadline->at.tv_sec;
}

bool point_await(atomic_uint *word, unsigned value, const struct rbk_deadline *deadline)
{
    SCHEDULE_CHECK(schedule_thread() < SCHEDULE_THREADS);
    unsigned *waits = &world.waits[world.number[schedule_thread()]];

    if (*waits == 0)
        *waits = schedule_step();
    return schedule_await(word, value, moment_of(deadline));
}

/* Each word has one member that waits for it. */
void point_wake(atomic_uint *word, int most)
{
    SCHEDULE_CHECK(most >= 1);
    schedule_wake(word);
}

/* In whole seconds. */
void point_deadline_start(struct rbk_deadline *deadline, double seconds)
{
    deadline->at = (struct timespec){.tv_sec = (time_t)(schedule_now() + seconds)};
    world.until[world.number[schedule_thread()]] = moment_of(deadline);
    schedule_expect(moment_of(deadline));
}

double point_deadline_left(const struct rbk_deadline *deadline)
{
    double left = moment_of(deadline) - schedule_now();

    return left > 0.0 ? left : 0.0;
}

bool point_flight_init(struct rbk_flight *flight, const struct rbk_flight_size *size)
{
    world.no_memory_met = scene->no_memory;
    return !scene->no_memory && rbk_flight_init(flight, size);
}

/* ---- The store ---------------------------------------------------------------------------------
 */

/* He has time, and of those who waited when he was called nobody has more. */
static void check_leader(unsigned leader, const struct rbk_request *requests, size_t len)
{
    SCHEDULE_CHECK(world.locked[schedule_thread()].now < world.until[leader]);
    for (size_t i = 0; i < len && scene->flights == 1; i++) {
        unsigned id = requests[i].keys[0].key[0];

        SCHEDULE_CHECK(world.waits[id] == 0 || world.waits[id] > world.called ||
                       world.until[id] <= world.until[leader]);
    }
}

static void board(const struct rbk_request *requests, size_t len)
{
    size_t thread = schedule_thread();
    unsigned leader = world.number[thread];
    unsigned taken = world.waits[leader] != 0 ? world.locked[thread].step : 0;

    SCHEDULE_CHECK(++world.flying <= scene->flights);
    if (taken != 0) {
        world.crews[world.crews_len++] = taken;
        check_leader(leader, requests, len);
    }
    for (size_t i = 0; i < len; i++) {
        unsigned id = requests[i].keys[0].key[0];

        SCHEDULE_CHECK(id < ASKS_MAX && ++world.times[id] == 1);
        world.taken[id] = taken;
        world.leads[id] = id == leader;
        world.became[id] =
            scene->breaks && world.calls % 2 == 1 ? REDBUCKET_ERROR_IO : REDBUCKET_OK;
    }
    world.calls++;
}

static void settle(struct rbk_request *request)
{
    unsigned id = request->keys[0].key[0];

    request->status = world.became[id];
    request->failed = RBK_NONE;
    request->ask.now = id;
    request->claims[0].verdict.remaining = id;
    request->answer = (struct rbk_answer){.accepted = true, .remaining = id};
}

static void ask_after(void)
{
    struct rbk_request request = {.len = 0};
    struct rbk_batch batch = {.waited = 0.0};

    world.store->ops->decide(world.store, &request, 1, &batch);
    SCHEDULE_CHECK(request.status == REDBUCKET_OK);
}

/* When all is over, as many calls as may fly go straight through, each in the middle of another. */
static void decide_after(struct rbk_request *request)
{
    if (++world.after < scene->flights)
        ask_after();
    request->status = REDBUCKET_OK;
}

static void inner_decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                         struct rbk_batch *batch)
{
    bool first = world.calls == 0;

    (void)store;
    SCHEDULE_CHECK(batch->waited >= 0.0);
    if (requests[0].len == 0) {
        decide_after(&requests[0]);
        return;
    }
    board(requests, len);
    if (first && scene->stuck)
        schedule_await_others();
    else
        schedule_point();
    for (size_t i = 0; i < len; i++)
        settle(&requests[i]);
    world.flying--;
}

static size_t inner_lane(const struct redbucket_store *store, const struct rbk_request *request)
{
    (void)store;
    (void)request;
    return 0;
}

static void inner_close(struct redbucket_store *store)
{
    (void)store;
}

static const struct rbk_store_ops inner_ops = {
    .decide = inner_decide, .lane = inner_lane, .close = inner_close, .lanes = 1, .together = 256};

/* ---- Callers -----------------------------------------------------------------------------------
 */

static struct asked *make_asked(unsigned id)
{
    struct asked *asked = world.asked[id];

    memset(asked, 0, sizeof *asked);
    asked->byte = (unsigned char)id;
    asked->key = (struct rbk_key){.key = &asked->byte, .key_len = 1};
    asked->request = (struct rbk_request){.ask = {.operation = RBK_REQUEST, .cost = 1.0},
                                          .keys = &asked->key,
                                          .claims = &asked->claim,
                                          .len = 1,
                                          .status = REDBUCKET_ERROR_ARGUMENT};
    return asked;
}

/* When the status is that of its call, so is the rest. */
static void check_told(const struct asked *asked)
{
    unsigned id = asked->byte;

    switch (asked->request.status) {
    case REDBUCKET_OK:
    case REDBUCKET_ERROR_IO:
        SCHEDULE_CHECK(world.times[id] == 1 && asked->request.status == world.became[id]);
        SCHEDULE_CHECK(asked->claim.verdict.remaining == id);
        SCHEDULE_CHECK(asked->request.answer.remaining == id);
        break;
    case REDBUCKET_ERROR_MEMORY:
        SCHEDULE_CHECK(world.no_memory_met && world.times[id] == 0);
        break;
    default:
        SCHEDULE_CHECK(asked->request.status == REDBUCKET_ERROR_TIMEOUT &&
                       schedule_now() >= world.until[id]);
    }
}

/* Their deadlines are apart, and not in the order of the threads. */
static const double waited_by[SCHEDULE_THREADS] = {0.0, 4.0, 2.0, 3.0};

static void ask(void *data)
{
    struct asked *asked = data;
    struct rbk_batch batch = {.waited = waited_by[schedule_thread()]};

    world.until[asked->byte] = schedule_now() + TIMEOUT - batch.waited;
    world.store->ops->decide(world.store, &asked->request, 1, &batch);
    check_told(asked);
}

static void body(size_t thread)
{
    unsigned each = thread == 0 ? scene->each : 1;

    for (unsigned i = 0; i < each; i++) {
        unsigned id = (unsigned)thread * EACH_MAX + i;
        struct asked *asked = make_asked(id);

        world.number[thread] = id;
        schedule_deeper(ask, asked);
        memset(asked, GONE, sizeof *asked);
    }
    schedule_poison();
}

/* ---- Runs --------------------------------------------------------------------------------------
 */

static void begin(void)
{
    struct asked *memory = world.asked[0];

    memset(&world, 0, sizeof world);
    for (size_t i = 0; i < ASKS_MAX; i++)
        world.asked[i] = memory + i;
    world.inner.ops = &inner_ops;
    assert_int_equal(rbk_gather_create(&world.inner, TIMEOUT, scene->flights, &world.store, NULL),
                     REDBUCKET_OK);
}

/* Who waited when a crew was taken went with it, unless he was called upon to lead another already,
 * as may be where more than one call flies. */
static void check_nobody_was_left(unsigned id)
{
    if (world.waits[id] == 0 || world.taken[id] == 0 || (world.leads[id] && scene->flights > 1))
        return;
    for (unsigned i = 0; i < world.crews_len; i++)
        SCHEDULE_CHECK(world.crews[i] <= world.waits[id] || world.crews[i] >= world.taken[id]);
}

static bool is_gone(const struct asked *asked)
{
    const unsigned char *bytes = (const unsigned char *)asked;

    for (size_t i = 0; i < sizeof *asked; i++) {
        if (bytes[i] != GONE)
            return false;
    }
    return true;
}

static void end(void)
{
    for (unsigned thread = 0; thread < scene->plan.threads; thread++) {
        SCHEDULE_CHECK(schedule_is_poisoned(thread));
        for (unsigned i = 0; i < (thread == 0 ? scene->each : 1); i++) {
            SCHEDULE_CHECK(is_gone(world.asked[thread * EACH_MAX + i]));
            check_nobody_was_left(thread * EACH_MAX + i);
        }
    }
    SCHEDULE_CHECK(world.flying == 0);
    ask_after();
    SCHEDULE_CHECK(world.after == scene->flights);
    world.store->ops->close(world.store);
}

static const struct scene scenes[] = {
    {.name = "three callers, one call at a time",
     .plan = {.threads = 3, .preemptions = 3},
     .flights = 1,
     .each = 2},
    {.name = "four callers, two calls at a time",
     .plan = {.threads = 4, .preemptions = 2},
     .flights = 2,
     .each = 1},
    {.name = "calls that fail",
     .plan = {.threads = 3, .preemptions = 3},
     .flights = 1,
     .each = 1,
     .breaks = true},
    {.name = "time goes by",
     .plan = {.threads = 3, .preemptions = 2, .ticks = 1},
     .flights = 1,
     .each = 1},
    {.name = "time goes by and by",
     .plan = {.threads = 3, .preemptions = 1, .ticks = 3},
     .flights = 1,
     .each = 1},
    {.name = "the first call hangs",
     .plan = {.threads = 3, .preemptions = 3},
     .flights = 1,
     .each = 1,
     .stuck = true},
    {.name = "waits end for no reason",
     .plan = {.threads = 3, .preemptions = 2, .spurious = 1},
     .flights = 1,
     .each = 1},
    {.name = "no memory for a crew",
     .plan = {.threads = 3, .preemptions = 2},
     .flights = 1,
     .each = 1,
     .no_memory = true},
};

static void every_schedule_holds(void **state)
{
    scene = *state;
    if (TEST_SANITIZED)
        skip();
    struct asked *memory = calloc(ASKS_MAX, sizeof *memory);
    struct schedule_plan plan = scene->plan;

    assert_non_null(memory);
    world.asked[0] = memory;
    plan.begin = begin;
    plan.body = body;
    plan.end = end;
    print_message("# %s: %lu schedules\n", scene->name, schedule_all(&plan));
    free(memory);
}

int main(void)
{
    enum { LEN = sizeof scenes / sizeof scenes[0] };

    struct CMUnitTest tests[LEN];

    for (size_t i = 0; i < LEN; i++)
        tests[i] = (struct CMUnitTest){.name = scenes[i].name,
                                       .test_func = every_schedule_holds,
                                       .initial_state = (void *)(uintptr_t)&scenes[i]};
    return cmocka_run_group_tests_name("gather_schedules", tests, NULL, NULL);
}
