/* SPDX-License-Identifier: MIT */
/*
 * Reads the fixed places of a log's time. Every byte is checked, so that a line damaged in its time
 * is found out rather than decided at another moment.
 */
#include "log_time.h"

#include "civil.h"

#include <limits.h>
#include <string.h>

/* Where each part begins: 17/May/2015:10:05:03 +0000 */
enum {
    AT_DAY = 0,
    AT_MONTH = 3,
    AT_YEAR = 7,
    AT_HOUR = 12,
    AT_MINUTE = 15,
    AT_SECOND = 18,
    AT_ZONE = 21,
};

/* The number that two digits make, or more than any when they are none. */
static unsigned two_digits(const char *text)
{
    const unsigned tens = (unsigned)text[0] - '0';
    const unsigned ones = (unsigned)text[1] - '0';

    return tens > 9 || ones > 9 ? UINT_MAX / 200 : tens * 10 + ones;
}

/* 1 to 12, or 0 when it is no month's name. */
static int month_named(const char *text)
{
    static const char names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

    for (int i = 0; i < 12; i++)
        if (memcmp(text, names[i], 3) == 0)
            return i + 1;
    return 0;
}

/* The offset "+0130" in seconds. */
static bool zone_parse(const char *text, int *offset_s)
{
    const unsigned hours = two_digits(text + 1);
    const unsigned minutes = two_digits(text + 3);

    if ((text[0] != '+' && text[0] != '-') || hours > 23 || minutes > 59)
        return false;
    *offset_s = (int)(hours * 60 + minutes) * 60;
    if (text[0] == '-')
        *offset_s = -*offset_s;
    return true;
}

static bool separators_stand(const char *text)
{
    return text[2] == '/' && text[6] == '/' && text[11] == ':' && text[14] == ':' &&
           text[17] == ':' && text[20] == ' ';
}

static bool date_parse(const char *text, struct rbk_civil *date)
{
    const unsigned day = two_digits(text + AT_DAY);
    const unsigned century = two_digits(text + AT_YEAR);
    const unsigned year = century * 100 + two_digits(text + AT_YEAR + 2);

    date->month = month_named(text + AT_MONTH);
    if (date->month == 0 || year > 9999 || day < 1 || day > 31)
        return false;
    date->day = (int)day;
    date->year = (int)year;
    return date->day <= rbk_civil_month_days(date->year, date->month);
}

bool rbk_log_time_parse(const char *text, int64_t *time_s)
{
    const unsigned hour = two_digits(text + AT_HOUR);
    const unsigned minute = two_digits(text + AT_MINUTE);
    const unsigned second = two_digits(text + AT_SECOND);
    struct rbk_civil date;
    int offset_s;

    if (!separators_stand(text) || !date_parse(text, &date) ||
        !zone_parse(text + AT_ZONE, &offset_s))
        return false;
    if (hour > 23 || minute > 59 || second > 60)
        return false;
    *time_s =
        rbk_civil_days(date) * 86400 + (int64_t)((hour * 60 + minute) * 60 + second) - offset_s;
    return true;
}
