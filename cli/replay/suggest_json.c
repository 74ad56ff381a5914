/* SPDX-License-Identifier: MIT */
/*
 * Suggestions for programs, one JSON object.
 */
#include "suggest.h"

#include "../describe.h"
#include "../json.h"

static void print_rate(const struct rbk_suggested_rate *rate, struct cli_json *json)
{
    rbk_json_object(json, NULL);
    rbk_json_string(json, "rate", rate->text);
    rbk_json_unsigned(json, "burst", rate->burst);
    rbk_json_unsigned(json, "touched", rate->touched);
    if (rate->touched_one_less > 0)
        rbk_json_unsigned(json, "touched_one_less", rate->touched_one_less);
    rbk_json_real(json, "a_minute", rate->a_window);
    rbk_json_object_end(json);
}

static void print_one(const struct rbk_suggestion *suggestion,
                      const struct rbk_summary_limit *given, struct cli_json *json)
{
    const struct rbk_suggested_rate *rate = &suggestion->rates[suggestion->chosen];
    char text[REDBUCKET_LIMIT_TEXT_SIZE];
    char words[CLI_DESCRIPTION_SIZE];

    rbk_json_object(json, suggestion->name);
    rbk_json_unsigned(json, "requests", suggestion->requests);
    if (suggestion->rates_len > 0) {
        snprintf(text, sizeof(text), "%s:%s,burst=%llu", suggestion->name, rate->text,
                 (unsigned long long)rate->burst);
        rbk_describe(&suggestion->limit.limit, words);
        rbk_json_string(json, "limit", text);
        rbk_json_string(json, "words", words);
        rbk_json_real(json, "rate", rate->rate);
        rbk_json_unsigned(json, "burst", rate->burst);
        rbk_json_unsigned(json, "touched", rate->touched);
        rbk_json_real(json, "a_minute", rate->a_window);
        rbk_json_array(json, "rates");
        for (size_t i = 0; i < suggestion->rates_len; i++)
            print_rate(&suggestion->rates[i], json);
        rbk_json_array_end(json);
    }
    if (given) {
        redbucket_limit_format(given->limit, text);
        rbk_json_object(json, "given");
        rbk_json_string(json, "limit", text);
        rbk_json_unsigned(json, "touched", given->delayed + given->rejected);
        rbk_json_object_end(json);
    }
    rbk_json_object_end(json);
}

void rbk_suggestions_print_json(const struct rbk_suggestions *suggestions,
                                const struct rbk_findings *findings, size_t given, FILE *out)
{
    struct cli_json json = {.out = out};

    rbk_json_object(&json, NULL);
    rbk_json_unsigned(&json, "lines", findings->traffic->lines);
    rbk_json_unsigned(&json, "late", findings->traffic->late);
    rbk_json_unsigned(&json, "unreadable", findings->faults->count);
    rbk_json_real(&json, "share", suggestions->share);
    rbk_json_unsigned(&json, "requests", suggestions->requests);
    rbk_json_unsigned(&json, "allowed", suggestions->allowed);
    rbk_json_unsigned(&json, "touched", suggestions->touched);
    rbk_json_object(&json, "limits");
    for (size_t i = 0; i < suggestions->len; i++)
        print_one(&suggestions->suggestions[i],
                  i < given ? &findings->summaries[0]->limits[i] : NULL, &json);
    rbk_json_object_end(&json);
    rbk_json_object_end(&json);
    rbk_json_line(&json);
}
