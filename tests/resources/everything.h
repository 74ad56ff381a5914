/* SPDX-License-Identifier: MIT */
/*
 * One use of everything that the library exports, on any store, by a caller from whom something may
 * be withheld at any moment: memory, descriptors, peace.
 *
 * Each call either goes well or fails with a status that is the right one for what was withheld,
 * has then written none of its outputs, and goes well when it is made again with nothing withheld.
 * At the end as many permits of a bucket were granted as it has: never more, and none lost but
 * those of calls that failed after they had got to a server.
 */
#ifndef TEST_EVERYTHING_H
#define TEST_EVERYTHING_H

#include "redbucket/redbucket.h"

/*
 *   url       of the store
 *   place     what is withheld this time, for people
 *   key       of a bucket that nobody has used
 *   before    is called before each call that is the library's, with its text
 *   after     after it; true when something was withheld meanwhile
 *   excused   whether this is the status of a call from which something was withheld
 *   mistaken  a status that a library below may make of a shortage, or OK for none. The store may
 * then take its server for dead, and rest lenient   a failure policy answers for the store: what it
 * grants is its own affair granted   out: permits of the bucket maybe     out: calls that failed,
 * and may have taken one excuses   out: calls that failed
 */
struct everything {
    const char *url;
    const char *place;
    const char *key;
    void (*before)(const char *call);
    bool (*after)(void);
    bool (*excused)(enum redbucket_status status);
    enum redbucket_status mistaken;
    bool lenient;
    unsigned granted;
    unsigned maybe;
    unsigned excuses;
};

/* Fails the test unless all of that holds. */
void everything_do(struct everything *all);

#endif
