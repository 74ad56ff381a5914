/* SPDX-License-Identifier: MIT */
/*
 * An answer, for people in one short line and for programs as one JSON object in one line.
 */
#include "ask.h"
#include "json.h"

#include <inttypes.h>
#include <math.h>

static const struct redbucket_named_limit *limit_of(const struct cli_context *context,
                                                    const struct cli_ask *ask, size_t index)
{
    return context->limits[ask->keys.limits[index]];
}

/* Of a cost that is more than a limit holds: why waiting won't help. */
static void print_never(const struct redbucket_limit *limit, double cost, FILE *out)
{
    char text[REDBUCKET_NUMBER_SIZE];

    redbucket_number_format(cost, text);
    fprintf(out, ", never: cost %s exceeds burst + delay + 1 = ", text);
    redbucket_number_format(limit->burst + limit->delay + 1.0, text);
    fputs(text, out);
}

void rbk_answer_rejection(const struct cli_context *context, const struct cli_ask *ask,
                          const struct cli_answer *answer, FILE *out)
{
    const struct redbucket_response *response = &answer->response;
    const struct redbucket_named_limit *limit = NULL;
    char seconds[CLI_SECONDS_SIZE];

    if (response->decided != REDBUCKET_NONE)
        limit = limit_of(context, ask, response->decided);
    fprintf(out, "rejected%s%s", limit != NULL ? " by " : "", limit != NULL ? limit->name : "");
    if (isinf(response->retry_after) && limit != NULL) {
        print_never(&limit->limit, ask->cost, out);
        return;
    }
    rbk_cli_seconds_format(response->retry_after, seconds);
    fprintf(out, ", retry after %s", seconds);
}

static void print_text(const struct cli_context *context, const struct cli_ask *ask,
                       enum redbucket_operation operation, const struct cli_answer *answer)
{
    const double wait = ask->waits ? answer->waited : answer->response.delay;
    char seconds[CLI_SECONDS_SIZE];

    if (operation != REDBUCKET_REQUEST && operation != REDBUCKET_PEEK) {
        printf("done");
    } else if (!answer->response.accepted) {
        rbk_answer_rejection(context, ask, answer, stdout);
    } else if (wait > 0.0) {
        rbk_cli_seconds_format(wait, seconds);
        printf("accepted after %s", seconds);
    } else {
        printf("accepted");
    }
    if (operation != REDBUCKET_REQUEST)
        printf(", %" PRId64 " remaining", answer->response.remaining);
    putchar('\n');
}

static void print_members(struct cli_json *json, const struct redbucket_verdict *verdict)
{
    rbk_json_bool(json, "accepted", verdict->accepted);
    if (verdict->accepted)
        rbk_json_real(json, "delay", verdict->delay);
    else
        rbk_json_real(json, "retry_after", verdict->retry_after);
    rbk_json_integer(json, "remaining", verdict->remaining);
    rbk_json_real(json, "reset_after", verdict->reset_after);
}

static void print_json(const struct cli_context *context, const struct cli_ask *ask,
                       const struct cli_answer *answer)
{
    const struct redbucket_response *response = &answer->response;
    const struct redbucket_verdict whole = {
        .accepted = response->accepted,
        .delay = response->delay,
        .retry_after = response->retry_after,
        .reset_after = response->reset_after,
        .remaining = response->remaining,
    };
    struct cli_json json = {stdout, false};

    rbk_json_object(&json, NULL);
    print_members(&json, &whole);
    rbk_json_object(&json, "limits");
    for (size_t i = 0; i < ask->keys.len; i++) {
        rbk_json_object(&json, limit_of(context, ask, i)->name);
        print_members(&json, &answer->verdicts[i]);
        rbk_json_object_end(&json);
    }
    rbk_json_object_end(&json);
    if (response->decided != REDBUCKET_NONE)
        rbk_json_string(&json, "decided", limit_of(context, ask, response->decided)->name);
    rbk_json_bool(&json, "degraded", response->degraded);
    if (ask->waits)
        rbk_json_real(&json, "waited", answer->waited);
    rbk_json_object_end(&json);
    rbk_json_line(&json);
}

int rbk_answer_print(const struct cli_context *context, const struct cli_ask *ask,
                     enum redbucket_operation operation, const struct cli_answer *answer)
{
    if (context->json)
        print_json(context, ask, answer);
    else
        print_text(context, ask, operation, answer);
    return answer->response.accepted ? CLI_DONE : CLI_REJECTED;
}
