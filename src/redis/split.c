/* SPDX-License-Identifier: MIT */
/*
 * Parts are runs of the keys in the order of their slots. A part that is torn between two nodes is
 * cut into its keys: one key is always on one node.
 */
#include "redis/split.h"

#include <stdlib.h>
#include <string.h>

static void init_part(struct rbk_split *split, struct rbk_part *part, size_t first, size_t len)
{
    const struct rbk_request *whole = split->whole;

    *part = (struct rbk_part){.request = *whole};
    part->request.keys = split->keys + first;
    part->request.claims = split->claims + first;
    part->request.len = len;
}

/* Room for every key to be a part of its own. */
static bool reserve(struct rbk_split *split)
{
    size_t len = split->whole->len;
    size_t each = sizeof *split->parts + sizeof *split->keys + 2 * sizeof *split->claims +
                  sizeof *split->order;
    unsigned char *memory = malloc(len * each);

    if (memory == NULL)
        return false;
    split->memory = memory;
    split->parts = (struct rbk_part *)(void *)memory;
    split->claims = (struct rbk_claim *)(split->parts + len);
    split->returned = split->claims + len;
    split->keys = (struct rbk_key *)(split->returned + len);
    split->order = (size_t *)(split->keys + len);
    return true;
}

/* By slot; keys of one slot stay as they are. */
static void sort(struct rbk_split *split, const unsigned *slots)
{
    const struct rbk_request *whole = split->whole;

    for (size_t i = 0; i < whole->len; i++) {
        size_t at = i;

        for (; at > 0 && slots[split->order[at - 1]] > slots[i]; at--)
            split->order[at] = split->order[at - 1];
        split->order[at] = i;
    }
    for (size_t i = 0; i < whole->len; i++) {
        split->keys[i] = whole->keys[split->order[i]];
        split->claims[i] = whole->claims[split->order[i]];
    }
}

static void cut_by_slot(struct rbk_split *split, const unsigned *slots)
{
    size_t first = 0;

    for (size_t i = 1; i <= split->whole->len; i++) {
        unsigned slot = slots[split->order[first]];

        if (i < split->whole->len && slots[split->order[i]] == slot)
            continue;
        struct rbk_part *part = &split->parts[split->parts_len++];

        init_part(split, part, first, i - first);
        part->slot = slot;
        first = i;
    }
}

static bool is_one_slot(const unsigned *slots, size_t len)
{
    for (size_t i = 1; i < len; i++) {
        if (slots[i] != slots[0])
            return false;
    }
    return true;
}

static bool takes(const struct rbk_split *split)
{
    return split->whole->ask.operation == RBK_REQUEST;
}

bool rbk_split_begin(struct rbk_split *split, struct rbk_request *whole, const unsigned *slots)
{
    split->whole = whole;
    split->parts_len = 0;
    split->step = 0;
    split->undoing = false;
    split->memory = NULL;
    if (is_one_slot(slots, whole->len)) {
        split->parts = &split->only;
        split->parts_len = 1;
        split->only = (struct rbk_part){.request = *whole, .slot = slots[0], .due = true};
        return true;
    }
    if (!reserve(split))
        return false;
    sort(split, slots);
    cut_by_slot(split, slots);
    for (size_t i = 0; i < split->parts_len; i++)
        split->parts[i].due = i == 0 || !takes(split);
    return true;
}

/* From one part in the whole's own memory to one in that of a split. */
static bool move_only(struct rbk_split *split)
{
    struct rbk_part only = split->only;

    if (!reserve(split))
        return false;
    for (size_t i = 0; i < split->whole->len; i++) {
        split->order[i] = i;
        split->keys[i] = split->whole->keys[i];
        split->claims[i] = split->whole->claims[i];
    }
    init_part(split, &split->parts[0], 0, split->whole->len);
    split->parts[0].slot = only.slot;
    return true;
}

/* Each key of part `at` becomes a part. What is due of the torn one is due of them; of parts that
 * take, the first. */
static void tear(struct rbk_split *split, size_t at)
{
    struct rbk_part torn = split->parts[at];
    size_t len = torn.request.len;

    memmove(&split->parts[at + len], &split->parts[at + 1],
            (split->parts_len - at - 1) * sizeof torn);
    split->parts_len += len - 1;
    if (at < split->step)
        split->step += len - 1;
    for (size_t i = 0; i < len; i++) {
        struct rbk_part *part = &split->parts[at + i];

        *part = torn;
        part->torn = false;
        part->alone = true;
        part->request.keys += i;
        part->request.claims += i;
        part->request.len = 1;
        part->due = split->undoing || !takes(split) || i == 0;
    }
}

/* A single key is never torn: whoever says so of one is asked alone, and then believed. */
static void mend_torn(struct rbk_split *split)
{
    for (size_t i = 0; i < split->parts_len; i++) {
        struct rbk_part *part = &split->parts[i];

        if (!part->torn)
            continue;
        part->torn = false;
        if (!part->alone) {
            part->due = true;
            part->alone = true;
        } else if (part->request.len > 1) {
            part->torn = split->memory == NULL && !move_only(split);
            if (part->torn)
                return;
            tear(split, i);
        }
    }
}

static bool any_due(const struct rbk_split *split)
{
    for (size_t i = 0; i < split->parts_len; i++) {
        if (split->parts[i].due)
            return true;
    }
    return false;
}

/* Part `step` didn't take. Those before it give back; those behind it, when it was rejected, are
 * looked at for the answer alone. */
static void begin_undoing(struct rbk_split *split)
{
    bool rejected = split->parts[split->step].request.status == REDBUCKET_OK;

    split->undoing = true;
    for (size_t i = 0; i < split->parts_len; i++) {
        struct rbk_part *part = &split->parts[i];
        struct rbk_request *request = &part->request;

        if (i < split->step) {
            size_t first = (size_t)(request->claims - split->claims);

            memcpy(split->returned + first, request->claims,
                   request->len * sizeof *request->claims);
            request->claims = split->returned + first;
            request->ask.operation = RBK_GIVE_BACK;
            request->ask.taken_at = request->ask.now;
            part->due = true;
        } else if (i > split->step && rejected) {
            request->ask.operation = RBK_PEEK;
            part->due = true;
        }
    }
}

bool rbk_split_advance(struct rbk_split *split)
{
    mend_torn(split);
    if (rbk_split_takes(split) && !any_due(split)) {
        const struct rbk_request *request = &split->parts[split->step].request;

        if (request->status != REDBUCKET_OK || !request->answer.accepted)
            begin_undoing(split);
        else if (++split->step < split->parts_len)
            split->parts[split->step].due = true;
    }
    return any_due(split);
}

bool rbk_split_takes(const struct rbk_split *split)
{
    return split->parts_len > 1 && takes(split) && !split->undoing &&
           split->step < split->parts_len;
}

/* A limit that was to be looked at and could not be: nothing is known to be left of it, and nothing
 * of it is to be kept. */
static void tell_unknown(struct rbk_request *request)
{
    for (size_t i = 0; i < request->len; i++) {
        struct rbk_claim *claim = &request->claims[i];

        claim->state = (struct rbk_state){.exists = false};
        claim->verdict = (struct rbk_verdict){.accepted = true};
        claim->level = claim->limit.burst + claim->limit.delay + 1.0;
    }
}

/* The part that says how the whole ends: the one that didn't take, or the first that failed. */
static const struct rbk_part *decisive(const struct rbk_split *split)
{
    if (takes(split))
        return &split->parts[split->step < split->parts_len ? split->step : split->parts_len - 1];
    for (size_t i = 0; i < split->parts_len; i++) {
        if (split->parts[i].request.status != REDBUCKET_OK)
            return &split->parts[i];
    }
    return &split->parts[0];
}

/* Of several clocks the earliest: whoever gives back by it gives back no more than it took
 * anywhere. */
static double earliest(const struct rbk_split *split)
{
    double now = split->parts[0].request.ask.now;

    for (size_t i = 1; i < split->parts_len; i++) {
        const struct rbk_request *request = &split->parts[i].request;

        if (request->status == REDBUCKET_OK && request->ask.now < now)
            now = request->ask.now;
    }
    return now;
}

static void join(struct rbk_split *split)
{
    const struct rbk_part *part = decisive(split);
    struct rbk_request *whole = split->whole;

    whole->status = part->request.status;
    whole->failed = RBK_NONE;
    if (whole->status != REDBUCKET_OK) {
        if (part->request.failed != RBK_NONE)
            whole->failed =
                split->order[(size_t)(part->request.claims - split->claims) + part->request.failed];
        return;
    }
    for (size_t i = split->step + 1; split->undoing && i < split->parts_len; i++) {
        if (split->parts[i].request.status != REDBUCKET_OK)
            tell_unknown(&split->parts[i].request);
    }
    for (size_t i = 0; i < whole->len; i++)
        whole->claims[split->order[i]] = split->claims[i];
    whole->ask.now = earliest(split);
    rbk_decide_together(&whole->ask, whole->claims, whole->len, &whole->answer);
}

void rbk_split_end(struct rbk_split *split)
{
    if (split->memory != NULL) {
        join(split);
    } else {
        const struct rbk_request *only = &split->only.request;

        split->whole->status = only->status;
        split->whole->failed = only->failed;
        split->whole->ask.now = only->ask.now;
        split->whole->answer = only->answer;
    }
    free(split->memory);
}
