/* SPDX-License-Identifier: MIT */
/*
 * A table of keys by their hashes, each with the level of its bucket under every trial. Levels are
 * drained to the same moment for all trials, also where a request is rejected: what the model would
 * round differently is far below the tick that it allows for.
 */
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

/* What rounding may take away of a wait, by the model. */
#define TICK 2e-6

/*
 * `hashes` has 0 where a slot is free. `levels` has `len` of trials a slot.
 */
struct table {
    size_t trials;
    size_t capacity;
    size_t len;
    uint64_t *hashes;
    double *stamps;
    double *levels;
};

/* The trials' numbers beside each other, for the loop over them. */
struct lanes {
    size_t len;
    double rates[RBK_TRIALS_MAX];
    double rooms[RBK_TRIALS_MAX]; /* the highest level with which a request still passes */
    double touched[RBK_TRIALS_MAX];
    double highest[RBK_TRIALS_MAX];
};

static bool table_init(struct table *table, size_t trials, size_t capacity)
{
    size_t levels;

    *table = (struct table){.trials = trials, .capacity = capacity};
    if (capacity == 0 || /* doubled beyond what can be counted */
        __builtin_mul_overflow(capacity, trials * sizeof(*table->levels), &levels))
        return false;
    table->hashes = calloc(capacity, sizeof(*table->hashes));
    table->stamps = malloc(capacity * sizeof(*table->stamps));
    table->levels = malloc(levels);
    return table->hashes && table->stamps && table->levels;
}

static void table_fini(struct table *table)
{
    free(table->hashes);
    free(table->stamps);
    free(table->levels);
}

static size_t slot_of(const struct table *table, uint64_t hash)
{
    size_t slot = (size_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (table->capacity - 1);

    while (table->hashes[slot] != 0 && table->hashes[slot] != hash)
        slot = (slot + 1) & (table->capacity - 1);
    return slot;
}

static bool drained(const struct table *table, size_t slot, const struct lanes *lanes, double now)
{
    const double *levels = &table->levels[slot * table->trials];
    const double elapsed = now - table->stamps[slot];

    for (size_t i = 0; i < lanes->len; i++)
        if (levels[i] > elapsed * lanes->rates[i])
            return false;
    return true;
}

/* A table of twice the size, or of the same where enough is drained, with what isn't. */
static bool table_renew(struct table *table, const struct lanes *lanes, double now)
{
    struct table next;
    size_t live = 0;

    for (size_t slot = 0; slot < table->capacity; slot++)
        live += table->hashes[slot] != 0 && !drained(table, slot, lanes, now);
    if (!table_init(&next, table->trials,
                    live * 4 > table->capacity ? table->capacity * 2 : table->capacity)) {
        table_fini(&next);
        return false;
    }
    for (size_t slot = 0; slot < table->capacity; slot++) {
        size_t to;

        if (table->hashes[slot] == 0 || drained(table, slot, lanes, now))
            continue;
        to = slot_of(&next, table->hashes[slot]);
        next.hashes[to] = table->hashes[slot];
        next.stamps[to] = table->stamps[slot];
        memcpy(&next.levels[to * next.trials], &table->levels[slot * table->trials],
               table->trials * sizeof(double));
        next.len++;
    }
    table_fini(table);
    *table = next;
    return true;
}

/* The slot of this key; one that is new has empty buckets. False when memory is out. */
static bool slot_find(struct table *table, const struct lanes *lanes, uint64_t hash, double now,
                      size_t *found)
{
    size_t slot = slot_of(table, hash);

    if (table->hashes[slot] == 0) {
        if (table->len * 2 >= table->capacity) {
            if (!table_renew(table, lanes, now))
                return false;
            slot = slot_of(table, hash);
        }
        table->hashes[slot] = hash;
        table->stamps[slot] = now;
        memset(&table->levels[slot * table->trials], 0, table->trials * sizeof(double));
        table->len++;
    }
    *found = slot;
    return true;
}

/* One request under all trials: drained, asked, and taken where there is room. */
static void decide(struct lanes *lanes, double *levels, double elapsed, double cost)
{
    for (size_t i = 0; i < lanes->len; i++) {
        const double left = levels[i] - elapsed * lanes->rates[i];
        const double level = left > 0 ? left : 0;
        const double value = level + cost;
        const bool room = value <= lanes->rooms[i];

        levels[i] = room ? value : level;
        lanes->touched[i] += room ? 0 : 1;
        lanes->highest[i] = levels[i] > lanes->highest[i] ? levels[i] : lanes->highest[i];
    }
}

static void lanes_init(struct lanes *lanes, const struct rbk_trial *trials, size_t len)
{
    *lanes = (struct lanes){.len = len};
    for (size_t i = 0; i < len; i++) {
        lanes->rates[i] = trials[i].rate;
        lanes->rooms[i] = trials[i].burst + 1 + trials[i].rate * TICK;
    }
}

enum redbucket_status rbk_trials_run(struct rbk_spool *spool, size_t limit,
                                     struct rbk_trial *trials, size_t trials_len)
{
    const struct rbk_spool_record *record;
    struct lanes lanes;
    struct table table;
    bool room = table_init(&table, trials_len, FIRST_CAPACITY);

    lanes_init(&lanes, trials, trials_len);
    rbk_spool_rewind(spool);
    while (room && (record = rbk_spool_next(spool))) {
        double elapsed;
        size_t slot;

        if (record->hashes[limit] == 0)
            continue;
        room = slot_find(&table, &lanes, record->hashes[limit], record->time_s, &slot);
        if (!room)
            break;
        elapsed = fmax(record->time_s - table.stamps[slot], 0);
        table.stamps[slot] = fmax(record->time_s, table.stamps[slot]);
        decide(&lanes, &table.levels[slot * table.trials], elapsed, record->cost);
    }
    table_fini(&table);
    for (size_t i = 0; i < trials_len; i++) {
        trials[i].touched = (uint64_t)lanes.touched[i];
        trials[i].highest = lanes.highest[i];
    }
    if (!room)
        return REDBUCKET_ERROR_MEMORY;
    return rbk_spool_failed(spool) ? REDBUCKET_ERROR_SYSTEM : REDBUCKET_OK;
}
