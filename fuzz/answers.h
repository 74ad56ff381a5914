/* SPDX-License-Identifier: MIT */
/*
 * What holds of every request that was decided, whatever a server answered.
 */
#ifndef FUZZ_ANSWERS_H
#define FUZZ_ANSWERS_H

#include "redbucket/redbucket.h"

/* Ends the program when the response and the verdicts, which were asked for, contradict themselves
 * or hold what no response holds, or when the key that a request failed at is none of its own. */
void rbk_answers_check(const struct redbucket_request *request);

#endif
