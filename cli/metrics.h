/* SPDX-License-Identifier: MIT */
/*
 * The numbers of the store of a command as OpenMetrics text, under the store's URL without its
 * password.
 */
#ifndef RBK_CLI_METRICS_H
#define RBK_CLI_METRICS_H

#include "cli.h"

/* Prints them to standard output. */
int rbk_metrics_print(const struct cli_context *context, struct redbucket_store *store);

#endif
