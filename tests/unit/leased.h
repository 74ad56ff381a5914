/* SPDX-License-Identifier: MIT */
/*
 * Processes that hold leases, in front of the model as a server, under clocks that a test moves.
 *
 * Buckets are called by letters, as in model_store.h. What is admitted by any of them is noted, to
 * be compared with the bound by who only counts.
 */
#ifndef TEST_LEASED_H
#define TEST_LEASED_H

#include "lease.h"
#include "model_store.h"

#define LEASED_TIMEOUT 1.0

/* Held for a second, and ten thousand at most. */
extern const struct rbk_lease_terms leased_terms;

/* So slow that nothing drains, and so large that nothing is rejected. */
extern const struct rbk_limit leased_large;

/* An empty server, that is one server rather than a cluster if `one_server`. */
void leased_begin(bool one_server);

/* Another process; closed by its operations. */
struct redbucket_store *leased_join(void);

/* The same with a denial cache between. */
struct redbucket_store *leased_join_denying(void);

/* A request under such terms for all of its buckets. */
struct model_ask *leased_ask(struct model_ask *ask, enum rbk_operation operation, double cost,
                             struct rbk_limit limit, const char *buckets);

/* True when it was accepted. */
bool leased_request(struct redbucket_store *store, double cost, struct rbk_limit limit,
                    const char *buckets);

/* Has the bucket asked for until the store holds a lease of it, and forgets how many were asked;
 * fails unless that comes. */
void leased_warm(struct redbucket_store *store, struct rbk_limit limit, const char *bucket);

/* One process in front of one server, for each case of a group. */
extern struct redbucket_store *leased_store;

int leased_setup(void **state);
int leased_teardown(void **state);

/* How many requests its server is asked for one under leased_large, which is accepted. */
unsigned leased_asked_for(double cost, const char *buckets);

/* What the server would say is taken of a bucket by now. */
double leased_level(struct rbk_limit limit, char bucket);

#endif
