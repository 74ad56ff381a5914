/* SPDX-License-Identifier: MIT */
/*
 * Reads the fixed places of a log's time. Every byte is checked, so that a line damaged in its time
 * is found out rather than decided at another moment.
 */
#include "log_time.h"

#include "civil.h"

#include <stddef.h>
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

/* The number made of `len` digits, or -1. */
static int digits(const char *text, size_t len)
{
    int number = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        number = number * 10 + (text[i] - '0');
    }
    return number;
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
    const int hours = digits(text + 1, 2);
    const int minutes = digits(text + 3, 2);

    if ((text[0] != '+' && text[0] != '-') || hours < 0 || hours > 23 || minutes < 0 ||
        minutes > 59)
        return false;
    *offset_s = (hours * 60 + minutes) * 60;
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
    date->day = digits(text + AT_DAY, 2);
    date->month = month_named(text + AT_MONTH);
    date->year = digits(text + AT_YEAR, 4);
    return date->year >= 0 && date->month > 0 && date->day > 0 &&
           date->day <= rbk_civil_month_days(date->year, date->month);
}

bool rbk_log_time_parse(const char *text, int64_t *time_s)
{
    const int hour = digits(text + AT_HOUR, 2);
    const int minute = digits(text + AT_MINUTE, 2);
    const int second = digits(text + AT_SECOND, 2);
    struct rbk_civil date;
    int offset_s;

    if (!separators_stand(text) || !date_parse(text, &date) ||
        !zone_parse(text + AT_ZONE, &offset_s))
        return false;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    *time_s = rbk_civil_days(date) * 86400 + (hour * 60 + minute) * 60 + second - offset_s;
    return true;
}
