/* SPDX-License-Identifier: MIT */
/*
 * Who has to wait, who may leave, who comes too late. A step may leave once a step has come whose
 * time is further ahead than the window reaches, or when too many wait.
 */
#include "reorder.h"

#include "moments.h"

#include <math.h>
#include <stdlib.h>

/*
 *   latest_s  of all times put in
 *   left_s    of all times that have left
 *   len       how many wait
 *   bytes     their memory
 */
struct rbk_reorder {
    struct rbk_reorder_bounds bounds;
    double latest_s;
    double left_s;
    size_t len;
    size_t bytes;
    struct rbk_moments *moments;
};

struct rbk_reorder *rbk_reorder_create(const struct rbk_reorder_bounds *bounds)
{
    struct rbk_reorder *reorder = calloc(1, sizeof(*reorder));

    if (!reorder)
        return NULL;
    reorder->bounds = *bounds;
    reorder->latest_s = -INFINITY;
    reorder->left_s = -INFINITY;
    reorder->moments = rbk_moments_create();
    if (!reorder->moments) {
        free(reorder);
        return NULL;
    }
    return reorder;
}

void rbk_reorder_destroy(struct rbk_reorder *reorder)
{
    if (!reorder)
        return;
    rbk_moments_destroy(reorder->moments);
    free(reorder);
}

bool rbk_reorder_late(const struct rbk_reorder *reorder, double time_s)
{
    return time_s < reorder->latest_s - reorder->bounds.window_s || time_s < reorder->left_s;
}

enum redbucket_status rbk_reorder_put(struct rbk_reorder *reorder, struct rbk_step *step)
{
    const enum redbucket_status status = rbk_moments_put(reorder->moments, step);

    if (status != REDBUCKET_OK)
        return status;
    reorder->len++;
    reorder->bytes += step->size;
    reorder->latest_s = fmax(reorder->latest_s, step->time_s);
    return REDBUCKET_OK;
}

struct rbk_step *rbk_reorder_take(struct rbk_reorder *reorder)
{
    struct rbk_step *step = rbk_moments_take(reorder->moments);

    if (!step)
        return NULL;
    reorder->len--;
    reorder->bytes -= step->size;
    reorder->left_s = fmax(reorder->left_s, step->time_s);
    return step;
}

struct rbk_step *rbk_reorder_take_due(struct rbk_reorder *reorder)
{
    const bool full =
        reorder->len > reorder->bounds.steps || reorder->bytes > reorder->bounds.bytes;
    double earliest_s;

    if (!rbk_moments_earliest(reorder->moments, &earliest_s))
        return NULL;
    if (!full && earliest_s >= reorder->latest_s - reorder->bounds.window_s)
        return NULL;
    return rbk_reorder_take(reorder);
}
