/* SPDX-License-Identifier: MIT */
/*
 * The first look at a configuration's bytes, before libConfuse gets them.
 *
 * After it, the text has no comment (they are blank), no control byte, no string that doesn't end,
 * no brace without its partner, and nothing that libConfuse's scanner would skip or replace.
 */
#ifndef RBK_CLI_CONFIG_SCAN_H
#define RBK_CLI_CONFIG_SCAN_H

#include "config.h"

#include <stdbool.h>

/* True when all is well; otherwise *fault says what isn't. Overwrites comments in `text`, which has
 * `len` bytes and a NUL behind them. */
bool rbk_config_scan(char *text, size_t len, struct cli_config_fault *fault);

#endif
