/* SPDX-License-Identifier: MIT */
/*
 * Lending connections. Connecting happens outside the lock, on a peer that is lent already.
 */
#include "redis/pool.h"

#include "fork_page.h"
#include "redis/handshake.h"
#include "redis/master.h"
#include "wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* xorshift64*: good enough to spread retries. */
static uint32_t random_locked(struct rbk_pool *pool)
{
    pool->random ^= pool->random >> 12;
    pool->random ^= pool->random << 25;
    pool->random ^= pool->random >> 27;
    return (uint32_t)(pool->random * 2685821657736338717u >> 32);
}

/* In a child: all its parent's connections are gone, and nobody has borrowed any. */
static void begin_anew(struct rbk_pool *pool)
{
    for (unsigned i = 0; i < pool->options->connections; i++) {
        struct rbk_peer *peer = &pool->peers[i];

        /* What another thread was using at the moment of the fork may be in pieces: only its
         * descriptor is closed, its memory left behind. */
        if (peer->lent) {
            rbk_connection_abandon(peer->connection);
            rbk_call_init(&peer->call, &pool->options->key_format, pool->options->codec);
            peer->more = NULL;
        } else {
            rbk_connection_close(peer->connection);
        }
        peer->connection = NULL;
        peer->lent = false;
        peer->probe = RBK_CIRCUIT_NO_PROBE;
    }
    pool->circuit = (struct rbk_circuit){.open = false};
    pool->last = (struct redbucket_error){.position = -1}; /* may be half written as well */
    pool->told = false;
    pool->telling = false;
    /* A child must not draw the numbers that its parent draws. */
    (void)getrandom(&pool->random, sizeof pool->random, GRND_NONBLOCK);
    pool->random |= 1;
    pool->live->here = true;
}

static void lock(struct rbk_pool *pool)
{
    (void)pthread_mutex_lock(&pool->live->mutex);
    if (!pool->live->here)
        begin_anew(pool);
}

static void unlock(struct rbk_pool *pool)
{
    (void)pthread_mutex_unlock(&pool->live->mutex);
}

enum redbucket_status rbk_pool_init(struct rbk_pool *pool, const struct rbk_pool_config *config,
                                    struct redbucket_error *error)
{
    const struct rbk_redis_options *options = config->options;
    enum redbucket_status status =
        rbk_fork_page_map(sizeof *pool->live, (void **)&pool->live, error);

    if (status != REDBUCKET_OK)
        return status;
    pool->options = options;
    pool->store = config->store;
    pool->master = config->master;
    if (config->master == NULL)
        status = rbk_transport_create(config->endpoint, config->tls, &pool->transport, error);
    if (status != REDBUCKET_OK)
        return status;
    pool->peers = calloc(options->connections, sizeof pool->peers[0]);
    if (pool->peers == NULL)
        return rbk_fail_system(error, ENOMEM, "redis: connections");
    for (unsigned i = 0; i < options->connections; i++)
        rbk_call_init(&pool->peers[i].call, &options->key_format, options->codec);
    lock(pool);
    unlock(pool);
    return REDBUCKET_OK;
}

void rbk_pool_fini(struct rbk_pool *pool)
{
    if (pool->peers != NULL) {
        lock(pool);
        for (unsigned i = 0; i < pool->options->connections; i++) {
            rbk_connection_close(pool->peers[i].connection);
            rbk_call_fini(&pool->peers[i].call);
            for (int j = 0; j < RBK_CALLS_MAX - 1 && pool->peers[i].more != NULL; j++)
                rbk_call_fini(&pool->peers[i].more[j]);
            free(pool->peers[i].more);
        }
        unlock(pool);
    }
    free(pool->peers);
    rbk_transport_destroy(pool->transport);
    rbk_fork_page_unmap(pool->live, sizeof *pool->live);
}

/* An idle peer, a connected one before one that isn't; NULL when all are lent. */
static struct rbk_peer *idle_locked(struct rbk_pool *pool)
{
    struct rbk_peer *idle = NULL;

    for (unsigned i = 0; i < pool->options->connections; i++) {
        struct rbk_peer *peer = &pool->peers[i];

        if (peer->lent)
            continue;
        if (peer->connection != NULL)
            return peer;
        if (idle == NULL)
            idle = peer;
    }
    return idle;
}

/* Only who needs it reads the clock. */
static bool admit_locked(struct rbk_pool *pool, unsigned *probe)
{
    return rbk_circuit_admit(&pool->circuit, pool->circuit.open ? rbk_monotonic_now() : 0.0, probe);
}

static enum redbucket_status
borrow_locked(struct rbk_pool *pool, const struct rbk_deadline *deadline, struct rbk_peer **peer)
{
    unsigned probe;

    while (admit_locked(pool, &probe)) {
        *peer = idle_locked(pool);
        if (*peer != NULL) {
            (*peer)->lent = true;
            (*peer)->probe = probe;
            return REDBUCKET_OK;
        }
        rbk_circuit_leave(&pool->circuit, probe);
        if (!rbk_bell_await(&pool->live->returned, &pool->live->mutex, deadline)) {
            /* It may have been told at the last moment; then that was for somebody else. */
            rbk_bell_ring(&pool->live->returned);
            return REDBUCKET_ERROR_TIMEOUT;
        }
    }
    /* Whoever else waits for a connection is to be refused as well, not left waiting. */
    rbk_bell_ring(&pool->live->returned);
    return REDBUCKET_ERROR_UNAVAILABLE;
}

static const char no_time[] = "no time was left to ask the server";

/* What is sent without time for an answer may be counted, and nobody would know. */
static enum redbucket_status put_back(struct rbk_pool *pool, struct rbk_peer *peer)
{
    lock(pool);
    rbk_circuit_leave(&pool->circuit, peer->probe);
    peer->lent = false;
    rbk_bell_ring(&pool->live->returned);
    unlock(pool);
    rbk_pool_note(pool, REDBUCKET_ERROR_TIMEOUT, no_time);
    return REDBUCKET_ERROR_TIMEOUT;
}

/* An idle connection that has ended may be the first sign of a master that has moved. */
static bool is_good(struct rbk_pool *pool, struct rbk_peer *peer)
{
    if (pool->master != NULL && !rbk_master_is_current(pool->master, peer))
        return false;
    if (rbk_connection_good(peer->connection))
        return true;
    if (pool->master != NULL)
        rbk_master_lost(pool->master, peer);
    return false;
}

static enum redbucket_status connect_peer(struct rbk_pool *pool,
                                          const struct rbk_deadline *deadline,
                                          struct rbk_peer *peer, struct redbucket_error *error)
{
    return pool->master != NULL
               ? rbk_master_connect(pool->master, deadline, peer, error)
               : rbk_handshake(pool->options, pool->transport, deadline, peer, error);
}

enum redbucket_status rbk_pool_take(struct rbk_pool *pool, const struct rbk_deadline *deadline,
                                    struct rbk_peer **taken)
{
    return rbk_pool_take_by(pool, deadline, deadline, taken);
}

enum redbucket_status rbk_pool_take_by(struct rbk_pool *pool, const struct rbk_deadline *deadline,
                                       const struct rbk_deadline *ready, struct rbk_peer **taken)
{
    struct rbk_peer *peer = NULL;
    struct redbucket_error error = {.message = ""};

    lock(pool);
    enum redbucket_status status = borrow_locked(pool, ready, &peer);

    unlock(pool);
    if (status == REDBUCKET_ERROR_TIMEOUT)
        rbk_pool_note(pool, status, "no connection came free in time");
    if (status != REDBUCKET_OK)
        return status;
    double left = rbk_deadline_left(deadline);

    if (left <= 0.0)
        return put_back(pool, peer);
    peer->hurried = left < pool->options->timeout / 2;
    if (pool->master != NULL)
        rbk_master_look(pool->master, deadline);
    if (peer->connection != NULL && !is_good(pool, peer))
        rbk_hang_up(peer);
    if (peer->connection == NULL) {
        status = connect_peer(pool, ready, peer, &error);
        if (status != REDBUCKET_OK) {
            rbk_pool_note(pool, status, error.message);
            rbk_pool_give(pool, peer, status, false);
            return status;
        }
        /* Another will have use for it. */
        if (rbk_deadline_left(deadline) <= 0.0) {
            rbk_pool_note(pool, REDBUCKET_ERROR_TIMEOUT, no_time);
            rbk_pool_give(pool, peer, REDBUCKET_ERROR_TIMEOUT, true);
            return REDBUCKET_ERROR_TIMEOUT;
        }
    }
    *taken = peer;
    return REDBUCKET_OK;
}

/* The failures that say something of the server, not of one call. */
static bool server_is_down(enum redbucket_status status, const struct rbk_peer *peer)
{
    switch (status) {
    case REDBUCKET_ERROR_TIMEOUT:
        return !peer->hurried;
    case REDBUCKET_ERROR_UNAVAILABLE:
    case REDBUCKET_ERROR_READONLY:
        return true;
    case REDBUCKET_OK:
    case REDBUCKET_ERROR_MEMORY:
    case REDBUCKET_ERROR_SYSTEM: /* no descriptor, no thread: this process's own shortage */
        return false;
    default:
        return peer->connection == NULL;
    }
}

/* ---- Events --------------------------------------------------------------------------------- */

struct news {
    enum redbucket_event event;
    char message[sizeof((struct redbucket_error *)NULL)->message];
};

/* What the host has to be told. One thread tells at a time, so that the last thing it hears is how
 * it is; whatever comes meanwhile is that thread's to tell afterwards. */
static bool has_news_locked(struct rbk_pool *pool, struct news *news)
{
    const char *message = "the server answers again";

    if (pool->store == NULL || pool->telling || pool->told == pool->circuit.open)
        return false;
    if (pool->circuit.open)
        message = pool->last.status == pool->down ? pool->last.message
                                                  : redbucket_status_text(pool->down);
    news->event = pool->circuit.open ? REDBUCKET_EVENT_DOWN : REDBUCKET_EVENT_BACK;
    (void)snprintf(news->message, sizeof news->message, "%s", message);
    pool->told = pool->circuit.open;
    pool->telling = true;
    return true;
}

static void tell(struct rbk_pool *pool, struct news *news)
{
    bool more = true;

    while (more) {
        rbk_store_tell(pool->store, news->event, news->message);
        lock(pool);
        pool->telling = false;
        more = has_news_locked(pool, news);
        unlock(pool);
    }
}

/* ---- Back ----------------------------------------------------------------------------------- */

static void judge_locked(struct rbk_pool *pool, const struct rbk_peer *peer,
                         enum redbucket_status status, bool down, bool usable)
{
    if (down && !pool->circuit.open)
        pool->down = status;
    if (down)
        rbk_circuit_fail(&pool->circuit, peer->probe, rbk_monotonic_now(), random_locked(pool));
    else if (usable)
        rbk_circuit_succeed(&pool->circuit);
    else
        rbk_circuit_leave(&pool->circuit, peer->probe);
}

/* What has gone silent on one connection, or turned out to be a replica, is likely to be so on
 * those that were made to the same place before; and whoever tried them one after the other would
 * find that out as often. */
static void drop_idle_locked(struct rbk_pool *pool)
{
    for (unsigned i = 0; i < pool->options->connections; i++) {
        if (!pool->peers[i].lent)
            rbk_hang_up(&pool->peers[i]);
    }
}

void rbk_pool_give(struct rbk_pool *pool, struct rbk_peer *peer, enum redbucket_status status,
                   bool usable)
{
    bool down = !rbk_wait_is_over() && server_is_down(status, peer);
    struct news news;

    if (pool->master != NULL && (down || status == REDBUCKET_ERROR_IO))
        rbk_master_lost(pool->master, peer);
    if (!usable)
        rbk_hang_up(peer);
    if (peer->connection != NULL)
        rbk_connection_rest(peer->connection);
    lock(pool);
    judge_locked(pool, peer, status, down, usable);
    if (down && (status == REDBUCKET_ERROR_TIMEOUT || status == REDBUCKET_ERROR_READONLY))
        drop_idle_locked(pool);
    peer->lent = false;
    rbk_bell_ring(&pool->live->returned);
    bool has_news = has_news_locked(pool, &news);

    unlock(pool);
    if (has_news)
        tell(pool, &news);
}

bool rbk_pool_is_up(struct rbk_pool *pool)
{
    lock(pool);
    bool up = !pool->circuit.open;

    unlock(pool);
    return up;
}

void rbk_pool_note(struct rbk_pool *pool, enum redbucket_status status, const char *message)
{
    lock(pool);
    rbk_error_set(&pool->last, status, -1, "%s", message);
    unlock(pool);
}

void rbk_pool_last(struct rbk_pool *pool, struct redbucket_error *error)
{
    lock(pool);
    *error = pool->last;
    unlock(pool);
}

struct rbk_call *rbk_peer_call(const struct rbk_pool *pool, struct rbk_peer *peer, size_t number)
{
    if (number == 0)
        return &peer->call;
    if (peer->more == NULL) {
        peer->more = calloc(RBK_CALLS_MAX - 1, sizeof peer->more[0]);
        for (int i = 0; i < RBK_CALLS_MAX - 1 && peer->more != NULL; i++)
            rbk_call_init(&peer->more[i], &pool->options->key_format, pool->options->codec);
    }
    return peer->more == NULL ? NULL : &peer->more[number - 1];
}

uint32_t rbk_pool_random(struct rbk_pool *pool)
{
    lock(pool);
    uint32_t random = random_locked(pool);

    unlock(pool);
    return random;
}
