/* SPDX-License-Identifier: MIT */
/*
 * clock_gettime and the wait for a condition are wrapped by the linker.
 */
#include "fake_hosts.h"

#include "bell.h"

#include "error.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct rbk_transport {
    struct rbk_endpoint endpoint;
};

struct rbk_connection {
    struct fake_host *host;
};

struct fake_hosts fake_hosts;

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;

void fake_hosts_reset(void)
{
    memset(&fake_hosts, 0, sizeof fake_hosts);
    fake_hosts.now = 1000.0;
}

char *fake_hosts_take_log(void)
{
    char *log;

    pthread_mutex_lock(&log_mutex);
    log = strdup(fake_hosts.log);
    fake_hosts.log[0] = '\0';
    pthread_mutex_unlock(&log_mutex);
    return log;
}

static struct fake_host *put(const char *where)
{
    for (size_t i = 0; i < FAKE_HOSTS_MAX; i++) {
        struct fake_host *host = &fake_hosts.hosts[i];

        if (host->where == NULL || strcmp(host->where, where) == 0) {
            memset(host, 0, sizeof *host);
            host->where = where;
            return host;
        }
    }
    abort();
}

struct fake_host *fake_sentinel(const char *where, const char *named)
{
    struct fake_host *host = put(where);

    host->named = named;
    return host;
}

struct fake_host *fake_server(const char *where, const char *role)
{
    struct fake_host *host = put(where);

    host->role = role;
    return host;
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

static struct fake_host *find(const char *where)
{
    for (size_t i = 0; i < FAKE_HOSTS_MAX; i++) {
        if (fake_hosts.hosts[i].where != NULL && strcmp(fake_hosts.hosts[i].where, where) == 0)
            return &fake_hosts.hosts[i];
    }
    abort(); /* nobody is to go elsewhere */
}

__attribute__((format(printf, 3, 4))) static void note(char *log, size_t size, const char *format,
                                                       ...)
{
    va_list arguments;
    size_t len;

    pthread_mutex_lock(&log_mutex);
    len = strlen(log);
    va_start(arguments, format);
    vsnprintf(log + len, size - len, format, arguments);
    va_end(arguments);
    pthread_mutex_unlock(&log_mutex);
}

static void wait_in_vain(enum redbucket_status status, const struct rbk_deadline *deadline)
{
    if (status == REDBUCKET_ERROR_TIMEOUT)
        fake_hosts.now = fake_hosts.now + rbk_deadline_left(deadline);
}

enum redbucket_status rbk_connection_open(struct rbk_transport *transport,
                                          const struct rbk_deadline *deadline,
                                          struct rbk_connection **connection,
                                          struct redbucket_error *error)
{
    const char *where = transport->endpoint.where;
    struct fake_host *host = find(where);

    note(fake_hosts.log, sizeof fake_hosts.log, "%s %.0f ", where,
         rbk_deadline_left(deadline) * 1e3);
    *connection = NULL;
    while (atomic_load(&host->held))
        sched_yield();
    wait_in_vain(host->open, deadline);
    if (host->open != REDBUCKET_OK)
        return rbk_fail(error, host->open, -1, "%s: not opened", where);
    (void)atomic_fetch_add(&fake_hosts.opened, 1);
    *connection = malloc(sizeof **connection);
    (*connection)->host = host;
    return REDBUCKET_OK;
}

void rbk_connection_close(struct rbk_connection *connection)
{
    if (connection != NULL)
        (void)atomic_fetch_add(&fake_hosts.closed, 1);
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
    return connection->host->open == REDBUCKET_OK && !connection->host->spoken;
}

const char *rbk_connection_failure(const struct rbk_connection *connection)
{
    (void)connection;
    return "went wrong";
}

/* ---- What they say -------------------------------------------------------------------------- */

static struct rbk_reply reply_text(enum rbk_reply_type type, const char *text)
{
    return (struct rbk_reply){.type = type, .text = text, .len = strlen(text)};
}

/* An array that lives as long as this thread doesn't ask for another. */
static struct rbk_reply reply_words(const char *first, const char *second)
{
    static _Thread_local struct rbk_reply elements[2];

    elements[0] = reply_text(RBK_REPLY_STRING, first);
    if (second != NULL)
        elements[1] = reply_text(RBK_REPLY_STRING, second);
    return (struct rbk_reply){
        .type = RBK_REPLY_ARRAY, .len = second != NULL ? 2 : 1, .elements = elements};
}

static struct rbk_reply name_master(const struct fake_host *host)
{
    static _Thread_local char words[128];
    char *space;

    if (host->answer != NULL)
        return *host->answer;
    if (host->role != NULL)
        return reply_text(RBK_REPLY_ERROR, "ERR unknown command 'SENTINEL'");
    if (host->named == NULL)
        return (struct rbk_reply){.type = RBK_REPLY_NIL};
    snprintf(words, sizeof words, "%s", host->named);
    space = strchr(words, ' ');
    *space = '\0';
    return reply_words(words, space + 1);
}

static struct rbk_reply reply_to(const struct fake_host *host, const char *command, size_t len)
{
    if (len == 8 && memcmp(command, "SENTINEL", 8) == 0)
        return name_master(host);
    if (len == 4 && memcmp(command, "AUTH", 4) == 0 && host->auth != NULL)
        return reply_text(RBK_REPLY_ERROR, host->auth);
    if (len == 9 && memcmp(command, "SUBSCRIBE", 9) == 0)
        return host->shy ? reply_text(RBK_REPLY_ERROR, "NOPERM no")
                         : (struct rbk_reply){.type = RBK_REPLY_ARRAY, .len = 0};
    if (len == 4 && memcmp(command, "INFO", 4) == 0)
        return reply_text(RBK_REPLY_STRING, "redis_version:7.0.15\r\n");
    if (len == 4 && memcmp(command, "ROLE", 4) == 0)
        return reply_words(host->role == NULL ? "sentinel" : host->role, NULL);
    return reply_text(RBK_REPLY_STATUS, "OK");
}

enum redbucket_status rbk_connection_call(struct rbk_connection *connection,
                                          const struct rbk_command *commands, size_t commands_len,
                                          struct rbk_reply *replies,
                                          const struct rbk_deadline *deadline)
{
    const struct fake_host *host = connection->host;

    for (size_t i = 0; i < commands_len; i++) {
        const struct rbk_argument *words = commands[i].arguments;

        for (size_t j = 0; j < commands[i].len; j++)
            note(fake_hosts.said, sizeof fake_hosts.said, "%.*s ", (int)words[j].len,
                 (const char *)words[j].bytes);
        replies[i] = reply_to(host, words[0].bytes, words[0].len);
    }
    wait_in_vain(host->call, deadline);
    return host->call;
}

/* ---- Time ----------------------------------------------------------------------------------- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
bool __real_rbk_bell_await(struct rbk_bell *bell, pthread_mutex_t *mutex,
                           const struct rbk_deadline *deadline);
bool __wrap_rbk_bell_await(struct rbk_bell *bell, pthread_mutex_t *mutex,
                           const struct rbk_deadline *deadline);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    double time = fake_hosts.now;

    (void)clock;
    now->tv_sec = (time_t)time;
    now->tv_nsec = (long)((time - (double)now->tv_sec) * 1e9);
    return 0;
}

/* Until it is told: nobody in here waits for time to pass. */
bool __wrap_rbk_bell_await(struct rbk_bell *bell, pthread_mutex_t *mutex,
                           const struct rbk_deadline *deadline)
{
    const struct rbk_deadline never = {.set = true, .at.tv_sec = INT_MAX};

    (void)deadline;
    (void)atomic_fetch_add(&fake_hosts.waiting, 1);
    return __real_rbk_bell_await(bell, mutex, &never);
}
