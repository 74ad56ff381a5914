/* SPDX-License-Identifier: MIT */
/*
 * Doing everything again and again, each time with the shortage at another place, on each kind of
 * store. The stores on servers have servers of the test's own.
 *
 * The environment says how thoroughly: without $RESOURCES_EVERY the first few places are tried and
 * then some on the way, which ones by $RESOURCES_SEED; with it, all of them.
 */
#ifndef TEST_SHORTAGE_H
#define TEST_SHORTAGE_H

#include "everything.h"

struct shortage_store {
    const char *name;
    bool slow;    /* only when every place is tried */
    bool lenient; /* as in struct everything */
    enum redbucket_status mistaken;
    bool (*url)(const char *query, char *url, size_t size);
    const char *query;
};

extern const struct shortage_store shortage_stores[];
extern const size_t shortage_stores_len;

/* Whether everything is to be tried. */
bool shortage_every(void);

/* The place after this one, of as many as there seem to be. */
unsigned long shortage_next(unsigned long place, unsigned long places);

/* Forgets what was stored on servers, so that walks don't become longer and longer. */
void shortage_clean(void);

/* Has the servers close all connections but the test's own. */
void shortage_cut(void);

/* Stops the servers. */
int shortage_tear_down(void **state);

#endif
