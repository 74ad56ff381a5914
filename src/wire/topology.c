/* SPDX-License-Identifier: MIT */
/*
 * Reading CLUSTER SLOTS: ranges of slots, each with its first and its last, its master and that
 * one's replicas:
 *
 *   FIRST LAST [HOST PORT ID METADATA] [HOST PORT ...]...
 *
 * The identifier came with Redis 4, the metadata with 7; neither is needed. A cluster in the middle
 * of being rearranged has a range for nearly each slot, so that places are found by a hash.
 */
#include "wire/topology.h"

#include <stdlib.h>
#include <string.h>

/* Twice the places, so that one is found in few steps. */
#define BUCKETS (2 * RBK_PLACES_MAX)

/* The first elements of a range, and of a node. */
enum { FIRST, LAST, MASTER };
enum { HOST, PORT };

/* A topology in the making. */
struct builder {
    struct rbk_topology topology;
    size_t places_size;
    const struct rbk_place *asked;
    uint16_t buckets[BUCKETS]; /* 0, or the index of a place and 1 */
};

void rbk_topology_init(struct rbk_topology *topology)
{
    topology->places = NULL;
    topology->places_len = 0;
    topology->masters_len = 0;
    memset(topology->owner, 0xff, sizeof topology->owner); /* RBK_NO_OWNER */
}

void rbk_topology_fini(struct rbk_topology *topology)
{
    free(topology->places);
    rbk_topology_init(topology);
}

/* ---- Places --------------------------------------------------------------------------------- */

/* FNV-1a. Who makes places collide has the reading take longer by a bounded time. */
static uint32_t hash_place(const struct rbk_place *place)
{
    uint32_t hash = 2166136261u ^ place->port;

    for (const char *byte = place->host; *byte != '\0'; byte++)
        hash = (hash ^ (unsigned char)*byte) * 16777619u;
    return hash ^ hash >> 16;
}

static enum redbucket_status append_place(struct builder *builder, const struct rbk_place *place)
{
    struct rbk_topology *topology = &builder->topology;

    if (topology->places_len == RBK_PLACES_MAX)
        return REDBUCKET_ERROR_PROTOCOL;
    if (topology->places_len == builder->places_size) {
        size_t size = builder->places_size > 0 ? builder->places_size * 2 : 8;
        struct rbk_place *places = realloc(topology->places, size * sizeof *places);

        if (places == NULL)
            return REDBUCKET_ERROR_MEMORY;
        topology->places = places;
        builder->places_size = size;
    }
    topology->places[topology->places_len++] = *place;
    return REDBUCKET_OK;
}

/* The place's index, a new one when it wasn't there yet. */
static enum redbucket_status find_place(struct builder *builder, const struct rbk_place *place,
                                        uint16_t *index)
{
    uint32_t at = hash_place(place) % BUCKETS;
    enum redbucket_status status;

    for (; builder->buckets[at] != 0; at = (at + 1) % BUCKETS) {
        *index = (uint16_t)(builder->buckets[at] - 1);
        if (rbk_place_same(&builder->topology.places[*index], place))
            return REDBUCKET_OK;
    }
    *index = (uint16_t)builder->topology.places_len;
    status = append_place(builder, place);
    if (status == REDBUCKET_OK)
        builder->buckets[at] = (uint16_t)(*index + 1);
    return status;
}

static bool is_text(const struct rbk_reply *reply)
{
    return reply->type == RBK_REPLY_STRING || reply->type == RBK_REPLY_STATUS;
}

/* Adds a node; its index is RBK_NO_OWNER when it can't be reached. */
static enum redbucket_status read_node(struct builder *builder, const struct rbk_reply *node,
                                       uint16_t *index)
{
    struct rbk_place place;

    *index = RBK_NO_OWNER;
    if (node->type != RBK_REPLY_ARRAY || node->len <= PORT)
        return REDBUCKET_ERROR_PROTOCOL;
    const struct rbk_reply *host = &node->elements[HOST];
    const struct rbk_reply *port = &node->elements[PORT];

    if ((!is_text(host) && host->type != RBK_REPLY_NIL) || port->type != RBK_REPLY_INTEGER)
        return REDBUCKET_ERROR_PROTOCOL;
    if (port->integer == 0)
        return REDBUCKET_OK;
    if (!rbk_place_read(is_text(host) ? host->text : "", is_text(host) ? host->len : 0,
                        port->integer, builder->asked, &place))
        return REDBUCKET_ERROR_PROTOCOL;
    return find_place(builder, &place, index);
}

/* ---- Ranges --------------------------------------------------------------------------------- */

static bool is_slot(const struct rbk_reply *reply)
{
    return reply->type == RBK_REPLY_INTEGER && reply->integer >= 0 && reply->integer < RBK_SLOTS;
}

static bool is_range(const struct rbk_reply *range)
{
    return range->type == RBK_REPLY_ARRAY && range->len > MASTER &&
           is_slot(&range->elements[FIRST]) && is_slot(&range->elements[LAST]) &&
           range->elements[FIRST].integer <= range->elements[LAST].integer;
}

static enum redbucket_status read_master(struct builder *builder, const struct rbk_reply *range)
{
    uint16_t index;

    if (!is_range(range))
        return REDBUCKET_ERROR_PROTOCOL;
    enum redbucket_status status = read_node(builder, &range->elements[MASTER], &index);

    if (status != REDBUCKET_OK)
        return status;
    for (long long i = range->elements[FIRST].integer; i <= range->elements[LAST].integer; i++) {
        if (builder->topology.owner[i] != RBK_NO_OWNER)
            return REDBUCKET_ERROR_PROTOCOL;
        builder->topology.owner[i] = index;
    }
    return REDBUCKET_OK;
}

static enum redbucket_status read_replicas(struct builder *builder, const struct rbk_reply *range)
{
    enum redbucket_status status = REDBUCKET_OK;
    uint16_t index;

    for (size_t i = MASTER + 1; i < range->len && status == REDBUCKET_OK; i++)
        status = read_node(builder, &range->elements[i], &index);
    return status;
}

static enum redbucket_status read_all(struct builder *builder, const struct rbk_reply *reply)
{
    enum redbucket_status status = REDBUCKET_OK;

    if (reply->type != RBK_REPLY_ARRAY || reply->len == 0)
        return REDBUCKET_ERROR_PROTOCOL;
    for (size_t i = 0; i < reply->len && status == REDBUCKET_OK; i++)
        status = read_master(builder, &reply->elements[i]);
    builder->topology.masters_len = builder->topology.places_len;
    for (size_t i = 0; i < reply->len && status == REDBUCKET_OK; i++)
        status = read_replicas(builder, &reply->elements[i]);
    if (status == REDBUCKET_OK && builder->topology.masters_len == 0)
        return REDBUCKET_ERROR_PROTOCOL;
    return status;
}

enum redbucket_status rbk_topology_read(const struct rbk_reply *cluster_slots_reply,
                                        const struct rbk_place *asked, struct rbk_topology *out)
{
    struct builder *builder = calloc(1, sizeof *builder);

    if (builder == NULL)
        return REDBUCKET_ERROR_MEMORY;
    rbk_topology_init(&builder->topology);
    builder->asked = asked;
    enum redbucket_status status = read_all(builder, cluster_slots_reply);

    if (status == REDBUCKET_OK) {
        free(out->places);
        *out = builder->topology;
    } else {
        free(builder->topology.places);
    }
    free(builder);
    return status;
}
