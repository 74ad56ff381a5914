/* SPDX-License-Identifier: MIT */
/*
 * Time for what is kept here of answers that a server gave: seconds by a clock that nobody sets and
 * that counts the time that a machine sleeps. Tests have clocks of their own.
 */
#ifndef RBK_CLOCK_H
#define RBK_CLOCK_H

typedef double rbk_clock(void);

rbk_clock rbk_clock_now;

#endif
