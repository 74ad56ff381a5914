/* SPDX-License-Identifier: MIT */
/*
 * `redbucket peek`: answers as a request would, and changes nothing.
 */
#include "ask.h"
#include "commands.h"

static int run(struct cli_context *context, int argc, char **argv)
{
    return rbk_ask_command(context, argc, argv, REDBUCKET_PEEK);
}

static const struct option options[] = {ASK_OPTION_COST, {NULL, 0, NULL, 0}};

const struct cli_command rbk_cli_peek = {
    .name = "peek",
    .arguments = "[--cost N] NAME=KEY...",
    .summary = "say what a request would be answered, and take nothing",
    .help = "Answers as a request would be answered now, and how many requests of cost 1\n"
            "would remain behind it, but takes nothing.\n"
            "\n"
            "  --cost N  how much the request would take; 1 when not given\n"
            "\n"
            "Exit status: 0 it would be accepted, 1 rejected, 2 usage or configuration,\n"
            "3 store failed.\n"
            "\n"
            "Examples:\n"
            "  redbucket -l ip:5/s,burst=10 peek ip=192.0.2.7    accepted, 10 remaining\n",
    .options = options,
    .run = run,
};
