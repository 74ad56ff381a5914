/* SPDX-License-Identifier: MIT */
/*
 * Several limits together: judge each claim, then settle all of them the same way.
 */
#include "model/decide.h"

#include <float.h>

static bool judge(const struct rbk_ask *ask, struct rbk_claim *claim)
{
    struct rbk_judgement judgement;

    rbk_judge(&claim->limit, &claim->state, ask->cost, ask->now, &judgement);
    claim->level = judgement.level;
    claim->change = RBK_KEEP;
    claim->verdict.accepted = judgement.accepted;
    claim->verdict.delay = judgement.delay;
    claim->verdict.retry_after = judgement.accepted
                                     ? 0.0
                                     : rbk_retry_raised(&claim->limit, &claim->state, ask->cost,
                                                        ask->now, judgement.retry_after);
    return judgement.accepted;
}

/* What the verdict says of the bucket as the decision leaves it. */
static void tell_level(struct rbk_claim *claim, double level)
{
    double reset_after = level / claim->limit.rate;

    claim->verdict.remaining = rbk_remaining(&claim->limit, level);
    claim->verdict.reset_after = reset_after < DBL_MAX ? reset_after : DBL_MAX;
}

static bool request(const struct rbk_ask *ask, struct rbk_claim *claims, size_t claims_len)
{
    bool accepted = true;

    for (size_t i = 0; i < claims_len; i++)
        accepted = judge(ask, &claims[i]) && accepted;
    for (size_t i = 0; i < claims_len; i++) {
        struct rbk_claim *claim = &claims[i];

        tell_level(claim, accepted ? claim->level + ask->cost : claim->level);
        if (accepted && ask->operation == RBK_REQUEST) {
            claim->state = rbk_take(&claim->state, claim->level, ask->cost, ask->now);
            claim->change = RBK_WRITE;
        }
    }
    return accepted;
}

/* The operations that nobody can refuse. */
static void impose(const struct rbk_ask *ask, struct rbk_claim *claim)
{
    double cost = ask->cost;

    claim->verdict = (struct rbk_verdict){.accepted = true};
    claim->change = claim->state.exists ? RBK_WRITE : RBK_KEEP;
    if (ask->operation == RBK_CHARGE) {
        claim->state = rbk_charge(&claim->limit, &claim->state, cost, ask->now);
        claim->change = RBK_WRITE;
    } else if (ask->operation == RBK_RESET) {
        claim->change = claim->state.exists ? RBK_FORGET : RBK_KEEP;
        claim->state.exists = false;
    } else {
        if (ask->operation == RBK_GIVE_BACK)
            cost = rbk_give_back_cost(&claim->limit, &claim->state, cost, ask->taken_at, ask->now);
        claim->state = rbk_refund(&claim->limit, &claim->state, cost, ask->now);
    }
    tell_level(claim, rbk_level(&claim->limit, &claim->state, ask->now));
}

/* The longest waits and the smallest remaining; a tie stays with the first. */
static void combine(const struct rbk_claim *claims, size_t claims_len, struct rbk_answer *answer)
{
    for (size_t i = 0; i < claims_len; i++) {
        const struct rbk_verdict *verdict = &claims[i].verdict;
        bool decides = answer->accepted ? verdict->delay > answer->delay
                                        : verdict->retry_after > answer->retry_after;

        if (decides)
            answer->decided = i;
        if (verdict->retry_after > answer->retry_after)
            answer->retry_after = verdict->retry_after;
        if (answer->accepted && verdict->delay > answer->delay)
            answer->delay = verdict->delay;
        if (verdict->reset_after > answer->reset_after)
            answer->reset_after = verdict->reset_after;
        if (verdict->remaining < answer->remaining)
            answer->remaining = verdict->remaining;
    }
}

void rbk_decide(const struct rbk_ask *ask, struct rbk_claim *claims, size_t claims_len,
                struct rbk_answer *answer)
{
    *answer = (struct rbk_answer){.accepted = true, .remaining = INT64_MAX, .decided = RBK_NONE};
    if (ask->operation == RBK_REQUEST || ask->operation == RBK_PEEK) {
        answer->accepted = request(ask, claims, claims_len);
    } else {
        for (size_t i = 0; i < claims_len; i++)
            impose(ask, &claims[i]);
    }
    combine(claims, claims_len, answer);
}

void rbk_decide_together(const struct rbk_ask *ask, struct rbk_claim *claims, size_t claims_len,
                         struct rbk_answer *answer)
{
    bool asks = ask->operation == RBK_REQUEST || ask->operation == RBK_PEEK;

    *answer = (struct rbk_answer){.accepted = true, .remaining = INT64_MAX, .decided = RBK_NONE};
    for (size_t i = 0; i < claims_len; i++)
        answer->accepted = answer->accepted && claims[i].verdict.accepted;
    for (size_t i = 0; i < claims_len && asks && !answer->accepted; i++)
        tell_level(&claims[i], claims[i].level);
    combine(claims, claims_len, answer);
}

uint64_t rbk_microseconds(double seconds)
{
    double product = seconds * 1e6;

    /* Most waits are none. */
    if (seconds == 0.0)
        return 0;
    if (seconds > DBL_MAX)
        return UINT64_MAX;
    /* 2^64 - 2048 is the largest double below 2^64. */
    if (!(product < 18446744073709549568.0))
        return UINT64_MAX - 1;

    uint64_t whole = (uint64_t)product;

    /* The product is rounded, up or down; what counts is whether so many microseconds, as a double
     * in seconds, are enough. */
    return (double)whole / 1e6 < seconds ? whole + 1 : whole;
}
