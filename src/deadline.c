/* SPDX-License-Identifier: MIT */
/*
 * Arithmetic on deadlines.
 */
#include "deadline.h"

#include "moment.h"
#include "wait.h"

#include <limits.h>
#include <math.h>

double rbk_monotonic_now(void)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void rbk_deadline_start(struct rbk_deadline *deadline, double seconds)
{
    deadline->at = rbk_moment_in(seconds);
    deadline->set = true;
}

double rbk_deadline_left(const struct rbk_deadline *deadline)
{
    struct timespec now = {0, 0};

    if (rbk_wait_is_over())
        return 0.0;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    double left = (double)(deadline->at.tv_sec - now.tv_sec) +
                  (double)(deadline->at.tv_nsec - now.tv_nsec) * 1e-9;

    return left > 0.0 ? left : 0.0;
}

int rbk_deadline_left_ms(const struct rbk_deadline *deadline)
{
    double left = ceil(rbk_deadline_left(deadline) * 1e3);

    return left < INT_MAX ? (int)left : INT_MAX;
}
