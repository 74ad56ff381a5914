/* SPDX-License-Identifier: MIT */
/*
 * Asking: what `request`, `peek`, `refund`, `charge`, `reset` and `run` have in common.
 */
#ifndef RBK_CLI_ASK_H
#define RBK_CLI_ASK_H

#include "cli.h"
#include "named_keys.h"

/* The options that a command may offer. */
enum {
    ASK_COST = CLI_OPTION_OWN,
    ASK_WAIT,
};

#define ASK_OPTION_COST                           \
    {                                             \
        "cost", required_argument, NULL, ASK_COST \
    }
#define ASK_OPTION_WAIT                           \
    {                                             \
        "wait", optional_argument, NULL, ASK_WAIT \
    }

/*
 *   waits  --wait was given
 *   wait   for how many seconds at most, INFINITY for as long as it takes; 0 without --wait
 */
struct cli_ask {
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    struct cli_keys keys;
    double cost;
    bool waits;
    double wait;
};

/* `waited` is how many seconds were slept in all. */
struct cli_answer {
    struct redbucket_response response;
    struct redbucket_verdict verdicts[REDBUCKET_KEYS_MAX];
    double waited;
};

/*
 * Reads options, configuration and NAME=KEY words, and opens the store. What isn't CLI_DONE, or
 * help that was printed (then *stop is true), is the command's exit status. rbk_ask_end() in any
 * case.
 */
int rbk_ask_begin(struct cli_context *context, int argc, char **argv, struct cli_ask *ask,
                  bool *stop);
void rbk_ask_end(struct cli_ask *ask);

/* Does one operation on all keys; `taken_at` is for REDBUCKET_GIVE_BACK. */
int rbk_ask_once(const struct cli_context *context, struct cli_ask *ask,
                 const struct redbucket_request *question, struct cli_answer *answer);

/*
 * Asks for a permit. Without --wait: once, and a delay is left to the caller. With it: a rejection
 * is asked again and a delay slept out, within the wait; a permit whose delay is longer than what
 * is left of it is given back, and the answer is a rejection.
 */
int rbk_ask_permit(const struct cli_context *context, struct cli_ask *ask,
                   struct cli_answer *answer);

/* Sleeps for so many seconds, however many, whatever signals arrive. */
void rbk_sleep(double seconds);

/* Prints the answer in the form that the operation has, as text or JSON. Returns CLI_DONE or
 * CLI_REJECTED. */
int rbk_answer_print(const struct cli_context *context, const struct cli_ask *ask,
                     enum redbucket_operation operation, const struct cli_answer *answer);

/* "rejected by ip, retry after 1.25 s", without a newline. */
void rbk_answer_rejection(const struct cli_context *context, const struct cli_ask *ask,
                          const struct cli_answer *answer, FILE *out);

/* The whole of a command that does one operation and prints the answer. */
int rbk_ask_command(struct cli_context *context, int argc, char **argv,
                    enum redbucket_operation operation);

#endif
