/* SPDX-License-Identifier: MIT */
/*
 * A request decided by the asynchronous form, on the smallest loop that there can be.
 */
#ifndef BY_LOOP_H
#define BY_LOOP_H

#include "redbucket/async.h"

/* As redbucket_decide would one request, keys and verdicts included. */
enum redbucket_status by_loop(struct redbucket_limiter *limiter, struct redbucket_request *request);

#endif
