/* SPDX-License-Identifier: MIT */
/*
 * What `redbucket replay` was asked to do: its options, read and checked as far as that is possible
 * before the first line.
 */
#ifndef RBK_REPLAY_ARGUMENTS_H
#define RBK_REPLAY_ARGUMENTS_H

#include "../cli.h"

#include "key_template.h"
#include "limit_sets.h"

#include <stdbool.h>
#include <stddef.h>

enum rbk_replay_format {
    RBK_FORMAT_AUTO,
    RBK_FORMAT_COMBINED,
    RBK_FORMAT_COMMON,
    RBK_FORMAT_JSONL,
};

enum rbk_replay_output {
    RBK_OUTPUT_SUMMARY,
    RBK_OUTPUT_ANSWERS, /* --output jsonl: a line for each step */
    RBK_OUTPUT_PAGE,    /* --output html */
};

/*
 *   format     of the input
 *   output     what is wanted
 *   out        -o, or NULL
 *   reorder_s  the window
 *   share      of --suggest, or 0
 *   given      how many limits there were before those that --suggest makes up for its keys
 *   sets       of limits: one, or those of --try
 *   compared   there was a --try
 *   templates  one for each name of the sets, NULL where no --key was given
 *   key_texts  the texts that these were made of
 *   keys       the texts of --key, keys_len of them and a NULL
 *   files      the arguments, "-" for standard input
 */
struct rbk_replay_arguments {
    enum rbk_replay_format format;
    enum rbk_replay_output output;
    const char *out;
    double reorder_s;
    double share;
    size_t given;
    struct rbk_limit_sets sets;
    bool compared;
    struct rbk_try *tries;
    size_t tries_len;
    struct rbk_key_template **templates;
    const char **key_texts;
    const char **keys;
    size_t keys_len;
    char **files;
    size_t files_len;
};

/* The command's own options, for struct cli_command. */
extern const struct option rbk_replay_options[];

/* Reads the options, has the context configured, and checks everything. Returns an exit status;
 * when *stop comes back true, the command ends with it. Free with rbk_replay_arguments_fini in any
 * case. */
int rbk_replay_arguments_parse(struct cli_context *context, int argc, char **argv,
                               struct rbk_replay_arguments *arguments, bool *stop);

void rbk_replay_arguments_fini(struct rbk_replay_arguments *arguments);

/* CLI_USAGE, with a message, when these limits and keys don't go with that format: for FORMAT_AUTO
 * to be called once it is known what the input is. */
int rbk_replay_check_format(const struct rbk_replay_arguments *arguments,
                            enum rbk_replay_format format);

#endif
