/* SPDX-License-Identifier: MIT */
/*
 * Options: the common ones are the same before and behind the command's name, a command adds its
 * own, and what is unknown is answered with what there is.
 *
 * The command's options are merged with the common ones into one table for getopt_long, which
 * needs it whole. The tool is one thread, so getopt's global state does no harm.
 */
#include "options.h"

#include <stdlib.h>
#include <string.h>

#define OWN_MAX     24
#define LETTERS_MAX 64
#define LIST_SIZE   512
#define NAME_SIZE   40

enum {
    OPTION_JSON = 500,
    OPTION_VERSION,
};

static const struct option common[] = {
    {"config", required_argument, NULL, 'c'}, {"store", required_argument, NULL, 's'},
    {"limit", required_argument, NULL, 'l'},  {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, 'h'},         {"version", no_argument, NULL, OPTION_VERSION},
};

#define COMMON_LEN (sizeof(common) / sizeof(common[0]))

struct merged {
    struct option options[COMMON_LEN + OWN_MAX + 1];
    char letters[LETTERS_MAX];
};

static void merge(const struct cli_command *command, struct merged *merged)
{
    const struct option *own = command != NULL ? command->options : NULL;
    const char *letters = command != NULL && command->letters != NULL ? command->letters : "";
    size_t len = COMMON_LEN;

    memset(merged, 0, sizeof(*merged));
    memcpy(merged->options, common, sizeof(common));
    for (; own != NULL && own->name != NULL && len < COMMON_LEN + OWN_MAX; own++)
        merged->options[len++] = *own;
    /* Before the command's name the first argument ends the options: it is that name. */
    snprintf(merged->letters, sizeof(merged->letters), "%s:c:s:l:h%s", command == NULL ? "+" : "",
             letters);
}

static int stop(struct cli_context *context, int exit_status)
{
    context->exit_status = exit_status;
    return CLI_OPTION_STOP;
}

/* An option as people write it: "-c", "--json". */
static const char *spell(const struct option *option, char out[NAME_SIZE])
{
    if (option->val < 128 && strchr("csl", option->val) != NULL)
        snprintf(out, NAME_SIZE, "-%c", option->val);
    else
        snprintf(out, NAME_SIZE, "--%s", option->name);
    return out;
}

/* " -c -s -l --json ..." */
static const char *list_options(const struct merged *merged, char out[LIST_SIZE])
{
    char name[NAME_SIZE];
    size_t used = 0;

    out[0] = '\0';
    for (const struct option *option = merged->options; option->name != NULL; option++)
        if (used < LIST_SIZE)
            used += (size_t)snprintf(out + used, LIST_SIZE - used, " %s", spell(option, name));
    return out;
}

static const struct option *find_option(const struct merged *merged, int value)
{
    for (const struct option *option = merged->options; option->name != NULL; option++)
        if (value != 0 && option->val == value)
            return option;
    return NULL;
}

/* getopt has left the culprit in optopt when it is a letter or a known option, else it is the
 * word before optind. */
static int fail_option(const struct cli_context *context, const struct merged *merged, int code,
                       char **argv)
{
    const char *where = context->command != NULL ? context->command->name : "usage";
    const struct option *known = find_option(merged, optopt);
    char list[LIST_SIZE];
    char name[NAME_SIZE];

    if (code == ':' && known != NULL)
        return rbk_cli_fail(CLI_USAGE, where, "%s: expected a value", spell(known, name));
    if (code == ':')
        return rbk_cli_fail(CLI_USAGE, where, "-%c: expected a value", optopt);
    if (known != NULL && known->has_arg == no_argument)
        return rbk_cli_fail(CLI_USAGE, where, "%s: expected no value", spell(known, name));
    if (optopt != 0)
        return rbk_cli_fail(CLI_USAGE, where, "-%c: unknown option, expected one of%s", optopt,
                            list_options(merged, list));
    return rbk_cli_fail(CLI_USAGE, where, "%.60s: unknown option, expected one of%s",
                        argv[optind - 1], list_options(merged, list));
}

static bool add_limit(struct cli_context *context, const char *text)
{
    const size_t len = context->option_limits_len;
    const char **grown = realloc(context->option_limits, (len + 1) * sizeof(*grown));

    if (grown == NULL)
        return false;
    context->option_limits = grown;
    grown[len] = text;
    context->option_limits_len = len + 1;
    return true;
}

static int stop_with_help(struct cli_context *context)
{
    if (context->command != NULL)
        rbk_cli_print_command_help(context->command);
    else
        rbk_cli_print_help();
    return stop(context, CLI_DONE);
}

static int stop_with_version(struct cli_context *context)
{
    printf("redbucket %s\n", redbucket_version());
    return stop(context, CLI_DONE);
}

/* True when `code` was a common option, and has been taken in. */
static bool take_common(struct cli_context *context, int code, int *result)
{
    *result = 0;
    switch (code) {
    case 'c':
        context->config_option = optarg;
        return true;
    case 's':
        context->store_option = optarg;
        return true;
    case 'l':
        if (!add_limit(context, optarg))
            *result = stop(context, rbk_cli_fail(CLI_STORE, "-l", "out of memory"));
        return true;
    case OPTION_JSON:
        context->json = true;
        return true;
    case 'h':
        *result = stop_with_help(context);
        return true;
    case OPTION_VERSION:
        *result = stop_with_version(context);
        return true;
    default:
        return false;
    }
}

int rbk_cli_option(struct cli_context *context, int argc, char **argv)
{
    struct merged merged;
    int result = 0;

    merge(context->command, &merged);
    opterr = 0;
    while (result == 0) {
        int code;

        optopt = 0;
        code = getopt_long(argc, argv, merged.letters, merged.options, NULL);
        if (code == -1)
            return CLI_OPTION_END;
        if (code == '?' || code == ':')
            return stop(context, fail_option(context, &merged, code, argv));
        if (!take_common(context, code, &result))
            return code;
    }
    return result;
}
