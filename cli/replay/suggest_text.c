/* SPDX-License-Identifier: MIT */
/*
 * Suggestions for people: the limits as one would type them, and why these, in 80 columns.
 */
#include "suggest.h"

#include "../describe.h"

#include "limit_shown.h"
#include "printable.h"

static void print_aim(const struct rbk_suggestions *suggestions, FILE *out)
{
    char share[REDBUCKET_NUMBER_SIZE];
    char requests[RBK_NUMBER_SIZE];
    char allowed[RBK_NUMBER_SIZE];
    char each[RBK_NUMBER_SIZE];

    redbucket_number_format(suggestions->share * 100, share);
    rbk_grouped(suggestions->requests, requests);
    rbk_grouped(suggestions->allowed, allowed);
    rbk_grouped(suggestions->allowed_each, each);
    fprintf(out, "To leave %s %% of %s requests untouched, neither delayed nor rejected,\n", share,
            requests);
    fprintf(out, "at most %s may be touched", allowed);
    if (suggestions->len > 1)
        fprintf(out, ", %s by each of %zu limits", each, suggestions->len);
    fprintf(out, ".\n");
}

static void print_rate(const struct rbk_suggested_rate *rate, bool chosen, FILE *out)
{
    char burst[RBK_NUMBER_SIZE];
    char touched[RBK_NUMBER_SIZE];
    char less[RBK_NUMBER_SIZE] = "-";
    char window[RBK_NUMBER_SIZE];

    rbk_grouped(rate->burst, burst);
    rbk_grouped(rate->touched, touched);
    if (rate->touched_one_less > 0)
        rbk_grouped(rate->touched_one_less, less);
    rbk_grouped((uint64_t)rate->a_window, window);
    fprintf(out, "%s %-10s %12s %12s %16s %18s\n", chosen ? ">" : " ", rate->text, burst, touched,
            less, window);
}

/* The limit that was given under this name. */
static void print_given(const struct rbk_summary_limit *given, FILE *out)
{
    char text[RBK_LIMIT_SHOWN_SIZE];
    char touched[RBK_NUMBER_SIZE];

    rbk_limit_shown(given->limit, text);
    rbk_grouped(given->delayed + given->rejected, touched);
    fprintf(out, "  as given, %s: touches %s\n", text, touched);
}

static void print_why(const struct rbk_suggestion *suggestion, FILE *out)
{
    const struct rbk_suggested_rate *rate = &suggestion->rates[suggestion->chosen];
    char words[CLI_DESCRIPTION_SIZE];
    char number[RBK_NUMBER_SIZE];

    rbk_describe(&suggestion->limit.limit, words);
    rbk_grouped((uint64_t)rate->a_window, number);
    fprintf(out, "  %s\n", words);
    fprintf(out, "  Of all rates and bursts that keep to this, it lets one key do the least\n");
    fprintf(out, "  within any minute: %s request%s.", number, rate->a_window < 2 ? "" : "s");
    if (rate->touched_one_less > 0) {
        rbk_grouped(rate->touched_one_less, number);
        fprintf(out, " One less burst would touch %s.", number);
    }
    fprintf(out, "\n\n");
}

static void print_one(const struct rbk_suggestion *suggestion,
                      const struct rbk_summary_limit *given, FILE *out)
{
    if (suggestion->rates_len == 0) {
        fprintf(out, "\n%s: no request names it, nothing to go by\n", suggestion->name);
        return;
    }
    fprintf(out, "\n%s:%s,burst=%llu\n", suggestion->name,
            suggestion->rates[suggestion->chosen].text,
            (unsigned long long)suggestion->rates[suggestion->chosen].burst);
    print_why(suggestion, out);
    fprintf(out, "  %-10s %12s %12s %16s %18s\n", "rate", "burst", "touched", "one burst less",
            "most in a minute");
    for (size_t i = 0; i < suggestion->rates_len; i++)
        print_rate(&suggestion->rates[i], i == suggestion->chosen, out);
    if (given)
        print_given(given, out);
}

void rbk_suggestions_print_text(const struct rbk_suggestions *suggestions,
                                const struct rbk_findings *findings, size_t given, FILE *out)
{
    const struct rbk_summary *summary = findings->summaries[0];
    char touched[RBK_NUMBER_SIZE];
    char requests[RBK_NUMBER_SIZE];
    char share[RBK_NUMBER_SIZE];

    rbk_findings_print_span(findings, out);
    if (suggestions->requests == 0) {
        fprintf(out, "No request, nothing to go by.\n");
        return;
    }
    print_aim(suggestions, out);
    for (size_t i = 0; i < suggestions->len; i++)
        print_one(&suggestions->suggestions[i], i < given ? &summary->limits[i] : NULL, out);
    rbk_grouped(suggestions->touched, touched);
    rbk_grouped(suggestions->requests, requests);
    rbk_share(suggestions->requests - suggestions->touched, suggestions->requests, share);
    fprintf(out, "\n%s %s of %s requests: %s untouched.\n",
            suggestions->len > 1 ? "Together they touch" : "It touches", touched, requests, share);
    rbk_findings_print_damage(findings, out);
}
