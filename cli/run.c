/* SPDX-License-Identifier: MIT */
/*
 * `redbucket run`: runs a command once it has a permit.
 *
 * The store is closed before the command begins, and the permit stays spent whatever becomes of it.
 * Standard output is the command's: what `run` has to say goes to standard error, but for a
 * rejection as JSON, after which there is no command.
 */
#include "ask.h"
#include "child.h"
#include "commands.h"

#include <string.h>

/* Where "--" stands in argv, or argc. It is looked for here since getopt moves it. */
static int find_separator(int argc, char **argv)
{
    int at = 1;

    while (at < argc && strcmp(argv[at], "--") != 0)
        at++;
    return at;
}

/* Prints why there is no permit. */
static int refuse(const struct cli_context *context, const struct cli_ask *ask,
                  const struct cli_answer *answer)
{
    if (context->json) {
        rbk_answer_print(context, ask, REDBUCKET_REQUEST, answer);
        return CLI_NO_PERMIT;
    }
    fputs("redbucket: run: ", stderr);
    rbk_answer_rejection(context, ask, answer, stderr);
    fputc('\n', stderr);
    return CLI_NO_PERMIT;
}

/* CLI_DONE with a permit whose delay is slept out. */
static int get_permit(struct cli_context *context, int argc, char **argv, bool *stop)
{
    struct cli_answer answer = {.waited = 0.0};
    struct cli_ask ask;
    int result = rbk_ask_begin(context, argc, argv, &ask, stop);

    if (!*stop)
        result = rbk_ask_permit(context, &ask, &answer);
    if (!*stop && result == CLI_DONE && !answer.response.accepted)
        result = refuse(context, &ask, &answer);
    rbk_ask_end(&ask);
    if (!*stop && result == CLI_DONE && !ask.waits)
        rbk_sleep(answer.response.delay);
    return result;
}

static int run(struct cli_context *context, int argc, char **argv)
{
    const int separator = find_separator(argc, argv);
    bool stop;
    int result;

    if (separator < argc - 1) {
        char *kept = argv[separator];

        argv[separator] = NULL; /* as argv ends, so that getopt doesn't see the command */
        result = get_permit(context, separator, argv, &stop);
        argv[separator] = kept;
        return stop || result != CLI_DONE ? result : rbk_child_run(argv + separator + 1);
    }
    for (int i = 1; i < separator; i++) /* help needs no command */
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return get_permit(context, separator, argv, &stop);
    return rbk_cli_fail(CLI_USAGE, "run", "expected -- and a command behind NAME=KEY");
}

static const struct option options[] = {ASK_OPTION_COST, ASK_OPTION_WAIT, {NULL, 0, NULL, 0}};

const struct cli_command rbk_cli_run = {
    .name = "run",
    .arguments = "[--cost N] [--wait[=SECONDS]] NAME=KEY... -- COMMAND...",
    .summary = "run a command once it has a permit",
    .help = "Asks for a permit as `request` does, sleeps its delay out, then runs COMMAND.\n"
            "\n"
            "  --cost N          how much to take, from 0.001 to 1e12; 1 when not given\n"
            "  --wait[=SECONDS]  ask again after a rejection, for SECONDS at most (or 500ms,\n"
            "                    2s, 5m), delay included, or as long as it takes\n"
            "\n"
            "Signals INT, QUIT, TERM, HUP, USR1 and USR2 sent to redbucket are passed on to\n"
            "the command. The permit stays spent, whatever becomes of the command.\n"
            "\n"
            "Exit status: the command's own; 128 plus the number of the signal that ended it;\n"
            "126 when it can't be run, 127 when there is none of that name; 75 when there was\n"
            "no permit; 2 usage or configuration; 3 store failed.\n"
            "\n"
            "Examples:\n"
            "  redbucket -l mail:10/h,burst=5 run mail=root -- sendmail root\n"
            "  redbucket -l api:2/s run --wait=30 api= -- curl -s https://www.example.org/\n",
    .options = options,
    .run = run,
};
