/* SPDX-License-Identifier: MIT */
/*
 * A count of rings, and the kernel's wait for a word that changes. Who has read the count before it
 * let the mutex go misses no ring: the word is another by then, and the kernel doesn't wait.
 */
#include "bell.h"

#include "futex.h"
#include "wait.h"

#include <limits.h>

static void ring(struct rbk_bell *bell, int most)
{
    if (bell->waiting == 0)
        return;
    (void)atomic_fetch_add(&bell->rings, 1);
    rbk_futex_wake(&bell->rings, most);
}

void rbk_bell_ring(struct rbk_bell *bell)
{
    ring(bell, 1);
}

void rbk_bell_ring_all(struct rbk_bell *bell)
{
    ring(bell, INT_MAX);
}

bool rbk_bell_await(struct rbk_bell *bell, pthread_mutex_t *mutex,
                    const struct rbk_deadline *deadline)
{
    if (rbk_wait_unlocked(mutex))
        return rbk_deadline_left(deadline) > 0.0;
    unsigned rings = atomic_load(&bell->rings);

    bell->waiting++;
    (void)pthread_mutex_unlock(mutex);
    bool more = rbk_futex_await(&bell->rings, rings, deadline);

    (void)pthread_mutex_lock(mutex);
    bell->waiting--;
    return more;
}
