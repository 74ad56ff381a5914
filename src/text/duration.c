/* SPDX-License-Identifier: MIT */
/*
 * Rates and durations: a number with a unit behind it.
 *
 * A unit is matched whole, never as the beginning of something longer. Units that divide (a rate an
 * hour, milliseconds) divide rather than multiply by a rounded inverse, so 30r/m is exactly 0.5
 * and 50ms is the double nearest to 0.05.
 */
#include "error.h"
#include "model/limit.h"
#include "text/number.h"

#include <math.h>
#include <string.h>

/* One of the two factors is 1. */
struct unit {
    const char *name;
    double times;
    double per;
};

static const struct unit rate_units[] = {
    {"", 1, 1},       {"/s", 1, 1},  {"/m", 1, 60},  {"/h", 1, 3600},
    {"/d", 1, 86400}, {"r/s", 1, 1}, {"r/m", 1, 60}, {NULL, 0, 0},
};

static const struct unit duration_units[] = {
    {"", 1, 1},   {"us", 1, 1e6}, {"ms", 1, 1e3},  {"s", 1, 1},
    {"m", 60, 1}, {"h", 3600, 1}, {"d", 86400, 1}, {NULL, 0, 0},
};

static const char rate_expected[] = "expected a number or N/s, N/m, N/h, N/d";
static const char duration_expected[] =
    "expected seconds, or a number with one of us, ms, s, m, h, d";

static const struct unit *find_unit(const struct unit *units, const char *text, size_t len)
{
    for (; units->name != NULL; units++)
        if (strlen(units->name) == len && memcmp(units->name, text, len) == 0)
            return units;
    return NULL;
}

struct quantity {
    const struct unit *units;
    const char *expected;
};

/* The number times its unit; infinite when it is too large. */
static enum redbucket_status read_quantity(const char *text, size_t len,
                                           const struct quantity *quantity, double *value,
                                           struct redbucket_error *error)
{
    char quoted[RBK_QUOTE_SIZE];
    const struct unit *unit = NULL;
    double number = 0.0;
    size_t taken;

    if (rbk_number_read(text, len, &number, &taken) != REDBUCKET_OK)
        return rbk_fail(error, REDBUCKET_ERROR_MEMORY, -1, "out of memory");
    if (taken > 0)
        unit = find_unit(quantity->units, text + taken, len - taken);
    if (unit == NULL)
        return rbk_fail(error, REDBUCKET_ERROR_ARGUMENT, (int)taken, "%s: %s",
                        rbk_quote(text, len, quoted), quantity->expected);
    *value = number * unit->times / unit->per;
    return REDBUCKET_OK;
}

enum redbucket_status rbk_rate_parse(const char *text, size_t len, double *rate,
                                     struct redbucket_error *error)
{
    char quoted[RBK_QUOTE_SIZE];
    double value = 0.0;
    enum redbucket_status status =
        read_quantity(text, len, &(struct quantity){rate_units, rate_expected}, &value, error);

    if (status != REDBUCKET_OK)
        return status;
    if (!rbk_within(value, RBK_RATE_MIN, RBK_RATE_MAX))
        return rbk_fail(error, REDBUCKET_ERROR_ARGUMENT, 0,
                        "%s: out of range, expected from 1e-9 to 1e12 a second",
                        rbk_quote(text, len, quoted));
    *rate = value;
    return REDBUCKET_OK;
}

enum redbucket_status redbucket_rate_parse(const char *text, double *rate,
                                           struct redbucket_error *error)
{
    return rbk_rate_parse(text, strlen(text), rate, error);
}

enum redbucket_status rbk_duration_parse(const char *text, size_t len, double *seconds,
                                         struct redbucket_error *error)
{
    char quoted[RBK_QUOTE_SIZE];
    double value = 0.0;
    enum redbucket_status status = read_quantity(
        text, len, &(struct quantity){duration_units, duration_expected}, &value, error);

    if (status != REDBUCKET_OK)
        return status;
    if (!isfinite(value))
        return rbk_fail(error, REDBUCKET_ERROR_ARGUMENT, 0, "%s: too large for a duration",
                        rbk_quote(text, len, quoted));
    if (value < 0.0)
        return rbk_fail(error, REDBUCKET_ERROR_ARGUMENT, 0, "%s: expected a duration from 0",
                        rbk_quote(text, len, quoted));
    *seconds = value + 0.0; /* makes a -0 a 0 */
    return REDBUCKET_OK;
}

enum redbucket_status redbucket_duration_parse(const char *text, double *seconds,
                                               struct redbucket_error *error)
{
    return rbk_duration_parse(text, strlen(text), seconds, error);
}
