/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What the numbers of a dataset mean, and how those of one become those of another. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "virtual/parts.h"

/* Days since the calendar's beginning of 1582-10-15, from which on the standard calendar is the
 * proleptic Gregorian one. */
static int64_t
gregorian_day(void)
{
    static const esdm__date date = {1582, 10, 15, 0};
    return esdm__date_instant(ESDM__CALENDAR_PROLEPTIC, &date).day;
}

bool
esdm__meaning_is_number(esdm_type type)
{
    switch (type) {
    case ESDM_TYPE_INT8:
    case ESDM_TYPE_UINT8:
    case ESDM_TYPE_INT16:
    case ESDM_TYPE_UINT16:
    case ESDM_TYPE_INT32:
    case ESDM_TYPE_UINT32:
    case ESDM_TYPE_INT64:
    case ESDM_TYPE_UINT64:
    case ESDM_TYPE_FLOAT32:
    case ESDM_TYPE_FLOAT64:
        return true;
    default:
        return false;
    }
}

/* ---- types -------------------------------------------------------------------------------- */

/* Bits of the values that a type holds exactly, without the sign. */
typedef struct range {
    int bits;
    bool negative;
    bool floating;
    int exponent; /* of floating ones */
} range;

static range
range_of(esdm_type type)
{
    switch (type) {
    case ESDM_TYPE_INT8:
        return (range){7, true, false, 0};
    case ESDM_TYPE_UINT8:
        return (range){8, false, false, 0};
    case ESDM_TYPE_INT16:
        return (range){15, true, false, 0};
    case ESDM_TYPE_UINT16:
        return (range){16, false, false, 0};
    case ESDM_TYPE_INT32:
        return (range){31, true, false, 0};
    case ESDM_TYPE_UINT32:
        return (range){32, false, false, 0};
    case ESDM_TYPE_INT64:
        return (range){63, true, false, 0};
    case ESDM_TYPE_UINT64:
        return (range){64, false, false, 0};
    case ESDM_TYPE_FLOAT32:
        return (range){24, true, true, 8};
    default:
        return (range){53, true, true, 11};
    }
}

static bool
holds(esdm_type whole, esdm_type part)
{
    range w = range_of(whole);
    range p = range_of(part);
    return w.bits >= p.bits && (w.negative || !p.negative) && (w.floating || !p.floating) &&
           (!p.floating || w.exponent >= p.exponent);
}

esdm_type
esdm__type_of_both(esdm_type a, esdm_type b)
{
    static const esdm_type types[] = {
        ESDM_TYPE_INT8,   ESDM_TYPE_UINT8,   ESDM_TYPE_INT16, ESDM_TYPE_UINT16, ESDM_TYPE_INT32,
        ESDM_TYPE_UINT32, ESDM_TYPE_FLOAT32, ESDM_TYPE_INT64, ESDM_TYPE_UINT64, ESDM_TYPE_FLOAT64};
    if (a == b)
        return a;
    if (!esdm__meaning_is_number(a) || !esdm__meaning_is_number(b))
        return ESDM_TYPE_NONE;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (holds(types[i], a) && holds(types[i], b))
            return types[i];
    return ESDM_TYPE_NONE;
}

/* ---- attributes --------------------------------------------------------------------------- */

static const esdm_attributes *
attributes(const esdm_dataset *dataset)
{
    return &dataset->attributes;
}

static bool
number(const esdm_dataset *dataset, const char *name, double *ret, esdm_type *ret_type)
{
    esdm_attribute a;
    if (!esdm_attribute_find(attributes(dataset), name, &a, NULL) || a.count != 1 ||
        !esdm__meaning_is_number(a.type))
        return false;
    if (ret_type != NULL)
        *ret_type = a.type;
    return esdm_convert(a.type, a.values, ESDM_TYPE_FLOAT64, ret, 1, NULL, NULL) == ESDM_OK;
}

static void
add_mark(esdm__meaning *m, double value)
{
    uint32_t i = 0;
    if (isnan(value))
        return; /* NaN is missing anyhow */
    while (i < m->nmarks && m->marks[i] < value)
        i++;
    if ((i < m->nmarks && m->marks[i] == value) || m->nmarks == ESDM__MARKS_MOST)
        return;
    memmove(m->marks + i + 1, m->marks + i, (m->nmarks - i) * sizeof *m->marks);
    m->marks[i] = value;
    m->nmarks++;
}

static void
find_marks(const esdm_dataset *dataset, esdm__meaning *m)
{
    double values[ESDM__MARKS_MOST];
    esdm_attribute a;
    m->has_fill = number(dataset, "_FillValue", &m->fill, NULL);
    if (m->has_fill)
        add_mark(m, m->fill);
    bool found =
        esdm_attribute_find(attributes(dataset), "missing_value", &a, NULL) && a.count >= 1 &&
        a.count <= ESDM__MARKS_MOST && esdm__meaning_is_number(a.type) &&
        esdm_convert(a.type, a.values, ESDM_TYPE_FLOAT64, values, a.count, NULL, NULL) == ESDM_OK;
    for (uint64_t i = 0; found && i < a.count; i++)
        add_mark(m, values[i]);
    if (found && !m->has_fill)
        m->fill = values[0];
    if (m->has_fill || found)
        return;
    const void *fill = esdm_dataset_fill(dataset, NULL);
    if (fill != NULL &&
        esdm_convert(dataset->type, fill, ESDM_TYPE_FLOAT64, &m->fill, 1, NULL, NULL) == ESDM_OK &&
        esdm_type_size(dataset->type) > 1) /* bytes have no default, as NetCDF sees it */
        add_mark(m, m->fill);
}

/* Bounds have the units of their coordinate, those of a climatology too. */
static const esdm_dataset *
who_has_units(const esdm_dataset *dataset)
{
    static const char *const names[] = {"bounds", "climatology"};
    char bounds[ESDM_NAME_MAX + 1];
    if (esdm_attribute_find(attributes(dataset), "units", NULL, NULL))
        return dataset;
    const esdm_group *group = dataset->group;
    for (size_t i = 0; i < esdm_group_dataset_count(group); i++) {
        const esdm_dataset *other = esdm_group_dataset_at(group, i);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            esdm__attribute_text(other, names[k], bounds, sizeof bounds);
            if (bounds[0] != '\0' && strcmp(bounds, dataset->name) == 0)
                return other;
        }
    }
    return dataset;
}

static bool
says_since(const char *units)
{
    for (const char *at = units; (at = strchr(at, ' ')) != NULL; at++)
        if (strncasecmp(at, " since ", 7) == 0)
            return true;
    return false;
}

static esdm_status
find_time(const esdm_dataset *dataset, esdm__meaning *m, esdm_error *err)
{
    char units[96];
    char calendar[24];
    const esdm_dataset *source = who_has_units(dataset);
    esdm__attribute_text(source, "units", units, sizeof units);
    if (!says_since(units))
        return ESDM_OK;
    esdm__attribute_text(source, "calendar", calendar, sizeof calendar);
    esdm__calendar which;
    esdm_status status = esdm__calendar_parse(calendar, &which, err);
    if (status == ESDM_OK)
        status = esdm__time_units_parse(units, which, &m->time, err);
    /* Times are compared to the millisecond, and become doubles where their units differ. */
    if (status == ESDM_OK && m->time.unit_ns == 1)
        status = esdm__error_set(err, ESDM_EINVAL,
                                 "'%s': times in nanoseconds cannot be joined, as times are "
                                 "compared to the millisecond",
                                 units);
    m->is_time = status == ESDM_OK;
    (void) snprintf(m->time_text, sizeof m->time_text, "%s, %s", units, esdm__calendar_name(which));
    return status;
}

esdm_status
esdm__meaning_of(const esdm_dataset *dataset, esdm__meaning *ret, esdm_error *err)
{
    esdm__meaning m = {.type = dataset->type, .unpacked = dataset->type, .scale = 1};
    esdm_type scale_type = ESDM_TYPE_NONE;
    esdm_type offset_type = ESDM_TYPE_NONE;
    esdm_status status = ESDM_OK;
    if (esdm__meaning_is_number(m.type)) {
        bool scaled = number(dataset, "scale_factor", &m.scale, &scale_type);
        bool moved = number(dataset, "add_offset", &m.offset, &offset_type);
        m.packed = scaled || moved;
        if (m.packed && scaled && moved)
            m.unpacked = esdm__type_of_both(scale_type, offset_type);
        else if (m.packed)
            m.unpacked = scaled ? scale_type : offset_type;
        if (m.unpacked != ESDM_TYPE_FLOAT32)
            m.unpacked = m.packed ? ESDM_TYPE_FLOAT64 : m.unpacked;
        find_marks(dataset, &m);
        status = find_time(dataset, &m, err);
    }
    if (status == ESDM_OK)
        *ret = m;
    return status == ESDM_OK ? ESDM_OK : esdm__dataset_prefix(dataset, status, err);
}

/* ---- values ------------------------------------------------------------------------------- */

bool
esdm__meaning_is_missing(const esdm__meaning *m, double value)
{
    if (isnan(value))
        return true;
    for (uint32_t i = 0; i < m->nmarks; i++)
        if (m->marks[i] == value)
            return true;
    return false;
}

static bool
same_calendar(esdm__calendar a, esdm__calendar b, esdm__instant when)
{
    if (a == b)
        return true;
    bool gregorian = (a == ESDM__CALENDAR_STANDARD || a == ESDM__CALENDAR_PROLEPTIC) &&
                     (b == ESDM__CALENDAR_STANDARD || b == ESDM__CALENDAR_PROLEPTIC);
    return gregorian && when.day >= gregorian_day();
}

static bool
map_time(const esdm__map *map, const esdm__meaning *whole, double *value)
{
    esdm__instant when;
    return map->from.time.unit_ns != 0 && esdm__time_decode(&map->from.time, *value, &when) &&
           same_calendar(map->from.time.calendar, whole->time.calendar, when) &&
           esdm__time_encode(&whole->time, when, value);
}

bool
esdm__map_apply(const esdm__map *map, const esdm__meaning *whole, double *values, size_t count,
                size_t *ret_at)
{
    for (size_t i = 0; i < count; i++) {
        bool ok = true;
        if (map->marks && esdm__meaning_is_missing(&map->from, values[i])) {
            values[i] = whole->nmarks > 0 || whole->has_fill ? whole->fill : NAN;
            continue;
        }
        if (map->unpack)
            values[i] = values[i] * map->from.scale + map->from.offset;
        if (whole->type == ESDM_TYPE_FLOAT32)
            values[i] = (double) (float) values[i];
        if (map->times)
            ok = map_time(map, whole, &values[i]);
        else if (map->marks && whole->nmarks > 0) /* a value that would become a missing one */
            ok = isnan(values[i]) || !esdm__meaning_is_missing(whole, values[i]);
        if (!ok) {
            *ret_at = i;
            return false;
        }
    }
    return true;
}
