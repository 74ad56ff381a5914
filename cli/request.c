/* SPDX-License-Identifier: MIT */
/*
 * `redbucket request`: asks for a permit.
 */
#include "ask.h"
#include "commands.h"

static int run(struct cli_context *context, int argc, char **argv)
{
    return rbk_ask_command(context, argc, argv, REDBUCKET_REQUEST);
}

static const struct option options[] = {ASK_OPTION_COST, ASK_OPTION_WAIT, {NULL, 0, NULL, 0}};

const struct cli_command rbk_cli_request = {
    .name = "request",
    .arguments = "[--cost N] [--wait[=SECONDS]] NAME=KEY...",
    .summary = "ask for a permit",
    .help = "Asks the limits that are named for a permit, each for its own key. All of them\n"
            "must have room: then all of them take it, otherwise none does.\n"
            "\n"
            "  --cost N          how much to take, from 0.001 to 1e12; 1 when not given\n"
            "  --wait[=SECONDS]  sleep a delay out, and after a rejection ask again, for\n"
            "                    SECONDS at most (also 500ms, 2s, 5m) or as long as it takes.\n"
            "                    A permit whose delay is longer than what is left is given\n"
            "                    back, and the answer is a rejection.\n"
            "\n"
            "Without --wait nothing is slept: \"accepted after 0.4 s\" says that the caller\n"
            "should wait so long before it goes on.\n"
            "\n"
            "Exit status: 0 accepted, 1 rejected, 2 usage or configuration, 3 store failed.\n"
            "\n"
            "Examples:\n"
            "  redbucket -l ip:5/s,burst=10 request ip=192.0.2.7\n"
            "  redbucket -l user:1/s,delay=3 -l all:100/s request --wait=10 user=alice all=\n"
            "  redbucket --json -l login:3/m request login=bob   {\"accepted\": true, ...}\n",
    .options = options,
    .run = run,
};
