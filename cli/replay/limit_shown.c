/* SPDX-License-Identifier: MIT */
/*
 * The library writes a limit so that it reads back as the same doubles; people want 10/m.
 */
#include "limit_shown.h"

#include <stdio.h>
#include <string.h>

enum { NAME_COLUMNS = 38 };

/* By the second, or by a longer time where that is shorter. */
void rbk_rate_shown(double rate, char out[RBK_RATE_SHOWN_SIZE])
{
    static const struct {
        double seconds;
        const char *name;
    } units[] = {{1, "s"}, {60, "m"}, {3600, "h"}, {86400, "d"}};
    char shortest[REDBUCKET_NUMBER_SIZE];
    size_t best = 0;

    redbucket_number_format(rate, shortest);
    for (size_t i = 1; i < sizeof(units) / sizeof(units[0]) && strlen(shortest) > 5; i++) {
        char number[REDBUCKET_NUMBER_SIZE];

        redbucket_number_format(rate * units[i].seconds, number);
        if (strlen(number) < strlen(shortest)) {
            memcpy(shortest, number, sizeof(shortest));
            best = i;
        }
    }
    snprintf(out, RBK_RATE_SHOWN_SIZE, "%s/%s", shortest, units[best].name);
}

void rbk_limit_shown(const struct redbucket_named_limit *limit, char out[RBK_LIMIT_SHOWN_SIZE])
{
    char text[REDBUCKET_LIMIT_TEXT_SIZE];
    char rate[RBK_RATE_SHOWN_SIZE];
    char name[RBK_PRINTABLE_SIZE];
    const size_t name_len = strlen(limit->name);
    const char *rest;

    redbucket_limit_format(limit, text);
    rest = text + (name_len < strlen(text) ? name_len : strlen(text));
    rest += strcspn(rest, ",");
    rbk_rate_shown(limit->limit.rate, rate);
    rbk_printable((struct rbk_span){limit->name, name_len}, name_len, NAME_COLUMNS, name);
    snprintf(out, RBK_LIMIT_SHOWN_SIZE, "%s:%s%s", name, rate, rest);
}
