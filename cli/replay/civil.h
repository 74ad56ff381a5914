/* SPDX-License-Identifier: MIT */
/*
 * Dates of the proleptic Gregorian calendar and seconds since the epoch, both ways.
 *
 * The C library's own functions look at the time zone and the locale of whoever runs the program;
 * a log means the same everywhere. Days are counted from March, so that the day that comes and goes
 * is the last of its year; 400 years, an era, are always 146,097 days.
 */
#ifndef RBK_REPLAY_CIVIL_H
#define RBK_REPLAY_CIVIL_H

#include <stdint.h>

struct rbk_civil {
    int64_t year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
};

/* Days from 1970-01-01 to this date, which must be one. */
int64_t rbk_civil_days(struct rbk_civil date);

/* The date that many days from 1970-01-01. */
struct rbk_civil rbk_civil_date(int64_t days);

/* How many days this month has; month is 1 to 12. */
int rbk_civil_month_days(int64_t year, int month);

/* Enough for every time that rbk_civil_format is given. */
#define RBK_CIVIL_SIZE 40

/* How much of a time is shown. */
enum rbk_civil_detail {
    RBK_CIVIL_DAY,         /* 2015-05-17 */
    RBK_CIVIL_MINUTE,      /* 2015-05-17 10:05 */
    RBK_CIVIL_SECOND,      /* 2015-05-17 10:05:03 */
    RBK_CIVIL_MILLISECOND, /* 2015-05-17 10:05:03.250 */
};

/* As much as tells apart times that are this far from each other. */
enum rbk_civil_detail rbk_civil_detail_of(int64_t width_ms);

/* Seconds as milliseconds; a time beyond all dates as one that can still be written. */
int64_t rbk_civil_ms(double time_s);

/* Writes a time, in milliseconds since the epoch, as UTC. */
void rbk_civil_format(int64_t time_ms, enum rbk_civil_detail detail, char out[RBK_CIVIL_SIZE]);

#endif
