/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of one bucket. The order of operations is part of the contract: see the header.
 */
#include "model/bucket.h"

#include <float.h>
#include <math.h>

/* Not fmax: that one hides a NaN. Both operands are finite here. */
static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double slack(const struct rbk_limit *limit)
{
    return limit->rate * RBK_TICK;
}

bool rbk_state_readable(const struct rbk_state *state)
{
    return !state->exists || (isfinite(state->timestamp) && isfinite(state->value));
}

double rbk_level(const struct rbk_limit *limit, const struct rbk_state *state, double now)
{
    if (!state->exists)
        return 0.0;
    double elapsed = larger(now - state->timestamp, 0.0);

    return larger(state->value - elapsed * limit->rate, 0.0);
}

/* The later timestamp is kept: storing the earlier one would drain the same second twice. */
static double stamp(const struct rbk_state *state, double now)
{
    return state->exists ? larger(now, state->timestamp) : now;
}

static bool rejects(const struct rbk_limit *limit, double room)
{
    return room < -limit->delay - slack(limit);
}

/* Finite, however small the rate: only a cost that never fits waits for ever. */
static double retry_after(const struct rbk_limit *limit, const struct rbk_state *state, double room,
                          double now)
{
    double ahead = state->exists ? larger(state->timestamp - now, 0.0) : 0.0;

    return smaller(ahead + (-limit->delay - room) / limit->rate, DBL_MAX);
}

void rbk_judge(const struct rbk_limit *limit, const struct rbk_state *state, double cost,
               double now, struct rbk_judgement *judgement)
{
    double level = rbk_level(limit, state, now);
    double value = level + cost;
    double room = limit->burst + 1 - value;

    *judgement = (struct rbk_judgement){.accepted = true, .level = level, .room = room};
    if (rejects(limit, room)) {
        bool never = rejects(limit, limit->burst + 1 - cost);

        judgement->accepted = false;
        judgement->retry_after = never ? INFINITY : retry_after(limit, state, room, now);
    } else if (room < -slack(limit)) {
        judgement->delay = -room / limit->rate;
    }
}

static bool accepted_at(const struct rbk_limit *limit, const struct rbk_state *state, double cost,
                        double now)
{
    return !rejects(limit, limit->burst + 1 - (rbk_level(limit, state, now) + cost));
}

double rbk_retry_after(const struct rbk_limit *limit, const struct rbk_state *state, double cost,
                       double now)
{
    struct rbk_judgement judgement;

    rbk_judge(limit, state, cost, now, &judgement);
    return judgement.accepted ? 0.0
                              : rbk_retry_raised(limit, state, cost, now, judgement.retry_after);
}

double rbk_retry_raised(const struct rbk_limit *limit, const struct rbk_state *state, double cost,
                        double now, double wait)
{
    double step = larger(wait, fabs(now)) * DBL_EPSILON;

    /* The tick covers the rounding of ordinary limits, so this seldom turns even once. Doubling
     * ends it in some thousand turns at the very most. */
    while (wait < DBL_MAX && !accepted_at(limit, state, cost, now + wait)) {
        wait = smaller(wait + step, DBL_MAX);
        step *= 2;
    }
    return wait;
}

int64_t rbk_remaining(const struct rbk_limit *limit, double level)
{
    double spare = limit->burst + 1 - level + slack(limit);

    /* Above 0, converting is rounding down. */
    return spare > 0 ? (int64_t)smaller(spare, 9e18) : 0;
}

struct rbk_state rbk_take(const struct rbk_state *stored, double level, double cost, double now)
{
    return (struct rbk_state){true, stamp(stored, now), level + cost};
}

struct rbk_state rbk_refund(const struct rbk_limit *limit, const struct rbk_state *stored,
                            double cost, double now)
{
    if (!stored->exists)
        return *stored;
    double level = rbk_level(limit, stored, now);

    return (struct rbk_state){true, stamp(stored, now), larger(level - cost, 0.0)};
}

struct rbk_state rbk_charge(const struct rbk_limit *limit, const struct rbk_state *stored,
                            double cost, double now)
{
    double level = rbk_level(limit, stored, now);

    return (struct rbk_state){true, stamp(stored, now), smaller(level + cost, RBK_FULL)};
}

double rbk_give_back_cost(const struct rbk_limit *limit, const struct rbk_state *stored,
                          double cost, double taken_at, double now)
{
    double elapsed = larger(stamp(stored, now) - taken_at, 0.0);

    return larger(cost - elapsed * limit->rate, 0.0);
}
