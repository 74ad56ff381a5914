/* SPDX-License-Identifier: MIT */
/*
 * Says what a limit allows, in the units in which a person would have said it: a rate of 0.0167 is
 * one a minute.
 *
 * At an empty bucket floor(burst + 1) requests pass at once, and up to burst + 1 + delay are
 * accepted in all, the last of them after delay / rate seconds.
 */
#include "describe.h"

#include "cli.h"

#include <math.h>
#include <stdio.h>

static void format_rounded(double number, char out[REDBUCKET_NUMBER_SIZE])
{
    const double scale = pow(10.0, 5.0 - floor(log10(number)));
    const double rounded = round(number * scale) / scale;

    redbucket_number_format(isfinite(rounded) ? rounded : number, out);
}

static void format_rate(double rate, char out[REDBUCKET_NUMBER_SIZE], const char **unit)
{
    static const struct {
        double seconds;
        const char *name;
    } units[] = {{1, "a second"}, {60, "a minute"}, {3600, "an hour"}, {86400, "a day"}};
    size_t i = 0;

    /* One a minute is held as 0.01666..., whose 60 times need not be 1. */
    while (i < 3 && rate * units[i].seconds < 1.0 - 1e-9)
        i++;
    format_rounded(rate * units[i].seconds, out);
    *unit = units[i].name;
}

void rbk_describe(const struct redbucket_limit *limit, char out[CLI_DESCRIPTION_SIZE])
{
    const double at_once = floor(limit->burst + 1.0);
    const double delayed = floor(limit->burst + 1.0 + limit->delay) - at_once;
    char number[REDBUCKET_NUMBER_SIZE];
    char wait[CLI_SECONDS_SIZE];
    const char *unit;
    size_t used;

    redbucket_number_format(at_once, number);
    used = (size_t)snprintf(out, CLI_DESCRIPTION_SIZE, "%s%s at once",
                            at_once > 1.0 ? "up to " : "", number);
    if (delayed > 0.0) {
        redbucket_number_format(delayed, number);
        rbk_cli_seconds_format(limit->delay / limit->rate, wait);
        used += (size_t)snprintf(out + used, CLI_DESCRIPTION_SIZE - used,
                                 ", %s more with a wait of up to %s", number, wait);
    }
    format_rate(limit->rate, number, &unit);
    snprintf(out + used, CLI_DESCRIPTION_SIZE - used, ", then %s %s", number, unit);
}
