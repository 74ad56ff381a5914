/* SPDX-License-Identifier: MIT */
/*
 * The clock, which costs no call of the system.
 */
#include "clock.h"

#include <time.h>

double rbk_clock_now(void)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
