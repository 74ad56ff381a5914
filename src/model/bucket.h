/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of one bucket: pure functions of (limit, state, cost, now).
 *
 * A leaky bucket counted in requests. A state says that `value` requests had not drained at
 * `timestamp`; no state is the same as value 0. With rate in requests a second:
 *
 *     level  = max(value - max(now - timestamp, 0) * rate, 0)
 *     value' = level + cost
 *     room   = burst + 1 - value'
 *     slack  = rate * 2e-6                     the tick
 *     room < -delay - slack   reject; retry after max(timestamp - now, 0) + (-delay - room) / rate
 *     room < -slack           accept after -room / rate seconds
 *     otherwise               accept at once
 *
 * The tick is what a clock of whole microseconds and a double can lose: without it, a client paced
 * at exactly the rate is refused again and again. It moves the bounds by a constant and adds up to
 * nothing. Doubles are evaluated in just this order, without contraction, so that every store and
 * every machine agrees to the last bit.
 *
 * Invariant: from a readable state, a finite cost and a finite now, every result is finite, but for
 * a retry time of INFINITY, which means never.
 */
#ifndef RBK_MODEL_BUCKET_H
#define RBK_MODEL_BUCKET_H

#include "model/exact.h"
#include "model/limit.h"

#include <stdbool.h>
#include <stdint.h>

#define RBK_TICK 2e-6 /* seconds */
#define RBK_FULL 1e15 /* no charge takes a level past this */

struct rbk_state {
    bool exists;
    double timestamp;
    double value;
};

/* What one limit says to one request. `level` is before it. */
struct rbk_judgement {
    bool accepted;
    double level;
    double room;
    double delay;
    double retry_after;
};

/* False for a state whose numbers aren't finite; such a state is an error, never carried on. */
bool rbk_state_readable(const struct rbk_state *state);

/* Requests not yet drained at `now`. A clock that steps back drains nothing, and a negative value
 * counts as 0. */
double rbk_level(const struct rbk_limit *limit, const struct rbk_state *state, double now);

void rbk_judge(const struct rbk_limit *limit, const struct rbk_state *state, double cost,
               double now, struct rbk_judgement *judgement);

/*
 * The wait to announce for a rejection: the model's, raised by as little as it takes for the same
 * request to be accepted at now + wait in doubles too. Level falls monotonically with time in
 * doubles as well, so a client that waits longer is accepted all the more.
 */
double rbk_retry_after(const struct rbk_limit *limit, const struct rbk_state *state, double cost,
                       double now);

/* The same of a request that was judged already, and rejected: `wait` is the judgement's. */
double rbk_retry_raised(const struct rbk_limit *limit, const struct rbk_state *state, double cost,
                        double now, double wait);

/* Unit requests that would be accepted at once at this level. */
int64_t rbk_remaining(const struct rbk_limit *limit, double level);

/* The states after. `stored` may be without existence. */
struct rbk_state rbk_take(const struct rbk_state *stored, double level, double cost, double now);
struct rbk_state rbk_refund(const struct rbk_limit *limit, const struct rbk_state *stored,
                            double cost, double now);
struct rbk_state rbk_charge(const struct rbk_limit *limit, const struct rbk_state *stored,
                            double cost, double now);

/* What to give back of a permit of `cost` taken at `taken_at`: only what can't have drained since,
 * max(cost - max(now - taken_at, 0) * rate, 0). Where the clock has stepped back, `now` is the
 * bucket's own time, up to which it has drained. */
double rbk_give_back_cost(const struct rbk_limit *limit, const struct rbk_state *stored,
                          double cost, double taken_at, double now);

#endif
