/* SPDX-License-Identifier: MIT */
/*
 * A control for deadlines, over a long time: threads that only sleep, and by how much one of them
 * woke too late, at what time. Whoever wakes at a deadline can't be blamed for less than that.
 */
#ifndef TORTURE_SLEEPERS_H
#define TORTURE_SLEEPERS_H

#include <sys/types.h>

/* Seconds by a clock that only goes forward. */
double now_s(void);

/* For at most so many seconds. Beside them it is noted how long each thread of this process, and of
 * those that are watched, was kept waiting for a processor: it may have had a lock that others
 * want. */
void sleepers_start(double seconds);
void sleepers_watch(pid_t process);

/* Ends them; what they noted stays. */
void sleepers_stop(void);

/* Somebody who has other things to do as well was so late. */
void sleepers_note(double begin, double end, double late);

/* For how many seconds this thread has been kept waiting for a processor since it began, while it
 * had something to do: what the system knows of it; 0 where it doesn't tell. Call kept_end in the
 * end, which closes what this opens. */
double kept_s(void);
void kept_end(void);

/* For how many seconds it has had one. On a machine that is only played to it, others may have had
 * that meanwhile. */
double used_s(void);

/* How late one of them was at worst, in a time. */
double sleepers_late(double begin, double end);

#endif
