/* SPDX-License-Identifier: MIT */
/*
 * Validation of limits. Written so that a NaN fails every comparison that would let it pass.
 */
#include "model/limit.h"

_Bool rbk_within(double number, double low, double high)
{
    return number >= low && number <= high;
}

enum rbk_limit_fault rbk_limit_check(const struct rbk_limit *limit)
{
    if (!rbk_within(limit->rate, RBK_RATE_MIN, RBK_RATE_MAX))
        return RBK_LIMIT_RATE;
    if (!rbk_within(limit->burst, 0.0, RBK_DEPTH_MAX))
        return RBK_LIMIT_BURST;
    if (!rbk_within(limit->delay, 0.0, RBK_DEPTH_MAX))
        return RBK_LIMIT_DELAY;
    if (limit->burst + limit->delay > RBK_DEPTH_MAX)
        return RBK_LIMIT_DEPTH;
    return RBK_LIMIT_GOOD;
}
