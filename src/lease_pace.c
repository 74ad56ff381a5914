/* SPDX-License-Identifier: MIT */
/*
 * Counting in windows that follow each other, and a size that doubles and shrinks.
 */
#include "lease_pace.h"

#define WINDOW_MAX 1.0 /* seconds */
#define NEXT_MAX   1e12

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

void rbk_pace_count(struct rbk_pace *pace, double now, double time)
{
    if (!(now - pace->since < smaller(time, WINDOW_MAX))) {
        pace->since = now;
        pace->asked = 0;
    }
    if (pace->asked < RBK_PACE_HOT)
        pace->asked++;
    pace->last = now;
}

bool rbk_pace_is_stale(const struct rbk_pace *pace, double now, double time)
{
    return now - pace->last > 2.0 * smaller(time, WINDOW_MAX);
}

/* All that the bucket can give, or what is known to be left and what has drained since. */
static double room_now(const struct rbk_pace *pace, const struct rbk_limit *limit, double now)
{
    double most = limit->burst + 1.0 + limit->delay;

    if (pace->room_at <= 0.0)
        return most;
    return smaller(pace->room + larger(now - pace->room_at, 0.0) * limit->rate, most);
}

double rbk_pace_amount(struct rbk_pace *pace, const struct rbk_limit *limit,
                       const struct rbk_lease_terms *terms, double cost, double now)
{
    double amount;

    if (pace->next <= 0.0) {
        if (pace->asked < RBK_PACE_HOT)
            return 0.0;
        pace->next = RBK_PACE_FIRST * cost;
    }
    amount = smaller(larger(pace->next, 2.0 * cost), terms->most);
    amount = smaller(amount, room_now(pace, limit, now) / 2.0);
    return amount >= cost ? amount : 0.0;
}

/* One that was smaller than it was to be says nothing of a larger one. */
void rbk_pace_used_up(struct rbk_pace *pace, double taken)
{
    if (taken >= pace->next)
        pace->next = smaller(2.0 * taken, NEXT_MAX);
}

void rbk_pace_outlived(struct rbk_pace *pace, double used, double cost)
{
    pace->next = smaller(pace->next, used);
    if (used >= 2.0 * cost)
        return;
    pace->next = 0.0;
    pace->asked = 0;
}

void rbk_pace_learn(struct rbk_pace *pace, const struct rbk_limit *limit, double level, double now)
{
    pace->room = larger(limit->burst + 1.0 + limit->delay - level, 0.0);
    pace->room_at = now;
}
