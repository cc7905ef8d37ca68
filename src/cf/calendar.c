/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "cf/calendar.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

/* Day number of 1582-10-15, and how many days the Julian numbers lag behind the Gregorian ones. */
#define CHANGE_YEAR   1582
#define CHANGE_MONTH  10
#define CHANGE_DAY    15
#define LAST_JULIAN   4
#define JULIAN_BEHIND 2 /* 0000-01-01 Julian is two days before the Gregorian one */

static const int16_t before_month[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};

static const struct {
    const char *name;
    esdm__calendar calendar;
} names[] = {{"standard", ESDM__CALENDAR_STANDARD},
             {"gregorian", ESDM__CALENDAR_STANDARD},
             {"proleptic_gregorian", ESDM__CALENDAR_PROLEPTIC},
             {"julian", ESDM__CALENDAR_JULIAN},
             {"noleap", ESDM__CALENDAR_NOLEAP},
             {"365_day", ESDM__CALENDAR_NOLEAP},
             {"all_leap", ESDM__CALENDAR_ALL_LEAP},
             {"366_day", ESDM__CALENDAR_ALL_LEAP},
             {"360_day", ESDM__CALENDAR_360_DAY}};

esdm_status
esdm__calendar_parse(const char *name, esdm__calendar *ret_calendar, esdm_error *err)
{
    if (name == NULL || name[0] == '\0')
        name = "standard";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(name, names[i].name) == 0) {
            *ret_calendar = names[i].calendar;
            return ESDM_OK;
        }
    }
    return esdm__error_set(err, ESDM_EINVAL,
                           "unknown calendar '%.60s'; known: standard, proleptic_gregorian, "
                           "julian, noleap, all_leap, 360_day",
                           name);
}

const char *
esdm__calendar_name(esdm__calendar calendar)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].calendar == calendar)
            return names[i].name;
    }
    return "standard";
}

/* ---- days --------------------------------------------------------------------------------- */

static int64_t
floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool
is_leap(esdm__calendar calendar, int64_t year)
{
    bool by_four = year % 4 == 0;
    switch (calendar) {
    case ESDM__CALENDAR_NOLEAP:
    case ESDM__CALENDAR_360_DAY:
        return false;
    case ESDM__CALENDAR_ALL_LEAP:
        return true;
    case ESDM__CALENDAR_JULIAN:
        return by_four;
    case ESDM__CALENDAR_STANDARD:
        if (year <= CHANGE_YEAR)
            return by_four;
        break;
    case ESDM__CALENDAR_PROLEPTIC:
        break;
    }
    return by_four && (year % 100 != 0 || year % 400 == 0);
}

int32_t
esdm__month_days(esdm__calendar calendar, int32_t year, int32_t month)
{
    if (calendar == ESDM__CALENDAR_360_DAY)
        return 30;
    if (month == 2)
        return is_leap(calendar, year) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

static int
compare_day(const esdm__date *date, int32_t year, int32_t month, int32_t day)
{
    if (date->year != year)
        return date->year < year ? -1 : 1;
    if (date->month != month)
        return date->month < month ? -1 : 1;
    return (date->day > day) - (date->day < day);
}

bool
esdm__date_exists(esdm__calendar calendar, const esdm__date *date)
{
    if (date->year < -ESDM__YEAR_MAX || date->year > ESDM__YEAR_MAX || date->month < 1 ||
        date->month > 12 || date->day < 1 || date->day_ns < 0 || date->day_ns >= ESDM__DAY_NS ||
        date->day > esdm__month_days(calendar, date->year, date->month))
        return false;
    return calendar != ESDM__CALENDAR_STANDARD || date->year != CHANGE_YEAR ||
           date->month != CHANGE_MONTH || date->day <= LAST_JULIAN || date->day >= CHANGE_DAY;
}

/* Days from 0000-01-01 to the first day of the year. */
static int64_t
days_before_year(esdm__calendar calendar, int64_t year)
{
    switch (calendar) {
    case ESDM__CALENDAR_NOLEAP:
        return 365 * year;
    case ESDM__CALENDAR_ALL_LEAP:
        return 366 * year;
    case ESDM__CALENDAR_360_DAY:
        return 360 * year;
    case ESDM__CALENDAR_JULIAN:
        return 365 * year + floor_div(year + 3, 4);
    case ESDM__CALENDAR_STANDARD:
    case ESDM__CALENDAR_PROLEPTIC:
        break;
    }
    return 365 * year + floor_div(year + 3, 4) - floor_div(year + 99, 100) +
           floor_div(year + 399, 400);
}

/* A calendar without a change in it. */
static int64_t
day_number(esdm__calendar calendar, const esdm__date *date)
{
    int64_t days = days_before_year(calendar, date->year);
    if (calendar == ESDM__CALENDAR_360_DAY)
        return days + 30 * (date->month - 1) + date->day - 1;
    bool after_leap_day = date->month > 2 && is_leap(calendar, date->year);
    return days + before_month[date->month - 1] + after_leap_day + date->day - 1;
}

esdm__instant
esdm__date_instant(esdm__calendar calendar, const esdm__date *date)
{
    esdm__instant instant = {.day_ns = date->day_ns};
    if (calendar != ESDM__CALENDAR_STANDARD)
        instant.day = day_number(calendar, date);
    else if (compare_day(date, CHANGE_YEAR, CHANGE_MONTH, CHANGE_DAY) >= 0)
        instant.day = day_number(ESDM__CALENDAR_PROLEPTIC, date);
    else
        instant.day = day_number(ESDM__CALENDAR_JULIAN, date) - JULIAN_BEHIND;
    return instant;
}

bool
esdm__instant_date(esdm__calendar calendar, esdm__instant instant, esdm__date *ret_date)
{
    static const esdm__date change = {CHANGE_YEAR, CHANGE_MONTH, CHANGE_DAY, 0};
    int64_t day = instant.day;
    if (day > 366 * (int64_t) ESDM__YEAR_MAX || day < -366 * (int64_t) ESDM__YEAR_MAX)
        return false;
    if (calendar == ESDM__CALENDAR_STANDARD) {
        bool gregorian = day >= day_number(ESDM__CALENDAR_PROLEPTIC, &change);
        calendar = gregorian ? ESDM__CALENDAR_PROLEPTIC : ESDM__CALENDAR_JULIAN;
        day += gregorian ? 0 : JULIAN_BEHIND;
    }
    /* Each 400 years have the same days. */
    int64_t span = days_before_year(calendar, 400);
    int64_t year = floor_div(day, span) * 400;
    int64_t left = day - floor_div(day, span) * span;
    int64_t years = left / 366;
    while (years < 399 && days_before_year(calendar, years + 1) <= left)
        years++;
    year += years;
    left -= days_before_year(calendar, years);
    if (year < -ESDM__YEAR_MAX || year > ESDM__YEAR_MAX)
        return false;
    esdm__date date = {.year = (int32_t) year, .month = 1, .day_ns = instant.day_ns};
    while (left >= esdm__month_days(calendar, date.year, date.month))
        left -= esdm__month_days(calendar, date.year, date.month++);
    date.day = (int32_t) left + 1;
    *ret_date = date;
    return true;
}

esdm__instant
esdm__instant_round(esdm__instant instant)
{
    const int64_t ms = 1000000;
    instant.day_ns = (instant.day_ns + ms / 2) / ms * ms;
    if (instant.day_ns >= ESDM__DAY_NS) {
        instant.day_ns -= ESDM__DAY_NS;
        instant.day++;
    }
    return instant;
}

double
esdm__instant_ms(esdm__instant instant)
{
    esdm__instant rounded = esdm__instant_round(instant);
    int64_t ms = rounded.day_ns / 1000000;
    return (double) rounded.day * 86400000. + (double) ms;
}

int
esdm__instant_compare(esdm__instant a, esdm__instant b)
{
    if (a.day != b.day)
        return a.day < b.day ? -1 : 1;
    return (a.day_ns > b.day_ns) - (a.day_ns < b.day_ns);
}

/* ---- dates of all calendars ---------------------------------------------------------------- */

double
esdm__date_key(const esdm__date *date)
{
    int64_t days = (12 * (int64_t) date->year + date->month - 1) * 31 + date->day - 1;
    return (double) days + (double) date->day_ns / (double) ESDM__DAY_NS;
}

/* Up to `most` digits; false: none. */
static bool
take_digits(const char **at, int most, int32_t *ret)
{
    int32_t value = 0;
    int count = 0;
    for (; count < most && **at >= '0' && **at <= '9'; count++, (*at)++)
        value = 10 * value + (**at - '0');
    *ret = value;
    return count > 0;
}

/* How many parts of a date the text has, 1 (year) to 6 (second); 0: it is no date. */
static int
take_parts(const char *text, int32_t parts[6])
{
    static const char separators[] = "--T::";
    bool negative = *text == '-';
    text += *text == '-' || *text == '+';
    const char *start = text;
    int count = 0;
    if (!take_digits(&text, 7, &parts[0]) || text - start < 4)
        return 0;
    parts[0] = negative ? -parts[0] : parts[0];
    for (count = 1; count < 6 && *text != '\0'; count++) {
        bool fits = *text == separators[count - 1] || (count == 3 && *text == ' ');
        text++;
        if (!fits || !take_digits(&text, 2, &parts[count]))
            return 0;
    }
    if (*text == 'Z' && count > 3)
        text++;
    return *text == '\0' ? count : 0;
}

bool
esdm__date_parse(const char *text, esdm__date *ret_date, double *ret_key, double *ret_next_key)
{
    int32_t parts[6] = {0, 1, 1, 0, 0, 0};
    int count = take_parts(text, parts);
    if (count == 0 || parts[1] < 1 || parts[1] > 12 || parts[2] < 1 || parts[2] > 31 ||
        parts[3] > 24 || parts[4] > 59 || parts[5] > 60 || parts[0] > ESDM__YEAR_MAX ||
        parts[0] < -ESDM__YEAR_MAX)
        return false;
    static const double widths[] = {372, 31, 1, 1.0 / 24, 1.0 / 1440, 1.0 / 86400};
    int64_t seconds = 3600 * (int64_t) parts[3] + 60 * parts[4] + parts[5];
    *ret_date = (esdm__date){parts[0], parts[1], parts[2], seconds * 1000000000};
    *ret_key = esdm__date_key(ret_date);
    *ret_next_key = *ret_key + widths[count - 1];
    return true;
}

void
esdm__date_format(const esdm__date *date, char ret_text[40])
{
    int s = (int) (date->day_ns / 1000000000);
    const char *sign = date->year < 0 ? "-" : "";
    int year = date->year < 0 ? -date->year : date->year;
    if (s == 0)
        (void) snprintf(ret_text, 40, "%s%04d-%02d-%02d", sign, year, date->month, date->day);
    else
        (void) snprintf(ret_text, 40, "%s%04d-%02d-%02dT%02d:%02d:%02d", sign, year, date->month,
                        date->day, s / 3600, s / 60 % 60, s % 60);
}
