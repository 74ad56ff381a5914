/* SPDX-License-Identifier: MIT */
/*
 * A control for deadlines, over a long time: threads that only sleep, and by how much one of them
 * woke too late, at what time. Whoever wakes at a deadline can't be blamed for less than that.
 */
#ifndef TORTURE_SLEEPERS_H
#define TORTURE_SLEEPERS_H

/* Seconds by a clock that only goes forward. */
double now_s(void);

/* For at most so many seconds. */
void sleepers_start(double seconds);

/* Ends them; what they noted stays. */
void sleepers_stop(void);

/* Somebody who has other things to do as well was so late. */
void sleepers_note(double begin, double end, double late);

/*
 * What a thread does between these two without ever giving its processor up by itself counts as
 * lateness as far as it was taken from it. What it waited for doesn't.
 */
struct stretch {
    double begin;
    double used;
    long given_up;
};
void stretch_begin(struct stretch *stretch);
void stretch_end(const struct stretch *stretch);

/* How late one of them was at worst, in a time. */
double sleepers_late(double begin, double end);

#endif
