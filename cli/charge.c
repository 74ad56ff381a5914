/* SPDX-License-Identifier: MIT */
/*
 * `redbucket charge`: takes without asking, for work that is done already.
 */
#include "ask.h"
#include "commands.h"

static int run(struct cli_context *context, int argc, char **argv)
{
    return rbk_ask_command(context, argc, argv, REDBUCKET_CHARGE);
}

static const struct option options[] = {ASK_OPTION_COST, {NULL, 0, NULL, 0}};

const struct cli_command rbk_cli_charge = {
    .name = "charge",
    .arguments = "[--cost N] NAME=KEY...",
    .summary = "take without asking, for work done already",
    .help = "Takes from each of these keys without asking whether there is room: for work\n"
            "done already, such as a failed login or an answer's length known at its end. The\n"
            "bucket may pass its limit, and requests are rejected until it has drained.\n"
            "\n"
            "  --cost N  how much to take; 1 when not given\n"
            "\n"
            "Exit status: 0 done, 2 usage or configuration, 3 store failed.\n"
            "\n"
            "Examples:\n"
            "  redbucket -l tokens:1000/m,burst=5000 charge --cost 812 tokens=alice\n",
    .options = options,
    .run = run,
};
