/* SPDX-License-Identifier: MIT */
/*
 * A bucket's level is the number at the end of its key, so that an answer shows whose it is.
 * clock_gettime and the wait for a condition are wrapped by the linker.
 */
#include "fake_nodes.h"

#include "bell.h"

#include "error.h"
#include "wire/call.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REPLIES 256
#define RANGES  16

struct rbk_transport {
    struct rbk_endpoint endpoint;
};

struct rbk_connection {
    struct fake_node *node;
};

struct fake_nodes fake_nodes;

void fake_nodes_reset(void)
{
    memset(&fake_nodes, 0, sizeof fake_nodes);
    fake_nodes.now = 1000.0;
}

struct fake_node *fake_node(const char *where)
{
    for (size_t i = 0; i < FAKE_NODES_MAX; i++) {
        struct fake_node *node = &fake_nodes.nodes[i];

        if (node->where == NULL)
            node->where = where;
        if (strcmp(node->where, where) == 0)
            return node;
    }
    abort();
}

__attribute__((format(printf, 3, 4))) static void note(char *log, size_t size, const char *format,
                                                       ...)
{
    size_t len = strlen(log);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(log + len, size - len, format, arguments);
    va_end(arguments);
}

#define NOTE(...) note(fake_nodes.log, sizeof fake_nodes.log, __VA_ARGS__)

/* ---- Connections ----------------------------------------------------------------------------- */

enum redbucket_status rbk_transport_create(const struct rbk_endpoint *endpoint, struct rbk_tls *tls,
                                           struct rbk_transport **transport,
                                           struct redbucket_error *error)
{
    (void)tls;
    (void)error;
    *transport = malloc(sizeof **transport);
    (*transport)->endpoint = *endpoint;
    return REDBUCKET_OK;
}

void rbk_transport_destroy(struct rbk_transport *transport)
{
    free(transport);
}

const struct rbk_endpoint *rbk_transport_endpoint(const struct rbk_transport *transport)
{
    return &transport->endpoint;
}

enum redbucket_status rbk_connection_open(struct rbk_transport *transport,
                                          const struct rbk_deadline *deadline,
                                          struct rbk_connection **connection,
                                          struct redbucket_error *error)
{
    const char *where = transport->endpoint.where;
    struct fake_node *node = fake_node(where);
    double left = rbk_deadline_left(deadline);
    enum redbucket_status status = node->open;

    note(fake_nodes.opens, sizeof fake_nodes.opens, "%s ", where);
    *connection = NULL;
    if (node->slow > left)
        status = REDBUCKET_ERROR_TIMEOUT;
    fake_nodes.now += status == REDBUCKET_ERROR_TIMEOUT ? left : node->slow;
    if (status != REDBUCKET_OK)
        return rbk_fail(error, status, -1, "%s: not opened", where);
    fake_nodes.opened++;
    *connection = malloc(sizeof **connection);
    (*connection)->node = node;
    return REDBUCKET_OK;
}

void rbk_connection_close(struct rbk_connection *connection)
{
    fake_nodes.closed += connection != NULL;
    free(connection);
}

void rbk_connection_rest(struct rbk_connection *connection)
{
    (void)connection;
}

void rbk_connection_abandon(struct rbk_connection *connection)
{
    (void)connection;
}

bool rbk_connection_good(struct rbk_connection *connection)
{
    return connection->node->open == REDBUCKET_OK;
}

const char *rbk_connection_failure(const struct rbk_connection *connection)
{
    (void)connection;
    return "went wrong";
}

/* ---- What they say ----------------------------------------------------------------------------
 */

static struct rbk_reply reply_text(enum rbk_reply_type type, const char *text)
{
    return (struct rbk_reply){.type = type, .text = text, .len = strlen(text)};
}

static struct rbk_reply reply_number(long long number)
{
    return (struct rbk_reply){.type = RBK_REPLY_INTEGER, .integer = number};
}

/* Lives until the map is asked for again. */
static struct rbk_reply reply_slots(const char *text)
{
    static struct rbk_reply ranges[RANGES], elements[RANGES][3], node[RANGES][2];
    static char hosts[RANGES][32];
    size_t len = 0;

    if (text == NULL)
        return reply_text(RBK_REPLY_ERROR, "ERR This instance has cluster support disabled");
    for (; text != NULL && len < RANGES; text = strchr(text, ',')) {
        int first, last, port;

        text += *text == ',';
        if (sscanf(text, "%d-%d %31[^:]:%d", &first, &last, hosts[len], &port) != 4)
            abort();
        node[len][0] = reply_text(RBK_REPLY_STRING, hosts[len]);
        node[len][1] = reply_number(port);
        elements[len][0] = reply_number(first);
        elements[len][1] = reply_number(last);
        elements[len][2] =
            (struct rbk_reply){.type = RBK_REPLY_ARRAY, .len = 2, .elements = node[len]};
        ranges[len] =
            (struct rbk_reply){.type = RBK_REPLY_ARRAY, .len = 3, .elements = elements[len]};
        len++;
    }
    return (struct rbk_reply){.type = RBK_REPLY_ARRAY, .len = len, .elements = ranges};
}

/* How many requests there are in what was packed for the script. */
static size_t count_requests(const struct rbk_argument *packed)
{
    const unsigned char *bytes = packed->bytes;
    size_t count = 0;

    for (size_t at = RBK_CALL_HEAD_SIZE; at < packed->len;) {
        count += bytes[at];
        at += RBK_CALL_REQUEST_SIZE + bytes[at + 2] * RBK_CALL_CLAIM_SIZE;
    }
    return count;
}

static double level_of(const struct rbk_argument *key)
{
    const char *name = key->bytes;
    size_t at = key->len;

    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    double level = 0.0;

    for (; at < key->len; at++)
        level = level * 10 + (name[at] - '0');
    return level;
}

static void note_script(const struct rbk_command *command, size_t keys)
{
    static const char *const operations[] = {"take", "peek", "refund", "charge", "reset", "give"};
    const unsigned char *packed = command->arguments[3 + keys].bytes;

    NOTE("%s %s", (const char *)command->arguments[0].bytes,
         operations[packed[RBK_CALL_HEAD_SIZE + 1]]);
    for (size_t i = 0; i < keys; i++)
        NOTE(" %.0f", level_of(&command->arguments[3 + i]));
    NOTE("; ");
}

/* Everything is accepted. */
static struct rbk_reply reply_done(const struct rbk_command *command, size_t keys)
{
    static unsigned char memory[REPLIES][1024];
    static unsigned turn;
    unsigned char *bytes = memory[turn++ % REPLIES];
    size_t requests = count_requests(&command->arguments[3 + keys]);
    unsigned char *at = bytes + 8 + requests;

    rbk_double_write(fake_nodes.now, bytes);
    memset(bytes + 8, 1, requests);
    for (size_t i = 0; i < keys; i++, at += 16) {
        rbk_double_write(fake_nodes.now, at);
        rbk_double_write(level_of(&command->arguments[3 + i]), at + 8);
    }
    return (struct rbk_reply){
        .type = RBK_REPLY_STRING, .text = (char *)bytes, .len = (size_t)(at - bytes)};
}

static enum redbucket_status run(struct fake_node *node, const struct rbk_command *command,
                                 struct rbk_reply *reply)
{
    size_t keys = strtoul(command->arguments[2].bytes, NULL, 10);
    const char *says = node->said < FAKE_SAYS_MAX ? node->says[node->said++] : NULL;

    note_script(command, keys);
    if (says == NULL)
        *reply = reply_done(command, keys);
    else if (strcmp(says, FAKE_SILENT) == 0)
        return REDBUCKET_ERROR_TIMEOUT;
    else if (strcmp(says, FAKE_BREAKS) == 0)
        return REDBUCKET_ERROR_IO;
    else if (strcmp(says, FAKE_GARBAGE) == 0)
        *reply = reply_text(RBK_REPLY_STRING, "what?");
    else
        *reply = reply_text(RBK_REPLY_ERROR, says);
    return REDBUCKET_OK;
}

static bool is(const struct rbk_argument *word, const char *text)
{
    return word->len == strlen(text) && memcmp(word->bytes, text, word->len) == 0;
}

static enum redbucket_status answer(struct fake_node *node, const struct rbk_command *command,
                                    struct rbk_reply *reply)
{
    const struct rbk_argument *word = &command->arguments[0];

    *reply = reply_text(RBK_REPLY_STATUS, "OK");
    if (is(word, "INFO")) {
        *reply = reply_text(RBK_REPLY_STRING, "redis_version:7.0.15\r\n");
    } else if (is(word, "ROLE")) {
        *reply = reply_text(RBK_REPLY_ERROR, "NOPERM no");
    } else {
        NOTE("%s ", node->where);
        if (is(word, "EVALSHA") || is(word, "EVAL"))
            return run(node, command, reply);
        NOTE("%s; ", is(word, "CLUSTER") ? "SLOTS" : (const char *)word->bytes);
        if (is(word, "CLUSTER"))
            *reply = reply_slots(node->slots);
    }
    return REDBUCKET_OK;
}

enum redbucket_status rbk_connection_call(struct rbk_connection *connection,
                                          const struct rbk_command *commands, size_t commands_len,
                                          struct rbk_reply *replies,
                                          const struct rbk_deadline *deadline)
{
    struct fake_node *node = connection->node;
    enum redbucket_status status = REDBUCKET_OK;

    if (node->unsent) {
        node->unsent = false;
        return REDBUCKET_ERROR_UNAVAILABLE;
    }
    for (size_t i = 0; i < commands_len; i++) {
        enum redbucket_status one = answer(node, &commands[i], &replies[i]);

        status = status == REDBUCKET_OK ? one : status;
    }
    if (status == REDBUCKET_ERROR_TIMEOUT)
        fake_nodes.now += rbk_deadline_left(deadline);
    return status;
}

void rbk_connections_call(struct rbk_exchange *exchanges, size_t len,
                          const struct rbk_deadline *deadline)
{
    for (size_t i = 0; i < len; i++)
        exchanges[i].status = rbk_connection_call(exchanges[i].connection, exchanges[i].commands,
                                                  exchanges[i].len, exchanges[i].replies, deadline);
}

/* ---- Time -------------------------------------------------------------------------------------
 */

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
bool __wrap_rbk_bell_await(struct rbk_bell *bell, pthread_mutex_t *mutex,
                           const struct rbk_deadline *deadline);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    now->tv_sec = (time_t)fake_nodes.now;
    now->tv_nsec = (long)((fake_nodes.now - (double)now->tv_sec) * 1e9);
    return 0;
}

/* Nobody else is there who could give anything back. */
bool __wrap_rbk_bell_await(struct rbk_bell *bell, pthread_mutex_t *mutex,
                           const struct rbk_deadline *deadline)
{
    double end = (double)deadline->at.tv_sec + (double)(deadline->at.tv_nsec + 1) * 1e-9;

    (void)bell;
    (void)mutex;
    if (end > fake_nodes.now)
        fake_nodes.now = end;
    return false;
}
