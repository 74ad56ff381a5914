/* SPDX-License-Identifier: MIT */
/*
 * Reading the options of `replay`. Every mistake is found here and ends with one message that says
 * what was expected, except that for --format auto the first line has a say.
 */
#include "arguments.h"

#include <stdlib.h>
#include <string.h>

#define REORDER_DEFAULT_S 300

enum {
    OPTION_FORMAT = CLI_OPTION_OWN,
    OPTION_KEY,
    OPTION_OUTPUT,
    OPTION_REORDER,
    OPTION_SUGGEST,
    OPTION_TRY,
    OPTION_OUT = 'o',
};

const struct option rbk_replay_options[] = {
    {"format", required_argument, NULL, OPTION_FORMAT},
    {"key", required_argument, NULL, OPTION_KEY},
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {"reorder", required_argument, NULL, OPTION_REORDER},
    {"suggest", required_argument, NULL, OPTION_SUGGEST},
    {"try", required_argument, NULL, OPTION_TRY},
    {NULL, 0, NULL, 0},
};

static int format_parse(const char *text, enum rbk_replay_format *format)
{
    static const char *const names[] = {
        [RBK_FORMAT_AUTO] = "auto",
        [RBK_FORMAT_COMBINED] = "combined",
        [RBK_FORMAT_COMMON] = "common",
        [RBK_FORMAT_JSONL] = "jsonl",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], text) == 0) {
            *format = (enum rbk_replay_format)i;
            return CLI_DONE;
        }
    }
    return rbk_cli_fail(CLI_USAGE, "replay",
                        "--format %s: expected auto, combined, common or jsonl", text);
}

static int output_parse(const char *text, enum rbk_replay_output *output)
{
    static const char *const names[] = {
        [RBK_OUTPUT_SUMMARY] = "summary",
        [RBK_OUTPUT_ANSWERS] = "jsonl",
        [RBK_OUTPUT_PAGE] = "html",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], text) == 0) {
            *output = (enum rbk_replay_output)i;
            return CLI_DONE;
        }
    }
    return rbk_cli_fail(CLI_USAGE, "replay", "--output %s: expected summary, jsonl or html", text);
}

/* "99%", "99.5 %" or 0.99. */
static int share_parse(const char *text, double *share)
{
    char number[REDBUCKET_NUMBER_SIZE];
    const char *percent = strchr(text, '%');
    size_t len = percent ? (size_t)(percent - text) : strlen(text);
    double value = 0;

    while (percent && len > 0 && text[len - 1] == ' ')
        len--;
    if (len < sizeof(number) && (!percent || percent[1] == '\0')) {
        memcpy(number, text, len);
        number[len] = '\0';
        if (redbucket_number_parse(number, &value, NULL) != REDBUCKET_OK)
            value = 0;
    }
    *share = percent ? value / 100 : value;
    if (!(*share > 0 && *share <= 1))
        return rbk_cli_fail(CLI_USAGE, "replay",
                            "--suggest %.60s: expected a share such as 99%% or 0.99", text);
    return CLI_DONE;
}

static struct rbk_tries tries_of(const struct cli_context *context,
                                 const struct rbk_replay_arguments *arguments)
{
    return (struct rbk_tries){arguments->tries, arguments->tries_len, context->option_limits,
                              context->option_limits_len};
}

static int try_take(const struct cli_context *context, struct rbk_replay_arguments *arguments)
{
    const struct rbk_tries tries = tries_of(context, arguments);
    const int exit_status = rbk_limit_sets_check_name(optarg, &tries);

    if (exit_status == CLI_DONE)
        arguments->tries[arguments->tries_len++] =
            (struct rbk_try){optarg, context->option_limits_len};
    return exit_status;
}

static int option_take(const struct cli_context *context, struct rbk_replay_arguments *arguments,
                       int option)
{
    switch (option) {
    case OPTION_FORMAT:
        return format_parse(optarg, &arguments->format);
    case OPTION_OUTPUT:
        return output_parse(optarg, &arguments->output);
    case OPTION_REORDER:
        return rbk_cli_duration_option("--reorder", optarg, &arguments->reorder_s);
    case OPTION_SUGGEST:
        return share_parse(optarg, &arguments->share);
    case OPTION_OUT:
        arguments->out = optarg;
        return CLI_DONE;
    case OPTION_TRY:
        return try_take(context, arguments);
    default:
        arguments->keys[arguments->keys_len++] = optarg;
        return CLI_DONE;
    }
}

/* -s may name no other store, and must be right even though a replay makes its own. */
static int store_check(const struct cli_context *context)
{
    struct redbucket_error error;
    struct redbucket_store *store;

    if (!context->store_option)
        return CLI_DONE;
    if (strncmp(context->store_option, "memory:", 7) != 0)
        return rbk_cli_fail(CLI_USAGE, "replay",
                            "-s %s: a replay decides in memory of its own; expected memory: or no "
                            "-s at all",
                            context->store_option);
    if (redbucket_store_open(context->store_option, &store, &error) != REDBUCKET_OK)
        return rbk_cli_fail_error("-s", &error);
    redbucket_store_close(store);
    return CLI_DONE;
}

/* The index of a limit's name, or SIZE_MAX. */
static size_t name_find(const struct rbk_limit_sets *sets, const char *name, size_t name_len)
{
    for (size_t i = 0; i < sets->names_len; i++)
        if (strlen(sets->names[i]) == name_len && memcmp(sets->names[i], name, name_len) == 0)
            return i;
    return SIZE_MAX;
}

/* LIMIT=TEMPLATE */
static int key_parse(struct rbk_replay_arguments *arguments, const char *text)
{
    const char *equals = strchr(text, '=');
    struct redbucket_error error = {0};
    size_t limit;

    if (!equals)
        return rbk_cli_fail(CLI_USAGE, "replay",
                            "--key %s: expected LIMIT=KEY, such as ip=$remote_addr", text);
    limit = name_find(&arguments->sets, text, (size_t)(equals - text));
    if (limit == SIZE_MAX)
        return rbk_cli_fail(CLI_USAGE, "replay", "--key %s: there is no limit \"%.*s\"", text,
                            (int)(equals - text), text);
    if (arguments->templates[limit])
        return rbk_cli_fail(CLI_USAGE, "replay", "--key %s: this limit has a --key already", text);
    arguments->key_texts[limit] = equals + 1;
    switch (rbk_key_template_parse(equals + 1, &arguments->templates[limit], &error)) {
    case REDBUCKET_OK:
        return CLI_DONE;
    case REDBUCKET_ERROR_MEMORY:
        return rbk_cli_fail(CLI_STORE, "replay", "out of memory");
    default:
        return rbk_cli_fail(CLI_USAGE, "replay", "--key %s: at \"%s\": %s", text,
                            equals + 1 + (error.position > 0 ? error.position : 0), error.message);
    }
}

static int keys_parse(struct rbk_replay_arguments *arguments)
{
    int exit_status = CLI_DONE;

    arguments->templates = calloc(arguments->sets.names_len, sizeof(struct rbk_key_template *));
    arguments->key_texts = calloc(arguments->sets.names_len, sizeof(char *));
    if (!arguments->templates || !arguments->key_texts)
        return rbk_cli_fail(CLI_STORE, "replay", "out of memory");
    for (const char **key = arguments->keys; exit_status == CLI_DONE && *key; key++)
        exit_status = key_parse(arguments, *key);
    return exit_status;
}

static int log_check(const struct rbk_replay_arguments *arguments, enum rbk_replay_format format)
{
    /* JSON lines would need none, but the first line doesn't look like them. */
    const char *hint = arguments->format == RBK_FORMAT_AUTO ? ", or --format jsonl" : "";
    const struct rbk_limit_sets *sets = &arguments->sets;

    if (sets->names_len > REDBUCKET_KEYS_MAX)
        return rbk_cli_fail(CLI_USAGE, "replay", "%zu limits: a line can name at most %d",
                            sets->names_len, REDBUCKET_KEYS_MAX);
    for (size_t i = 0; i < sets->names_len; i++) {
        const struct rbk_key_template *template = arguments->templates[i];
        const char *name = sets->names[i];

        if (!template)
            return rbk_cli_fail(CLI_USAGE, "replay",
                                "limit %s has no key: expected --key '%s=$FIELD', such as "
                                "--key '%s=$remote_addr'%s",
                                name, name, name, hint);
        if (format == RBK_FORMAT_COMMON && rbk_key_template_uses(template, RBK_LOG_HTTP_USER_AGENT))
            return rbk_cli_fail(CLI_USAGE, "replay",
                                "limit %s: the common format has no $http_user_agent", name);
    }
    return CLI_DONE;
}

int rbk_replay_check_format(const struct rbk_replay_arguments *arguments,
                            enum rbk_replay_format format)
{
    if (format == RBK_FORMAT_AUTO)
        return CLI_DONE;
    if (format != RBK_FORMAT_JSONL)
        return log_check(arguments, format);
    if (arguments->keys_len > 0)
        return rbk_cli_fail(CLI_USAGE, "replay",
                            "--key %s: JSON lines name their keys themselves; --key is for access "
                            "logs",
                            arguments->keys[0]);
    return CLI_DONE;
}

/* A limit of this name, whatever it allows. */
static int limit_make_up(struct cli_context *context, const char *key, size_t name_len)
{
    struct redbucket_named_limit *limit = malloc(sizeof(*limit));
    char text[REDBUCKET_LIMIT_TEXT_SIZE];
    struct redbucket_error error;

    if (!limit)
        return rbk_cli_fail(CLI_STORE, "replay", "out of memory");
    snprintf(text, sizeof(text), "%.*s:1", (int)(name_len < 300 ? name_len : 300), key);
    if (redbucket_limit_parse(text, limit, &error) != REDBUCKET_OK) {
        free(limit);
        return rbk_cli_fail(CLI_USAGE, "replay", "--key %.100s: %s", key, error.message);
    }
    return rbk_cli_put_limit(context, limit);
}

/* --suggest needs the names of limits alone, and a key has one. */
static int limits_make_up(struct cli_context *context, const struct rbk_replay_arguments *arguments)
{
    int exit_status = CLI_DONE;

    for (const char **key = arguments->keys; exit_status == CLI_DONE && *key; key++) {
        const char *equals = strchr(*key, '=');
        const size_t name_len = equals ? (size_t)(equals - *key) : 0;

        if (equals && rbk_cli_find_limit(context, *key, name_len) == SIZE_MAX)
            exit_status = limit_make_up(context, *key, name_len);
    }
    return exit_status;
}

/* Has the context configured with what stands before the first --try, and makes the sets. */
static int limits_make(struct cli_context *context, struct rbk_replay_arguments *arguments)
{
    const struct rbk_tries tries = tries_of(context, arguments);
    int exit_status;

    arguments->compared = tries.len > 0;
    if (tries.len > 0)
        context->option_limits_len = tries.tries[0].first;
    exit_status = rbk_cli_configure(context);
    arguments->given = context->limits_len;
    if (exit_status == CLI_DONE && arguments->share > 0)
        exit_status = limits_make_up(context, arguments);
    if (exit_status == CLI_DONE && tries.len == 0)
        exit_status = rbk_cli_need_limits(context);
    if (exit_status == CLI_DONE)
        exit_status = rbk_limit_sets_make(&arguments->sets, context, &tries);
    return exit_status;
}

static int output_check(const struct rbk_replay_arguments *arguments)
{
    if (arguments->output == RBK_OUTPUT_ANSWERS && arguments->tries_len > 0)
        return rbk_cli_fail(CLI_USAGE, "replay",
                            "--output jsonl: answers are those of one set of limits; expected no "
                            "--try");
    if (arguments->output == RBK_OUTPUT_PAGE && !arguments->out)
        return rbk_cli_fail(CLI_USAGE, "replay",
                            "--output html: expected -o FILE as well, or -o - for standard output");
    if (arguments->share > 0 &&
        (arguments->output != RBK_OUTPUT_SUMMARY || arguments->tries_len > 0))
        return rbk_cli_fail(CLI_USAGE, "replay",
                            "--suggest: expected no --output and no --try, which are about limits "
                            "that one has");
    if (arguments->output != RBK_OUTPUT_PAGE && arguments->out)
        return rbk_cli_fail(CLI_USAGE, "replay", "-o %.100s: expected --output html as well",
                            arguments->out);
    return CLI_DONE;
}

static int arguments_check(struct cli_context *context, struct rbk_replay_arguments *arguments)
{
    int exit_status;

    if (arguments->files_len == 0)
        return rbk_cli_fail(CLI_USAGE, "replay", "expected FILE..., or - for standard input");
    exit_status = output_check(arguments);
    if (exit_status == CLI_DONE)
        exit_status = store_check(context);
    if (exit_status == CLI_DONE)
        exit_status = limits_make(context, arguments);
    if (exit_status == CLI_DONE)
        exit_status = keys_parse(arguments);
    if (exit_status == CLI_DONE)
        exit_status = rbk_replay_check_format(arguments, arguments->format);
    return exit_status;
}

int rbk_replay_arguments_parse(struct cli_context *context, int argc, char **argv,
                               struct rbk_replay_arguments *arguments, bool *stop)
{
    int exit_status = CLI_DONE;
    int option = 0;

    *stop = true;
    *arguments = (struct rbk_replay_arguments){.reorder_s = REORDER_DEFAULT_S};
    arguments->keys = calloc((size_t)argc + 1, sizeof(char *));
    arguments->tries = calloc((size_t)argc + 1, sizeof(struct rbk_try));
    if (!arguments->keys || !arguments->tries)
        return rbk_cli_fail(CLI_STORE, "replay", "out of memory");
    while (exit_status == CLI_DONE) {
        option = rbk_cli_option(context, argc, argv);
        if (option == CLI_OPTION_STOP)
            return context->exit_status;
        if (option == CLI_OPTION_END)
            break;
        exit_status = option_take(context, arguments, option);
    }
    if (exit_status != CLI_DONE)
        return exit_status;
    arguments->files = argv + optind;
    arguments->files_len = (size_t)(argc - optind);
    exit_status = arguments_check(context, arguments);
    *stop = exit_status != CLI_DONE;
    return exit_status;
}

void rbk_replay_arguments_fini(struct rbk_replay_arguments *arguments)
{
    for (size_t i = 0; arguments->templates && i < arguments->sets.names_len; i++)
        rbk_key_template_destroy(arguments->templates[i]);
    rbk_limit_sets_fini(&arguments->sets);
    free(arguments->templates);
    free(arguments->key_texts);
    free(arguments->tries);
    free(arguments->keys);
}
