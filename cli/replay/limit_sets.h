/* SPDX-License-Identifier: MIT */
/*
 * The sets of limits that one replay tries on the same traffic.
 *
 * Each --try begins a set: the limits of the configuration and of -l before the first --try, with
 * the -l behind it added, or in the place of those of the same name. What stands before the first
 * --try is a set as well, "base", when there is anything. Without --try there is one set, and it
 * has no name.
 *
 * Invariant: a limit has one name wherever it stands, and that name one address, `names`, so that
 * requests for all sets are made once.
 */
#ifndef RBK_REPLAY_LIMIT_SETS_H
#define RBK_REPLAY_LIMIT_SETS_H

#include "../cli.h"

#include <stddef.h>

/* At most so many sets are compared. */
#define RBK_LIMIT_SETS_MAX 8

/* What the limits before the first --try are called. */
#define RBK_LIMIT_SETS_BASE "base"

/* How long a name may be. */
#define RBK_LIMIT_SETS_NAME ((size_t)15)

/* --try: its name, and how many -l stood before it. */
struct rbk_try {
    const char *name;
    size_t first;
};

/* What the command line says of sets: each --try, and the texts of all -l. */
struct rbk_tries {
    const struct rbk_try *tries;
    size_t len;
    const char *const *texts;
    size_t texts_len;
};

/* `names` has each limit's, at the address that all sets share. */
struct rbk_limit_set {
    const char *name;
    struct redbucket_named_limit **limits;
    const char **names;
    size_t limits_len;
};

/*
 *   names  of all limits of all sets, each once
 *   owned  limits that the context doesn't own
 */
struct rbk_limit_sets {
    struct rbk_limit_set sets[RBK_LIMIT_SETS_MAX];
    size_t len;
    const char **names;
    size_t names_len;
    struct redbucket_named_limit **owned;
    size_t owned_len;
};

/* CLI_USAGE, with a message, when a --try of this name can't be one more of `tries`. */
int rbk_limit_sets_check_name(const char *name, const struct rbk_tries *tries);

/* Makes the sets. The context is configured with the -l before the first --try alone, and has to
 * outlive them. Returns an exit status. Free with rbk_limit_sets_fini in any case. */
int rbk_limit_sets_make(struct rbk_limit_sets *sets, const struct cli_context *context,
                        const struct rbk_tries *tries);

void rbk_limit_sets_fini(struct rbk_limit_sets *sets);

#endif
