/* SPDX-License-Identifier: MIT */
/*
 * What happens to a cluster: nodes that stand still, that take over, slots that move. Each step is
 * the command that an administrator would give, in the order that the servers' own tools keep.
 */
#include "cluster.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAUSE_NS     10000000
#define PROMOTE_S    30
#define EPOCH_S      30
#define REPLICAS_S   30
#define KEYS_AT_ONCE "64"

/* ---- Processes ------------------------------------------------------------------------------ */

bool test_cluster_freeze(struct test_cluster *cluster, size_t index)
{
    cluster->frozen[index] = kill(cluster->nodes[index]->pid, SIGSTOP) == 0;
    return cluster->frozen[index];
}

bool test_cluster_thaw(struct test_cluster *cluster, size_t index)
{
    cluster->frozen[index] = false;
    return kill(cluster->nodes[index]->pid, SIGCONT) == 0;
}

static bool is_master(struct test_server *node)
{
    redisReply *reply = test_server_ask(node, "ROLE", NULL);
    bool master = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
                  strcmp(reply->element[0]->str, "master") == 0;

    freeReplyObject(reply);
    return master;
}

/* A replica that was asked may find no majority at the first time. */
bool test_cluster_promote(struct test_cluster *cluster, size_t replica)
{
    struct test_server *node = cluster->nodes[replica];

    if (!test_server_do(node, "CLUSTER", "FAILOVER", NULL))
        return false;
    for (int i = 0; i < PROMOTE_S * 100 && !is_master(node); i++)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    if (is_master(node))
        return true;
    fputs("# a replica didn't take over\n", stderr);
    return false;
}

/* ---- Slots ---------------------------------------------------------------------------------- */

/* A number out of what CLUSTER INFO says, or 0. */
static long long number_of(struct test_server *node, const char *name)
{
    redisReply *reply = test_server_ask(node, "CLUSTER", "INFO", NULL);
    const char *at = reply != NULL && reply->str != NULL ? strstr(reply->str, name) : NULL;
    long long number = at != NULL ? strtoll(at + strlen(name), NULL, 10) : 0;

    freeReplyObject(reply);
    return number;
}

/* Who takes a slot over gives himself an epoch above all that he has heard of. Had he not heard of
 * the other's yet, which got the slot only now, the others would believe the other: the slot would
 * be nobody's for ever. */
static bool await_epoch(struct test_cluster *cluster, size_t from, size_t to)
{
    long long epoch = number_of(cluster->nodes[from], "cluster_my_epoch:");

    for (int i = 0; i < EPOCH_S * 100; i++) {
        if (number_of(cluster->nodes[to], "cluster_current_epoch:") >= epoch)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    fputs("# a node doesn't hear of another's epoch\n", stderr);
    return false;
}

/* Valkey has its replicas confirm first, and refuses where a slow machine keeps them from it. */
static bool set_slot(struct test_server *node, const char *slot, const char *what, const char *id)
{
    bool again = true;
    bool done = false;

    for (int i = 0; again && i < REPLICAS_S * 100; i++) {
        redisReply *reply = test_server_ask(node, "CLUSTER", "SETSLOT", slot, what, id, NULL);
        const char *words = reply != NULL ? reply->str : "no reply";

        done = reply != NULL && reply->type == REDIS_REPLY_STATUS;
        again = !done && strncmp(words, "NOREPLICAS", 10) == 0;
        if (!done && !again)
            fprintf(stderr, "# SETSLOT: %s\n", words);
        freeReplyObject(reply);
        if (again)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    if (again)
        fputs("# a node's replicas don't confirm a slot\n", stderr);
    return done;
}

bool test_cluster_slot_open(struct test_cluster *cluster, unsigned slot, size_t from, size_t to)
{
    char text[16];

    if (!await_epoch(cluster, from, to))
        return false;
    snprintf(text, sizeof text, "%u", slot);
    return set_slot(cluster->nodes[to], text, "IMPORTING", cluster->ids[from]) &&
           set_slot(cluster->nodes[from], text, "MIGRATING", cluster->ids[to]);
}

/* False for a failure. A key that is gone by now is as good as moved. */
static bool move_key(struct test_cluster *cluster, const redisReply *key, size_t from, size_t to)
{
    const struct test_server *node = cluster->nodes[to];
    char port[16];
    const char *argv[] = {"MIGRATE", "127.0.0.1", port,   key->str,
                          "0",       "5000",      "AUTH", node->password};
    const size_t lengths[] = {7, 9, 0, key->len, 1, 4, 4, strlen(node->password)};
    size_t copy[8];
    redisReply *reply;
    bool good;

    snprintf(port, sizeof port, "%d", cluster->options.tls ? node->tls_port : node->port);
    memcpy(copy, lengths, sizeof copy);
    copy[2] = strlen(port);
    reply = test_server_call(cluster->nodes[from], node->password[0] != '\0' ? 8 : 6, argv, copy);
    good = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    if (!good)
        fprintf(stderr, "# MIGRATE: %s\n", reply != NULL ? reply->str : "no reply");
    freeReplyObject(reply);
    return good;
}

int test_cluster_slot_move(struct test_cluster *cluster, unsigned slot, size_t from, size_t to,
                           int keys)
{
    char text[16];
    int moved = 0;
    bool more = true;

    snprintf(text, sizeof text, "%u", slot);
    while (more && moved != keys) {
        redisReply *reply = test_server_ask(cluster->nodes[from], "CLUSTER", "GETKEYSINSLOT", text,
                                            KEYS_AT_ONCE, NULL);

        more = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0;
        if (reply == NULL || reply->type != REDIS_REPLY_ARRAY)
            moved = -1;
        for (size_t i = 0; more && i < reply->elements && moved != keys; i++) {
            more = move_key(cluster, reply->element[i], from, to);
            moved = more ? moved + 1 : -1;
        }
        freeReplyObject(reply);
    }
    return moved;
}

static bool set_owner(struct test_cluster *cluster, size_t index, const char *slot, size_t owner)
{
    return cluster->nodes[index]->pid == 0 || cluster->frozen[index] ||
           set_slot(cluster->nodes[index], slot, "NODE", cluster->ids[owner]);
}

/* First where it comes to, so that nobody sends it back; then where it comes from. The others hear
 * of it by themselves. */
bool test_cluster_slot_close(struct test_cluster *cluster, unsigned slot, size_t from, size_t to)
{
    char text[16];

    snprintf(text, sizeof text, "%u", slot);
    return set_owner(cluster, to, text, to) && set_owner(cluster, from, text, to);
}

static bool migrate_slot(struct test_cluster *cluster, unsigned slot, size_t from, size_t to)
{
    return test_cluster_slot_open(cluster, slot, from, to) &&
           test_cluster_slot_move(cluster, slot, from, to, -1) >= 0 &&
           test_cluster_slot_close(cluster, slot, from, to);
}

bool test_cluster_migrate(struct test_cluster *cluster, unsigned first, unsigned last, size_t to)
{
    struct test_cluster_view view;

    if (!test_cluster_look(cluster, to, &view))
        return false;
    for (unsigned slot = first; slot <= last; slot++) {
        if (view.owner[slot] == TEST_CLUSTER_NODES ||
            (view.owner[slot] != to && !migrate_slot(cluster, slot, view.owner[slot], to)))
            return false;
    }
    return true;
}
