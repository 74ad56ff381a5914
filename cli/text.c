/* SPDX-License-Identifier: MIT */
/*
 * Values of options, and numbers for people. Waits are rounded up, so that who waits as long as
 * it says has waited long enough.
 */
#include "cli.h"

#include <math.h>

int rbk_cli_number_option(const char *option, const char *text, double *number)
{
    struct redbucket_error error;

    if (redbucket_number_parse(text, number, &error) != REDBUCKET_OK)
        return rbk_cli_fail_error(option, &error);
    return CLI_DONE;
}

int rbk_cli_duration_option(const char *option, const char *text, double *seconds)
{
    struct redbucket_error error;

    if (redbucket_duration_parse(text, seconds, &error) != REDBUCKET_OK)
        return rbk_cli_fail_error(option, &error);
    return CLI_DONE;
}

int rbk_cli_count_option(const char *option, const char *text, const uint64_t range[2],
                         uint64_t *count)
{
    const char *digit = text;
    uint64_t value = 0;

    while (*digit >= '0' && *digit <= '9' && value <= range[1] && value < UINT64_MAX / 16)
        value = value * 10 + (uint64_t)(*digit++ - '0');
    if (digit == text || *digit != '\0' || value < range[0] || value > range[1])
        return rbk_cli_fail(CLI_USAGE, option, "\"%s\": expected a whole number from %llu to %llu",
                            text, (unsigned long long)range[0], (unsigned long long)range[1]);
    *count = value;
    return CLI_DONE;
}

/* Milliseconds are as fine as anybody reads, unless there are hardly any of them. */
static double round_up(double seconds)
{
    const double steps = seconds >= 0.1 ? 1e3 : 1e6;

    if (!(seconds < 1e12))
        return seconds;
    return ceil(seconds * steps) / steps;
}

void rbk_cli_seconds_format(double seconds, char out[CLI_SECONDS_SIZE])
{
    char number[REDBUCKET_NUMBER_SIZE];

    redbucket_number_format(round_up(seconds), number);
    snprintf(out, CLI_SECONDS_SIZE, "%s s", number);
}
