/* SPDX-License-Identifier: MIT */
/*
 * A limit as one would type it, its rate made readable: "10/m", not 0.1666...
 */
#ifndef RBK_REPLAY_LIMIT_SHOWN_H
#define RBK_REPLAY_LIMIT_SHOWN_H

#include "redbucket/redbucket.h"

#include "printable.h"

/* Enough for rbk_rate_shown, and for rbk_limit_shown. */
#define RBK_RATE_SHOWN_SIZE  (REDBUCKET_NUMBER_SIZE + RBK_NUMBER_SIZE)
#define RBK_LIMIT_SHOWN_SIZE (REDBUCKET_LIMIT_TEXT_SIZE + RBK_RATE_SHOWN_SIZE)

void rbk_rate_shown(double rate, char out[RBK_RATE_SHOWN_SIZE]);

/* A name longer than 38 columns is cut. */
void rbk_limit_shown(const struct redbucket_named_limit *limit, char out[RBK_LIMIT_SHOWN_SIZE]);

#endif
