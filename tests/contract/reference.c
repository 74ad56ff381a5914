/* SPDX-License-Identifier: MIT */
#include "reference.h"

#include "random.h"
#include "test.h"

double reference_time(const struct reference *reference, double now)
{
    return reference->decisions > 0 && reference->latest > now ? reference->latest : now;
}

long double reference_level(const struct reference *reference, double now)
{
    long double time = reference_time(reference, now), sum = 0, level = 0;

    for (unsigned k = reference->len; k-- > 0;) {
        sum += reference->taken[k].cost;

        long double left = sum - reference->limit.rate * (time - reference->taken[k].time);

        level = left > level ? left : level;
    }
    return level;
}

long double reference_excess(const struct reference *reference, double cost, double now)
{
    const struct redbucket_limit *limit = &reference->limit;
    long double bound = (long double)limit->burst + 1 + limit->delay + limit->rate * 2e-6L;

    return reference_level(reference, now) + cost - bound;
}

long double reference_doubt(const struct reference *reference, double cost)
{
    double scale = capacity(&reference->limit) + cost + reference->limit.rate * 2e-6;

    return (long double)ulp(scale) * (reference->decisions + 4);
}

unsigned reference_take(struct reference *reference, double cost, double now)
{
    assert_true(reference->len < REFERENCE_MAX);
    reference->latest = reference_time(reference, now);
    reference->decisions++;
    reference->taken[reference->len].time = reference->latest;
    reference->taken[reference->len].cost = cost;
    return reference->len++;
}

bool reference_within_bound(const struct reference *reference)
{
    const struct redbucket_limit *limit = &reference->limit;
    long double room = (long double)limit->burst + 1 + limit->delay;
    double place = ulp(capacity(limit));

    for (unsigned first = 0; first < reference->len; first++) {
        long double sum = 0;

        for (unsigned last = first; last < reference->len; last++) {
            long double window =
                (long double)reference->taken[last].time - reference->taken[first].time;

            sum += reference->taken[last].cost;
            if (sum > room + limit->rate * (window + 2e-6L) + (last - first + 1) * place)
                return false;
        }
    }
    return true;
}
