/* SPDX-License-Identifier: MIT */
/*
 * The NAME=KEY words of a command, as keys of a request.
 */
#ifndef RBK_CLI_NAMED_KEYS_H
#define RBK_CLI_NAMED_KEYS_H

#include "cli.h"

/* Each points into the words and the context's limits. `limits` has the index of each key's limit
 * in context->limits. */
struct cli_keys {
    struct redbucket_key items[REDBUCKET_KEYS_MAX];
    size_t limits[REDBUCKET_KEYS_MAX];
    size_t len;
};

/* Reads the words; every name must be that of a limit, and there must be one word at least. */
int rbk_cli_keys(const struct cli_context *context, char **words, int words_len,
                 struct cli_keys *keys);

#endif
