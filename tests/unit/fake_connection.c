/* SPDX-License-Identifier: MIT */
/*
 * The functions of src/redis/connection.h for a server of the imagination. clock_gettime and the
 * wait for a condition are wrapped by the linker.
 */
#include "fake_connection.h"

#include "bell.h"

#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct rbk_transport {
    struct rbk_endpoint endpoint;
};

struct rbk_connection {
    char unused;
};

struct fake_server fake_server;

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;

/* From any thread, where cmocka's assertions would jump astray. */
static void require(bool condition)
{
    if (!condition)
        abort();
}

void fake_server_reset(void)
{
    double moved = fake_server.moved;

    memset(&fake_server, 0, sizeof fake_server);
    fake_server.moved = moved;
}

void fake_server_say(const char *command, enum rbk_reply_type type, const char *text)
{
    for (size_t i = 0; i < FAKE_ANSWERS; i++) {
        struct fake_answer *answer = &fake_server.answers[i];

        if (answer->command == NULL || strcmp(answer->command, command) == 0) {
            *answer = (struct fake_answer){command, type, text};
            return;
        }
    }
    fail_msg("too many answers");
}

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
    require(transport != NULL && deadline->set);
    (void)atomic_fetch_add(&fake_server.opened, 1);
    if (fake_server.open_takes > 0.0)
        fake_server.moved += fake_server.open_takes;
    if (fake_server.open_status != REDBUCKET_OK) {
        error->status = fake_server.open_status;
        snprintf(error->message, sizeof error->message, "not opened");
        return fake_server.open_status;
    }
    *connection = malloc(sizeof **connection);
    return REDBUCKET_OK;
}

void rbk_connection_close(struct rbk_connection *connection)
{
    if (connection != NULL)
        (void)atomic_fetch_add(&fake_server.closed, 1);
    free(connection);
}

void rbk_connection_rest(struct rbk_connection *connection)
{
    (void)connection;
    (void)atomic_fetch_add(&fake_server.rested, 1);
}

void rbk_connection_abandon(struct rbk_connection *connection)
{
    if (connection != NULL)
        (void)atomic_fetch_add(&fake_server.abandoned, 1);
}

bool rbk_connection_good(struct rbk_connection *connection)
{
    require(connection != NULL);
    return !fake_server.bad;
}

static void write_log(const struct rbk_command *command)
{
    char *log = fake_server.log;
    size_t room = sizeof fake_server.log;

    pthread_mutex_lock(&log_mutex);
    for (size_t i = 0; i < command->len; i++)
        snprintf(log + strlen(log), room - strlen(log), "%.*s ", (int)command->arguments[i].len,
                 (const char *)command->arguments[i].bytes);
    pthread_mutex_unlock(&log_mutex);
}

static struct rbk_reply reply_to(const char *command, size_t len)
{
    static const struct rbk_reply master = {.type = RBK_REPLY_STRING, .text = "master", .len = 6};
    static const char info[] = "redis_version:7.0.15\r\nrole:master\r\n";

    for (size_t i = 0; i < FAKE_ANSWERS && fake_server.answers[i].command != NULL; i++) {
        const struct fake_answer *answer = &fake_server.answers[i];

        if (strlen(answer->command) == len && memcmp(answer->command, command, len) == 0)
            return (struct rbk_reply){
                .type = answer->type, .text = answer->text, .len = strlen(answer->text)};
    }
    if (len == 4 && memcmp(command, "INFO", 4) == 0)
        return (struct rbk_reply){.type = RBK_REPLY_STRING, .text = info, .len = sizeof info - 1};
    if (len == 4 && memcmp(command, "ROLE", 4) == 0)
        return (struct rbk_reply){.type = RBK_REPLY_ARRAY, .len = 1, .elements = &master};
    return (struct rbk_reply){.type = RBK_REPLY_STATUS, .text = "OK", .len = 2};
}

enum redbucket_status rbk_connection_call(struct rbk_connection *connection,
                                          const struct rbk_command *commands, size_t commands_len,
                                          struct rbk_reply *replies,
                                          const struct rbk_deadline *deadline)
{
    require(connection != NULL && deadline->set);
    for (size_t i = 0; i < commands_len; i++) {
        write_log(&commands[i]);
        replies[i] = reply_to(commands[i].arguments[0].bytes, commands[i].arguments[0].len);
    }
    return fake_server.call_status;
}

void rbk_connections_call(struct rbk_exchange *exchanges, size_t len,
                          const struct rbk_deadline *deadline)
{
    for (size_t i = 0; i < len; i++)
        exchanges[i].status = rbk_connection_call(exchanges[i].connection, exchanges[i].commands,
                                                  exchanges[i].len, exchanges[i].replies, deadline);
}

const char *rbk_connection_failure(const struct rbk_connection *connection)
{
    require(connection != NULL);
    return fake_server.failure != NULL ? fake_server.failure : "went wrong";
}

/* ---- Time ----------------------------------------------------------------------------------- */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
bool __real_rbk_bell_await(struct rbk_bell *bell, pthread_mutex_t *mutex,
                           const struct rbk_deadline *deadline);
bool __wrap_rbk_bell_await(struct rbk_bell *bell, pthread_mutex_t *mutex,
                           const struct rbk_deadline *deadline);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int outcome = __real_clock_gettime(clock, now);

    now->tv_nsec += (long)((fake_server.moved - (double)(long)fake_server.moved) * 1e9);
    now->tv_sec += (long)fake_server.moved + now->tv_nsec / 1000000000;
    now->tv_nsec %= 1000000000;
    return outcome;
}

bool __wrap_rbk_bell_await(struct rbk_bell *bell, pthread_mutex_t *mutex,
                           const struct rbk_deadline *deadline)
{
    (void)atomic_fetch_add(&fake_server.waiting, 1);
    return __real_rbk_bell_await(bell, mutex, deadline) &&
           atomic_fetch_sub(&fake_server.late, 1) <= 0;
}
