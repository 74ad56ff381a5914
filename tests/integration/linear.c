/* SPDX-License-Identifier: MIT */
/*
 * A search in depth for the row: whoever may come next is one that no other, which is still to
 * come, had ended before it began. What is the same at the same place, threads that have got as far
 * with buckets as full, is looked at once.
 */
#include "linear.h"

#include "test.h"

#include <math.h>
#include <stdlib.h>

#define SEEN_MAX 16384u /* a power of 2 */

const struct redbucket_limit linear_limits[LINEAR_LIMITS] = {
    {.rate = LINEAR_RATE, .burst = 2.5, .delay = 0.0},
    {.rate = LINEAR_RATE, .burst = 1.25, .delay = 1.0},
};

/* ---- The machine ---------------------------------------------------------------------------- */

static const struct redbucket_limit *limit_of(unsigned bucket)
{
    return &linear_limits[bucket / LINEAR_KEYS];
}

static int64_t left_in(unsigned bucket, unsigned level)
{
    double spare = limit_of(bucket)->burst + 1.0 - level;

    return spare > 0.0 ? (int64_t)spare : 0;
}

/* Whether it has room, and by how much it is beyond the bound that it waits for. */
static void judge(unsigned bucket, unsigned level, unsigned cost, struct linear_verdict *verdict)
{
    const struct redbucket_limit *limit = limit_of(bucket);
    double over = (double)level + cost - (limit->burst + 1.0);

    verdict->accepted = over <= limit->delay;
    verdict->wait = verdict->accepted ? fmax(over, 0.0) : over - limit->delay;
}

static void ask(struct linear_machine *machine, struct linear_step *step)
{
    double longest = 0.0;

    step->accepted = true;
    for (size_t i = 0; i < step->len; i++) {
        judge(step->buckets[i], machine->levels[step->buckets[i]], step->cost, &step->verdicts[i]);
        step->accepted = step->accepted && step->verdicts[i].accepted;
    }
    for (size_t i = 0; i < step->len; i++) {
        unsigned bucket = step->buckets[i];
        unsigned level = machine->levels[bucket] + (step->accepted ? step->cost : 0);

        step->verdicts[i].remaining = left_in(bucket, level);
        if (step->operation == REDBUCKET_REQUEST)
            machine->levels[bucket] = level;
        if (step->verdicts[i].accepted == step->accepted && step->verdicts[i].wait > longest) {
            longest = step->verdicts[i].wait;
            step->decided = i;
        }
    }
}

static void impose(struct linear_machine *machine, struct linear_step *step)
{
    step->accepted = true;
    for (size_t i = 0; i < step->len; i++) {
        unsigned *level = &machine->levels[step->buckets[i]];

        if (step->operation == REDBUCKET_CHARGE)
            *level += step->cost;
        else if (step->operation == REDBUCKET_RESET || *level < step->cost)
            *level = 0;
        else
            *level -= step->cost;
        step->verdicts[i] = (struct linear_verdict){.accepted = true,
                                                    .remaining = left_in(step->buckets[i], *level)};
    }
}

void linear_decide(struct linear_machine *machine, struct linear_step *step)
{
    step->decided = REDBUCKET_NONE;
    step->remaining = INT64_MAX;
    if (step->operation == REDBUCKET_REQUEST || step->operation == REDBUCKET_PEEK)
        ask(machine, step);
    else
        impose(machine, step);
    for (size_t i = 0; i < step->len; i++) {
        if (step->verdicts[i].remaining < step->remaining)
            step->remaining = step->verdicts[i].remaining;
    }
}

/* ---- The search ----------------------------------------------------------------------------- */

struct search {
    const struct linear_history *history;
    size_t at[LINEAR_THREADS]; /* how far each has got */
    struct linear_machine machine;
    uint64_t seen[SEEN_MAX]; /* 0 for nothing */
    size_t seen_len;
};

/* All that a place is. Never 0, and no level is more than 48. */
static uint64_t place_of(const struct search *search)
{
    uint64_t place = 1;

    for (size_t i = 0; i < LINEAR_THREADS; i++)
        place = place << 3 | search->at[i];
    for (size_t i = 0; i < LINEAR_BUCKETS; i++)
        place = place << 8 | search->machine.levels[i];
    return place;
}

/* True when nobody has been here. A full memory forgets, and only costs time. */
static bool is_new(struct search *search)
{
    uint64_t place = place_of(search);
    size_t at = (size_t)(place * 0x9e3779b97f4a7c15u >> 50);

    for (; search->seen[at] != 0; at = (at + 1) % SEEN_MAX) {
        if (search->seen[at] == place)
            return false;
    }
    if (search->seen_len < SEEN_MAX / 2) {
        search->seen[at] = place;
        search->seen_len++;
    }
    return true;
}

static const struct linear_step *next_of(const struct search *search, size_t thread)
{
    return search->at[thread] < search->history->len[thread]
               ? &search->history->steps[thread][search->at[thread]]
               : NULL;
}

/* What stands behind a thread's next ends later still. */
static bool may_be_next(const struct search *search, const struct linear_step *step)
{
    for (size_t i = 0; i < LINEAR_THREADS; i++) {
        const struct linear_step *other = next_of(search, i);

        if (other != NULL && other->ended < step->begun)
            return false;
    }
    return true;
}

/* The waits of a bucket that has drained for seconds, at that rate, are these but for a little. */
static bool is_told(const struct linear_step *told, const struct linear_step *should)
{
    bool same = told->accepted == should->accepted && told->decided == should->decided &&
                told->remaining == should->remaining;

    for (size_t i = 0; i < should->len; i++) {
        const struct linear_verdict *a = &told->verdicts[i];
        const struct linear_verdict *b = &should->verdicts[i];

        same = same && a->accepted == b->accepted && a->remaining == b->remaining &&
               fabs(a->wait - b->wait) < 0.01;
    }
    return same;
}

static bool find(struct search *search)
{
    struct linear_machine before = search->machine;
    bool more = false;

    if (!is_new(search))
        return false;
    for (size_t i = 0; i < LINEAR_THREADS; i++) {
        const struct linear_step *step = next_of(search, i);

        more = more || step != NULL;
        if (step == NULL || !may_be_next(search, step))
            continue;
        struct linear_step should = *step;

        linear_decide(&search->machine, &should);
        search->at[i]++;
        if (is_told(step, &should) && find(search))
            return true;
        search->at[i]--;
        search->machine = before;
    }
    return !more;
}

bool linear_holds(const struct linear_history *history)
{
    struct search *search = calloc(1, sizeof *search);
    bool found;

    assert_non_null(search);
    search->history = history;
    found = find(search);
    free(search);
    return found;
}

/* ---- Text ----------------------------------------------------------------------------------- */

void linear_print(const struct linear_history *history)
{
    static const char *const names[] = {"request", "peek",  "refund",
                                        "charge",  "reset", "give back"};

    for (size_t i = 0; i < LINEAR_THREADS; i++) {
        for (size_t j = 0; j < history->len[i]; j++) {
            const struct linear_step *step = &history->steps[i][j];

            print_message("# thread %zu, %3llu to %3llu: %s %u of", i,
                          (unsigned long long)step->begun, (unsigned long long)step->ended,
                          names[step->operation], step->cost);
            for (size_t k = 0; k < step->len; k++)
                print_message(" %u", step->buckets[k]);
            print_message(": %s, %lld left\n", step->accepted ? "yes" : "no",
                          (long long)step->remaining);
        }
    }
}
