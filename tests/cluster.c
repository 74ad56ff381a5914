/* SPDX-License-Identifier: MIT */
/*
 * Making servers a cluster, and reading what each of them thinks of it.
 *
 * Nodes are told apart by their identifiers, which all versions tell by CLUSTER NODES; CLUSTER
 * SLOTS has them only since Redis 4.
 */
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SETTLE_S    30
#define PAUSE_NS    10000000
#define CONFIG_SIZE 1024
#define WORDS_MAX   (TEST_CLUSTER_SLOTS / TEST_CLUSTER_MASTERS + 16)

/* What a line of CLUSTER NODES begins with. */
enum { WORD_ID, WORD_PLACE, WORD_FLAGS, WORD_MASTER, WORD_SLOTS = 8 };

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- What a node thinks --------------------------------------------------------------------- */

static size_t node_of(const struct test_cluster *cluster, const char *id)
{
    size_t index = 0;

    while (index < cluster->nodes_len && strcmp(cluster->ids[index], id) != 0)
        index++;
    return index < cluster->nodes_len ? index : TEST_CLUSTER_NODES;
}

/* "7", "7-9", or the sign of a slot on its way, "[7->-ID]", which says nothing of its owner. */
static void read_slots(const char *word, size_t index, struct test_cluster_view *view)
{
    unsigned first, last;
    int count = sscanf(word, "%u-%u", &first, &last);

    if (count == 1)
        last = first;
    for (unsigned i = first; count > 0 && i <= last && i < TEST_CLUSTER_SLOTS; i++)
        view->owner[i] = (uint8_t)index;
}

static void read_line(const struct test_cluster *cluster, char *line,
                      struct test_cluster_view *view)
{
    size_t index = TEST_CLUSTER_NODES;
    char *rest = NULL;
    int at = WORD_ID;

    view->known++;
    for (char *word = strtok_r(line, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest), at++) {
        if (at == WORD_ID)
            index = node_of(cluster, word);
        if (index == TEST_CLUSTER_NODES) {
            view->troubled = true;
            return;
        }
        if (at == WORD_FLAGS && (strstr(word, "fail") != NULL || strstr(word, "handshake") != NULL))
            view->troubled = true;
        if (at == WORD_MASTER)
            view->master_of[index] = (uint8_t)(word[0] == '-' ? index : node_of(cluster, word));
        if (at >= WORD_SLOTS && word[0] != '[')
            read_slots(word, index, view);
    }
}

bool test_cluster_look(struct test_cluster *cluster, size_t index, struct test_cluster_view *view)
{
    redisReply *reply = test_server_ask(cluster->nodes[index], "CLUSTER", "NODES", NULL);
    char *rest = NULL;
    bool good = reply != NULL && reply->str != NULL && reply->type != REDIS_REPLY_ERROR;

    memset(view, 0, sizeof *view);
    memset(view->owner, TEST_CLUSTER_NODES, sizeof view->owner);
    memset(view->master_of, TEST_CLUSTER_NODES, sizeof view->master_of);
    for (char *line = good ? strtok_r(reply->str, "\n", &rest) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        read_line(cluster, line, view);
    freeReplyObject(reply);
    return good;
}

static bool runs(const struct test_cluster *cluster, size_t index)
{
    return cluster->nodes[index]->pid != 0 && !cluster->frozen[index];
}

static bool state_is_ok(struct test_server *node)
{
    redisReply *reply = test_server_ask(node, "CLUSTER", "INFO", NULL);
    bool ok = reply != NULL && reply->str != NULL && strstr(reply->str, "cluster_state:ok") != NULL;

    freeReplyObject(reply);
    return ok;
}

/* A replica whose master runs has to have caught up with it. */
static bool is_connected(struct test_cluster *cluster, size_t index,
                         const struct test_cluster_view *view)
{
    size_t master = view->master_of[index];
    redisReply *reply;
    bool up;

    if (master == index || master == TEST_CLUSTER_NODES || !runs(cluster, master))
        return true;
    reply = test_server_ask(cluster->nodes[index], "INFO", "replication", NULL);
    up = reply != NULL && reply->str != NULL && strstr(reply->str, "master_link_status:up") != NULL;
    freeReplyObject(reply);
    return up;
}

static bool all_run(const struct test_cluster *cluster)
{
    for (size_t i = 0; i < cluster->nodes_len; i++) {
        if (!runs(cluster, i))
            return false;
    }
    return true;
}

/* A slot of a node that is down is nobody's: its replica has not taken over yet. */
static bool serves_all(const struct test_cluster *cluster, const struct test_cluster_view *view)
{
    for (size_t i = 0; i < TEST_CLUSTER_SLOTS; i++) {
        if (view->owner[i] == TEST_CLUSTER_NODES || !runs(cluster, view->owner[i]))
            return false;
    }
    return true;
}

static bool agree(struct test_cluster *cluster)
{
    static struct test_cluster_view first, view;
    bool begun = false;

    for (size_t i = 0; i < cluster->nodes_len; i++) {
        if (!runs(cluster, i))
            continue;
        if (!test_cluster_look(cluster, i, &view) || view.known != cluster->nodes_len ||
            (view.troubled && all_run(cluster)) || !serves_all(cluster, &view) ||
            !state_is_ok(cluster->nodes[i]) || !is_connected(cluster, i, &view))
            return false;
        if (!begun)
            first = view;
        begun = true;
        if (memcmp(first.owner, view.owner, sizeof view.owner) != 0 ||
            memcmp(first.master_of, view.master_of, sizeof view.master_of) != 0)
            return false;
    }
    return begun;
}

/* What each node says, as comments of TAP. */
static void show_views(struct test_cluster *cluster)
{
    fputs("# the nodes of a cluster don't agree\n", stderr);
    for (size_t i = 0; i < cluster->nodes_len; i++) {
        redisReply *reply = NULL;
        char *rest = NULL;

        if (runs(cluster, i))
            reply = test_server_ask(cluster->nodes[i], "CLUSTER", "NODES", NULL);
        fprintf(stderr, "# node %zu, port %d:\n", i, cluster->nodes[i]->port);
        for (char *line = reply != NULL ? strtok_r(reply->str, "\n", &rest) : NULL; line != NULL;
             line = strtok_r(NULL, "\n", &rest))
            fprintf(stderr, "#   %s\n", line);
        freeReplyObject(reply);
    }
}

bool test_cluster_settle(struct test_cluster *cluster)
{
    double until_s = now_s() + SETTLE_S;

    while (!agree(cluster)) {
        if (now_s() > until_s) {
            show_views(cluster);
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return true;
}

static bool look_at_any(struct test_cluster *cluster, struct test_cluster_view *view)
{
    for (size_t i = 0; i < cluster->nodes_len; i++) {
        if (runs(cluster, i) && test_cluster_look(cluster, i, view))
            return true;
    }
    return false;
}

size_t test_cluster_owner(struct test_cluster *cluster, unsigned slot)
{
    static struct test_cluster_view view;

    return look_at_any(cluster, &view) ? view.owner[slot] : TEST_CLUSTER_NODES;
}

size_t test_cluster_replica(struct test_cluster *cluster, size_t master)
{
    static struct test_cluster_view view;

    if (!look_at_any(cluster, &view))
        return TEST_CLUSTER_NODES;
    for (size_t i = 0; i < cluster->nodes_len; i++) {
        if (i != master && view.master_of[i] == master && runs(cluster, i))
            return i;
    }
    return TEST_CLUSTER_NODES;
}

int test_cluster_slot(struct test_cluster *cluster, const void *name, size_t len)
{
    const char *argv[] = {"CLUSTER", "KEYSLOT", name};
    const size_t lengths[] = {7, 7, len};
    redisReply *reply = test_server_call(cluster->nodes[0], 3, argv, lengths);
    int slot = reply != NULL && reply->type == REDIS_REPLY_INTEGER ? (int)reply->integer : -1;

    freeReplyObject(reply);
    return slot;
}

/* ---- Making one ----------------------------------------------------------------------------- */

/* All nodes that speak TLS have the certificates of the first, or they would not trust each other.
 */
static int write_tls(const struct test_cluster *cluster, char *config, size_t size)
{
    int len = snprintf(config, size, "tls-cluster yes\ntls-replication yes\n");

    if (cluster->nodes_len > 0) {
        const char *folder = cluster->nodes[0]->directory;

        len += snprintf(config + len, size - (size_t)len,
                        "tls-cert-file %s/server.pem\ntls-key-file %s/server.key\n"
                        "tls-ca-cert-file %s/ca.pem\n",
                        folder, folder, folder);
    }
    return len;
}

static void write_config(const struct test_cluster *cluster, char config[CONFIG_SIZE])
{
    const struct test_server_options *options = &cluster->options;
    int len = snprintf(config, CONFIG_SIZE,
                       "cluster-enabled yes\ncluster-node-timeout 1500\n"
                       "cluster-require-full-coverage no\ncluster-migration-barrier 99\n"
                       "repl-diskless-sync-delay 0\n");

    if (options->tls)
        len += write_tls(cluster, config + len, CONFIG_SIZE - (size_t)len);
    if (options->password != NULL)
        len +=
            snprintf(config + len, CONFIG_SIZE - (size_t)len, "masterauth %s\n", options->password);
    if (cluster->announced != NULL)
        len += snprintf(config + len, CONFIG_SIZE - (size_t)len, "cluster-announce-port %d\n",
                        cluster->announced[cluster->nodes_len]);
    if (options->config != NULL)
        snprintf(config + len, CONFIG_SIZE - (size_t)len, "%s\n", options->config);
}

/* Starts a node, which knows nobody but its identifier. */
static bool start_node(struct test_cluster *cluster)
{
    struct test_server_options options = cluster->options;
    size_t index = cluster->nodes_len;
    char config[CONFIG_SIZE];
    redisReply *reply;
    bool good;

    write_config(cluster, config);
    options.config = config;
    options.node = true;
    cluster->nodes[index] = test_server_start(&options);
    if (cluster->nodes[index] == NULL)
        return false;
    cluster->nodes_len++;
    reply = test_server_ask(cluster->nodes[index], "CLUSTER", "MYID", NULL);
    good = reply != NULL && reply->type == REDIS_REPLY_STRING &&
           reply->len == TEST_CLUSTER_ID_SIZE - 1;
    if (good)
        memcpy(cluster->ids[index], reply->str, TEST_CLUSTER_ID_SIZE);
    freeReplyObject(reply);
    return good;
}

/* The port by which nodes know each other is the one for TLS when they speak that. */
static bool introduce(struct test_cluster *cluster, size_t index)
{
    const struct test_server *node = cluster->nodes[index];
    char epoch[16], port[16];

    snprintf(epoch, sizeof epoch, "%zu", index + 1);
    snprintf(port, sizeof port, "%d", cluster->options.tls ? node->tls_port : node->port);
    if (!test_server_do(cluster->nodes[index], "CLUSTER", "SET-CONFIG-EPOCH", epoch, NULL))
        return false;
    return index == 0 ||
           test_server_do(cluster->nodes[0], "CLUSTER", "MEET", "127.0.0.1", port, NULL);
}

/* A third of the slots. */
static bool assign_slots(struct test_cluster *cluster, size_t index)
{
    static char texts[TEST_CLUSTER_SLOTS][12];
    const char *argv[WORDS_MAX] = {"CLUSTER", "ADDSLOTS"};
    unsigned first = TEST_CLUSTER_SLOTS * (unsigned)index / TEST_CLUSTER_MASTERS;
    unsigned last = TEST_CLUSTER_SLOTS * (unsigned)(index + 1) / TEST_CLUSTER_MASTERS;
    int argc = 2;
    redisReply *reply;
    bool good;

    for (unsigned slot = first; slot < last; slot++) {
        snprintf(texts[slot], sizeof texts[slot], "%u", slot);
        argv[argc++] = texts[slot];
    }
    reply = test_server_call(cluster->nodes[index], argc, argv, NULL);
    good = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return good;
}

/* It can be told to replicate only once it has heard of its master. */
static bool replicate(struct test_cluster *cluster, size_t index)
{
    const char *id = cluster->ids[index - TEST_CLUSTER_MASTERS];
    double until_s = now_s() + SETTLE_S;

    while (now_s() < until_s) {
        redisReply *reply =
            test_server_ask(cluster->nodes[index], "CLUSTER", "REPLICATE", id, NULL);
        bool good = reply != NULL && reply->type == REDIS_REPLY_STATUS;

        freeReplyObject(reply);
        if (good)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return false;
}

static bool make(struct test_cluster *cluster)
{
    size_t nodes = (size_t)(cluster->announced == NULL ? 2 : 1) * TEST_CLUSTER_MASTERS;

    for (size_t i = 0; i < nodes; i++) {
        if (!start_node(cluster) || !introduce(cluster, i))
            return false;
    }
    for (size_t i = 0; i < TEST_CLUSTER_MASTERS; i++) {
        if (!assign_slots(cluster, i))
            return false;
    }
    for (size_t i = TEST_CLUSTER_MASTERS; i < cluster->nodes_len; i++) {
        if (!replicate(cluster, i))
            return false;
    }
    return test_cluster_settle(cluster);
}

static struct test_cluster *start(const struct test_server_options *options, const int *announced)
{
    struct test_cluster *cluster = calloc(1, sizeof *cluster);

    if (cluster == NULL)
        return NULL;
    cluster->options = *options;
    cluster->announced = announced;
    if (make(cluster))
        return cluster;
    fprintf(stderr, "# %s: no cluster\n", test_server_name(options->kind));
    test_cluster_stop(cluster);
    return NULL;
}

struct test_cluster *test_cluster_start(const struct test_server_options *options)
{
    return start(options, NULL);
}

struct test_cluster *test_cluster_start_behind(const struct test_server_options *options,
                                               const int ports[TEST_CLUSTER_MASTERS])
{
    return start(options, ports);
}

void test_cluster_stop(struct test_cluster *cluster)
{
    if (cluster == NULL)
        return;
    for (size_t i = 0; i < cluster->nodes_len; i++)
        test_server_kill(cluster->nodes[i]); /* all at once: nobody takes over from anybody */
    for (size_t i = 0; i < cluster->nodes_len; i++)
        test_server_stop(cluster->nodes[i]);
    free(cluster);
}

/* A node that joins has slots moved to it, or replicates somebody. */
bool test_cluster_add(struct test_cluster *cluster)
{
    size_t index = cluster->nodes_len;

    return index < TEST_CLUSTER_NODES && start_node(cluster) && introduce(cluster, index) &&
           test_cluster_settle(cluster);
}

void test_cluster_url(const struct test_cluster *cluster, enum test_server_way way,
                      const char *query, char *url, size_t size)
{
    const struct test_server *const *nodes = (const struct test_server *const *)cluster->nodes;
    const char *password = nodes[0]->password;
    int len =
        snprintf(url, size, "%s://%s%s%s", way == TEST_BY_TLS ? "rediss+cluster" : "redis+cluster",
                 password[0] != '\0' ? ":" : "", password, password[0] != '\0' ? "@" : "");

    for (size_t i = 0; i < TEST_CLUSTER_MASTERS; i++)
        len += snprintf(url + len, size - (size_t)len, "%s127.0.0.1:%d", i > 0 ? "," : "",
                        way == TEST_BY_TLS ? nodes[i]->tls_port : nodes[i]->port);
    if (way == TEST_BY_TLS)
        len += snprintf(url + len, size - (size_t)len, "?ca=%s/ca.pem", nodes[0]->directory);
    if (query[0] != '\0')
        snprintf(url + len, size - (size_t)len, "%s%s", way == TEST_BY_TLS ? "&" : "?", query);
}
