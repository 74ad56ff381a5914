/* SPDX-License-Identifier: MIT */
/*
 * Put before src/gather.c by the compiler: what waits, wakes, locks, or is seen without a lock
 * there is the test's, and so is time. Everything else of that file is as it is.
 */
#ifndef TEST_GATHER_POINTS_H
#define TEST_GATHER_POINTS_H

#include "deadline.h"
#include "flight.h"
#include "futex.h"
#include "schedule.h"

#include <pthread.h>

unsigned point_load(const atomic_uint *word);
void point_store(atomic_uint *word, unsigned value);
int point_lock(pthread_mutex_t *mutex);
int point_unlock(pthread_mutex_t *mutex);
bool point_await(atomic_uint *word, unsigned value, const struct rbk_deadline *deadline);
void point_wake(atomic_uint *word, int most);
void point_deadline_start(struct rbk_deadline *deadline, double seconds);
double point_deadline_left(const struct rbk_deadline *deadline);
bool point_flight_init(struct rbk_flight *flight, const struct rbk_flight_size *size);

#ifdef TEST_SCHEDULED
#undef atomic_load_explicit
#undef atomic_store_explicit
#define atomic_load_explicit(word, order)         point_load(word)
#define atomic_store_explicit(word, value, order) point_store(word, value)
#define pthread_mutex_lock                        point_lock
#define pthread_mutex_unlock                      point_unlock
#define rbk_futex_await                           point_await
#define rbk_futex_wake                            point_wake
#define rbk_deadline_start                        point_deadline_start
#define rbk_deadline_left                         point_deadline_left
#define rbk_flight_init                           point_flight_init
#endif

#endif
