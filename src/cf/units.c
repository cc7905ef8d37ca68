/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Units, by UDUNITS-2. The library is loaded when something first has to be converted: no
 * program pays for it otherwise, and one that has loaded it shares it.
 */

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <udunits2.h>

#include "base/beside.h"
#include "base/error.h"
#include "cf/units.h"

#define LIBRARY "libudunits2.so.0"

/* A wheel has it and its list beside ESDM's library, for machines without. */
#define CARRIED "udunits/"

/* What is used of it. */
typedef struct library {
    ut_error_message_handler (*set_error_message_handler)(ut_error_message_handler);
    ut_error_message_handler ignore;
    ut_system *(*read_xml)(const char *);
    ut_unit *(*parse)(const ut_system *, const char *, ut_encoding);
    cv_converter *(*get_converter)(ut_unit *, ut_unit *);
    double (*convert)(const cv_converter *, double);
    void (*free_converter)(cv_converter *);
    void (*free_unit)(ut_unit *);
    ut_system *system;
} library;

/* Read once; UDUNITS-2 is used by one thread at a time. */
static library units;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool
load(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
        {"ut_set_error_message_handler", offsetof(library, set_error_message_handler)},
        {"ut_ignore", offsetof(library, ignore)},
        {"ut_read_xml", offsetof(library, read_xml)},
        {"ut_parse", offsetof(library, parse)},
        {"ut_get_converter", offsetof(library, get_converter)},
        {"cv_convert_double", offsetof(library, convert)},
        {"cv_free", offsetof(library, free_converter)},
        {"ut_free", offsetof(library, free_unit)},
    };
    if (units.system != NULL)
        return true;
    char carried[PATH_MAX];
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL && esdm__beside_library(CARRIED LIBRARY, carried))
        handle = dlopen(carried, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; handle != NULL && i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(handle, symbols[i].name);
        if (found == NULL)
            return false;
        memcpy((char *) &units + symbols[i].offset, &found, sizeof found);
    }
    return handle != NULL;
}

static ut_system *
read_list(void)
{
    char carried[PATH_MAX];
    ut_system *found = units.read_xml(NULL);
    return found == NULL && esdm__beside_library(CARRIED "udunits2.xml", carried)
               ? units.read_xml(carried)
               : found;
}

/* NULL: the text is no unit. */
static ut_unit *
parse(const char *text)
{
    char *copy = strdup(text[0] != '\0' ? text : "1");
    ut_unit *unit = NULL;
    if (copy != NULL) {
        size_t end = strlen(copy);
        while (end > 0 && (copy[end - 1] == ' ' || copy[end - 1] == '\n'))
            copy[--end] = '\0';
        unit = units.parse(units.system, copy + strspn(copy, " \n"), UT_UTF8);
    }
    free(copy);
    return unit;
}

/* How far from 1 or 0 a conversion may be that changes nothing: it is computed with rounding. */
#define ROUNDING 1e-12

static double
rounded(double value, double usual)
{
    return fabs(value - usual) < ROUNDING ? usual : value;
}

/* Whether it is a line; logarithms are none. */
static bool
is_line(const cv_converter *converter, double *ret_slope, double *ret_offset)
{
    const double far = 1e6; /* so that an offset takes no digits from the slope */
    const double above = units.convert(converter, far);
    const double below = units.convert(converter, -far);
    const double offset = units.convert(converter, 0);
    const double one = units.convert(converter, 1);
    const double slope = offset == 0 ? one : (above - below) / (2 * far);
    *ret_slope = rounded(slope, 1);
    *ret_offset = rounded(offset, 0);
    return isfinite(slope) && isfinite(offset) && slope != 0 && isfinite(above) &&
           isfinite(below) && fabs(one - (slope + offset)) <= 1e-9 * (fabs(slope) + fabs(offset)) &&
           fabs(above - (far * slope + offset)) <= 1e-9 * (fabs(far * slope) + fabs(offset));
}

/* Whether they fit. */
static bool
convert(const char *from, const char *to, bool *ret_known, double *ret_slope, double *ret_offset)
{
    ut_unit *a = parse(from);
    ut_unit *b = parse(to);
    cv_converter *converter = a != NULL && b != NULL ? units.get_converter(a, b) : NULL;
    bool fits = converter != NULL && is_line(converter, ret_slope, ret_offset);
    *ret_known = a != NULL;
    if (converter != NULL)
        units.free_converter(converter);
    if (a != NULL)
        units.free_unit(a);
    if (b != NULL)
        units.free_unit(b);
    return fits;
}

esdm_status
esdm__units_convert(const char *from, const char *to, bool *ret_known, double *ret_slope,
                    double *ret_offset, esdm_error *err)
{
    bool fits = false;
    *ret_known = true;
    *ret_slope = 1;
    *ret_offset = 0;
    if (strcmp(from, to) == 0)
        return ESDM_OK;
    (void) pthread_mutex_lock(&lock);
    bool loaded = load();
    if (loaded) { /* it would print what it does not understand */
        ut_error_message_handler before = units.set_error_message_handler(units.ignore);
        if (units.system == NULL)
            units.system = read_list();
        loaded = units.system != NULL;
        fits = loaded && convert(from, to, ret_known, ret_slope, ret_offset);
        (void) units.set_error_message_handler(before);
    }
    (void) pthread_mutex_unlock(&lock);
    if (!loaded)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "units are converted by UDUNITS-2, which could not be loaded "
                               "(" LIBRARY " and its list of units; Debian: libudunits2-0)");
    if (!fits)
        return esdm__error_set(err, ESDM_EINVAL, "'%.100s' cannot be compared with '%.100s'", from,
                               to);
    return ESDM_OK;
}
