/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file "UNIT since DATE", and numbers in such units. */

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "cf/calendar.h"

static const struct {
    const char *names; /* each followed by a blank */
    int64_t ns;
    int32_t months;
} units_known[] = {{"days day d ", ESDM__DAY_NS, 0},
                   {"hours hour hr hrs h ", INT64_C(3600000000000), 0},
                   {"minutes minute min mins ", INT64_C(60000000000), 0},
                   {"seconds second sec secs s ", INT64_C(1000000000), 0},
                   {"milliseconds millisecond msec msecs millisec millisecs ms ", 1000000, 0},
                   {"microseconds microsecond microsec microsecs us ", 1000, 0},
                   {"nanoseconds nanosecond nanosec nanosecs ns ", 1, 0},
                   {"weeks week ", 7 * ESDM__DAY_NS, 0},
                   {"months month ", 0, 1},
                   {"years year common_years common_year ", 0, 12}};

static bool
find_unit(const char *word, size_t bytes, esdm__time_units *ret)
{
    for (size_t i = 0; i < sizeof units_known / sizeof units_known[0]; i++) {
        for (const char *at = units_known[i].names; *at != '\0';) {
            size_t length = strcspn(at, " ");
            if (length == bytes && strncasecmp(at, word, bytes) == 0) {
                ret->unit_ns = units_known[i].ns;
                ret->unit_months = units_known[i].months;
                return true;
            }
            at += length + 1;
        }
    }
    return false;
}

static const char *
skip_blanks(const char *at)
{
    while (isspace((unsigned char) *at))
        at++;
    return at;
}

/* A number of up to `most` digits; -1: there is none. */
static int64_t
digits(const char **at, int most)
{
    int64_t value = 0;
    int count = 0;
    for (; count < most && **at >= '0' && **at <= '9'; count++, (*at)++)
        value = 10 * value + (**at - '0');
    return count > 0 ? value : -1;
}

/* "[+-]Y-M-D"; false: it is none. */
static bool
take_day(const char **at, esdm__date *ret)
{
    bool negative = **at == '-';
    *at += **at == '-' || **at == '+';
    int64_t year = digits(at, 7);
    int64_t month = 1, day = 1;
    if (**at == '-') {
        (*at)++;
        month = digits(at, 2);
        if (**at == '-') {
            (*at)++;
            day = digits(at, 2);
        }
    }
    if (year < 0 || year > ESDM__YEAR_MAX || month < 0 || day < 0)
        return false;
    *ret = (esdm__date){(int32_t) (negative ? -year : year), (int32_t) month, (int32_t) day, 0};
    return true;
}

/* "h[:m[:s[.f]]]", to a nanosecond. */
static bool
take_clock(const char **at, int64_t *ret_ns)
{
    int64_t parts[3] = {digits(at, 2), 0, 0};
    int64_t ns = 0;
    for (int i = 1; i < 3 && **at == ':'; i++) {
        (*at)++;
        parts[i] = digits(at, 2);
    }
    if (**at == '.') {
        (*at)++;
        for (int64_t place = 100000000; isdigit((unsigned char) **at); place /= 10, (*at)++)
            ns += place * (**at - '0');
    }
    if (parts[0] < 0 || parts[0] > 24 || parts[1] < 0 || parts[1] > 59 || parts[2] < 0 ||
        parts[2] > 60)
        return false;
    *ret_ns = ((parts[0] * 60 + parts[1]) * 60 + parts[2]) * 1000000000 + ns;
    return true;
}

/* "Z", "UTC", "GMT" or an offset from UTC. */
static bool
take_zone(const char **at, int64_t *ret_ns)
{
    *ret_ns = 0;
    if (**at == 'Z' || **at == 'z') {
        (*at)++;
        return true;
    }
    if (strncasecmp(*at, "UTC", 3) == 0 || strncasecmp(*at, "GMT", 3) == 0) {
        *at += 3;
        return true;
    }
    bool negative = **at == '-';
    *at += **at == '-' || **at == '+';
    const char *start = *at;
    int64_t hours = digits(at, 4);
    int64_t minutes = 0;
    if (*at - start > 2) {
        minutes = hours % 100;
        hours /= 100;
    } else if (**at == ':') {
        (*at)++;
        minutes = digits(at, 2);
    }
    if (hours < 0 || hours > 18 || minutes < 0 || minutes > 59)
        return false;
    *ret_ns = (hours * 60 + minutes) * INT64_C(60000000000) * (negative ? -1 : 1);
    return true;
}

/* The instant `ns` after (or before) another one. */
static esdm__instant
later(esdm__instant instant, __int128 ns)
{
    ns += instant.day_ns;
    __int128 days = ns / ESDM__DAY_NS;
    ns %= ESDM__DAY_NS;
    if (ns < 0) {
        ns += ESDM__DAY_NS;
        days--;
    }
    return (esdm__instant){instant.day + (int64_t) days, (int64_t) ns};
}

esdm_status
esdm__time_units_parse(const char *text, esdm__calendar calendar, esdm__time_units *ret_units,
                       esdm_error *err)
{
    esdm__time_units units = {.calendar = calendar};
    esdm__date date = {0};
    int64_t clock_ns = 0;
    int64_t zone_ns = 0;
    const char *at = skip_blanks(text);
    size_t bytes = strcspn(at, " \t\n");
    if (!find_unit(at, bytes, &units))
        return esdm__error_set(err, ESDM_EINVAL, "'%.80s': '%.*s' is no unit of time", text,
                               (int) (bytes < 40 ? bytes : 40), at);
    at = skip_blanks(at + bytes);
    if (strncasecmp(at, "since", 5) != 0 || !isspace((unsigned char) at[5]))
        return esdm__error_set(err, ESDM_EINVAL, "'%.80s': \"since\" and a date must follow", text);
    at = skip_blanks(at + 5);
    bool fits = take_day(&at, &date);
    bool separated = isspace((unsigned char) *at) || *at == 'T' || *at == 't';
    at += *at == 'T' || *at == 't';
    at = skip_blanks(at);
    if (fits && *at != '\0' && separated && isdigit((unsigned char) *at))
        fits = take_clock(&at, &clock_ns);
    at = skip_blanks(at);
    if (fits && *at != '\0')
        fits = take_zone(&at, &zone_ns);
    if (!fits || *skip_blanks(at) != '\0' || !esdm__date_exists(calendar, &date))
        return esdm__error_set(err, ESDM_EINVAL, "'%.80s': there is no such date in calendar %s",
                               text, esdm__calendar_name(calendar));
    units.epoch = later(esdm__date_instant(calendar, &date), (__int128) clock_ns - zone_ns);
    *ret_units = units;
    return ESDM_OK;
}

/* The integer next to mantissa * 2^exponent * unit, half to even. */
static __int128
scaled(int64_t mantissa, int exponent, int64_t unit)
{
    __int128 product = (__int128) mantissa * unit;
    if (exponent >= 0)
        return product * ((__int128) 1 << exponent);
    if (exponent < -120)
        return 0;
    __int128 one = (__int128) 1 << -exponent;
    __int128 whole = product / one;
    __int128 rest = product % one;
    if (rest < 0) {
        rest += one;
        whole--;
    }
    bool up = rest > one / 2 || (rest == one / 2 && (whole & 1) != 0);
    return whole + up;
}

/* So many months after the epoch, at the same day and hour (or the last day of a shorter month),
 * and a part of that month: as cdo reads such numbers. */
static bool
decode_months(const esdm__time_units *units, double number, esdm__instant *ret_instant)
{
    esdm__date date;
    double months = floor(number * units->unit_months);
    if (!(fabs(months) < 12.0 * ESDM__YEAR_MAX) ||
        !esdm__instant_date(units->calendar, units->epoch, &date))
        return false;
    int64_t month = 12 * (int64_t) date.year + date.month - 1 + (int64_t) months;
    int64_t year = month >= 0 ? month / 12 : -((11 - month) / 12);
    if (year < -ESDM__YEAR_MAX || year > ESDM__YEAR_MAX)
        return false;
    date.year = (int32_t) year;
    date.month = (int32_t) (month - 12 * year) + 1;
    int32_t days = esdm__month_days(units->calendar, date.year, date.month);
    date.day = date.day < days ? date.day : days;
    double part = (number * units->unit_months - months) * days * (double) ESDM__DAY_NS;
    *ret_instant = later(esdm__date_instant(units->calendar, &date), (__int128) llround(part));
    return true;
}

bool
esdm__time_decode(const esdm__time_units *units, double number, esdm__instant *ret_instant)
{
    if (units->unit_ns == 0)
        return decode_months(units, number, ret_instant);
    /* Larger than any year that is accepted, whatever the unit. */
    const double limit = 370.0 * ESDM__YEAR_MAX * (double) ESDM__DAY_NS;
    if (!(fabs(number) * (double) units->unit_ns < limit))
        return false;
    int exponent = 0;
    double fraction = frexp(number, &exponent);
    int64_t mantissa = (int64_t) ldexp(fraction, 53);
    exponent -= 53;
    while (mantissa != 0 && mantissa % 2 == 0 && exponent < 0) {
        mantissa /= 2;
        exponent++;
    }
    *ret_instant = later(units->epoch, scaled(mantissa, exponent, units->unit_ns));
    return true;
}

/* The double next to n / d. */
static double
quotient(unsigned __int128 n, uint64_t d)
{
    int shift = 0;
    while (n != 0 && (n >> 126) == 0) {
        n <<= 1;
        shift++;
    }
    unsigned __int128 q = n / d;
    bool sticky = n % d != 0;
    int dropped = 0;
    unsigned half = 0;
    while ((q >> 53) != 0) {
        sticky |= half;
        half = (unsigned) (q & 1);
        q >>= 1;
        dropped++;
    }
    if (half && (sticky || (q & 1) != 0))
        q++;
    return ldexp((double) (uint64_t) q, dropped - shift);
}

bool
esdm__time_encode(const esdm__time_units *units, esdm__instant instant, double *ret_number)
{
    if (units->unit_ns == 0)
        return false;
    __int128 ns = (__int128) (instant.day - units->epoch.day) * ESDM__DAY_NS +
                  (instant.day_ns - units->epoch.day_ns);
    unsigned __int128 size = ns < 0 ? -(unsigned __int128) ns : (unsigned __int128) ns;
    if ((size >> 120) != 0)
        return false;
    double number = quotient(size, (uint64_t) units->unit_ns);
    *ret_number = ns < 0 ? -number : number;
    return true;
}
