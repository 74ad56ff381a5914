/* SPDX-License-Identifier: MIT */
/*
 * Who only counts: what was admitted, when, and by a permit of which time, compared with what
 * leases promise. Knows nothing of how they come to it.
 */
#ifndef TEST_LEASE_WITNESS_H
#define TEST_LEASE_WITNESS_H

#include "model/bucket.h"

#include <stddef.h>

#define WITNESS_MAX 4096

struct admitted {
    double at;    /* by the server's clock */
    double after; /* and the delay */
    double taken; /* when its permit was taken of the bucket */
    double cost;
};

struct lease_witness {
    struct rbk_limit limit;
    double lease_time;
    double slack; /* seconds by which a test doesn't know better */
    struct admitted admitted[WITNESS_MAX];
    size_t len;
};

void witness_begin(struct lease_witness *witness, const struct rbk_limit *limit, double lease_time);
void witness_add(struct lease_witness *witness, const struct admitted *admitted);

/* The last one was given back. */
void witness_take_off(struct lease_witness *witness);

/* In every window, what was admitted is within the bound. False, with a word on standard error, if
 * not. */
bool witness_bound_holds(struct lease_witness *witness);

/* The same for what went on after its delay, which holds for one process alone: longer delays than
 * others have bring together what was apart. */
bool witness_delays_hold(struct lease_witness *witness);

/* The level that the bucket would have at that time if nothing but these had been taken of it. */
double witness_level(struct lease_witness *witness, double now);

#endif
