/* SPDX-License-Identifier: MIT */
/*
 * The denial cache: what a server has just rejected is rejected here until it could pass.
 *
 * A rejection brings the states of its buckets and the server's time. Others can only fill these
 * buckets further, so until they have drained far enough the model gives the server's answer here.
 * How far the server's clock has come is only known within the time that the request took. It is
 * rejected here for as long as it would be if the server had decided when it was sent: never longer
 * than by the server. What it is told counts from when the answer was received, so that whoever
 * waits for that long has waited long enough. The verdicts are those of the buckets as they were;
 * what others have taken since shows when the server is asked again.
 *
 * What can empty a bucket earlier: a refund, a charge that goes wrong, a reset or a permit given
 * back here makes this forget what it knows of the bucket at once; the same elsewhere, a lost
 * state, a changed limit, or a server's clock that is set forward is seen when `denial_time` is
 * over.
 *
 * Memory is fixed and shared by all threads; readers take no lock. Two requests are told apart by
 * a keyed hash of 64 bits.
 */
#ifndef RBK_DENIAL_H
#define RBK_DENIAL_H

#include "clock.h"
#include "store.h"

/* Seconds that an entry lives at most, when a URL doesn't say; and what it may say. */
#define RBK_DENIAL_TIME_DEFAULT 1.0
#define RBK_DENIAL_TIME_MAX     3600.0

/*
 * Puts the cache in front of `inner`, which belongs to the new store on success and stays the
 * caller's on failure. `time` is above 0; `clock` is rbk_clock_now, or a test's.
 */
enum redbucket_status rbk_denial_create(struct redbucket_store *inner, double time,
                                        rbk_clock *clock, struct redbucket_store **store,
                                        struct redbucket_error *error);

#endif
