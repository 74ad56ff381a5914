/* SPDX-License-Identifier: MIT */
/*
 * Walking through a table: a few pages are copied under their shard's lock and told of when it is
 * free again, so that nobody waits for whoever looks.
 *
 * The cursor is the number of the next slot. Buckets stay in their slots, but for a table that
 * grows: then they have new ones, and the walk begins again.
 */
#include "embedded.h"
#include "table/walk.h"
#include "walk_step.h"

#include <stdlib.h>

/* Copying so many slots takes some ten microseconds. */
#define STEP_SLOTS 1104u

/* What one step copies. */
struct copied {
    struct rbk_table_seen seen[STEP_SLOTS];
    unsigned char text[RBK_TABLE_WALK_TEXT];
    struct rbk_table_piece piece;
    double now;
};

static void tell_one(const struct rbk_walk *walk, const struct rbk_visit *visit,
                     const struct copied *copied, const struct rbk_table_seen *seen)
{
    const struct rbk_state *state = &seen->state;
    const bool readable = rbk_state_readable(state);
    const struct rbk_key key = {
        .zone = copied->text + seen->begin,
        .zone_len = seen->zone_len,
        .key = copied->text + seen->begin + seen->zone_len,
        .key_len = seen->key_len,
    };
    const struct redbucket_bucket bucket = {
        .zone = (const char *)key.zone,
        .zone_len = key.zone_len,
        .key = (const char *)key.key,
        .key_len = key.key_len,
        .status = readable ? REDBUCKET_OK : REDBUCKET_ERROR_STATE,
        .state = {true, readable ? state->timestamp : 0.0, readable ? state->value : 0.0},
        .now = copied->now,
        .rate = seen->rate,
        .depth = seen->depth,
    };

    if (rbk_walk_wants(walk, &key))
        visit->visit(visit->data, &bucket);
}

/* Under the lock of the shard that the cursor is in. */
static void copy_some(struct rbk_embedded *embedded, struct rbk_walk *walk, struct copied *copied)
{
    copied->piece =
        (struct rbk_table_piece){.seen = copied->seen, .most = STEP_SLOTS, .text = copied->text};
    if (walk->generation != embedded->generation) {
        walk->generation = embedded->generation;
        walk->cursor = 0;
    }
    copied->now = rbk_embedded_now();
    walk->cursor = rbk_table_walk(embedded->table, walk->cursor, &copied->piece);
}

/* Whoever holds a shard's lock for longer than a request waits may be stopped: the others can be
 * gone through all the same. */
static enum redbucket_status leave_out(const struct rbk_embedded *embedded, struct rbk_walk *walk,
                                       unsigned shard, enum redbucket_status status, bool *done)
{
    if (embedded->grow == NULL) {
        walk->cursor = rbk_table_walk_end(embedded->table, shard);
        *done = walk->cursor >= rbk_table_capacity(embedded->table);
    }
    return status;
}

enum redbucket_status rbk_embedded_walk(struct redbucket_store *store, struct rbk_walk *walk,
                                        const struct rbk_visit *visit, bool *done)
{
    struct rbk_embedded *embedded = (struct rbk_embedded *)store;
    struct copied *copied;
    unsigned shard;
    enum redbucket_status status;

    *done = true;
    if (walk->memory == NULL)
        walk->memory = malloc(sizeof *copied);
    copied = walk->memory;
    if (copied == NULL)
        return REDBUCKET_ERROR_MEMORY;
    shard = embedded->grow != NULL ? 0 : rbk_table_walk_shard(embedded->table, walk->cursor);
    status = rbk_embedded_lock(embedded, shard);
    if (status != REDBUCKET_OK)
        return leave_out(embedded, walk, shard, status, done);
    copy_some(embedded, walk, copied);
    *done = walk->cursor >= rbk_table_capacity(embedded->table);
    embedded->unlock(embedded, shard);
    for (size_t i = 0; i < copied->piece.len; i++)
        tell_one(walk, visit, copied, &copied->seen[i]);
    return REDBUCKET_OK;
}
