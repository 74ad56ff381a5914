/* SPDX-License-Identifier: MIT */
/*
 * Keeping the map of a cluster. Adding a node is the only thing done under the lock.
 */
#include "redis/nodes.h"

#include "error.h"
#include "fork_page.h"
#include "redis/endpoint.h"
#include "redis/method.h"

#include <stdlib.h>
#include <string.h>

/* Seconds between two readings of the map. */
#define PACE 0.1

/* Nodes that one reading waits for in vain, one after the other. */
#define SILENT_MAX 4

/* In memory that a child finds cleared. */
struct rbk_nodes_live {
    pthread_mutex_t mutex;
    atomic_bool here;
};

static size_t count(const struct rbk_nodes *nodes)
{
    return atomic_load_explicit(&nodes->len, memory_order_acquire);
}

static struct rbk_node *node_at(const struct rbk_nodes *nodes, size_t i)
{
    return atomic_load_explicit(&nodes->at[i], memory_order_relaxed);
}

/* An index, or RBK_NO_OWNER. */
static uint16_t find(const struct rbk_nodes *nodes, const struct rbk_place *place)
{
    size_t len = count(nodes);

    for (size_t i = 0; i < len; i++) {
        if (rbk_place_same(&node_at(nodes, i)->place, place))
            return (uint16_t)i;
    }
    return RBK_NO_OWNER;
}

static struct rbk_node *make(struct rbk_nodes *nodes, const struct rbk_place *place,
                             struct redbucket_error *error)
{
    struct rbk_node *node = calloc(1, sizeof *node);
    struct rbk_endpoint endpoint;
    struct rbk_pool_config config = {
        .options = nodes->options, .endpoint = &endpoint, .tls = nodes->tls, .store = nodes->store};

    if (node == NULL)
        return NULL;
    node->place = *place;
    if (!rbk_endpoint_set_host(&endpoint, place->host, place->port) ||
        rbk_pool_init(&node->pool, &config, error) != REDBUCKET_OK) {
        rbk_pool_fini(&node->pool);
        free(node);
        return NULL;
    }
    return node;
}

static uint16_t add_locked(struct rbk_nodes *nodes, const struct rbk_place *place,
                           struct redbucket_error *error)
{
    uint16_t index = find(nodes, place);
    size_t len = count(nodes);

    if (index != RBK_NO_OWNER || len == RBK_PLACES_MAX)
        return index;
    struct rbk_node *node = make(nodes, place, error);

    if (node == NULL)
        return RBK_NO_OWNER;
    node->number = len;
    atomic_store_explicit(&nodes->at[len], node, memory_order_relaxed);
    atomic_store_explicit(&nodes->len, len + 1, memory_order_release);
    return (uint16_t)len;
}

static uint16_t find_or_add(struct rbk_nodes *nodes, const struct rbk_place *place,
                            struct redbucket_error *error)
{
    uint16_t index = find(nodes, place);

    if (index != RBK_NO_OWNER)
        return index;
    (void)pthread_mutex_lock(&nodes->live->mutex);
    index = add_locked(nodes, place, error);
    (void)pthread_mutex_unlock(&nodes->live->mutex);
    return index;
}

/* The nodes that the URL names. */
static enum redbucket_status add_hosts(struct rbk_nodes *nodes, struct redbucket_error *error)
{
    for (size_t i = 0; i < nodes->options->hosts_len; i++) {
        const struct rbk_endpoint *host = &nodes->options->hosts[i];
        struct rbk_place place = {.port = host->port};

        rbk_error_set(error, REDBUCKET_ERROR_MEMORY, -1, "%s: out of memory", host->where);
        memcpy(place.host, host->name, strnlen(host->name, RBK_PLACE_HOST_MAX));
        if (find_or_add(nodes, &place, error) == RBK_NO_OWNER)
            return error->status;
    }
    return REDBUCKET_OK;
}

enum redbucket_status rbk_nodes_init(struct rbk_nodes *nodes, const struct rbk_pool_config *config,
                                     struct redbucket_error *error)
{
    struct redbucket_error unwanted;
    enum redbucket_status status;

    memset(nodes, 0, sizeof *nodes);
    nodes->options = config->options;
    nodes->tls = config->tls;
    nodes->store = config->store;
    for (size_t i = 0; i < RBK_SLOTS; i++)
        atomic_init(&nodes->owner[i], RBK_NO_OWNER);
    atomic_init(&nodes->stale, true);
    atomic_init(&nodes->tried, -1.0);
    status = rbk_fork_page_map(sizeof *nodes->live, (void **)&nodes->live, error);
    if (status != REDBUCKET_OK)
        return status;
    atomic_store(&nodes->live->here, true);
    return add_hosts(nodes, error != NULL ? error : &unwanted);
}

void rbk_nodes_fini(struct rbk_nodes *nodes)
{
    for (size_t i = 0; i < count(nodes); i++) {
        rbk_pool_fini(&node_at(nodes, i)->pool);
        free(node_at(nodes, i));
    }
    if (nodes->live != NULL)
        rbk_fork_page_unmap(nodes->live, sizeof *nodes->live);
}

void rbk_nodes_enter(struct rbk_nodes *nodes)
{
    if (atomic_load_explicit(&nodes->live->here, memory_order_acquire))
        return;
    /* Each pool closes what it finds under its own lock; twice does no harm. */
    for (size_t i = 0; i < count(nodes); i++)
        (void)rbk_pool_random(&node_at(nodes, i)->pool);
    atomic_store_explicit(&nodes->live->here, true, memory_order_release);
}

static struct rbk_node *any(struct rbk_nodes *nodes)
{
    return node_at(nodes,
                   atomic_fetch_add_explicit(&nodes->turn, 1, memory_order_relaxed) % count(nodes));
}

struct rbk_node *rbk_nodes_owner(struct rbk_nodes *nodes, unsigned slot)
{
    uint16_t index = atomic_load_explicit(&nodes->owner[slot], memory_order_acquire);

    if (index != RBK_NO_OWNER)
        return node_at(nodes, index);
    rbk_nodes_doubt(nodes);
    return any(nodes);
}

size_t rbk_nodes_number(const struct rbk_nodes *nodes, unsigned slot)
{
    uint16_t index = atomic_load_explicit(&nodes->owner[slot], memory_order_relaxed);

    return index != RBK_NO_OWNER ? index : RBK_NONE;
}

struct rbk_node *rbk_nodes_redirected(struct rbk_nodes *nodes, const struct rbk_redirect *redirect)
{
    struct redbucket_error error;
    uint16_t index = find_or_add(nodes, &redirect->place, &error);

    if (index == RBK_NO_OWNER)
        return NULL;
    if (!redirect->ask)
        atomic_store_explicit(&nodes->owner[redirect->slot], index, memory_order_release);
    return node_at(nodes, index);
}

struct rbk_node *rbk_nodes_at(struct rbk_nodes *nodes, const struct rbk_place *place)
{
    struct redbucket_error error;
    uint16_t index = find_or_add(nodes, place, &error);

    return index == RBK_NO_OWNER ? NULL : node_at(nodes, index);
}

void rbk_nodes_doubt(struct rbk_nodes *nodes)
{
    atomic_store_explicit(&nodes->stale, true, memory_order_relaxed);
}

/* A slot that nobody serves now is left with who served it last, who may again. */
static void install(struct rbk_nodes *nodes, const struct rbk_topology *topology)
{
    struct redbucket_error error;
    uint16_t index[RBK_PLACES_MAX] = {RBK_NO_OWNER};

    for (size_t i = 0; i < topology->masters_len; i++)
        index[i] = find_or_add(nodes, &topology->places[i], &error);
    for (size_t slot = 0; slot < RBK_SLOTS; slot++) {
        uint16_t owner = topology->owner[slot];

        if (owner != RBK_NO_OWNER && index[owner] != RBK_NO_OWNER)
            atomic_store_explicit(&nodes->owner[slot], index[owner], memory_order_release);
    }
}

/* Nodes that were not made a cluster yet know of no slots, and there is nobody to ask instead. */
static enum redbucket_status read_slots(struct rbk_node *node, const struct rbk_reply *reply,
                                        struct rbk_topology *out)
{
    enum redbucket_status status;

    if (reply->type == RBK_REPLY_ARRAY && reply->len == 0) {
        status = REDBUCKET_ERROR_UNAVAILABLE;
        rbk_pool_note(&node->pool, status, "knows of no slots that anybody serves");
        return status;
    }
    status = rbk_topology_read(reply, &node->place, out);
    if (status == REDBUCKET_ERROR_PROTOCOL)
        rbk_pool_note(&node->pool, status, "the answer to CLUSTER SLOTS makes no sense");
    return status;
}

/* In its part of the time. */
static enum redbucket_status ask_node(struct rbk_node *node, const struct rbk_deadline *deadline,
                                      const struct rbk_deadline *part, struct rbk_topology *out)
{
    static const struct rbk_argument arguments[] = {{"CLUSTER", 7}, {"SLOTS", 5}};
    struct rbk_command command = {arguments, 2};
    struct rbk_use use = {.pool = &node->pool, .deadline = part};
    struct rbk_reply reply;
    enum redbucket_status status = rbk_pool_take_by(&node->pool, deadline, part, &use.peer);

    if (status != REDBUCKET_OK)
        return status;
    status = rbk_method_call(&use, &command, 1, &reply);
    if (status == REDBUCKET_OK && reply.type == RBK_REPLY_ERROR)
        status = rbk_method_refused(&use, &reply);
    else if (status == REDBUCKET_OK)
        status = read_slots(node, &reply, out);
    rbk_pool_give(&node->pool, use.peer, status, use.usable);
    return status;
}

/* Whom a reading of the map asks first, and how many it has waited for in vain. */
struct reading {
    size_t first;
    int silent;
    const struct rbk_deadline *deadline;
};

/* Those that are believed to be up, or those that aren't, until one answers. Each is given a
 * quarter of what is left, so that one that is silent leaves some for the next, and for what the
 * map is wanted for. Those that are known to be down, or say so at once, take no time and end
 * nothing: after many years most of the places may be empty. */
static enum redbucket_status ask_those(struct rbk_nodes *nodes, bool up, struct reading *reading,
                                       struct rbk_topology *out)
{
    enum redbucket_status status = REDBUCKET_ERROR_UNAVAILABLE;
    size_t len = count(nodes);

    for (size_t i = 0; i < len && reading->silent < SILENT_MAX && status != REDBUCKET_OK; i++) {
        struct rbk_node *node = node_at(nodes, (reading->first + i) % len);
        struct rbk_deadline part;

        if (rbk_pool_is_up(&node->pool) != up)
            continue;
        rbk_deadline_start(&part, rbk_deadline_left(reading->deadline) / 4);
        status = ask_node(node, reading->deadline, &part, out);
        reading->silent += status == REDBUCKET_ERROR_TIMEOUT;
        if (status != REDBUCKET_OK)
            rbk_nodes_blame(nodes, node);
    }
    return status;
}

/* One that stands still holds up who asks it, if it is he who tries whether it still does: so who
 * only wants the map, for a bucket of another, asks those last that are known to be down. */
enum redbucket_status rbk_nodes_ask(struct rbk_nodes *nodes, const struct rbk_deadline *deadline,
                                    struct rbk_topology *out)
{
    struct reading reading = {.first =
                                  atomic_fetch_add_explicit(&nodes->turn, 1, memory_order_relaxed),
                              .deadline = deadline};
    enum redbucket_status up = ask_those(nodes, true, &reading, out);
    enum redbucket_status down;

    if (up == REDBUCKET_OK)
        return up;
    down = ask_those(nodes, false, &reading, out);
    /* Of the two, what one has said who was there. */
    return down == REDBUCKET_ERROR_UNAVAILABLE ? up : down;
}

/* True for one caller at a time, and not too often. */
static bool may_try(struct rbk_nodes *nodes)
{
    double now = rbk_monotonic_now();
    double tried = atomic_load_explicit(&nodes->tried, memory_order_relaxed);

    return (tried < 0.0 || now - tried >= PACE) &&
           atomic_compare_exchange_strong_explicit(&nodes->tried, &tried, now, memory_order_relaxed,
                                                   memory_order_relaxed);
}

void rbk_nodes_refresh(struct rbk_nodes *nodes, const struct rbk_deadline *deadline)
{
    struct rbk_topology topology;

    if (!atomic_load_explicit(&nodes->stale, memory_order_relaxed) || !may_try(nodes))
        return;
    rbk_topology_init(&topology);
    /* Before it is asked: what is doubted from now on is not answered by what comes. */
    atomic_store_explicit(&nodes->stale, false, memory_order_relaxed);
    if (rbk_nodes_ask(nodes, deadline, &topology) == REDBUCKET_OK)
        install(nodes, &topology);
    else
        rbk_nodes_doubt(nodes);
    rbk_topology_fini(&topology);
}

void rbk_nodes_blame(struct rbk_nodes *nodes, struct rbk_node *node)
{
    atomic_store_explicit(&nodes->failed, node, memory_order_release);
}

/* What went wrong on a connection says nothing of where, as what went wrong before there was one
 * does. */
void rbk_node_failure(struct rbk_node *node, struct redbucket_error *error)
{
    const char *where = rbk_transport_endpoint(node->pool.transport)->where;
    struct redbucket_error last;

    rbk_pool_last(&node->pool, &last);
    *error = last;
    if (last.status != REDBUCKET_OK && strncmp(last.message, where, strlen(where)) != 0)
        rbk_error_set(error, last.status, -1, "%s: %s", where, last.message);
}

void rbk_nodes_failure(const struct rbk_nodes *nodes, struct redbucket_error *error)
{
    struct rbk_node *node = atomic_load_explicit(&nodes->failed, memory_order_acquire);

    *error = (struct redbucket_error){.status = REDBUCKET_OK, .position = -1};
    if (node != NULL)
        rbk_node_failure(node, error);
}
