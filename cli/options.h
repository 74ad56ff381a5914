/* SPDX-License-Identifier: MIT */
/*
 * The help that options.c prints: main.c has the table of commands that it is made from.
 */
#ifndef RBK_CLI_OPTIONS_H
#define RBK_CLI_OPTIONS_H

#include "cli.h"

void rbk_cli_print_help(void);
void rbk_cli_print_command_help(const struct cli_command *command);

#endif
