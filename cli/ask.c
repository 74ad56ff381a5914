/* SPDX-License-Identifier: MIT */
/*
 * From the words of a command to one decision of the library.
 *
 * Invariant: the store is opened only when options, configuration and keys are known to be good.
 */
#include "ask.h"

#include <math.h>
#include <string.h>

/* The model's range of a cost; outside it nothing would be read. */
#define COST_MIN 1e-3
#define COST_MAX 1e12

static int read_cost(const char *text, double *cost)
{
    double number;
    int result = rbk_cli_number_option("--cost", text, &number);

    if (result != CLI_DONE)
        return result;
    if (!(number >= COST_MIN && number <= COST_MAX))
        return rbk_cli_fail(CLI_USAGE, "--cost", "\"%s\": expected a number from 0.001 to 1e12",
                            text);
    *cost = number;
    return CLI_DONE;
}

static int read_wait(const char *text, struct cli_ask *ask)
{
    ask->waits = true;
    ask->wait = INFINITY;
    if (text == NULL)
        return CLI_DONE;
    return rbk_cli_duration_option("--wait", text, &ask->wait);
}

static int read_options(struct cli_context *context, int argc, char **argv, struct cli_ask *ask)
{
    int result = CLI_DONE;

    while (result == CLI_DONE) {
        switch (rbk_cli_option(context, argc, argv)) {
        case ASK_COST:
            result = read_cost(optarg, &ask->cost);
            break;
        case ASK_WAIT:
            result = read_wait(optarg, ask);
            break;
        case CLI_OPTION_STOP:
            return CLI_OPTION_STOP;
        default:
            return CLI_DONE;
        }
    }
    return result;
}

int rbk_ask_begin(struct cli_context *context, int argc, char **argv, struct cli_ask *ask,
                  bool *stop)
{
    int result;

    memset(ask, 0, sizeof(*ask));
    ask->cost = 1.0;
    result = read_options(context, argc, argv, ask);
    *stop = result != CLI_DONE;
    if (result == CLI_OPTION_STOP)
        return context->exit_status;
    if (result == CLI_DONE)
        result = rbk_cli_configure(context);
    if (result == CLI_DONE)
        result = rbk_cli_keys(context, argv + optind, argc - optind, &ask->keys);
    if (result == CLI_DONE)
        result = rbk_cli_open(context, &ask->store, &ask->limiter);
    *stop = result != CLI_DONE;
    return result;
}

void rbk_ask_end(struct cli_ask *ask)
{
    rbk_cli_close(ask->store, ask->limiter);
    ask->store = NULL;
    ask->limiter = NULL;
}

int rbk_ask_once(const struct cli_context *context, struct cli_ask *ask,
                 const struct redbucket_request *question, struct cli_answer *answer)
{
    struct redbucket_request request = *question;
    struct redbucket_error error;

    request.keys = ask->keys.items;
    request.keys_len = ask->keys.len;
    request.cost = ask->cost;
    request.verdicts = answer->verdicts;
    if (redbucket_decide(ask->limiter, &request, 1) != REDBUCKET_OK) {
        redbucket_request_error(&request, &error);
        return rbk_cli_fail_store(context->command->name, ask->store, error.status, error.message);
    }
    answer->response = request.response;
    return CLI_DONE;
}

int rbk_ask_command(struct cli_context *context, int argc, char **argv,
                    enum redbucket_operation operation)
{
    struct cli_answer answer = {.waited = 0.0};
    struct cli_ask ask;
    bool stop;
    int result = rbk_ask_begin(context, argc, argv, &ask, &stop);

    if (stop)
        return result;
    if (operation == REDBUCKET_REQUEST)
        result = rbk_ask_permit(context, &ask, &answer);
    else
        result = rbk_ask_once(context, &ask, &(struct redbucket_request){.operation = operation},
                              &answer);
    if (result == CLI_DONE)
        result = rbk_answer_print(context, &ask, operation, &answer);
    rbk_ask_end(&ask);
    return result;
}
