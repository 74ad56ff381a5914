/* SPDX-License-Identifier: MIT */
/*
 * Counting, window by window.
 */
#include "lease_witness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What the rounding of doubles may come to. */
#define ROUNDING 1e-3

void witness_begin(struct lease_witness *witness, const struct rbk_limit *limit, double lease_time)
{
    witness->limit = *limit;
    witness->lease_time = lease_time;
    witness->slack = RBK_TICK;
    witness->len = 0;
}

void witness_add(struct lease_witness *witness, const struct admitted *admitted)
{
    if (witness->len == WITNESS_MAX)
        abort();
    witness->admitted[witness->len++] = *admitted;
}

void witness_take_off(struct lease_witness *witness)
{
    witness->len--;
}

static int by_at(const void *a, const void *b)
{
    double x = ((const struct admitted *)a)->at, y = ((const struct admitted *)b)->at;

    return (x > y) - (x < y);
}

static int by_after(const void *a, const void *b)
{
    double x = ((const struct admitted *)a)->after, y = ((const struct admitted *)b)->after;

    return (x > y) - (x < y);
}

static int by_taken(const void *a, const void *b)
{
    double x = ((const struct admitted *)a)->taken, y = ((const struct admitted *)b)->taken;

    return (x > y) - (x < y);
}

static double window(const struct lease_witness *witness, size_t from, size_t to, bool after)
{
    const struct admitted *a = &witness->admitted[from], *b = &witness->admitted[to];

    return after ? b->after - a->after : b->at - a->at;
}

/* A request that is larger than all that goes at once goes on as a whole, after its delay. */
static double depth_of(const struct lease_witness *witness, bool after)
{
    const struct rbk_limit *limit = &witness->limit;
    double depth = limit->burst + 1;

    if (!after)
        return depth + limit->delay;
    for (size_t i = 0; i < witness->len; i++)
        depth = fmax(depth, witness->admitted[i].cost);
    return depth;
}

static bool windows_hold(const struct lease_witness *witness, bool after)
{
    double depth = depth_of(witness, after);

    for (size_t i = 0; i < witness->len; i++) {
        double sum = 0.0;

        for (size_t j = i; j < witness->len; j++) {
            double seconds = window(witness, i, j, after);
            double bound =
                depth + witness->limit.rate * (seconds + witness->lease_time + witness->slack);

            sum += witness->admitted[j].cost;
            if (sum <= bound + ROUNDING)
                continue;
            (void)fprintf(stderr, "# %g in %g s, %s delays, of at most %g\n", sum, seconds,
                          after ? "after" : "before", bound);
            return false;
        }
    }
    return true;
}

bool witness_bound_holds(struct lease_witness *witness)
{
    qsort(witness->admitted, witness->len, sizeof witness->admitted[0], by_at);
    return windows_hold(witness, false);
}

bool witness_delays_hold(struct lease_witness *witness)
{
    qsort(witness->admitted, witness->len, sizeof witness->admitted[0], by_after);
    return windows_hold(witness, true);
}

double witness_level(struct lease_witness *witness, double now)
{
    struct rbk_state state = {.exists = false};

    qsort(witness->admitted, witness->len, sizeof witness->admitted[0], by_taken);
    for (size_t i = 0; i < witness->len; i++) {
        const struct admitted *admitted = &witness->admitted[i];

        state = rbk_take(&state, rbk_level(&witness->limit, &state, admitted->taken),
                         admitted->cost, admitted->taken);
    }
    return rbk_level(&witness->limit, &state, now);
}
