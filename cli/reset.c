/* SPDX-License-Identifier: MIT */
/*
 * `redbucket reset`: forgets buckets. It takes --cost like its siblings, so that a script can put
 * any of them in the same place, and has no use for it.
 */
#include "ask.h"
#include "commands.h"

static int run(struct cli_context *context, int argc, char **argv)
{
    return rbk_ask_command(context, argc, argv, REDBUCKET_RESET);
}

static const struct option options[] = {ASK_OPTION_COST, {NULL, 0, NULL, 0}};

const struct cli_command rbk_cli_reset = {
    .name = "reset",
    .arguments = "NAME=KEY...",
    .summary = "forget what was taken",
    .help = "Forgets the bucket of each of these keys, as if nothing had ever been taken.\n"
            "(--cost is read as in the other commands and has no effect.)\n"
            "\n"
            "Exit status: 0 done, 2 usage or configuration, 3 store failed.\n"
            "\n"
            "Examples:\n"
            "  redbucket -l ip:5/s,burst=10 reset ip=192.0.2.7    done, 11 remaining\n",
    .options = options,
    .run = run,
};
