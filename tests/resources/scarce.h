/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out when a test says so: for everybody in the process, the C library, hiredis
 * and OpenSSL among them. Allocations are counted while it is on, and from one of them on there is
 * nothing: for that one alone, or until it is switched off.
 *
 * Whatever is allocated and not given back is counted all the time.
 */
#ifndef TEST_SCARCE_H
#define TEST_SCARCE_H

#include <stdbool.h>

/* Counts from here, off; the `nth` from then on fails, 0 for none, and those after it, `and_on`. */
void scarce_plan(unsigned long nth, bool and_on);

/* Between these two, calls are counted and may fail. Off says whether one failed in between. */
void scarce_on(void);
bool scarce_off(void);

/* How many there were since the plan was made, and whether one failed. */
unsigned long scarce_made(void);
bool scarce_struck(void);

/* Blocks that nobody has freed. */
long scarce_blocks(void);

#endif
