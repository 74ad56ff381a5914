/* SPDX-License-Identifier: MIT */
/*
 * What the commands of the tool share: the context that options and configuration fill, exit
 * statuses, one way to report an error, one way to open the store.
 *
 * The order of a command: read its options with rbk_cli_option() to the end, then
 * rbk_cli_configure(), and only then touch a store. So a mistake anywhere in the options or the
 * configuration is found before anything happens.
 *
 * Every function that returns int returns an exit status, 0 being done; who gets another one
 * returns it upwards, for the message is already printed.
 */
#ifndef RBK_CLI_H
#define RBK_CLI_H

#include "redbucket/redbucket.h"

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses; `run` otherwise ends with its command's own. */
enum cli_exit {
    CLI_DONE = 0,
    CLI_REJECTED = 1,
    CLI_USAGE = 2,
    CLI_STORE = 3,
    CLI_NO_PERMIT = 75,
    CLI_NOT_RUNNABLE = 126,
    CLI_NOT_FOUND = 127,
    CLI_SIGNAL = 128,
};

struct cli_command;

/*
 * What the options and the configuration say. Before rbk_cli_configure() only what options give
 * is there; after it, everything is final. rbk_cli_context_fini() frees it.
 *
 *   command         the command that runs
 *   config_option   -c, or NULL
 *   store_option    -s, or NULL: whoever must not use another store looks here
 *   json            --json
 *   option_limits   the texts of -l, in the order given
 *   config_path     the configuration file that was read, or NULL when there was none
 *   store_url       the store to use: -s, $REDBUCKET_STORE, the file's, the default
 *   only_look       the command asks for nothing: a store that isn't there is not made
 *   store_origin    which of these it is: "-s", "$REDBUCKET_STORE", "FILE:LINE", "default store"
 *   limits          every limit; each pointed to, since a named limit must not be copied
 *   exit_status     what rbk_cli_option() wants the command to end with, after CLI_OPTION_STOP
 */
struct cli_context {
    const struct cli_command *command;
    const char *config_option;
    const char *store_option;
    bool json;
    bool only_look;
    const char **option_limits;
    size_t option_limits_len;
    char *config_path;
    char *store_url;
    char *store_origin;
    struct redbucket_named_limit **limits;
    size_t limits_len;
    int exit_status;
};

/*
 * A command. `options` are its own long options, ended by an entry of zeros, or NULL for none;
 * each has flag NULL and a val from CLI_OPTION_OWN upwards, or a character that is also in
 * `letters`, a getopt string such as "o:", or NULL. `arguments` is what its usage line shows
 * behind the name. `run` gets the command's name in argv[0].
 */
struct cli_command {
    const char *name;
    const char *arguments;
    const char *summary;
    const char *help;
    const char *letters;
    const struct option *options;
    int (*run)(struct cli_context *context, int argc, char **argv);
};

enum {
    CLI_OPTION_END = -1,   /* no more options; argv[optind] is the first argument */
    CLI_OPTION_STOP = -2,  /* help was printed or an error reported: return context->exit_status */
    CLI_OPTION_OWN = 1000, /* the first value for a command's own long options */
};

/*
 * The next of the command's own options, its value in `optarg`, or CLI_OPTION_END or
 * CLI_OPTION_STOP. The common ones (-c -s -l --json --help) are taken in here, before and
 * after the command's name. Options may stand behind arguments; "--" ends them.
 */
int rbk_cli_option(struct cli_context *context, int argc, char **argv);

/* Reads the configuration file and -l into the context. A limit given by -l replaces the file's of
 * the same name. No limit at all is no error here; see rbk_cli_need_limits. */
int rbk_cli_configure(struct cli_context *context);

/* CLI_USAGE with a message on how to give a limit when there is none. */
int rbk_cli_need_limits(const struct cli_context *context);

/* The index in context->limits of the limit with this name (name_len bytes), or SIZE_MAX. */
size_t rbk_cli_find_limit(const struct cli_context *context, const char *name, size_t name_len);

/* Makes the limit that the text of a -l says. */
int rbk_cli_limit_option(const char *text, struct redbucket_named_limit **made);

/* Adds a limit, which the context takes over in any case, or replaces the one of its name. */
int rbk_cli_put_limit(struct cli_context *context, struct redbucket_named_limit *limit);

/* CLI_USAGE when two of the limits are on one zone. */
int rbk_cli_check_zones(struct redbucket_named_limit *const *limits, size_t limits_len);

void rbk_cli_context_fini(struct cli_context *context);

/* ---- Errors -------------------------------------------------------------------------------- */

/*
 * Prints "redbucket: WHERE: WHAT" as one line to standard error and returns `exit_status`. WHERE
 * NULL is left out. Control bytes from outside are shown as '?'.
 */
__attribute__((format(printf, 3, 4))) int rbk_cli_fail(int exit_status, const char *where,
                                                       const char *format, ...);

/* The same for an error of the library, with the exit status that its code stands for. */
int rbk_cli_fail_error(const char *where, const struct redbucket_error *error);

/* 2 for what a user can put right in the arguments or the configuration, else 3; OK is 0. */
int rbk_cli_exit_of(enum redbucket_status status);

/* The same for a store that failed, with its own words where it has some. */
int rbk_cli_fail_store(const char *where, struct redbucket_store *store,
                       enum redbucket_status status, const char *message);

/* Flushes standard output, where a full disk shows: CLI_STORE with a message when it failed,
 * otherwise `exit_status`. main() calls it after every command. */
int rbk_cli_flush(int exit_status);

/* ---- The store ----------------------------------------------------------------------------- */

/* Creates a limiter on `store` with every limit of the context. */
int rbk_cli_limiter_create(const struct cli_context *context, struct redbucket_store *store,
                           struct redbucket_limiter **limiter);

/* Opens context->store_url and creates the limiter. Close with rbk_cli_close, NULLs are fine. */
int rbk_cli_open(const struct cli_context *context, struct redbucket_store **store,
                 struct redbucket_limiter **limiter);

void rbk_cli_close(struct redbucket_store *store, struct redbucket_limiter *limiter);

/* Enough for rbk_cli_mask_url. */
#define CLI_URL_SIZE 512

/* A store's URL for people's eyes: passwords are shown as ***, and a long one is cut. */
const char *rbk_cli_mask_url(const char *url, char out[CLI_URL_SIZE]);

/* ---- Arguments ----------------------------------------------------------------------------- */

/* Reads an option's value; the message names the option, what was found and what was expected. */
int rbk_cli_number_option(const char *option, const char *text, double *number);
int rbk_cli_duration_option(const char *option, const char *text, double *seconds);

/* A whole number from `least` to `most`. */
int rbk_cli_count_option(const char *option, const char *text, const uint64_t range[2],
                         uint64_t *count);

/* ---- Printing ------------------------------------------------------------------------------ */

/* Enough for rbk_cli_seconds_format. */
#define CLI_SECONDS_SIZE 40

/* A wait for people, rounded up so that waiting that long is enough: "0.4 s", "1.25 s". */
void rbk_cli_seconds_format(double seconds, char out[CLI_SECONDS_SIZE]);

#endif
