/* SPDX-License-Identifier: MIT */
/*
 * Asking a server how it is. A bucket that is lost starts empty, and lets one more burst + 1 +
 * delay in: each setting that can lose one is named.
 */
#include "redis/health.h"

#include "redis/master.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static_assert(REDBUCKET_PLACE_SIZE == RBK_WHERE_SIZE, "what is shown of a place");

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

/* Copies a setting's value, to be shown; "" when the server won't say. */
static enum redbucket_status read_setting(struct rbk_use *use, const char *name, char *value,
                                          size_t size)
{
    struct rbk_argument arguments[] = {{"CONFIG", 6}, {"GET", 3}, {name, strlen(name)}};
    struct rbk_command command = {arguments, 3};
    struct rbk_reply reply;
    enum redbucket_status status = rbk_method_call(use, &command, 1, &reply);

    value[0] = '\0';
    if (status == REDBUCKET_OK && reply.type == RBK_REPLY_ARRAY && reply.len == 2 &&
        reply.elements[1].type == RBK_REPLY_STRING) {
        char words[RBK_SERVER_WORDS_SIZE];

        rbk_server_words(reply.elements[1].text, words);
        (void)snprintf(value, size, "%.*s", (int)size - 1, words);
    }
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

/* What it said when we connected may be long ago. */
enum redbucket_status rbk_health_count_replicas(struct rbk_use *use, int *replicas)
{
    const struct rbk_argument arguments[] = {{"INFO", 4}, {"replication", 11}};
    struct rbk_command command = {arguments, 2};
    struct rbk_server server = {.replicas = 0};
    struct rbk_reply reply;
    enum redbucket_status status = rbk_method_call(use, &command, 1, &reply);

    if (status != REDBUCKET_OK)
        return status;
    rbk_server_read_info(&server, &reply);
    *replicas = server.counts_replicas ? (int)server.replicas : -1;
    return REDBUCKET_OK;
}

/* A replica that is promoted begins with what it had received. */
static void warn_of_failover(const char *needed, struct redbucket_health *health)
{
    char followed[32];

    (void)snprintf(followed, sizeof followed, "%d replica%s", health->replicas,
                   health->replicas == 1 ? "" : "s");
    if (health->replicas == 0)
        warn(health, "the master has ", "no replica", "when it dies, nobody takes its place");
    else if (health->replicas > 0)
        warn(health, "the master has ", followed,
             "a failover loses the last writes, which they haven't received");
    if (strcmp(needed, "0") == 0)
        warn(health, "min-replicas-to-write is ", needed,
             "a master cut off from all takes requests that a failover loses");
}

static enum redbucket_status ask_of_master(struct rbk_use *use, struct redbucket_health *health)
{
    char words[RBK_SERVER_WORDS_SIZE];
    char needed[16];
    enum redbucket_status status = rbk_health_count_replicas(use, &health->replicas);

    if (status == REDBUCKET_OK)
        status = read_setting(use, "min-replicas-to-write", needed, sizeof needed);
    if (status != REDBUCKET_OK)
        return status;
    rbk_server_words(use->pool->options->service, words);
    (void)snprintf(health->service, sizeof health->service, "%.63s", words);
    rbk_master_tell(use->pool->master, health->master, health->sentinel);
    warn_of_failover(needed, health);
    return REDBUCKET_OK;
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
    return use->pool->master != NULL ? ask_of_master(use, health) : REDBUCKET_OK;
}
