/* SPDX-License-Identifier: MIT */
/*
 * Books of what leases are granted and what is spent of them, kept by two who stand before and
 * behind them and know nothing of how they work: the store behind is the only one to grant, so
 * nobody has from here what wasn't granted, nor after its time, nor twice. Where the server made
 * nothing up, what was admitted also lies within the bound of leases, and no less is taken there
 * than was admitted here.
 *
 * All checks end the program.
 */
#ifndef FUZZ_LEASE_BOOKS_H
#define FUZZ_LEASE_BOOKS_H

#include "fake_server.h"
#include "store.h"
#include "wire/key_format.h"

/* What the callers were told, to be compared with the library's statistics. */
struct lease_counts {
    uint64_t accepted;
    uint64_t delayed;
    uint64_t rejected;
    uint64_t failed;
    uint64_t denied;
    uint64_t leased;
};

extern struct lease_counts lease_counts;

/* Begins with empty books. */
void lease_books_begin(void);

/* The one behind the leases, and the one before them; each has `inner` from now on. */
struct redbucket_store *lease_books_behind(struct redbucket_store *inner);
struct redbucket_store *lease_books_before(struct redbucket_store *inner);

/* The server's clock was set: forward, and nothing is within a bound that goes by it; or back, and
 * what drained meanwhile can't be told from what was taken for nothing. */
void lease_books_shift(double seconds);

/* When all is given back: what the server has of each bucket, named by `format`. */
void lease_books_compare(const struct rbk_key_format *format);

#endif
