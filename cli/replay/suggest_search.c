/* SPDX-License-Identifier: MIT */
/*
 * First every rate with an endless burst: the highest level tells a burst that touches nobody. Then
 * the bursts between are divided, all rates in the same pass, and a rate is left out as soon as the
 * least that it could come to is more than what another has already.
 */
#include "suggest_search.h"

#include "trial.h"

#include <math.h>

/* What people would write, slowest first. */
static const char *const rate_texts[RBK_SEARCH_RATES] = {
    "1/d",     "2/d",      "3/d",      "5/d",      "10/d",      "1/h",     "2/h",     "3/h",
    "5/h",     "10/h",     "15/h",     "20/h",     "30/h",      "1/m",     "2/m",     "3/m",
    "5/m",     "10/m",     "15/m",     "20/m",     "30/m",      "1/s",     "2/s",     "3/s",
    "5/s",     "10/s",     "20/s",     "30/s",     "50/s",      "100/s",   "200/s",   "300/s",
    "500/s",   "1000/s",   "2000/s",   "3000/s",   "5000/s",    "10000/s", "20000/s", "30000/s",
    "50000/s", "100000/s", "200000/s", "500000/s", "1000000/s",
};

double rbk_search_a_window(double rate, double burst)
{
    return floor(burst + 1 + rate * RBK_SUGGEST_WINDOW_S + 1e-6);
}

/* Without rounding, so that rates stay apart. */
static double size_of(double rate, int64_t burst)
{
    return (double)burst + rate * RBK_SUGGEST_WINDOW_S;
}

/* The rate whose burst that is enough comes to the least, the slower one of equals. */
static size_t best_of(const struct rbk_search *search)
{
    size_t best = 0;

    for (size_t i = 1; i < RBK_SEARCH_RATES; i++)
        if (size_of(search->rates[i].rate, search->rates[i].enough) <
            size_of(search->rates[best].rate, search->rates[best].enough))
            best = i;
    return best;
}

bool rbk_search_is_around(size_t rate, size_t other)
{
    const size_t distance = rate > other ? rate - other : other - rate;

    return distance < 2 || distance == 3 || distance == 6;
}

static bool settled(const struct rbk_searched_rate *rate)
{
    return rate->enough - rate->too_few <= 1;
}

/* Which rates are looked at further: of all those that could still be the best, or of `around` and
 * its neighbours. Returns how many. */
static size_t choose(const struct rbk_search *search, const size_t *around, size_t *chosen)
{
    const struct rbk_searched_rate *best = &search->rates[best_of(search)];
    const double least = size_of(best->rate, best->enough);
    size_t len = 0;

    for (size_t i = 0; i < RBK_SEARCH_RATES; i++) {
        const struct rbk_searched_rate *rate = &search->rates[i];
        const bool wanted = around ? rbk_search_is_around(i, *around)
                                   : size_of(rate->rate, rate->too_few + 1) <= least;

        if (wanted && !settled(rate))
            chosen[len++] = i;
    }
    return len;
}

/* Bursts between what is too few and what is enough, evenly. Returns how many. */
static size_t probe(const struct rbk_searched_rate *rate, size_t most, struct rbk_trial *trials)
{
    const int64_t between = rate->enough - rate->too_few - 1;
    const int64_t len = between < (int64_t)most ? between : (int64_t)most;

    for (int64_t i = 0; i < len; i++) {
        const double part = (double)(between + 1) * (double)(i + 1) / (double)(len + 1);

        trials[i] = (struct rbk_trial){.rate = rate->rate,
                                       .burst = (double)(rate->too_few + (int64_t)part)};
    }
    return (size_t)len;
}

/* What the trials of a rate, bursts ascending, have told. */
static void learn(const struct rbk_search *search, struct rbk_searched_rate *rate,
                  const struct rbk_trial *trials, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const int64_t burst = (int64_t)trials[i].burst;

        if (trials[i].touched > search->allowed) {
            rate->too_few = burst;
            rate->touched_too_few = trials[i].touched;
        } else if (burst < rate->enough) {
            rate->enough = burst;
            rate->touched_enough = trials[i].touched;
            return;
        }
    }
}

static void say(struct rbk_search *search, size_t rates)
{
    char text[RBK_PROGRESS_SIZE];

    snprintf(text, sizeof(text), "limit %.30s: pass %u, %zu rates left", search->name,
             ++search->passes, rates);
    rbk_progress_say(search->progress, text);
}

/* One pass for the chosen rates. */
static enum redbucket_status narrow(struct rbk_search *search, const size_t *chosen, size_t len)
{
    struct rbk_trial trials[RBK_TRIALS_MAX];
    size_t firsts[RBK_SEARCH_RATES + 1] = {0};
    enum redbucket_status status;

    for (size_t i = 0; i < len; i++)
        firsts[i + 1] =
            firsts[i] + probe(&search->rates[chosen[i]], RBK_TRIALS_MAX / len, &trials[firsts[i]]);
    say(search, len);
    status = rbk_trials_run(search->spool, search->limit, trials, firsts[len]);
    for (size_t i = 0; status == REDBUCKET_OK && i < len; i++)
        learn(search, &search->rates[chosen[i]], &trials[firsts[i]], firsts[i + 1] - firsts[i]);
    return status;
}

/* A burst that is enough at each rate. */
static enum redbucket_status begin(struct rbk_search *search)
{
    struct rbk_trial trials[RBK_SEARCH_RATES];
    enum redbucket_status status;

    for (size_t i = 0; i < RBK_SEARCH_RATES; i++) {
        struct rbk_searched_rate *rate = &search->rates[i];

        *rate = (struct rbk_searched_rate){.text = rate_texts[i], .too_few = RBK_SEARCH_NO_BURST};
        status = redbucket_rate_parse(rate->text, &rate->rate, NULL);
        if (status != REDBUCKET_OK)
            return status;
        trials[i] = (struct rbk_trial){.rate = rate->rate, .burst = INFINITY};
    }
    say(search, RBK_SEARCH_RATES);
    status = rbk_trials_run(search->spool, search->limit, trials, RBK_SEARCH_RATES);
    for (size_t i = 0; status == REDBUCKET_OK && i < RBK_SEARCH_RATES; i++)
        search->rates[i].enough = (int64_t)fmin(ceil(fmax(trials[i].highest - 1, 0)), 1e15);
    return status;
}

enum redbucket_status rbk_search_run(struct rbk_search *search, size_t *best)
{
    enum redbucket_status status = begin(search);
    size_t chosen[RBK_SEARCH_RATES];
    size_t len;

    while (status == REDBUCKET_OK && (len = choose(search, NULL, chosen)) > 0)
        status = narrow(search, chosen, len);
    *best = best_of(search);
    while (status == REDBUCKET_OK && (len = choose(search, best, chosen)) > 0)
        status = narrow(search, chosen, len);
    return status;
}
