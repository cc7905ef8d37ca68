/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "model/accuracy_units.h"

#include <stdio.h>
#include <string.h>

#include "cf/units.h"

const char esdm__units_any[] = "(any)";

typedef struct prefix {
    const char *text;
    double factor;
} prefix;

static const prefix prefixes[] = {
    {"n", 1e-9}, {"u", 1e-6}, {"\xc2\xb5", 1e-6}, {"m", 1e-3}, {"c", 1e-2},
    {"d", 1e-1}, {"h", 1e2},  {"k", 1e3},         {"M", 1e6},  {"G", 1e9},
};

/* Spellings of one unit, the first of which takes prefixes. */
static const char *const same[][5] = {
    {"K", "kelvin", "Kelvin", "degK", "degree_Kelvin"},
    {"degC", "celsius", "Celsius", "degree_Celsius", "\302\260C"},
    {"Pa", "pascal", "Pascal", "pascals", NULL},
    {"m", "meter", "meters", "metre", "metres"},
    {"s", "second", "seconds", "sec", NULL},
    {"g", "gram", "grams", NULL, NULL},
    {"kg kg-1", "kg/kg", "kg kg**-1", "kg kg^-1", NULL},
    {"m s-1", "m/s", "m s**-1", "m s^-1", "meters/second"},
};

/* The first spelling of a unit. */
static const char *
usual(const char *unit)
{
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        for (size_t k = 0; k < sizeof same[0] / sizeof same[0][0] && same[i][k] != NULL; k++)
            if (strcmp(unit, same[i][k]) == 0)
                return same[i][0];
    return unit;
}

/* Units that are known to take prefixes; "min" is no thousandth of an inch. */
static const char *const bases[] = {"K", "Pa", "m", "s",  "g",   "J",
                                    "W", "N",  "V", "Hz", "mol", "bar"};

static bool
is_base(const char *unit)
{
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++)
        if (strcmp(unit, bases[i]) == 0)
            return true;
    return false;
}

/* The factor by which `unit` is larger than `base`, as far as a prefix tells. */
static bool
by_prefix(const char *unit, const char *base, double *ret_factor)
{
    size_t length = strlen(unit);
    size_t rest = strlen(base);
    if (!is_base(base) || length <= rest || strcmp(unit + length - rest, base) != 0)
        return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strlen(prefixes[i].text) == length - rest &&
            strncmp(unit, prefixes[i].text, length - rest) == 0) {
            *ret_factor = prefixes[i].factor;
            return true;
        }
    }
    return false;
}

/* All else: "W m-2" and "W/m2", "mm day-1" and "kg m-2 s-1" do not convert. Whoever compares what
 * the lists above know loads no library. */
static bool
by_udunits(const char *unit, const char *units, bool difference, double *ret_factor)
{
    bool known = false;
    double slope = 1, offset = 0;
    if (esdm__units_convert(unit, units, &known, &slope, &offset, NULL) != ESDM_OK ||
        !(slope > 0) || (offset != 0 && !difference))
        return false;
    *ret_factor = slope;
    return true;
}

bool
esdm__units_factor(const char *unit, const char *units, bool difference, double *ret_factor,
                   char *why, size_t bytes)
{
    double factor = 1;
    if (*unit == '\0' || units == esdm__units_any) {
        *ret_factor = 1;
        return true;
    }
    if (units == NULL) {
        (void) snprintf(why, bytes, "'%.60s' cannot be compared: the dataset has no units", unit);
        return false;
    }
    unit = usual(unit);
    units = usual(units);
    if (strcmp(unit, units) == 0) {
        *ret_factor = 1;
        return true;
    }
    if (difference && ((strcmp(unit, "K") == 0 && strcmp(units, "degC") == 0) ||
                       (strcmp(unit, "degC") == 0 && strcmp(units, "K") == 0))) {
        *ret_factor = 1;
        return true;
    }
    if (by_prefix(unit, units, &factor)) {
        *ret_factor = factor;
        return true;
    }
    if (by_prefix(units, unit, &factor)) {
        *ret_factor = 1 / factor;
        return true;
    }
    /* hPa to mPa: both have a prefix. */
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t length = strlen(prefixes[i].text);
        double other = 1;
        if (strncmp(units, prefixes[i].text, length) == 0 &&
            by_prefix(unit, units + length, &other)) {
            *ret_factor = other / prefixes[i].factor;
            return true;
        }
    }
    if (by_udunits(unit, units, difference, ret_factor))
        return true;
    (void) snprintf(why, bytes, "units '%.60s' are not those of the dataset, '%.60s'", unit, units);
    return false;
}
