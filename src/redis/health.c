/* SPDX-License-Identifier: MIT */
/*
 * Asking a server how it is. A bucket that is lost starts empty, and lets one more burst + 1 +
 * delay in: each setting that can lose one is named.
 */
#include "redis/health.h"

#include <stdio.h>
#include <string.h>

/* The shortest of so many round trips is the network's; the others met something else. */
#define PINGS 5

static enum redbucket_status measure(struct rbk_use *use, double *round_trip)
{
    static const struct rbk_argument ping = {"PING", 4};
    struct rbk_command command = {&ping, 1};
    struct rbk_reply reply;

    for (int i = 0; i < PINGS; i++) {
        double begin = rbk_monotonic_now();
        enum redbucket_status status = rbk_method_call(use, &command, 1, &reply);

        if (status != REDBUCKET_OK)
            return status;
        if (reply.type == RBK_REPLY_ERROR)
            return rbk_method_refused(use, &reply);
        double took = rbk_monotonic_now() - begin;

        if (i == 0 || took < *round_trip)
            *round_trip = took;
    }
    return REDBUCKET_OK;
}

/* Copies a setting's value; "" when the server won't say. */
static enum redbucket_status read_setting(struct rbk_use *use, const char *name, char *value,
                                          size_t size)
{
    struct rbk_argument arguments[] = {{"CONFIG", 6}, {"GET", 3}, {name, strlen(name)}};
    struct rbk_command command = {arguments, 3};
    struct rbk_reply reply;
    enum redbucket_status status = rbk_method_call(use, &command, 1, &reply);

    value[0] = '\0';
    if (status == REDBUCKET_OK && reply.type == RBK_REPLY_ARRAY && reply.len == 2 &&
        reply.elements[1].type == RBK_REPLY_STRING)
        (void)snprintf(value, size, "%s", reply.elements[1].text);
    return status;
}

/* One line: a setting with its value, and what comes of it. */
static void warn(struct redbucket_health *health, const char *setting, const char *value,
                 const char *consequence)
{
    if (health->warnings_len < REDBUCKET_WARNINGS_MAX)
        (void)snprintf(health->warnings[health->warnings_len++], REDBUCKET_WARNING_SIZE, "%s%s: %s",
                       setting, value, consequence);
}

static void warn_of_eviction(const struct rbk_server *server, struct redbucket_health *health)
{
    bool keeps = strcmp(server->eviction, "noeviction") == 0;

    if (server->maxmemory != 0 && server->eviction[0] != '\0')
        warn(health, "maxmemory-policy is ", server->eviction,
             keeps ? "when memory runs out, requests fail"
                   : "when memory runs out, buckets are lost");
}

/* Version 0: the server didn't answer INFO, and what it left out says nothing. */
static void warn_of_restart(const struct rbk_server *server, const char *fsync, const char *save,
                            struct redbucket_health *health)
{
    if (server->aof && fsync[0] != '\0' && strcmp(fsync, "always") != 0)
        warn(health, "appendfsync is ", fsync, "a crash of its machine loses the last writes");
    else if (!server->aof && server->version[0] > 0)
        warn(health, "appendonly is ", "no",
             save[0] != '\0' ? "a restart loses what came after the last save"
                             : "a restart loses all buckets");
}

static void describe(const struct rbk_peer *peer, struct redbucket_health *health)
{
    const struct rbk_server *server = &peer->server;
    bool valkey = server->valkey[0] > 0;
    const unsigned *version = valkey ? server->valkey : server->version;

    if (version[0] > 0)
        (void)snprintf(health->server, sizeof health->server, "%s %u.%u.%u",
                       valkey ? "Valkey" : "Redis", version[0], version[1], version[2]);
    else
        (void)snprintf(health->server, sizeof health->server, "of unknown version");
    (void)snprintf(health->method, sizeof health->method, "%s",
                   peer->by_transaction ? "transaction" : "script");
}

enum redbucket_status rbk_health_ask(struct rbk_use *use, struct redbucket_health *health)
{
    const struct rbk_server *server = &use->peer->server;
    char fsync[24], save[64];
    enum redbucket_status status = measure(use, &health->round_trip);

    if (status == REDBUCKET_OK)
        status = read_setting(use, "appendfsync", fsync, sizeof fsync);
    if (status == REDBUCKET_OK)
        status = read_setting(use, "save", save, sizeof save);
    if (status != REDBUCKET_OK)
        return status;
    describe(use->peer, health);
    warn_of_eviction(server, health);
    warn_of_restart(server, fsync, save, health);
    if (server->cluster && use->pool->options->kind != RBK_KIND_CLUSTER)
        warn(health, "cluster-enabled is ", "yes",
             "this URL reaches the slots of one node alone, use redis+cluster://");
    return REDBUCKET_OK;
}
