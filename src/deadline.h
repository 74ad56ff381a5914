/* SPDX-License-Identifier: MIT */
/*
 * When waiting ends: a moment of CLOCK_MONOTONIC, which nobody can set.
 */
#ifndef RBK_DEADLINE_H
#define RBK_DEADLINE_H

#include <stdbool.h>
#include <time.h>

/* `set` is false until something has to wait: a decision that never waits never reads the clock. */
struct rbk_deadline {
    bool set;
    struct timespec at;
};

/* What time it is by that clock, in seconds. */
double rbk_monotonic_now(void);

/* Sets the deadline to so many seconds (at least 0) from now. */
void rbk_deadline_start(struct rbk_deadline *deadline, double seconds);

/* Seconds left, 0 when it has passed, or nobody waits any more. */
double rbk_deadline_left(const struct rbk_deadline *deadline);

/* The same for poll: whole milliseconds, rounded up, at most INT_MAX. */
int rbk_deadline_left_ms(const struct rbk_deadline *deadline);

#endif
