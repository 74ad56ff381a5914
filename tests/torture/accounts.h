/* SPDX-License-Identifier: MIT */
/*
 * Books of what was asked for and what was told, by bucket, kept outside of the library; and at the
 * end, what can't be.
 *
 *   WINDOW  drains; what was told to be accepted keeps the bound in every window
 *   LEASED  the same, with what leases add
 *   BOOK    doesn't drain: in the end there is just what was told, and perhaps what had an error
 *           that leaves it unknown, each at most once
 *   HOARD   doesn't drain and has leases: no more was told than is in it
 */
#ifndef TORTURE_ACCOUNTS_H
#define TORTURE_ACCOUNTS_H

#include "behind.h"
#include "redbucket/redbucket.h"

enum rule { WINDOW, LEASED, BOOK, HOARD };

struct account;

/* Of limits that don't drain. */
#define BOOK_BURST 1e9
#define BOOK_RATE  1e-9

/* The limits that all stores have; their zones have their names. */
struct named_limit {
    const char *name;
    enum rule rule;
    struct redbucket_limit limit;
};
extern const struct named_limit account_limits[];
extern const size_t account_limits_len;

/* The account of a bucket, which is made where there is none. `base` is what it has at first. Safe
 * from any thread, as all here. */
struct account *account_of(const char *limit, const char *key, double base);

/* How much was told to be taken so far, and how much was ever asked for. */
double account_told(struct account *account);
double account_asked(struct account *account);

/* The name of its limit, for as long as the program lives. */
const char *account_limit(const struct account *account);

double account_base(const struct account *account);

/* A request is about to go out, and so may be taken at any time from now on. */
void account_ask(struct account *account, double cost);

/* It was accepted, having been asked for and answered at these times; or nobody knows. */
void account_grant(struct account *account, double cost, double begin, double end);
void account_doubt(struct account *account, double cost);

/* When something was last in doubt, or -1. */
double account_doubted(struct account *account);

/* Two accounts that are always asked for together: in the end they have the same. */
void account_pair(struct account *one, struct account *other);

/* Something that can't be. Counted, and the first few printed. */
__attribute__((format(printf, 1, 2))) void fault(const char *format, ...);
unsigned faults_found(void);

/* Holds all accounts against what is stored. Returns the worst use of a bound, in percent, and of
 * which bucket in *where, of 64 bytes. */
double accounts_close(struct behind *behind, char *where);

#endif
