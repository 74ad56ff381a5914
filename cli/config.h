/* SPDX-License-Identifier: MIT */
/*
 * The configuration file: a store and limits, in libConfuse's syntax.
 *
 *     store = "shm:redbucket"
 *     limit user { rate = 5/s  burst = 10 }
 *
 * All or nothing: a configuration is handed out only when every byte of the text was understood.
 *
 * Narrower than libConfuse, which passes over in silence what these would hide:
 *   - "${NAME}" is refused outside comments and single quotes: nothing comes from the environment;
 *   - there is no include();
 *   - a section, string or comment must end, each setting stands once, names and zones are unique;
 *   - control bytes and the numeric escapes \0, \101, \x41 are refused.
 */
#ifndef RBK_CLI_CONFIG_H
#define RBK_CLI_CONFIG_H

#include "redbucket/redbucket.h"

#include <stddef.h>

/* The longest configuration that is read, and the most limits in one. */
#define CLI_CONFIG_BYTES_MAX  (1u << 20)
#define CLI_CONFIG_LIMITS_MAX 4096

/* `store` is NULL when the text names none; otherwise it stands on store_line. */
struct cli_config {
    char *store;
    int store_line;
    struct redbucket_named_limit **limits;
    size_t limits_len;
};

/* What is wrong, and on which line, 0 when it is about no line. */
struct cli_config_fault {
    int line;
    char message[320];
};

/*
 * Reads a configuration from `len` bytes. OK, or an error with *fault filled in and *config empty.
 * Not safe beside itself in another thread: libConfuse's scanner is one for the process.
 */
enum redbucket_status rbk_config_parse(const char *text, size_t len, struct cli_config *config,
                                       struct cli_config_fault *fault);

/* Frees what a configuration holds and leaves it empty. */
void rbk_config_fini(struct cli_config *config);

#endif
