/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Elements that no member has, where the step of the coordinate tells that there are some.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "virtual/parts.h"

#define DAY_MS 86400000.
/** Gaps that an attribute tells of. */
#define GAPS_TOLD 20u

/* How the elements follow each other. */
typedef struct step {
    enum {
        UNKNOWN,
        CONSTANT,    /* `size` milliseconds, or units of the coordinate */
        SAME_DAY,    /* of the month and time of day, every `months` */
        MIDDLE_MONTH /* of `months`, the first of which is `before` the month of the element */
    } kind;
    double size;
    int64_t months;
    int64_t before;
    size_t odd; /* UNKNOWN: the element behind the first distance that fits no step */
} step;

typedef struct search {
    double *keys; /* owned; of the whole, rising */
    size_t count;
    bool is_time;
    esdm__calendar calendar;
    step step;
    bool has_bounds;
    double first_bounds[2]; /* of the first element */
} search;

/* ---- months --------------------------------------------------------------------------------- */

static esdm__instant
instant_of(double key)
{
    double day = floor(key / DAY_MS);
    return (esdm__instant){(int64_t) day, (int64_t) (key - day * DAY_MS) * 1000000};
}

static double
key_of(esdm__instant when)
{
    return (double) when.day * DAY_MS + (double) when.day_ns / 1e6;
}

static int64_t
month_of(const esdm__date *date)
{
    return (int64_t) date->year * 12 + date->month - 1;
}

/* That day of a month; false: there is none. */
static bool
day_of_month(const search *s, int64_t month, int32_t day, int64_t day_ns, double *ret_key)
{
    int64_t year = month >= 0 ? month / 12 : -((11 - month) / 12);
    esdm__date date = {(int32_t) year, (int32_t) (month - year * 12) + 1, day, day_ns};
    if (!esdm__date_exists(s->calendar, &date))
        return false;
    *ret_key = key_of(esdm__date_instant(s->calendar, &date));
    return true;
}

static bool
middle_of(const search *s, int64_t from, int64_t months, double ret_bounds[2], double *ret_key)
{
    if (!day_of_month(s, from, 1, 0, &ret_bounds[0]) ||
        !day_of_month(s, from + months, 1, 0, &ret_bounds[1]))
        return false;
    *ret_key = (ret_bounds[0] + ret_bounds[1]) / 2;
    return true;
}

static bool
date_of(const search *s, double key, esdm__date *ret)
{
    return esdm__instant_date(s->calendar, instant_of(key), ret);
}

static bool
all_in_the_middle(const search *s, int64_t months, int64_t before)
{
    for (size_t i = 0; i < s->count; i++) {
        esdm__date date;
        double bounds[2];
        double key;
        if (!date_of(s, s->keys[i], &date) ||
            !middle_of(s, month_of(&date) - before, months, bounds, &key) ||
            fabs(key - s->keys[i]) > 1)
            return false;
    }
    return true;
}

/* ---- the step ------------------------------------------------------------------------------- */

static bool
is_constant(search *s)
{
    double least = INFINITY;
    for (size_t i = 1; i < s->count; i++)
        least = fmin(least, s->keys[i] - s->keys[i - 1]);
    for (size_t i = 1; i < s->count; i++) {
        double distance = s->keys[i] - s->keys[i - 1];
        double times = nearbyint(distance / least);
        if (fabs(distance - times * least) > (s->is_time ? fmin(1, least / 4) : 1e-3 * least)) {
            s->step.odd = i;
            return false;
        }
    }
    s->step = (step){.kind = CONSTANT, .size = least};
    return true;
}

static bool
is_monthly(search *s)
{
    int64_t least = INT64_MAX;
    int64_t last = 0;
    bool same = true;
    esdm__date first = {0};
    for (size_t i = 0; i < s->count; i++) {
        esdm__date date;
        if (!date_of(s, s->keys[i], &date))
            return false;
        if (i == 0)
            first = date;
        else if (month_of(&date) - last < least)
            least = month_of(&date) - last;
        same = same && date.day == first.day && date.day_ns == first.day_ns;
        last = month_of(&date);
    }
    if (least < 1)
        return false;
    for (size_t i = 1; i < s->count; i++) {
        esdm__date a;
        esdm__date b;
        (void) date_of(s, s->keys[i - 1], &a);
        (void) date_of(s, s->keys[i], &b);
        if ((month_of(&b) - month_of(&a)) % least != 0)
            return false;
    }
    if (same) {
        s->step = (step){.kind = SAME_DAY, .months = least};
        return true;
    }
    for (int64_t before = 0; before < least && before < 1200; before++) {
        if (all_in_the_middle(s, least, before)) {
            s->step = (step){.kind = MIDDLE_MONTH, .months = least, .before = before};
            return true;
        }
    }
    return false;
}

/* Steps from element i to the next one that there is; 1: nothing is missing. */
static uint64_t
steps_behind(const search *s, size_t i)
{
    esdm__date a;
    esdm__date b;
    if (s->step.kind == CONSTANT)
        return (uint64_t) nearbyint((s->keys[i + 1] - s->keys[i]) / s->step.size);
    (void) date_of(s, s->keys[i], &a);
    (void) date_of(s, s->keys[i + 1], &b);
    return (uint64_t) ((month_of(&b) - month_of(&a)) / s->step.months);
}

/* ---- elements that are made ----------------------------------------------------------------- */

static bool
move_months(const search *s, double key, int64_t months, double *ret)
{
    esdm__date date;
    return date_of(s, key, &date) &&
           day_of_month(s, month_of(&date) + months, date.day, date.day_ns, ret);
}

/* The element n steps behind element i. */
static bool
make_element(const search *s, size_t i, uint64_t n, double *ret_key, double ret_bounds[2])
{
    esdm__date date;
    double more = (double) n * s->step.size;
    int64_t months = (int64_t) n * s->step.months;
    switch (s->step.kind) {
    case CONSTANT:
        *ret_key = s->keys[i] + more;
        for (int end = 0; end < 2; end++)
            ret_bounds[end] = s->first_bounds[end] + (*ret_key - s->keys[0]);
        return true;
    case MIDDLE_MONTH:
        return date_of(s, s->keys[i], &date) &&
               middle_of(s, month_of(&date) - s->step.before + months, s->step.months, ret_bounds,
                         ret_key);
    case SAME_DAY: {
        esdm__date first;
        if (!move_months(s, s->keys[i], months, ret_key) || !date_of(s, *ret_key, &date) ||
            !date_of(s, s->keys[0], &first))
            return false;
        int64_t from_first = month_of(&date) - month_of(&first);
        return !s->has_bounds || (move_months(s, s->first_bounds[0], from_first, &ret_bounds[0]) &&
                                  move_months(s, s->first_bounds[1], from_first, &ret_bounds[1]));
    }
    default:
        return false;
    }
}

/* ---- telling -------------------------------------------------------------------------------- */

static void
format_key(const search *s, double key, char text[40])
{
    esdm__date date;
    if (s->is_time && date_of(s, key, &date))
        esdm__date_format(&date, text);
    else
        (void) snprintf(text, 40, "%.9g", key);
}

static void
tell_gap(const search *s, size_t i, uint64_t missing, bool fill, esdm__axis *axis)
{
    char line[256];
    char from[40];
    char to[40];
    int n = 0;
    format_key(s, s->keys[i], from);
    format_key(s, s->keys[i + 1], to);
    if (axis->ngaps < GAPS_TOLD)
        n = snprintf(line, sizeof line, "%s: %" PRIu64 " %s between %s and %s\n", axis->name,
                     missing, fill ? "filled" : "missing", from, to);
    else if (axis->ngaps == GAPS_TOLD)
        n = snprintf(line, sizeof line, "and more\n");
    esdm__buffer_put(&axis->told, line, (size_t) n);
    axis->ngaps++;
}

static esdm_status
step_unknown(const search *s, const esdm__axis *axis, esdm_error *err)
{
    char a[40];
    char b[40];
    char c[40];
    size_t odd = s->step.odd > 1 ? s->step.odd : 2;
    format_key(s, s->keys[odd - 2], a);
    format_key(s, s->keys[odd - 1], b);
    format_key(s, s->keys[odd], c);
    return esdm__error_set(err, ESDM_EINVAL,
                           "gaps along '%s' cannot be filled: it has no regular step (from %s to "
                           "%s, then to %s)",
                           axis->name, a, b, c);
}

/* ---- filling -------------------------------------------------------------------------------- */

static esdm_status
room_for(const search *s, esdm__axis *axis, esdm_error *err)
{
    uint64_t missing = 0;
    size_t gaps = 0;
    for (size_t i = 0; i + 1 < s->count; i++) {
        uint64_t n = steps_behind(s, i);
        gaps += n > 1;
        missing += n - 1;
        if (n > ESDM__FILLED_MOST || missing > ESDM__FILLED_MOST)
            return esdm__error_set(err, ESDM_ENOTSUP,
                                   "gaps along '%s' have more than %u elements: they are not "
                                   "filled",
                                   axis->name, ESDM__FILLED_MOST);
    }
    axis->filled = malloc((size_t) (missing + 1) * 3 * sizeof *axis->filled);
    esdm__run *runs = malloc((axis->nruns + 2 * gaps + 1) * sizeof *runs);
    if (axis->filled == NULL || runs == NULL) {
        free(runs);
        return esdm__error_nomem(err, (size_t) missing * sizeof(double), "gaps");
    }
    axis->bounds = axis->filled + missing + 1;
    memcpy(runs, axis->runs, axis->nruns * sizeof *runs);
    free(axis->runs);
    axis->runs = runs;
    return ESDM_OK;
}

static esdm_status
make_elements(const search *s, size_t i, uint64_t missing, esdm__axis *axis, esdm_error *err)
{
    for (uint64_t n = 1; n <= missing; n++, axis->nfilled++)
        if (!make_element(s, i, n, &axis->filled[axis->nfilled], &axis->bounds[2 * axis->nfilled]))
            return step_unknown(s, axis, err);
    return ESDM_OK;
}

/* Parts the run that has element `at` of the whole behind it, and puts `missing` elements there. */
static void
insert_run(esdm__axis *axis, uint64_t at, uint64_t missing)
{
    size_t r = (size_t) (esdm__axis_run(axis, at) - axis->runs);
    esdm__run *run = &axis->runs[r];
    uint64_t left = at + 1 - run->start;
    size_t more = left < run->count ? 2 : 1;
    memmove(run + 1 + more, run + 1, (axis->nruns - r - 1) * sizeof *run);
    if (more == 2)
        run[2] = (esdm__run){at + 1, run->count - left, run->member, run->first + left};
    run->count = left;
    run[1] = (esdm__run){at + 1, missing, ESDM__NO_MEMBER, axis->nfilled};
    axis->nruns += more;
    for (size_t k = r + 2; k < axis->nruns; k++)
        axis->runs[k].start += missing;
    for (size_t k = 0; k < axis->ntwice; k++)
        if (axis->twice[k].at > at)
            axis->twice[k].at += missing;
    axis->length += missing;
}

static esdm_status
fill_all(const search *s, esdm__axis *axis, esdm_error *err)
{
    uint64_t at = 0;
    esdm_status status = room_for(s, axis, err);
    for (size_t i = 0; i + 1 < s->count && status == ESDM_OK; i++, at++) {
        uint64_t missing = steps_behind(s, i) - 1;
        if (missing == 0)
            continue;
        tell_gap(s, i, missing, true, axis);
        insert_run(axis, at, missing);
        status = make_elements(s, i, missing, axis, err);
        at += missing;
    }
    return status;
}

/* ---- bounds --------------------------------------------------------------------------------- */

static esdm_status
read_bounds(search *s, esdm_dataset *dataset, uint64_t index, esdm_error *err)
{
    esdm__meaning meaning;
    double *values = NULL;
    uint64_t count = 0;
    esdm_status status = esdm__meaning_of(dataset, &meaning, err);
    if (status == ESDM_OK)
        status = esdm__values_all(dataset, &values, &count, err);
    if (status != ESDM_OK)
        return status;
    for (uint64_t end = 0; end < 2 && 2 * index + end < count; end++) {
        esdm__instant when;
        s->first_bounds[end] = values[2 * index + end];
        if (meaning.is_time && esdm__time_decode(&meaning.time, values[2 * index + end], &when))
            s->first_bounds[end] = key_of(esdm__instant_round(when));
        s->has_bounds = true;
    }
    free(values);
    return ESDM_OK;
}

static esdm_status
find_bounds(search *s, esdm__members *members, esdm__axis *axis, esdm_error *err)
{
    esdm_container *member = NULL;
    const esdm__run *run = &axis->runs[0];
    esdm_status status = esdm__member_use(members, run->member, &member, err);
    if (status != ESDM_OK)
        return status;
    const esdm_dataset *coordinate = esdm__member_dataset(member, axis->name);
    esdm__attribute_text(coordinate, "bounds", axis->bounds_name, sizeof axis->bounds_name);
    esdm_dataset *bounds =
        axis->bounds_name[0] != '\0' ? esdm__member_dataset(member, axis->bounds_name) : NULL;
    if (bounds != NULL && bounds->rank == coordinate->rank + 1 &&
        esdm__meaning_is_number(bounds->type) &&
        esdm_dimension_length(bounds->dimensions[bounds->rank - 1]) == 2)
        status = read_bounds(s, bounds, run->first, err);
    esdm__member_release(members, run->member);
    if (!s->has_bounds)
        axis->bounds_name[0] = '\0';
    return status;
}

/* ---- all ------------------------------------------------------------------------------------ */

static esdm_status
find_all(search *s, esdm__members *members, bool fill, esdm__axis *axis, esdm_error *err)
{
    bool regular = true;
    if (!is_constant(s) && !(s->is_time && is_monthly(s)))
        return fill ? step_unknown(s, axis, err) : ESDM_OK;
    for (size_t i = 0; i + 1 < s->count; i++)
        regular = regular && steps_behind(s, i) == 1;
    if (regular)
        return ESDM_OK;
    if (fill) {
        esdm_status status = find_bounds(s, members, axis, err);
        return status == ESDM_OK ? fill_all(s, axis, err) : status;
    }
    for (size_t i = 0; i + 1 < s->count; i++)
        if (steps_behind(s, i) > 1)
            tell_gap(s, i, steps_behind(s, i) - 1, false, axis);
    return ESDM_OK;
}

esdm_status
esdm__gaps_find(esdm__members *members, const esdm__keys *keys, bool fill, esdm__axis *axis,
                esdm_error *err)
{
    if (axis->length < 2)
        return ESDM_OK;
    search s = {.is_time = keys[axis->first].is_time, .calendar = keys[axis->first].calendar};
    s.keys = malloc((size_t) axis->length * sizeof *s.keys);
    if (s.keys == NULL)
        return esdm__error_nomem(err, (size_t) axis->length * sizeof *s.keys, "coordinates");
    for (size_t r = 0; r < axis->nruns; r++)
        for (uint64_t i = 0; i < axis->runs[r].count; i++)
            s.keys[s.count++] = keys[axis->runs[r].member].values[axis->runs[r].first + i];
    esdm_status status = find_all(&s, members, fill, axis, err);
    free(s.keys);
    return status;
}
