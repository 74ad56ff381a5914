/* SPDX-License-Identifier: MIT */
/*
 * The way of a step: held in the order read, waiting in order of time, decided, shown.
 *
 * A step that comes too late to be put in order is decided at once, where it stands. When too many
 * answers are held back, waiting steps are decided before their time, earliest first, until the
 * first one held can leave.
 */
#include "engine.h"

#include "held.h"
#include "reorder.h"
#include "step_json.h"

#include <stdlib.h>

struct rbk_engine {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    struct rbk_reorder *reorder;
    struct rbk_held *held;
    struct rbk_summary *summary;
    struct rbk_faults *faults;
    FILE *answers;
    struct rbk_step_pool pool;
    struct redbucket_request request;
    struct redbucket_verdict verdicts[REDBUCKET_KEYS_MAX];
};

static enum redbucket_status limiter_open(struct rbk_engine *engine,
                                          const struct rbk_engine_setup *setup,
                                          struct redbucket_error *error)
{
    enum redbucket_status status = redbucket_store_open("memory:?grow=yes", &engine->store, error);

    if (status == REDBUCKET_OK)
        status = redbucket_limiter_create(engine->store, &engine->limiter, error);
    for (size_t i = 0; status == REDBUCKET_OK && i < setup->limits_len; i++)
        status = redbucket_limiter_add(engine->limiter, setup->limits[i]->name,
                                       &setup->limits[i]->limit, error);
    return status;
}

static enum redbucket_status out_of_memory(struct redbucket_error *error)
{
    if (error) {
        *error = (struct redbucket_error){.status = REDBUCKET_ERROR_MEMORY, .position = -1};
        snprintf(error->message, sizeof(error->message), "%s",
                 redbucket_status_text(REDBUCKET_ERROR_MEMORY));
    }
    return REDBUCKET_ERROR_MEMORY;
}

enum redbucket_status rbk_engine_create(const struct rbk_engine_setup *setup,
                                        struct rbk_faults *faults, struct rbk_engine **created,
                                        struct redbucket_error *error)
{
    const struct rbk_reorder_bounds bounds = {
        .window_s = setup->reorder_s,
        .steps = RBK_ENGINE_WAITING,
        .bytes = RBK_ENGINE_WAITING_BYTES,
    };
    struct rbk_engine *engine = calloc(1, sizeof(*engine));
    enum redbucket_status status = REDBUCKET_ERROR_MEMORY;

    if (!engine)
        return out_of_memory(error);
    engine->answers = setup->answers;
    engine->faults = faults;
    engine->reorder = rbk_reorder_create(&bounds);
    engine->held = rbk_held_create(setup->held, RBK_ENGINE_HELD_BYTES);
    engine->summary = rbk_summary_create(setup->limits, setup->limits_len);
    if (engine->reorder && engine->held && engine->summary)
        status = limiter_open(engine, setup, error);
    else
        out_of_memory(error);
    if (status != REDBUCKET_OK) {
        rbk_engine_destroy(engine);
        return status;
    }
    *created = engine;
    return REDBUCKET_OK;
}

void rbk_engine_destroy(struct rbk_engine *engine)
{
    if (!engine)
        return;
    rbk_held_destroy(engine->held);
    rbk_reorder_destroy(engine->reorder);
    rbk_summary_destroy(engine->summary);
    redbucket_limiter_destroy(engine->limiter);
    redbucket_store_close(engine->store);
    rbk_step_pool_fini(&engine->pool);
    free(engine);
}

static enum redbucket_status states_read(struct rbk_engine *engine, struct rbk_step *step)
{
    enum redbucket_status status = REDBUCKET_OK;

    for (size_t i = 0; step->states && status == REDBUCKET_OK && i < step->keys_len; i++)
        status = redbucket_read(engine->limiter, &step->keys[i], &step->states[i]);
    return status;
}

/* What the library refuses becomes a fault of the step's line. */
static void fail(struct rbk_engine *engine, struct rbk_step *step, enum redbucket_status status)
{
    struct redbucket_error error = {0};

    if (engine->request.status != REDBUCKET_OK)
        redbucket_request_error(&engine->request, &error);
    else
        snprintf(error.message, sizeof(error.message), "%s", redbucket_status_text(status));
    step->result = RBK_STEP_FAILED;
    rbk_faults_add(engine->faults, step->place, error.message, (struct rbk_span){"", 0});
}

static void ask(struct rbk_engine *engine, struct rbk_step *step)
{
    struct redbucket_request *request = &engine->request;
    enum redbucket_status status;

    request->operation = step->operation;
    request->keys = step->keys;
    request->keys_len = step->keys_len;
    request->cost = step->cost;
    request->verdicts = engine->verdicts;
    status = redbucket_decide_at(engine->limiter, request, 1, step->time_s);
    if (status == REDBUCKET_OK)
        status = states_read(engine, step);
    if (status != REDBUCKET_OK) {
        fail(engine, step, status);
        return;
    }
    step->result = RBK_STEP_DECIDED;
    step->accepted = request->response.accepted;
    step->delay = request->response.delay;
    step->retry_after = request->response.retry_after;
    step->remaining = request->response.remaining;
}

/* Shows what is next in the order read, as far as it is decided. */
static void show(struct rbk_engine *engine)
{
    struct rbk_step *step;

    while ((step = rbk_held_take(engine->held))) {
        rbk_step_print(step, engine->answers);
        rbk_step_recycle(&engine->pool, step);
    }
}

static enum redbucket_status decide(struct rbk_engine *engine, struct rbk_step *step)
{
    enum redbucket_status status = REDBUCKET_OK;

    ask(engine, step);
    if (step->result == RBK_STEP_DECIDED)
        status = rbk_summary_add(engine->summary, step, engine->verdicts);
    if (!engine->answers || step->result == RBK_STEP_FAILED) {
        rbk_held_forget(engine->held, step);
        rbk_step_recycle(&engine->pool, step);
    }
    if (engine->answers)
        show(engine);
    return status;
}

/* Decides steps that need not wait any longer, and some more when too many answers are held. */
static enum redbucket_status decide_due(struct rbk_engine *engine)
{
    enum redbucket_status status = REDBUCKET_OK;
    struct rbk_step *step;

    while (status == REDBUCKET_OK && (step = rbk_reorder_take_due(engine->reorder)))
        status = decide(engine, step);
    while (status == REDBUCKET_OK && rbk_held_full(engine->held) &&
           (step = rbk_reorder_take(engine->reorder)))
        status = decide(engine, step);
    return status;
}

enum redbucket_status rbk_engine_put(struct rbk_engine *engine, struct rbk_step *step, bool at_once)
{
    const bool late = !at_once && rbk_reorder_late(engine->reorder, step->time_s);
    enum redbucket_status status = rbk_held_add(engine->held, step);

    if (status != REDBUCKET_OK) {
        rbk_step_recycle(&engine->pool, step);
        return status;
    }
    if (late || at_once) {
        engine->summary->late += late;
        status = decide(engine, step);
    } else {
        status = rbk_reorder_put(engine->reorder, step);
        if (status != REDBUCKET_OK) {
            rbk_held_forget(engine->held, step);
            rbk_step_recycle(&engine->pool, step);
        }
    }
    return status == REDBUCKET_OK ? decide_due(engine) : status;
}

enum redbucket_status rbk_engine_finish(struct rbk_engine *engine)
{
    enum redbucket_status status = REDBUCKET_OK;
    struct rbk_step *step;

    while (status == REDBUCKET_OK && (step = rbk_reorder_take(engine->reorder)))
        status = decide(engine, step);
    return status;
}

struct rbk_summary *rbk_engine_summary(struct rbk_engine *engine)
{
    return engine->summary;
}

struct rbk_step_pool *rbk_engine_pool(struct rbk_engine *engine)
{
    return &engine->pool;
}
