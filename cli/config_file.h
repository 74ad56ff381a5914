/* SPDX-License-Identifier: MIT */
/*
 * The configuration file that applies here, found and read.
 */
#ifndef RBK_CLI_CONFIG_FILE_H
#define RBK_CLI_CONFIG_FILE_H

#include "cli.h"
#include "config.h"

/* Reads the file that `option` (-c, or NULL) or the usual places give. Done with *path NULL and an
 * empty configuration when there is none; *path lives as long as `option` and the environment. */
int rbk_config_find(const char *option, struct cli_config *config, const char **path);

#endif
