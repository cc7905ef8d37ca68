/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CF_CALENDAR_H
#define ESDM_CF_CALENDAR_H

/**
 * @file
 * Dates in the calendars of the CF conventions, and "UNIT since DATE" (CF conventions,
 * section 4.4).
 *
 * All arithmetic is in integers, to one nanosecond; a number in some unit is rounded once, when it
 * becomes a double. Years are astronomical (the year 0 exists) in all calendars. Pure functions.
 */

#include <stdbool.h>
#include <stdint.h>

#include "esdm/status.h"

typedef enum esdm__calendar {
    ESDM__CALENDAR_STANDARD,  /**< Julian up to 1582-10-04, Gregorian from 1582-10-15 */
    ESDM__CALENDAR_PROLEPTIC, /**< Gregorian at all times */
    ESDM__CALENDAR_JULIAN,
    ESDM__CALENDAR_NOLEAP,   /**< 365 days */
    ESDM__CALENDAR_ALL_LEAP, /**< 366 days */
    ESDM__CALENDAR_360_DAY
} esdm__calendar;

#define ESDM__DAY_NS INT64_C(86400000000000)
/** Years beyond ±this are refused. */
#define ESDM__YEAR_MAX 1000000

typedef struct esdm__date {
    int32_t year;
    int32_t month;  /**< 1 … 12 */
    int32_t day;    /**< 1 … */
    int64_t day_ns; /**< within the day, 0 … ESDM__DAY_NS - 1 */
} esdm__date;

/** A point in time of one calendar: equal dates of equal calendars have equal instants. */
typedef struct esdm__instant {
    int64_t day; /**< since the calendar's 0000-01-01; Gregorian, Julian and standard agree after
                      1582 in that standard has the numbers of the Gregorian one */
    int64_t day_ns;
} esdm__instant;

/** "UNIT since DATE". Months and years are those of the calendar. */
typedef struct esdm__time_units {
    esdm__calendar calendar;
    int64_t unit_ns;     /**< 0: months or years */
    int32_t unit_months; /**< 1 or 12 with unit_ns 0, else 0 */
    esdm__instant epoch; /**< in UTC: a zone in the text is taken off */
} esdm__time_units;

/** @param name value of the attribute `calendar`; NULL or "": standard. Upper and lower case are
 *         the same. @return ESDM_EINVAL for other names, "none" among them. */
esdm_status esdm__calendar_parse(const char *name, esdm__calendar *ret_calendar, esdm_error *err);
/** CF's name. */
const char *esdm__calendar_name(esdm__calendar calendar);

/** Days of a month, 1 … 12; the month of the change (1582-10) has 31 as its last day. */
int32_t esdm__month_days(esdm__calendar calendar, int32_t year, int32_t month);
/** Whether the calendar has that day; the ten days that the standard calendar left out are none. */
bool esdm__date_exists(esdm__calendar calendar, const esdm__date *date);
/** @param date one that exists. */
esdm__instant esdm__date_instant(esdm__calendar calendar, const esdm__date *date);
/** @return false when the year is beyond ESDM__YEAR_MAX; *ret_date is then untouched. */
bool esdm__instant_date(esdm__calendar calendar, esdm__instant instant, esdm__date *ret_date);
/** To the nearest millisecond. What is equal then is equal in any unit that holds it. */
esdm__instant esdm__instant_round(esdm__instant instant);
/** The nearest millisecond, counted from the beginning of day 0. */
double esdm__instant_ms(esdm__instant instant);
/** < 0, 0, > 0 */
int esdm__instant_compare(esdm__instant a, esdm__instant b);

/** @param text "days since 1850-01-01 00:00:00 +01:00" and the like.
 *  @return ESDM_EINVAL with what is wrong. */
esdm_status esdm__time_units_parse(const char *text, esdm__calendar calendar,
                                   esdm__time_units *ret_units, esdm_error *err);
/** The exact value of `number`, to the nearest nanosecond. Of months and years, which have no fixed
 *  length, what cdo makes of them: the same day so many months later, and a part of that month.
 *  @return false for NaN, and what is beyond ESDM__YEAR_MAX. */
bool esdm__time_decode(const esdm__time_units *units, double number, esdm__instant *ret_instant);
/** The double next to the instant's number in these units, rounded once (half to even).
 *  @return false for months and years, and for what is too far away. */
bool esdm__time_encode(const esdm__time_units *units, esdm__instant instant, double *ret_number);

/**
 * A number that orders dates of all calendars by year, month, day and time of day:
 * (12 year + month - 1) * 31 + day - 1 + the fraction of the day.
 */
double esdm__date_key(const esdm__date *date);
/** Reads "YYYY", "YYYY-MM", "YYYY-MM-DD" or with "Thh[:mm[:ss]]" (a blank for the T), a sign
 *  before the year allowed. @param ret_next first date after the period that the text names: a
 *  year, month, day, hour, minute or second; day 31 of each month is assumed to exist.
 *  @return false when the text is something else. */
bool esdm__date_parse(const char *text, esdm__date *ret_date, double *ret_key,
                      double *ret_next_key);
/** "1850-01-01", or "1850-01-01T12:00:00" when it is not midnight; whole seconds. */
void esdm__date_format(const esdm__date *date, char ret_text[40]);

#endif
