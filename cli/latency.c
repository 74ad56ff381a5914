/* SPDX-License-Identifier: MIT */
/*
 * The step of a time is its highest bit and the four bits below that; times under 16 ns have a step
 * each.
 */
#include "latency.h"

#include <math.h>

static unsigned step_of(uint64_t ns)
{
    unsigned top;

    if (ns < 16)
        return (unsigned)ns;
    top = 63u - (unsigned)__builtin_clzll(ns);
    return (top - 3) * 16 + (unsigned)(ns >> (top - 4) & 15);
}

/* The longest time of a step. */
static double step_end(unsigned step)
{
    if (step < 16)
        return step;
    return ldexp(16.0 + step % 16 + 1.0, (int)(step / 16) - 1) - 1.0;
}

void rbk_latency_add(struct cli_latency *latency, uint64_t ns)
{
    latency->counts[step_of(ns)]++;
    latency->total++;
    if (ns > latency->max_ns)
        latency->max_ns = ns;
}

void rbk_latency_merge(struct cli_latency *latency, const struct cli_latency *other)
{
    for (unsigned i = 0; i < CLI_LATENCY_STEPS; i++)
        latency->counts[i] += other->counts[i];
    latency->total += other->total;
    if (other->max_ns > latency->max_ns)
        latency->max_ns = other->max_ns;
}

double rbk_latency_quantile(const struct cli_latency *latency, double share)
{
    const double wanted = share * (double)latency->total;
    double seen = 0.0;

    for (unsigned i = 0; i < CLI_LATENCY_STEPS; i++) {
        seen += (double)latency->counts[i];
        if (latency->counts[i] > 0 && seen >= wanted)
            return fmin(step_end(i), (double)latency->max_ns) / 1e9;
    }
    return 0.0;
}
