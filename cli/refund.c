/* SPDX-License-Identifier: MIT */
/*
 * `redbucket refund`: gives back what a request or a charge took.
 */
#include "ask.h"
#include "commands.h"

static int run(struct cli_context *context, int argc, char **argv)
{
    return rbk_ask_command(context, argc, argv, REDBUCKET_REFUND);
}

static const struct option options[] = {ASK_OPTION_COST, {NULL, 0, NULL, 0}};

const struct cli_command rbk_cli_refund = {
    .name = "refund",
    .arguments = "[--cost N] NAME=KEY...",
    .summary = "give back what was taken",
    .help = "Gives back what a request or a charge took from each of these keys, but never\n"
            "more than is in the bucket. A key that has no bucket stays without.\n"
            "\n"
            "  --cost N  how much to give back; 1 when not given\n"
            "\n"
            "A refund says that the work wasn't done at all. When time has passed since, part\n"
            "of the permit has drained already, and giving back all of it lets more in.\n"
            "\n"
            "Exit status: 0 done, 2 usage or configuration, 3 store failed.\n"
            "\n"
            "Examples:\n"
            "  redbucket -l ip:5/s,burst=10 refund --cost 2 ip=192.0.2.7    done, 7 remaining\n",
    .options = options,
    .run = run,
};
