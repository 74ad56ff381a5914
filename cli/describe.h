/* SPDX-License-Identifier: MIT */
/*
 * What a limit allows, in words.
 */
#ifndef RBK_CLI_DESCRIBE_H
#define RBK_CLI_DESCRIBE_H

#include "redbucket/redbucket.h"

/* Enough for rbk_describe. */
#define CLI_DESCRIPTION_SIZE 240

/* "up to 11 at once, then 5 a second". Numbers are rounded to 6 digits: this is for people. */
void rbk_describe(const struct redbucket_limit *limit, char out[CLI_DESCRIPTION_SIZE]);

#endif
