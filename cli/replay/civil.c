/* SPDX-License-Identifier: MIT */
/*
 * The calendar without a time zone: a date is an era of 400 years, a year of that era, counted from
 * March, and a day of that year. The lengths of March, April, ... repeat every five months with 153
 * days, which is what (153 m + 2) / 5 counts.
 */
#include "civil.h"

#include <stdbool.h>
#include <stdio.h>

enum {
    DAYS_PER_ERA = 146097,
    DAYS_TO_1970 = 719468, /* from 0000-03-01 */
};

#define DAY_MS INT64_C(86400000)

static int64_t floor_div(int64_t number, int64_t by)
{
    return number / by - (number % by < 0);
}

static bool leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int rbk_civil_month_days(int64_t year, int month)
{
    static const int days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return month == 2 && leap(year) ? 29 : days[month - 1];
}

int64_t rbk_civil_days(struct rbk_civil date)
{
    const int64_t year = date.month <= 2 ? date.year - 1 : date.year;
    const int64_t era = floor_div(year, 400);
    const int64_t year_of_era = year - era * 400;
    const int month = (date.month + 9) % 12; /* March is 0 */
    const int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;
    const int64_t day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
}

struct rbk_civil rbk_civil_date(int64_t days)
{
    const int64_t shifted = days + DAYS_TO_1970;
    const int64_t era = floor_div(shifted, DAYS_PER_ERA);
    const int64_t day_of_era = shifted - era * DAYS_PER_ERA;
    /* Without the leap days that have passed, every year has 365 days. */
    const int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const int64_t day_of_year =
        day_of_era - (year_of_era * 365 + year_of_era / 4 - year_of_era / 100);
    const int month = (int)((5 * day_of_year + 2) / 153);
    struct rbk_civil date;

    date.day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    date.month = month < 10 ? month + 3 : month - 9;
    date.year = year_of_era + era * 400 + (date.month <= 2);
    return date;
}

enum rbk_civil_detail rbk_civil_detail_of(int64_t width_ms)
{
    if (width_ms % DAY_MS == 0)
        return RBK_CIVIL_DAY;
    if (width_ms % 60000 == 0)
        return RBK_CIVIL_MINUTE;
    return width_ms % 1000 == 0 ? RBK_CIVIL_SECOND : RBK_CIVIL_MILLISECOND;
}

int64_t rbk_civil_ms(double time_s)
{
    const double most = 1e12;

    if (time_s > most || time_s < -most)
        time_s = time_s < 0 ? -most : most;
    return (int64_t)(time_s * 1000);
}

void rbk_civil_format(int64_t time_ms, enum rbk_civil_detail detail, char out[RBK_CIVIL_SIZE])
{
    const int64_t days = floor_div(time_ms, DAY_MS);
    const struct rbk_civil date = rbk_civil_date(days);
    const int rest_ms = (int)(time_ms - days * DAY_MS);
    const int minutes = rest_ms / 60000;
    int len;

    len = snprintf(out, RBK_CIVIL_SIZE, "%04lld-%02d-%02d", (long long)date.year, date.month,
                   date.day);
    if (detail >= RBK_CIVIL_MINUTE)
        len += snprintf(out + len, RBK_CIVIL_SIZE - (size_t)len, " %02d:%02d", minutes / 60,
                        minutes % 60);
    if (detail >= RBK_CIVIL_SECOND)
        len += snprintf(out + len, RBK_CIVIL_SIZE - (size_t)len, ":%02d", rest_ms / 1000 % 60);
    if (detail >= RBK_CIVIL_MILLISECOND)
        snprintf(out + len, RBK_CIVIL_SIZE - (size_t)len, ".%03d", rest_ms % 1000);
}
