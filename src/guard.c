/* SPDX-License-Identifier: MIT */
/*
 * Guarding the operations of a store that wait. It stands below leases and the denial cache, so
 * that what these answer by themselves, which waits for nobody, costs nothing more.
 */
#include "guard.h"

#include "front.h"
#include "interrupt.h"
#include "wait.h"

#include <pthread.h>
#include <stdlib.h>

int rbk_guard_begin(void)
{
    int before = PTHREAD_CANCEL_ENABLE;

    if (rbk_wait_on_fiber())
        return before;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

void rbk_guard_end(int before)
{
    if (!rbk_wait_on_fiber())
        (void)pthread_setcancelstate(before, NULL);
}

static int begin(void)
{
    if (!rbk_wait_on_fiber())
        rbk_interrupt_begin();
    return rbk_guard_begin();
}

static void end(int before)
{
    rbk_guard_end(before);
    if (!rbk_wait_on_fiber())
        rbk_interrupt_end();
}

static struct redbucket_store *inner_of(struct redbucket_store *store)
{
    return ((struct rbk_front *)store)->inner;
}

static void decide(struct redbucket_store *store, struct rbk_request *requests, size_t len,
                   struct rbk_batch *batch)
{
    int before = begin();

    inner_of(store)->ops->decide(inner_of(store), requests, len, batch);
    end(before);
}

static enum redbucket_status read_state(struct redbucket_store *store, const struct rbk_key *key,
                                        struct rbk_state *state)
{
    int before = begin();
    enum redbucket_status status = inner_of(store)->ops->read(inner_of(store), key, state);

    end(before);
    return status;
}

static enum redbucket_status walk(struct redbucket_store *store, struct rbk_walk *from,
                                  const struct rbk_visit *visit, bool *done)
{
    int before = begin();
    enum redbucket_status status = inner_of(store)->ops->walk(inner_of(store), from, visit, done);

    end(before);
    return status;
}

static enum redbucket_status check(struct redbucket_store *store, struct redbucket_health *health)
{
    int before = begin();
    enum redbucket_status status = inner_of(store)->ops->check(inner_of(store), health);

    end(before);
    return status;
}

static void close_store(struct redbucket_store *store)
{
    redbucket_store_close(inner_of(store));
    free(store);
}

enum redbucket_status rbk_guard_create(struct redbucket_store *inner,
                                       struct redbucket_store **store)
{
    struct rbk_front *guard = malloc(sizeof *guard);

    if (guard == NULL)
        return REDBUCKET_ERROR_MEMORY;
    rbk_front_init(guard, inner);
    guard->ops.decide = decide;
    guard->ops.read = read_state;
    guard->ops.walk = walk;
    guard->ops.check = check;
    guard->ops.close = close_store;
    *store = &guard->store;
    return REDBUCKET_OK;
}
