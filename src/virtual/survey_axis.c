/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Along which dimensions members continue each other, and their order there: by what looking at
 * them has found out. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "virtual/survey.h"

typedef esdm__look look;
typedef esdm__survey survey;

/* ---- the axis ----------------------------------------------------------------------------- */

esdm_status
esdm__survey_choose_axis(const survey *s, int *ret_axis, esdm_error *err)
{
    const esdm__virtual_member *items = s->whole->members.items;
    *ret_axis = -1;
    for (size_t i = 0; i < s->whole->members.count; i++) {
        const look *l = &s->looks[i];
        int other = l->second >= 0 ? l->second : l->dimension;
        if (l->second < 0 && (l->dimension < 0 || *ret_axis < 0 || l->dimension == *ret_axis)) {
            *ret_axis = *ret_axis < 0 ? l->dimension : *ret_axis;
            continue;
        }
        (void) !esdm__error_set(
            err, ESDM_EINVAL,
            "'%s' and '%s' differ along '%s' and along '%s' (%s): members may continue each other "
            "along one dimension only",
            items[s->first].name, items[i].name,
            esdm__survey_dimension(s, (size_t) (l->second >= 0 ? l->dimension : *ret_axis)),
            esdm__survey_dimension(s, (size_t) other), l->what);
        return esdm__odd_one_out(s->whole, s->first, i, err);
    }
    if (*ret_axis >= 0)
        return ESDM_OK;
    (void) !esdm__error_set(
        err, ESDM_EINVAL,
        "'%s' and '%s' have the same coordinates, so neither continues the other: name one "
        "more attribute in the query that tells them apart (of an ensemble: variant_label)",
        items[0].name, items[1].name);
    return esdm__odd_one_out(s->whole, 0, 1, err);
}

static esdm_status
check_calendar(const survey *s, const char *axis, size_t i, const esdm__keys *one,
               const esdm__keys *other, esdm_error *err)
{
    const esdm__virtual_member *items = s->whole->members.items;
    if (one->is_time == other->is_time && esdm__calendars_agree(one->calendar, other->calendar))
        return ESDM_OK;
    (void) !esdm__error_set(
        err, ESDM_EINVAL, "'%s' has '%s' in the calendar %s, '%s' in %s: these do not join",
        items[s->first].name, axis, one->is_time ? esdm__calendar_name(one->calendar) : "none",
        items[i].name, other->is_time ? esdm__calendar_name(other->calendar) : "none");
    return esdm__odd_one_out(s->whole, s->first, i, err);
}

/* Steps that stand for stretches of time must not lie over each other. */
static esdm_status
check_cells(const survey *s, const esdm__keys *keys, esdm_error *err)
{
    const esdm__virtual_member *items = s->whole->members.items;
    size_t count = s->whole->members.count;
    size_t two[2] = {0, 0};
    char what[ESDM__WHAT_BYTES];
    bool over = false;
    esdm__cells of_first = {0};
    esdm__cells *cells = calloc(count, sizeof *cells);
    if (cells == NULL)
        return esdm__error_nomem(err, count * sizeof *cells, "coordinates");
    esdm_status status = keys[0].is_time
                             ? esdm__cells_of(s->reference, s->whole->axis.name, &of_first, err)
                             : ESDM_OK;
    for (size_t i = 0; i < count; i++) /* borrowed */
        cells[i] = s->looks[i].keys.values != NULL ? s->looks[i].cells : of_first;
    if (status == ESDM_OK)
        status = esdm__cells_check(count, keys, cells, &over, two, what, err);
    if (over) {
        (void) !esdm__error_set(err, ESDM_EINVAL,
                                "'%s' and '%s' overlap: steps of '%s' stand for %s",
                                items[two[0]].name, items[two[1]].name, s->whole->axis.name, what);
        status = esdm__odd_one_out(s->whole, two[0], two[1], err);
    }
    free(cells);
    esdm__cells_clear(&of_first);
    return status;
}

/* What was computed from a member lies within it, whatever its coordinates are. */
static esdm_status
check_results(const survey *s, const char *name, esdm_error *err)
{
    const esdm__virtual_member *items = s->whole->members.items;
    for (size_t i = 0; i < s->whole->members.count && !items[i].joined; i++) {
        if (i == s->first || s->looks[i].dimension < 0 ||
            (!esdm__member_is_made_of(s->whole, i, s->first) &&
             !esdm__member_is_made_of(s->whole, s->first, i)))
            continue;
        (void) !esdm__error_set(err, ESDM_EINVAL,
                                "'%s' and '%s' have other values of '%s', and one was made of the "
                                "other",
                                items[s->first].name, items[i].name, name);
        return esdm__odd_one_out(s->whole, s->first, i, err);
    }
    return ESDM_OK;
}

esdm_status
esdm__survey_sort_axis(survey *s, int axis, const esdm__question *question, esdm_error *err)
{
    size_t count = s->whole->members.count;
    esdm__axis *to = &s->whole->axis;
    const esdm__keys *of_first = &s->keys[axis];
    (void) snprintf(to->name, sizeof to->name, "%s", esdm__survey_dimension(s, (size_t) axis));
    esdm__keys *keys = calloc(count, sizeof *keys);
    if (keys == NULL)
        return esdm__error_nomem(err, count * sizeof *keys, "coordinates");
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < count && status == ESDM_OK; i++) { /* borrowed */
        keys[i] = s->looks[i].keys.values != NULL ? s->looks[i].keys : *of_first;
        status = check_calendar(s, to->name, i, of_first, &keys[i], err);
    }
    if (status == ESDM_OK)
        status = of_first->is_time ? check_cells(s, keys, err) : check_results(s, to->name, err);
    if (status == ESDM_OK)
        status = esdm__axis_sort(&s->whole->members, question->overlap, keys, to, err);
    if (status == ESDM_OK)
        status = esdm__gaps_find(&s->whole->members, keys, question->fill_gaps, to, err);
    free(keys);
    return status;
}

/* ---- a second dimension -------------------------------------------------------------------- */

esdm_status
esdm__survey_sort_cross(survey *s, esdm_error *err)
{
    esdm__virtual *whole = s->whole;
    const esdm__virtual_member *items = whole->members.items;
    size_t count = whole->members.count;
    int cross = -1;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < count; i++) {
        int other = s->looks[i].crossed;
        if (cross >= 0 && other >= 0 && cross != other)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "members differ along '%s', along '%s' ('%s') and along one "
                                   "more dimension: holes are filled along one only",
                                   esdm__survey_dimension(s, (size_t) cross),
                                   esdm__survey_dimension(s, (size_t) other), items[i].name);
        cross = other >= 0 ? other : cross;
    }
    if (cross < 0)
        return ESDM_OK;
    esdm__keys *keys = calloc(count, sizeof *keys);
    if (keys == NULL)
        return esdm__error_nomem(err, count * sizeof *keys, "coordinates");
    for (size_t i = 0; i < count && status == ESDM_OK; i++) { /* borrowed */
        keys[i] = s->looks[i].crossed >= 0 ? s->looks[i].cross : s->keys[cross];
        status = check_calendar(s, esdm__survey_dimension(s, (size_t) cross), i, &s->keys[cross],
                                &keys[i], err);
    }
    if (status == ESDM_OK)
        status = esdm__cross_make(whole, esdm__survey_dimension(s, (size_t) cross), keys, err);
    free(keys);
    return status;
}
