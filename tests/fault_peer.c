/* SPDX-License-Identifier: MIT */
/*
 * Commands are read by hiredis' reader, since they have the form of a reply. What isn't a command
 * is counted as one of no name, once, and the rest of that connection passed over.
 */
#include "fault_peer.h"

#include "acceptor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#define NAMES_MAX  64
#define NAME_SIZE  32
#define BUFFER     16384
#define PATIENCE_S 30

static const struct test_rule unknown = {.answer = "-ERR unknown command\r\n"};

struct name {
    char text[NAME_SIZE];
    size_t count;
};

/* `used`, `names` and `total` are guarded by the mutex. */
struct test_peer {
    struct test_acceptor *acceptor;
    struct test_rule *rules; /* its own: a test that fails leaves it running */
    size_t rules_len;
    pthread_mutex_t mutex;
    pthread_cond_t counted;
    unsigned *used;
    struct name names[NAMES_MAX];
    size_t total;
};

/* ---- Rules ---------------------------------------------------------------------------------- */

static bool holds_for(const struct test_rule *rule, const char *command)
{
    /* What is said unasked answers nothing. */
    if (rule->command == NULL)
        return command[0] != '\0';
    return strcasecmp(rule->command, command) == 0;
}

/* The rule for a command, or "" on accepting; NULL when there is none. */
static const struct test_rule *rule_for(struct test_peer *peer, const char *command)
{
    const struct test_rule *found = NULL;

    pthread_mutex_lock(&peer->mutex);
    for (size_t i = 0; found == NULL && i < peer->rules_len; i++) {
        const struct test_rule *rule = &peer->rules[i];

        if (!holds_for(rule, command) || (rule->times != 0 && peer->used[i] == rule->times))
            continue;
        peer->used[i]++;
        found = rule;
    }
    pthread_mutex_unlock(&peer->mutex);
    return found;
}

static void count_command(struct test_peer *peer, const char *command)
{
    size_t i = 0;

    pthread_mutex_lock(&peer->mutex);
    while (i < NAMES_MAX - 1 && peer->names[i].count > 0 &&
           strcasecmp(peer->names[i].text, command) != 0)
        i++;
    snprintf(peer->names[i].text, NAME_SIZE, "%s", command);
    peer->names[i].count++;
    peer->total++;
    pthread_cond_broadcast(&peer->counted);
    pthread_mutex_unlock(&peer->mutex);
}

/* ---- A connection --------------------------------------------------------------------------- */

static void pause_us(unsigned us)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)(us / 1000000),
                                 .tv_nsec = (long)(us % 1000000) * 1000},
              NULL);
}

static bool send_bytewise(int fd, const char *bytes, size_t len, unsigned pause)
{
    for (size_t i = 0; i < len; i++) {
        pause_us(pause);
        if (!test_send_all(fd, bytes + i, 1))
            return false;
    }
    return true;
}

static void flood(int fd)
{
    char xs[BUFFER];

    memset(xs, 'x', sizeof xs);
    while (test_send_all(fd, xs, sizeof xs))
        continue;
}

/* What becomes of a connection after an answer. */
enum next { GO_ON, BE_SILENT, END, CRASH };

static enum next answer(int fd, const struct test_rule *rule)
{
    size_t len = rule->answer_len;
    bool sent;

    if (len == 0 && rule->answer != NULL)
        len = strlen(rule->answer);
    if (rule->manner == TEST_BYTEWISE) {
        sent = send_bytewise(fd, rule->answer, len, rule->pause_us);
    } else {
        pause_us(rule->pause_us);
        sent = test_send_all(fd, rule->answer, len);
    }
    if (!sent || rule->manner == TEST_CLOSE)
        return END;
    if (rule->manner == TEST_FLOOD)
        flood(fd);
    if (rule->manner == TEST_RESET)
        return CRASH;
    return rule->manner == TEST_SILENT ? BE_SILENT : GO_ON;
}

static enum next answer_by_rules(struct test_peer *peer, int fd, const char *command)
{
    const struct test_rule *rule = rule_for(peer, command);

    return answer(fd, rule != NULL ? rule : &unknown);
}

/* The name of a command as read; "?" when it has none. */
static void name_of(const redisReply *command, char name[NAME_SIZE])
{
    const redisReply *word = command->elements > 0 ? command->element[0] : NULL;
    bool named = word != NULL && word->type == REDIS_REPLY_STRING && word->len > 0;

    snprintf(name, NAME_SIZE, "%s", named ? word->str : "?");
}

/* Counts and answers all commands that are whole by now; a silent peer only counts. */
static enum next take_commands(struct test_peer *peer, int fd, redisReader *reader, enum next next)
{
    char name[NAME_SIZE];
    void *command = NULL;

    while (next <= BE_SILENT) {
        if (redisReaderGetReply(reader, &command) != REDIS_OK)
            snprintf(name, sizeof name, "?");
        else if (command == NULL)
            return next;
        else
            name_of(command, name);
        freeReplyObject(command);
        command = NULL;
        count_command(peer, name);
        if (next == GO_ON)
            next = answer_by_rules(peer, fd, name);
        if (reader->err)
            return next;
    }
    return next;
}

static bool serve(void *data, int fd)
{
    struct test_peer *peer = data;
    redisReader *reader = redisReaderCreate();
    const struct test_rule *unasked = rule_for(peer, "");
    enum next next = unasked != NULL ? answer(fd, unasked) : GO_ON;
    char bytes[BUFFER];
    ssize_t len;

    while (next <= BE_SILENT && (len = recv(fd, bytes, sizeof bytes, 0)) > 0) {
        if (reader->err)
            continue;
        redisReaderFeed(reader, bytes, (size_t)len);
        next = take_commands(peer, fd, reader, next);
    }
    redisReaderFree(reader);
    return next == CRASH;
}

/* ---- The peer ------------------------------------------------------------------------------- */

static void release(struct test_peer *peer)
{
    pthread_mutex_destroy(&peer->mutex);
    pthread_cond_destroy(&peer->counted);
    free(peer->used);
    free(peer->rules);
    free(peer);
}

struct test_peer *test_peer_start(bool by_port, const struct test_rule *rules, size_t rules_len)
{
    struct test_peer *peer = calloc(1, sizeof *peer);
    pthread_condattr_t monotonic;

    if (peer == NULL)
        return NULL;
    peer->rules_len = rules_len;
    peer->rules = calloc(rules_len + 1, sizeof peer->rules[0]);
    peer->used = calloc(rules_len + 1, sizeof peer->used[0]);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&peer->counted, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&peer->mutex, NULL);
    if (peer->rules != NULL && peer->used != NULL) {
        if (rules_len > 0)
            memcpy(peer->rules, rules, rules_len * sizeof rules[0]);
        peer->acceptor = test_acceptor_start(by_port, serve, peer);
    }
    if (peer->acceptor != NULL)
        return peer;
    release(peer);
    return NULL;
}

void test_peer_stop(struct test_peer *peer)
{
    if (peer == NULL)
        return;
    test_acceptor_stop(peer->acceptor);
    release(peer);
}

void test_peer_url(const struct test_peer *peer, const char *query, char *url, size_t size)
{
    const char *mark = query[0] != '\0' ? "?" : "";

    if (test_peer_port(peer) != 0)
        snprintf(url, size, "redis://127.0.0.1:%d%s%s", test_peer_port(peer), mark, query);
    else
        snprintf(url, size, "unix://%s%s%s", test_peer_path(peer), mark, query);
}

int test_peer_port(const struct test_peer *peer)
{
    return test_acceptor_port(peer->acceptor);
}

const char *test_peer_path(const struct test_peer *peer)
{
    return test_acceptor_path(peer->acceptor);
}

size_t test_peer_connections(struct test_peer *peer)
{
    return test_acceptor_count(peer->acceptor);
}

size_t test_peer_open(struct test_peer *peer)
{
    return test_acceptor_open(peer->acceptor);
}

static size_t counted_locked(const struct test_peer *peer, const char *command)
{
    if (command == NULL)
        return peer->total;
    for (size_t i = 0; i < NAMES_MAX && peer->names[i].count > 0; i++) {
        if (strcasecmp(peer->names[i].text, command) == 0)
            return peer->names[i].count;
    }
    return 0;
}

size_t test_peer_commands(struct test_peer *peer, const char *command)
{
    size_t counted;

    pthread_mutex_lock(&peer->mutex);
    counted = counted_locked(peer, command);
    pthread_mutex_unlock(&peer->mutex);
    return counted;
}

bool test_peer_await(struct test_peer *peer, const char *command, size_t count)
{
    struct timespec until;
    int late = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&peer->mutex);
    while (counted_locked(peer, command) < count && late == 0)
        late = pthread_cond_timedwait(&peer->counted, &peer->mutex, &until);
    pthread_mutex_unlock(&peer->mutex);
    return late == 0;
}

char *test_nesting(size_t depth)
{
    static const char one[] = "*1\r\n";
    size_t len = strlen(one);
    char *text = malloc(depth * len + sizeof ":1\r\n");

    if (text == NULL)
        abort();
    for (size_t i = 0; i < depth; i++)
        memcpy(text + i * len, one, len);
    memcpy(text + depth * len, ":1\r\n", sizeof ":1\r\n");
    return text;
}
