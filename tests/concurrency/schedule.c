/* SPDX-License-Identifier: MIT */
/*
 * A run is a path of choices, each the index of a move among those that there were. The first runs
 * take the first move everywhere, which goes on with the same thread; the next run changes the last
 * choice that has moves left, and so on, until there is none.
 */
#include "schedule.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define STACK_SIZE  (32u * 1024)
#define STACK_SPARE 4096u /* of the body itself, and of whoever switches from it */
#define CHOICES_MAX 4096u
#define PRINTED_MAX 500u
#define MOVES_MAX   (3 * SCHEDULE_THREADS)
#define POISON      0xa5
#define NOBODY      SIZE_MAX

enum state { READY, ON_LOCK, ON_WORD, LAST, ENDED };

struct thread {
    ucontext_t context;
    unsigned char *stack;
    unsigned char *poisoned_to; /* or NULL */
    enum state state;
    const void *waits_for;
    double until;   /* of ON_WORD */
    double expects; /* the last deadline that it has set */
    bool woken;
};

enum kind { RUN, TICK, SPURIOUS };

struct move {
    enum kind kind;
    size_t thread;
    bool preempts;
};

static struct {
    const struct schedule_plan *plan;
    struct thread threads[SCHEDULE_THREADS];
    const void *locks[SCHEDULE_THREADS]; /* which one each holds, or NULL */
    size_t current;
    ucontext_t home;
    double now;
    unsigned steps;
    unsigned preemptions, ticks, spurious; /* so far in this run */
    struct {
        unsigned char index, len;
    } path[CHOICES_MAX];
    size_t path_len; /* of choices that are given */
    size_t at;
    char broken[256];
} all = {.current = NOBODY};

/* ---- Moves ---------------------------------------------------------------------------------- */

static bool is_held(const void *lock)
{
    for (size_t i = 0; i < SCHEDULE_THREADS; i++) {
        if (all.locks[i] == lock)
            return true;
    }
    return false;
}

static bool others_have_ended(size_t thread)
{
    for (size_t i = 0; i < all.plan->threads; i++) {
        if (i != thread && all.threads[i].state != ENDED)
            return false;
    }
    return true;
}

static bool can_run(size_t number)
{
    const struct thread *thread = &all.threads[number];

    switch (thread->state) {
    case READY:
        return true;
    case ON_LOCK:
        return !is_held(thread->waits_for);
    case ON_WORD:
        return thread->woken || all.now >= thread->until;
    case LAST:
        return others_have_ended(number);
    case ENDED:
    default:
        return false;
    }
}

/* The next deadline, or the past when there is none. */
static double next_moment(void)
{
    double next = -1.0;

    for (size_t i = 0; i < all.plan->threads; i++) {
        const struct thread *thread = &all.threads[i];

        if (thread->state != ENDED && thread->expects > all.now &&
            (next < 0.0 || thread->expects < next))
            next = thread->expects;
    }
    return next;
}

static size_t add_runs(struct move *moves)
{
    bool goes_on = all.current != NOBODY && can_run(all.current);
    size_t len = 0;

    if (goes_on)
        moves[len++] = (struct move){RUN, all.current, false};
    if (goes_on && all.preemptions == all.plan->preemptions)
        return len;
    for (size_t i = 0; i < all.plan->threads; i++) {
        if (i != all.current && can_run(i))
            moves[len++] = (struct move){RUN, i, goes_on};
    }
    return len;
}

/* All moves that there are now; none when nobody can go on. */
static size_t list_moves(struct move *moves)
{
    size_t len = add_runs(moves);

    if (len == 0)
        return 0;
    if (all.ticks < all.plan->ticks && next_moment() > all.now)
        moves[len++] = (struct move){.kind = TICK};
    for (size_t i = 0; i < all.plan->threads && all.spurious < all.plan->spurious; i++) {
        if (all.threads[i].state == ON_WORD && !all.threads[i].woken)
            moves[len++] = (struct move){SPURIOUS, i, false};
    }
    return len;
}

static struct move choose(const struct move *moves, size_t len)
{
    if (all.at == all.path_len) {
        SCHEDULE_CHECK(all.at < CHOICES_MAX);
        all.path[all.at].index = 0;
        all.path[all.at].len = (unsigned char)len;
        all.path_len++;
    }
    /* The same choices as before have led here. */
    SCHEDULE_CHECK(all.path[all.at].len == len);
    return moves[all.path[all.at++].index];
}

static bool one_is_last(void)
{
    for (size_t i = 0; i < all.plan->threads; i++) {
        if (all.threads[i].state == LAST)
            return true;
    }
    return false;
}

/* Who runs next. */
static size_t pick(void)
{
    struct move moves[MOVES_MAX];

    for (;;) {
        size_t len = list_moves(moves);

        if (len == 0) {
            /* Whoever waits without an end is lost. */
            SCHEDULE_CHECK(one_is_last() && next_moment() > all.now);
            all.now = next_moment();
            continue;
        }
        struct move move = len > 1 ? choose(moves, len) : moves[0];

        if (move.kind == RUN) {
            all.preemptions += move.preempts;
            return move.thread;
        }
        if (move.kind == TICK) {
            all.ticks++;
            all.now = next_moment();
        } else {
            all.spurious++;
            all.threads[move.thread].woken = true;
        }
    }
}

/* ---- Threads -------------------------------------------------------------------------------- */

static void switch_to(ucontext_t *from, size_t next)
{
    all.current = next;
    (void)swapcontext(from, next == NOBODY ? &all.home : &all.threads[next].context);
}

/* Whoever is current waits or doesn't; another may go on. */
static void turn(void)
{
    struct thread *thread = &all.threads[all.current];
    size_t before = all.current;
    size_t next;

    all.steps++;
    next = pick();
    if (next != before)
        switch_to(&thread->context, next);
    thread->state = READY;
}

static void begin_thread(void)
{
    struct thread *thread = &all.threads[all.current];

    all.plan->body(all.current);
    thread->state = ENDED;
    switch_to(&thread->context, others_have_ended(all.current) ? NOBODY : pick());
}

static void make_thread(size_t number)
{
    struct thread *thread = &all.threads[number];
    unsigned char *stack = thread->stack != NULL ? thread->stack : malloc(STACK_SIZE);

    assert_non_null(stack);
    *thread = (struct thread){.stack = stack, .state = READY, .expects = -1.0};
    (void)getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = stack;
    thread->context.uc_stack.ss_size = STACK_SIZE;
    makecontext(&thread->context, begin_thread, 0);
}

void schedule_point(void)
{
    if (all.current != NOBODY)
        turn();
}

void schedule_lock(const void *lock)
{
    if (all.current == NOBODY)
        return;
    all.threads[all.current].state = ON_LOCK;
    all.threads[all.current].waits_for = lock;
    turn();
    all.locks[all.current] = lock;
}

void schedule_unlock(const void *lock)
{
    if (all.current == NOBODY)
        return;
    SCHEDULE_CHECK(all.locks[all.current] == lock);
    all.locks[all.current] = NULL;
    turn();
}

bool schedule_await(const atomic_uint *word, unsigned value, double until)
{
    SCHEDULE_CHECK(all.current != NOBODY);
    struct thread *thread = &all.threads[all.current];

    schedule_point();
    if (atomic_load(word) != value)
        return true;
    thread->state = ON_WORD;
    thread->waits_for = word;
    thread->until = until;
    thread->woken = false;
    turn();
    return thread->woken;
}

void schedule_wake(const atomic_uint *word)
{
    schedule_point();
    for (size_t i = 0; i < all.plan->threads; i++) {
        struct thread *thread = &all.threads[i];

        if (thread->state == ON_WORD && thread->waits_for == word && !thread->woken) {
            thread->woken = true;
            return;
        }
    }
}

void schedule_await_others(void)
{
    all.threads[all.current].state = LAST;
    turn();
}

void schedule_expect(double moment)
{
    if (all.current != NOBODY)
        all.threads[all.current].expects = moment;
}

double schedule_now(void)
{
    return all.now;
}

size_t schedule_thread(void)
{
    return all.current;
}

unsigned schedule_step(void)
{
    return all.steps;
}

/* ---- What lay on the stack ------------------------------------------------------------------ */

__attribute__((noinline)) void schedule_deeper(void (*function)(void *data), void *data)
{
    volatile unsigned char spare[2 * STACK_SPARE];

    spare[0] = 0;
    function(data);
    spare[sizeof spare - 1] = spare[0];
}

__attribute__((noinline)) void schedule_poison(void)
{
    struct thread *thread = &all.threads[all.current];
    unsigned char *here = __builtin_frame_address(0);

    thread->poisoned_to = here - STACK_SPARE;
    memset(thread->stack, POISON, (size_t)(thread->poisoned_to - thread->stack));
}

bool schedule_is_poisoned(size_t number)
{
    const struct thread *thread = &all.threads[number];
    size_t len = (size_t)(thread->poisoned_to - thread->stack);

    /* The first is, and each is as the one before. */
    return thread->stack[0] == POISON && memcmp(thread->stack, thread->stack + 1, len - 1) == 0;
}

/* ---- Runs ----------------------------------------------------------------------------------- */

void schedule_broken(const char *file, int line, const char *condition)
{
    (void)snprintf(all.broken, sizeof all.broken, "%s:%d: %s", file, line, condition);
    if (all.current == NOBODY)
        fail_msg("%s", all.broken);
    /* What this thread was at is left behind. */
    (void)setcontext(&all.home);
    abort();
}

static void run(void)
{
    all.at = 0;
    all.now = 0.0;
    all.steps = 0;
    all.preemptions = all.ticks = all.spurious = 0;
    memset(all.locks, 0, sizeof all.locks);
    for (size_t i = 0; i < all.plan->threads; i++)
        make_thread(i);
    all.plan->begin();
    all.current = NOBODY;
    switch_to(&all.home, pick());
    all.current = NOBODY;
    if (all.broken[0] == '\0')
        all.plan->end();
}

/* To the next path; false when there is none. */
static bool next_path(void)
{
    while (all.path_len > 0) {
        if (++all.path[all.path_len - 1].index < all.path[all.path_len - 1].len)
            return true;
        all.path_len--;
    }
    return false;
}

static void print_path(void)
{
    print_message("# choices:");
    for (size_t i = 0; i < all.at && i < PRINTED_MAX; i++)
        print_message(" %u", all.path[i].index);
    print_message("\n");
}

unsigned long schedule_all(const struct schedule_plan *plan)
{
    unsigned long runs = 0;

    all.plan = plan;
    all.path_len = 0;
    all.broken[0] = '\0';
    do {
        run();
        runs++;
        if (all.broken[0] != '\0') {
            print_path();
            fail_msg("run %lu: %s", runs, all.broken);
        }
    } while (next_path());
    for (size_t i = 0; i < SCHEDULE_THREADS; i++) {
        free(all.threads[i].stack);
        all.threads[i].stack = NULL;
    }
    return runs;
}
