/* SPDX-License-Identifier: MIT */
/*
 * Every way in which some threads can take turns, within bounds: code that was written for threads
 * is run again and again, each time in another order, until no order is left.
 *
 * The threads are none of the system's. Each runs until it comes to a point, where another may go
 * on instead: before a lock, a wait or a wake, and wherever memory is read or written that others
 * write or read. Which one does is a choice, and all choices are tried, in depth. Three things are
 * bounded: how often a thread is stopped that could have gone on, how often time moves to the next
 * deadline, and how often a wait ends for no reason. Most faults need very few of each.
 *
 * A run breaks when a check fails, when nobody can go on who hasn't ended, or when it doesn't end.
 */
#ifndef TEST_SCHEDULE_H
#define TEST_SCHEDULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define SCHEDULE_THREADS 4

/*
 *   begin, end  before and after each run, in no thread
 *   body        what each thread does
 */
struct schedule_plan {
    size_t threads;
    void (*begin)(void);
    void (*body)(size_t thread);
    void (*end)(void);
    unsigned preemptions;
    unsigned ticks;
    unsigned spurious;
};

/* Returns how many runs there were. Fails the test when one breaks, and tells how it went. */
unsigned long schedule_all(const struct schedule_plan *plan);

/* ---- In a thread. Outside of any, points do nothing, and nothing may have to be waited for ----
 */

void schedule_point(void);
void schedule_lock(const void *lock);
void schedule_unlock(const void *lock);

/* Waits while the word is `value`, until woken, or until a moment: false when that has come. */
bool schedule_await(const atomic_uint *word, unsigned value, double until);

/* Wakes one who waits for the word, which may be gone. */
void schedule_wake(const atomic_uint *word);

/* Until all others have ended. Time goes on when nobody can go on otherwise. */
void schedule_await_others(void);

/* A moment to which time may go on. */
void schedule_expect(double moment);
double schedule_now(void);

/* Which thread this is, and how many points there have been in this run. */
size_t schedule_thread(void);
unsigned schedule_step(void);

/* Fills the thread's stack beyond what its body uses, and tells whether somebody has written there
 * since: whoever works on what lived there, after it is gone. */
void schedule_poison(void);
bool schedule_is_poisoned(size_t thread);

/* Enough stack for `function` to be out of the body's own. */
void schedule_deeper(void (*function)(void *data), void *data);

_Noreturn void schedule_broken(const char *file, int line, const char *condition);

/* In a thread and outside, while a plan is run. */
#define SCHEDULE_CHECK(condition) \
    ((condition) ? (void)0 : schedule_broken(__FILE__, __LINE__, #condition))

#endif
