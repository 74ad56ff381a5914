/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a word to change, without a lock: for those who need none when they wake.
 *
 * Waking a word that is gone already does no harm: at worst somebody else wakes, looks, and waits
 * on.
 */
#ifndef RBK_FUTEX_H
#define RBK_FUTEX_H

#include "deadline.h"
#include "interrupt.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(atomic_uint) == 4, "the kernel's words are of 32 bits");

/* Where times have 64 bits and a long has not, the kernel has another call for them, since 5.1. */
#ifdef SYS_futex_time64
#define RBK_SYS_FUTEX (sizeof(time_t) > sizeof(long) ? SYS_futex_time64 : SYS_futex)
#else
#define RBK_SYS_FUTEX SYS_futex
_Static_assert(sizeof(time_t) == sizeof(long), "this call takes the kernel's time of a long");
#endif

/* Waits while the word is `value`, at most to the deadline: false when that has come, or the host
 * waits no longer. May return for no reason. */
static inline bool rbk_futex_await(atomic_uint *word, unsigned value,
                                   const struct rbk_deadline *deadline)
{
    long result = syscall(RBK_SYS_FUTEX, word, FUTEX_WAIT_BITSET_PRIVATE, value, &deadline->at,
                          NULL, FUTEX_BITSET_MATCH_ANY);

    if (result != 0 && errno == EINTR)
        return !rbk_interrupted();
    return result == 0 || errno != ETIMEDOUT;
}

/* Wakes those who wait for the word: so many at most. */
static inline void rbk_futex_wake(atomic_uint *word, int most)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

#endif
