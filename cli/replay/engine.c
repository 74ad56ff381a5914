/* SPDX-License-Identifier: MIT */
/*
 * The way of a step: held in the order read, waiting in order of time, decided, shown.
 *
 * A step that comes too late to be put in order is decided at once, where it stands. When too many
 * answers are held back, waiting steps are decided before their time, earliest first, until the
 * first one held can leave.
 */
#include "engine.h"

#include "hash.h"
#include "held.h"
#include "reorder.h"
#include "step_json.h"

#include <math.h>
#include <stdlib.h>

/* A set of limits: it decides in a store of its own. `whole`: it has every limit that there is. */
struct lane {
    const struct rbk_limit_set *set;
    bool whole;
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
};

struct rbk_engine {
    struct lane lanes[RBK_LIMIT_SETS_MAX];
    struct rbk_summary *summaries[RBK_LIMIT_SETS_MAX];
    size_t lanes_len;
    const struct rbk_limit_sets *sets;
    struct rbk_hits **asked; /* one for each name of the sets, or NULL */
    struct rbk_traffic traffic;
    struct rbk_reorder *reorder;
    struct rbk_held *held;
    struct rbk_faults *faults;
    struct rbk_spool *spool;
    struct redbucket_error error;
    FILE *answers;
    struct rbk_step_pool pool;
    struct redbucket_request request;
    struct redbucket_key keys[REDBUCKET_KEYS_MAX];
    struct redbucket_verdict verdicts[REDBUCKET_KEYS_MAX];
};

static enum redbucket_status lane_open(struct lane *lane, const struct rbk_limit_sets *sets,
                                       size_t index, struct redbucket_error *error)
{
    const struct rbk_limit_set *set = &sets->sets[index];
    enum redbucket_status status = redbucket_store_open("memory:?grow=yes", &lane->store, error);

    lane->set = set;
    lane->whole = set->limits_len == sets->names_len;
    if (status == REDBUCKET_OK)
        status = redbucket_limiter_create(lane->store, &lane->limiter, error);
    for (size_t i = 0; status == REDBUCKET_OK && i < set->limits_len; i++)
        status = redbucket_limiter_add(lane->limiter, set->limits[i]->name, &set->limits[i]->limit,
                                       error);
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

static enum redbucket_status lanes_open(struct rbk_engine *engine,
                                        const struct rbk_engine_setup *setup,
                                        struct redbucket_error *error)
{
    enum redbucket_status status = REDBUCKET_OK;

    engine->lanes_len = setup->sets->len;
    for (size_t i = 0; status == REDBUCKET_OK && i < engine->lanes_len; i++) {
        engine->summaries[i] = rbk_summary_create(&setup->sets->sets[i], setup->with_timelines);
        status = engine->summaries[i] ? lane_open(&engine->lanes[i], setup->sets, i, error)
                                      : out_of_memory(error);
    }
    return status;
}

static enum redbucket_status asked_open(struct rbk_engine *engine, struct redbucket_error *error)
{
    engine->asked = calloc(engine->sets->names_len, sizeof(struct rbk_hits *));
    for (size_t i = 0; engine->asked && i < engine->sets->names_len; i++) {
        engine->asked[i] = rbk_hits_create(RBK_ENGINE_ASKED, true);
        if (!engine->asked[i])
            return out_of_memory(error);
    }
    return engine->asked ? REDBUCKET_OK : out_of_memory(error);
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
    engine->sets = setup->sets;
    engine->spool = setup->spool;
    engine->faults = faults;
    engine->reorder = rbk_reorder_create(&bounds);
    engine->held = rbk_held_create(setup->held, RBK_ENGINE_HELD_BYTES);
    if (engine->reorder && engine->held)
        status = lanes_open(engine, setup, error);
    else
        out_of_memory(error);
    if (status == REDBUCKET_OK && setup->with_timelines)
        status = asked_open(engine, error);
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
    for (size_t i = 0; i < engine->lanes_len; i++) {
        rbk_summary_destroy(engine->summaries[i]);
        redbucket_limiter_destroy(engine->lanes[i].limiter);
        redbucket_store_close(engine->lanes[i].store);
    }
    for (size_t i = 0; engine->asked && i < engine->sets->names_len; i++)
        rbk_hits_destroy(engine->asked[i]);
    free(engine->asked);
    rbk_step_pool_fini(&engine->pool);
    free(engine);
}

static enum redbucket_status states_read(struct rbk_engine *engine, struct rbk_step *step)
{
    enum redbucket_status status = REDBUCKET_OK;

    for (size_t i = 0; step->states && status == REDBUCKET_OK && i < step->keys_len; i++)
        status = redbucket_read(engine->lanes[0].limiter, &step->keys[i], &step->states[i]);
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

/* The step's keys, as far as the lane has their limits. */
static void keys_choose(struct rbk_engine *engine, const struct lane *lane, struct rbk_step *step)
{
    struct redbucket_request *request = &engine->request;

    request->keys = step->keys;
    request->keys_len = step->keys_len;
    if (lane->whole)
        return;
    request->keys = engine->keys;
    request->keys_len = 0;
    for (size_t i = 0; i < step->keys_len; i++)
        for (size_t j = 0; j < lane->set->limits_len; j++)
            if (lane->set->names[j] == step->keys[i].limit)
                engine->keys[request->keys_len++] = step->keys[i];
}

static enum redbucket_status ask(struct rbk_engine *engine, const struct lane *lane,
                                 struct rbk_step *step)
{
    struct redbucket_request *request = &engine->request;

    keys_choose(engine, lane, step);
    request->operation = step->operation;
    request->cost = step->cost;
    request->verdicts = engine->verdicts;
    return redbucket_decide_at(lane->limiter, request, 1, step->time_s);
}

/* The first lane's answer is the one that can be shown. */
static enum redbucket_status first_ask(struct rbk_engine *engine, struct rbk_step *step)
{
    const struct redbucket_response *response = &engine->request.response;
    enum redbucket_status status = ask(engine, &engine->lanes[0], step);

    if (status == REDBUCKET_OK)
        status = states_read(engine, step);
    if (status != REDBUCKET_OK) {
        fail(engine, step, status);
        return status;
    }
    step->result = RBK_STEP_DECIDED;
    step->accepted = response->accepted;
    step->delay = response->delay;
    step->retry_after = response->retry_after;
    step->remaining = response->remaining;
    return status;
}

static void traffic_add(struct rbk_traffic *traffic, const struct rbk_step *step)
{
    traffic->first_s = traffic->timed ? fmin(traffic->first_s, step->time_s) : step->time_s;
    traffic->last_s = traffic->timed ? fmax(traffic->last_s, step->time_s) : step->time_s;
    traffic->timed = true;
    traffic->others += step->operation != REDBUCKET_REQUEST;
}

static size_t name_index(const struct rbk_engine *engine, const char *name)
{
    size_t index = 0;

    while (engine->sets->names[index] != name)
        index++;
    return index;
}

/* Counts who asks, whatever the answer is. */
static enum redbucket_status asked_add(struct rbk_engine *engine, const struct rbk_step *step)
{
    enum redbucket_status status = REDBUCKET_OK;

    for (size_t i = 0; status == REDBUCKET_OK && i < step->keys_len; i++) {
        const struct redbucket_key *key = &step->keys[i];

        status = rbk_hits_add(engine->asked[name_index(engine, key->limit)],
                              (struct rbk_span){key->key, key->key_len}, RBK_HISTOGRAM_AT_ONCE,
                              step->time_s);
    }
    return status;
}

static enum redbucket_status spool_add(struct rbk_engine *engine, const struct rbk_step *step)
{
    uint64_t hashes[REDBUCKET_KEYS_MAX] = {0};

    for (size_t i = 0; i < step->keys_len; i++) {
        const struct redbucket_key *key = &step->keys[i];
        const uint64_t hash = rbk_replay_hash((struct rbk_span){key->key, key->key_len});

        hashes[name_index(engine, key->limit)] = hash ? hash : 1;
    }
    return rbk_spool_add(engine->spool, step->time_s, step->cost, hashes, &engine->error);
}

/* Keeps what is wanted of the step itself. */
static enum redbucket_status request_keep(struct rbk_engine *engine, const struct rbk_step *step)
{
    enum redbucket_status status = REDBUCKET_OK;

    if (step->operation != REDBUCKET_REQUEST)
        return status;
    if (engine->asked)
        status = asked_add(engine, step);
    if (status == REDBUCKET_OK && engine->spool)
        status = spool_add(engine, step);
    return status;
}

/* Asks all lanes. What the library refuses it refuses in the first one, for what it looks at is the
 * step and not the limits. What isn't OK stops the replay. */
static enum redbucket_status ask_all(struct rbk_engine *engine, struct rbk_step *step)
{
    enum redbucket_status status;

    if (first_ask(engine, step) != REDBUCKET_OK)
        return REDBUCKET_OK;
    traffic_add(&engine->traffic, step);
    status = request_keep(engine, step);
    for (size_t i = 0; status == REDBUCKET_OK && i < engine->lanes_len; i++) {
        if (i > 0)
            status = ask(engine, &engine->lanes[i], step);
        if (status == REDBUCKET_OK && step->operation == REDBUCKET_REQUEST)
            status = rbk_summary_add(engine->summaries[i], &engine->request, step->time_s);
    }
    return status;
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
    const enum redbucket_status status = ask_all(engine, step);

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
        engine->traffic.late += late;
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

int rbk_engine_fail(const struct rbk_engine *engine, enum redbucket_status status)
{
    return rbk_cli_fail(CLI_STORE, "replay", "%s",
                        engine->error.message[0] != '\0' ? engine->error.message
                                                         : redbucket_status_text(status));
}

struct rbk_traffic *rbk_engine_traffic(struct rbk_engine *engine)
{
    return &engine->traffic;
}

struct rbk_summary *const *rbk_engine_summaries(const struct rbk_engine *engine)
{
    return engine->summaries;
}

struct rbk_hits *const *rbk_engine_asked(const struct rbk_engine *engine)
{
    return engine->asked;
}

struct rbk_step_pool *rbk_engine_pool(struct rbk_engine *engine)
{
    return &engine->pool;
}
