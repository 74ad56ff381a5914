/* SPDX-License-Identifier: MIT */
/*
 * The commands, each defined in the file of its name. main.c lists them in the order of the help.
 *
 * Invariant: a command that is declared here is in the table of main.c, and nothing else is.
 */
#ifndef RBK_CLI_COMMANDS_H
#define RBK_CLI_COMMANDS_H

#include "cli.h"

extern const struct cli_command rbk_cli_request;
extern const struct cli_command rbk_cli_peek;
extern const struct cli_command rbk_cli_refund;
extern const struct cli_command rbk_cli_charge;
extern const struct cli_command rbk_cli_reset;
extern const struct cli_command rbk_cli_run;
extern const struct cli_command rbk_cli_replay;
extern const struct cli_command rbk_cli_check;
extern const struct cli_command rbk_cli_keys_command;
extern const struct cli_command rbk_cli_top_command;
extern const struct cli_command rbk_cli_bench;

#endif
