/* SPDX-License-Identifier: MIT */
/*
 * Asking the masters of a cluster, one after the other, how they are. What all of them have in
 * common is said once, and what some have with the place of the first.
 *
 * Each has half of the time that is left, so that one that is silent leaves some for those behind
 * it; and who could not be asked for want of time isn't said to be at fault.
 */
#include "redis/cluster_health.h"

#include "error.h"
#include "redis/health.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Masters that are named when their slots fail, before the others are counted. */
#define NAMED_MAX 4

/* Of a host's name in a warning. */
#define PLACE_WIDTH 60

/* A warning that some masters have. */
struct finding {
    char text[REDBUCKET_WARNING_SIZE];
    const char *where; /* the first of them */
    size_t masters;
};

struct survey {
    struct rbk_nodes *nodes;
    const struct rbk_topology *topology;
    const struct rbk_deadline *deadline;
    struct redbucket_health *health;
    uint16_t slots[RBK_PLACES_MAX]; /* how many each master has */
    struct finding findings[REDBUCKET_WARNINGS_MAX];
    size_t findings_len;
    size_t answered;
    size_t down;               /* so many of them say that the cluster is */
    size_t late;               /* could not be asked in time, or for want of memory */
    size_t faults;             /* masters whose slots fail */
    struct rbk_node *answerer; /* any that did, or NULL */
    struct rbk_node *silent;   /* the first that didn't, or NULL */
    enum redbucket_status status;
};

static const char *where_is(const struct rbk_node *node)
{
    return rbk_transport_endpoint(node->pool.transport)->where;
}

__attribute__((format(printf, 2, 3))) static void warn(struct redbucket_health *health,
                                                       const char *format, ...)
{
    va_list arguments;

    if (health->warnings_len == REDBUCKET_WARNINGS_MAX)
        return;
    va_start(arguments, format);
    (void)vsnprintf(health->warnings[health->warnings_len++], REDBUCKET_WARNING_SIZE, format,
                    arguments);
    va_end(arguments);
}

/* ---- One master ----------------------------------------------------------------------------- */

static void find(struct survey *survey, const struct rbk_node *node, const char *text)
{
    struct finding *found = survey->findings;
    struct finding *end = found + survey->findings_len;

    while (found < end && strcmp(found->text, text) != 0)
        found++;
    if (found == end) {
        if (survey->findings_len == REDBUCKET_WARNINGS_MAX)
            return;
        survey->findings_len++;
        *found = (struct finding){.where = where_is(node)};
        (void)snprintf(found->text, sizeof found->text, "%s", text);
    }
    found->masters++;
}

/* What it thinks of the cluster as a whole: when that isn't well, it serves nobody. Who won't say
 * isn't asked to. */
static enum redbucket_status ask_state(struct rbk_use *use, bool *down)
{
    static const struct rbk_argument arguments[] = {{"CLUSTER", 7}, {"INFO", 4}};
    struct rbk_command command = {arguments, 2};
    struct rbk_reply reply;
    enum redbucket_status status = rbk_method_call(use, &command, 1, &reply);

    *down = status == REDBUCKET_OK && reply.type == RBK_REPLY_STRING &&
            strstr(reply.text, "cluster_state:fail") != NULL;
    return status;
}

static enum redbucket_status ask_node(struct survey *survey, struct rbk_node *node,
                                      struct redbucket_health *one, bool *down)
{
    struct rbk_deadline part;
    struct rbk_use use = {.pool = &node->pool, .deadline = &part};
    enum redbucket_status status;

    rbk_deadline_start(&part, rbk_deadline_left(survey->deadline) / 2);
    status = rbk_pool_take_by(&node->pool, survey->deadline, &part, &use.peer);
    if (status != REDBUCKET_OK)
        return status;
    status = rbk_health_ask(&use, one);
    if (status == REDBUCKET_OK)
        status = rbk_health_count_replicas(&use, &one->replicas);
    if (status == REDBUCKET_OK)
        status = ask_state(&use, down);
    rbk_pool_give(&node->pool, use.peer, status, use.usable);
    return status;
}

static void take_answer(struct survey *survey, const struct rbk_node *node,
                        const struct redbucket_health *one)
{
    struct redbucket_health *health = survey->health;
    char text[REDBUCKET_WARNING_SIZE];

    if (one->round_trip > health->round_trip)
        health->round_trip = one->round_trip;
    if (survey->answered == 0) {
        memcpy(health->server, one->server, sizeof health->server);
        memcpy(health->method, one->method, sizeof health->method);
    } else if (strcmp(health->server, one->server) != 0) {
        (void)snprintf(text, sizeof text, "it is %s, which others are not", one->server);
        find(survey, node, text);
    }
    survey->answered++;
    for (size_t i = 0; i < one->warnings_len; i++)
        find(survey, node, one->warnings[i]);
    if (one->replicas == 0)
        find(survey, node,
             "no replica: when a master dies, its slots fail and its buckets are lost");
}

/* A master whose slots fail, and why, its place first. */
static void take_fault(struct survey *survey, const char *why, unsigned slots)
{
    if (survey->faults++ < NAMED_MAX)
        warn(survey->health, "%.*s: its %u slots fail", REDBUCKET_WARNING_SIZE - 30, why, slots);
}

static void take_silence(struct survey *survey, struct rbk_node *node, unsigned slots,
                         enum redbucket_status status)
{
    struct redbucket_error error;

    if (survey->silent == NULL) {
        survey->silent = node;
        survey->status = status;
    }
    survey->health->silent++;
    rbk_node_failure(node, &error);
    take_fault(survey, error.status != REDBUCKET_OK ? error.message : where_is(node), slots);
}

static void take_state(struct survey *survey, struct rbk_node *node, unsigned slots, bool down)
{
    struct redbucket_error error;

    survey->answerer = node;
    if (!down) {
        survey->health->slots += slots;
        return;
    }
    survey->down++;
    rbk_error_set(&error, REDBUCKET_ERROR_UNAVAILABLE, -1, "%s: says that the cluster is down",
                  where_is(node));
    take_fault(survey, error.message, slots);
}

static void ask_master(struct survey *survey, size_t index)
{
    struct rbk_node *node = rbk_nodes_at(survey->nodes, &survey->topology->places[index]);
    struct redbucket_health one = {.size = sizeof one};
    bool down = false;
    enum redbucket_status status;

    if (node == NULL || rbk_deadline_left(survey->deadline) <= 0.0) {
        survey->late++;
        return;
    }
    status = ask_node(survey, node, &one, &down);
    if (status == REDBUCKET_OK) {
        take_answer(survey, node, &one);
        take_state(survey, node, survey->slots[index], down);
    } else {
        take_silence(survey, node, survey->slots[index], status);
    }
}

/* ---- All of them ---------------------------------------------------------------------------- */

/* Returns how many slots nobody has. */
static unsigned count_slots(struct survey *survey)
{
    unsigned gaps = 0;

    for (size_t i = 0; i < RBK_SLOTS; i++) {
        uint16_t owner = survey->topology->owner[i];

        if (owner == RBK_NO_OWNER)
            gaps++;
        else
            survey->slots[owner]++;
    }
    return gaps;
}

static void warn_of_all(struct survey *survey, unsigned gaps)
{
    struct redbucket_health *health = survey->health;

    if (survey->faults > NAMED_MAX)
        warn(health, "the slots of %zu more masters fail", survey->faults - NAMED_MAX);
    if (survey->late > 0)
        warn(health, "%zu masters were not asked, since the timeout was over", survey->late);
    if (gaps > 0)
        warn(health, "%u of %u slots are served by nobody: their keys fail", gaps, RBK_SLOTS);
    for (size_t i = 0; i < survey->findings_len; i++) {
        const struct finding *found = &survey->findings[i];

        if (found->masters == survey->answered)
            warn(health, "%s", found->text);
        else if (found->masters == 1)
            warn(health, "%.*s: %s", PLACE_WIDTH, found->where, found->text);
        else
            warn(health, "%.*s and %zu more: %s", PLACE_WIDTH, found->where, found->masters - 1,
                 found->text);
    }
    if (health->replicas > 0)
        warn(health, "a failover loses the last writes, which replicas haven't received");
}

/* All that answer say so: a request would fail. The reason is with them. */
static enum redbucket_status fail_all(struct survey *survey, unsigned gaps)
{
    static const enum redbucket_status status = REDBUCKET_ERROR_UNAVAILABLE;
    struct redbucket_error silence = {.message = "it knows too few of the other masters"};
    struct redbucket_error error;

    if (survey->silent != NULL)
        rbk_node_failure(survey->silent, &silence);
    else if (gaps > 0)
        rbk_error_set(&silence, status, -1, "%u of %u slots are served by nobody", gaps, RBK_SLOTS);
    rbk_error_set(&error, status, -1, "says that the cluster is down: %s", silence.message);
    rbk_pool_note(&survey->answerer->pool, status, error.message);
    rbk_nodes_blame(survey->nodes, survey->answerer);
    return status;
}

static enum redbucket_status ask_all(struct survey *survey)
{
    struct redbucket_health *health = survey->health;
    unsigned gaps = count_slots(survey);

    health->masters = survey->topology->masters_len;
    health->replicas = (int)(survey->topology->places_len - survey->topology->masters_len);
    for (size_t i = 0; i < survey->topology->masters_len; i++)
        ask_master(survey, i);
    if (survey->answered == 0) {
        if (survey->silent != NULL)
            rbk_nodes_blame(survey->nodes, survey->silent);
        return survey->status;
    }
    if (survey->down == survey->answered)
        return fail_all(survey, gaps);
    warn_of_all(survey, gaps);
    health->silent += survey->late;
    return REDBUCKET_OK;
}

enum redbucket_status rbk_cluster_check(struct rbk_nodes *nodes,
                                        const struct rbk_deadline *deadline,
                                        struct redbucket_health *health)
{
    struct rbk_topology topology;
    enum redbucket_status status;

    rbk_topology_init(&topology);
    status = rbk_nodes_ask(nodes, deadline, &topology);
    if (status == REDBUCKET_OK) {
        struct survey survey = {.nodes = nodes,
                                .topology = &topology,
                                .deadline = deadline,
                                .health = health,
                                .status = REDBUCKET_ERROR_TIMEOUT};

        status = ask_all(&survey);
    }
    rbk_topology_fini(&topology);
    return status;
}
