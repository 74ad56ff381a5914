/* SPDX-License-Identifier: MIT */
/*
 * The word: the number of the lease in the upper 20 bits, parts left in the lower 44. A number
 * comes again after a million leases, each of which took a round trip.
 */
#include "lease_purse.h"

#include <math.h>
#include <string.h>

#define PARTS      16384u
#define LEFT_BITS  44
#define LEFT_MASK  (((uint64_t)1 << LEFT_BITS) - 1)
#define NEXT_LEASE ((uint64_t)1 << LEFT_BITS)

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && sizeof(double) == sizeof(uint64_t),
               "a child of a fork must not find a lock held inside of an atomic");
_Static_assert(sizeof(struct rbk_note) == 8 * sizeof(uint64_t), "a note fills a line of the cache");
_Static_assert((uint64_t)RBK_PURSE_MOST < LEFT_MASK / PARTS, "a purse can count so many");

uint64_t rbk_purse_parts(double cost)
{
    return cost <= RBK_PURSE_MOST ? (uint64_t)ceil(cost * PARTS) : UINT64_MAX;
}

uint64_t rbk_purse_parts_of(double permits)
{
    return (uint64_t)(permits * PARTS);
}

double rbk_purse_permits(uint64_t parts)
{
    return (double)parts / PARTS;
}

uint64_t rbk_purse_left(uint64_t word)
{
    return word & LEFT_MASK;
}

uint64_t rbk_purse_now(const struct rbk_purse *purse)
{
    return rbk_purse_left(atomic_load_explicit(&purse->word, memory_order_acquire));
}

void rbk_purse_note(const struct rbk_purse *purse, struct rbk_note *note)
{
    uint64_t words[RBK_NOTE_WORDS] = {0};

    for (size_t i = 0; i < RBK_NOTE_WORDS; i++)
        words[i] = atomic_load_explicit(&purse->note[i], memory_order_relaxed);
    memcpy(note, words, sizeof words);
}

/* What a word was read, and the note as it is: a thing of one lease if the word still is the same.
 */
static bool suits(const struct rbk_purse *purse, const struct rbk_want *want,
                  struct rbk_permit *permit)
{
    const struct rbk_note *note = &permit->note;

    if (rbk_purse_left(permit->before) < want->parts)
        return false;
    rbk_purse_note(purse, &permit->note);
    atomic_thread_fence(memory_order_acquire);
    return note->bucket == want->bucket && want->now < note->until &&
           note->limit.rate == want->limit->rate && note->limit.burst == want->limit->burst &&
           note->limit.delay == want->limit->delay;
}

bool rbk_purse_spend(struct rbk_purse *purse, const struct rbk_want *want,
                     struct rbk_permit *permit)
{
    permit->before = atomic_load_explicit(&purse->word, memory_order_acquire);
    while (suits(purse, want, permit)) {
        permit->after = permit->before - want->parts;
        if (atomic_compare_exchange_weak_explicit(&purse->word, &permit->before, permit->after,
                                                  memory_order_acq_rel, memory_order_acquire))
            return true;
    }
    return false;
}

bool rbk_purse_look(struct rbk_purse *purse, const struct rbk_want *want, struct rbk_permit *permit)
{
    permit->before = atomic_load_explicit(&purse->word, memory_order_acquire);
    while (suits(purse, want, permit)) {
        uint64_t word = atomic_load_explicit(&purse->word, memory_order_acquire);

        permit->after = permit->before - want->parts;
        if (word == permit->before)
            return true;
        permit->before = word;
    }
    return false;
}

double rbk_purse_queue(struct rbk_purse *purse, double rate, double cost, double now, bool looks)
{
    double clear = atomic_load_explicit(&purse->clear, memory_order_relaxed);
    double begin;

    do {
        begin = clear > now ? clear : now;
    } while (!looks &&
             !atomic_compare_exchange_weak_explicit(&purse->clear, &clear, begin + cost / rate,
                                                    memory_order_relaxed, memory_order_relaxed));
    return (begin - now) * rate;
}

bool rbk_purse_restore(struct rbk_purse *purse, const struct rbk_permit *permit)
{
    uint64_t word = atomic_load_explicit(&purse->word, memory_order_relaxed);

    while ((word & ~LEFT_MASK) == (permit->after & ~LEFT_MASK)) {
        if (atomic_compare_exchange_weak_explicit(&purse->word, &word,
                                                  word + (permit->before - permit->after),
                                                  memory_order_acq_rel, memory_order_relaxed))
            return true;
    }
    return false;
}

uint64_t rbk_purse_empty(struct rbk_purse *purse)
{
    uint64_t word = atomic_load_explicit(&purse->word, memory_order_relaxed);

    while (!atomic_compare_exchange_weak_explicit(&purse->word, &word,
                                                  (word & ~LEFT_MASK) + NEXT_LEASE,
                                                  memory_order_acq_rel, memory_order_relaxed))
        ;
    return rbk_purse_left(word);
}

bool rbk_purse_close(struct rbk_purse *purse)
{
    uint64_t word = atomic_load_explicit(&purse->word, memory_order_relaxed);

    while (rbk_purse_left(word) == 0) {
        if (atomic_compare_exchange_weak_explicit(&purse->word, &word, word + NEXT_LEASE,
                                                  memory_order_acq_rel, memory_order_relaxed))
            return true;
    }
    return false;
}

/* What the store has seen taken before is ahead of these; and so is what was spent here of the same
 * bucket before. Whoever is just spending of the lease before may be late to add to it: what it
 * adds to is later than what it would have been. */
static void begin_queue(struct rbk_purse *purse, const struct rbk_note *note, uint64_t parts)
{
    double level = note->top - rbk_purse_permits(parts);
    double clear = note->received + (level > 0.0 ? level : 0.0) / note->limit.rate;
    bool same = atomic_load_explicit(&purse->note[0], memory_order_relaxed) == note->bucket;

    if (same)
        clear = fmax(clear, atomic_load_explicit(&purse->clear, memory_order_relaxed));
    atomic_store_explicit(&purse->clear, clear, memory_order_relaxed);
}

void rbk_purse_fill(struct rbk_purse *purse, const struct rbk_note *note, uint64_t parts)
{
    uint64_t word = atomic_load_explicit(&purse->word, memory_order_relaxed) & ~LEFT_MASK;
    uint64_t words[RBK_NOTE_WORDS];

    begin_queue(purse, note, parts);
    /* Whoever sees a word of this note sees the purse of a lease that is over. */
    atomic_thread_fence(memory_order_release);
    memcpy(words, note, sizeof words);
    for (size_t i = 0; i < RBK_NOTE_WORDS; i++)
        atomic_store_explicit(&purse->note[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&purse->word, word + NEXT_LEASE + parts, memory_order_release);
}
