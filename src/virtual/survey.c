/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Looks at all members, each opened once as a rule: along which dimension they continue each other,
 * whether all else fits, and what their numbers mean. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "io/session/pool.h"
#include "virtual/survey.h"

typedef esdm__look look;
typedef esdm__survey survey;

/* ---- coordinates -------------------------------------------------------------------------- */

const char *
esdm__survey_dimension(const survey *s, size_t d)
{
    return ((const esdm_dimension *) s->reference->dimensions.items[d])->name;
}

bool
esdm__calendars_agree(esdm__calendar a, esdm__calendar b)
{
    return a == b || ((a == ESDM__CALENDAR_STANDARD || a == ESDM__CALENDAR_PROLEPTIC) &&
                      (b == ESDM__CALENDAR_STANDARD || b == ESDM__CALENDAR_PROLEPTIC));
}

static bool
key_same(const esdm__keys *k, double a, double b)
{
    return a == b || (!k->is_time && esdm__coordinate_same(a, b, k->spacing));
}

static void
key_format(const esdm__keys *keys, double key, char text[40])
{
    if (keys->is_time)
        esdm__ms_format(keys->calendar, key, text);
    else
        (void) snprintf(text, 40, "%.9g", key);
}

void
esdm__keys_compare(const esdm__keys *a, const esdm__keys *b, const char *name, bool *ret_same,
                   bool *ret_flipped, char what[ESDM__WHAT_BYTES])
{
    const size_t bytes = ESDM__WHAT_BYTES;
    uint64_t same = 0;
    uint64_t reversed = 0;
    while (same < a->count && a->count == b->count && key_same(a, a->values[same], b->values[same]))
        same++;
    *ret_same = a->count == b->count && same == a->count;
    while (!*ret_same && reversed < a->count && a->count == b->count &&
           key_same(a, a->values[reversed], b->values[a->count - 1 - reversed]))
        reversed++;
    *ret_flipped = !*ret_same && a->count == b->count && reversed == a->count;
    if (a->is_time != b->is_time || !esdm__calendars_agree(a->calendar, b->calendar)) {
        *ret_same = *ret_flipped = false;
        (void) snprintf(what, bytes, "'%s' has the calendars %s and %s", name,
                        a->is_time ? esdm__calendar_name(a->calendar) : "none",
                        b->is_time ? esdm__calendar_name(b->calendar) : "none");
    } else if (a->count != b->count)
        (void) snprintf(what, bytes, "'%s' has %" PRIu64 " and %" PRIu64 " values", name, a->count,
                        b->count);
    else if (!*ret_same) {
        char one[40], other[40];
        key_format(a, a->values[same], one);
        key_format(b, b->values[same], other);
        (void) snprintf(what, bytes, "'%s' at %" PRIu64 " is %s and %s", name, same, one, other);
    }
}

static bool
may_cross(const survey *s, const char *dimension)
{
    return s->fills && (s->rows == NULL || strcmp(dimension, s->rows) != 0);
}

/* One dimension of the reference and the same of another member. */
static esdm_status
look_at_dimension(const survey *s, size_t i, size_t d, esdm_container *other, esdm_error *err)
{
    look *l = &s->looks[i];
    const char *name = esdm__survey_dimension(s, d);
    esdm__keys keys = {0};
    bool same = true;
    bool flipped = false;
    char what[sizeof l->what];
    if (s->keys[d].values == NULL)
        return ESDM_OK; /* told when structures are compared */
    esdm_status status = esdm__keys_of(esdm__member_dataset(other, name), &keys, err);
    if (status != ESDM_OK || keys.values == NULL)
        return status;
    esdm__keys_compare(&s->keys[d], &keys, name, &same, &flipped, what);
    if (flipped && !keys.is_time) {
        s->whole->flips[i] |= UINT64_C(1) << d;
        same = true;
    }
    if (!same && l->crossed < 0 && may_cross(s, name)) {
        l->crossed = (int) d;
        l->cross = keys;
        return ESDM_OK;
    }
    if (!same)
        memcpy(l->what, what, sizeof what);
    if (!same && l->dimension >= 0) {
        l->second = (int) d;
    } else if (!same) {
        l->dimension = (int) d;
        l->keys = keys;
        return keys.is_time ? esdm__cells_of(other, name, &l->cells, err) : ESDM_OK;
    }
    esdm__keys_clear(&keys);
    return ESDM_OK;
}

static esdm_status
look_at_dimensions(const survey *s, size_t i, esdm_container *other, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t d = 0; d < s->ndimensions && status == ESDM_OK; d++)
        status = look_at_dimension(s, i, d, other, err);
    return status;
}

/* ---- meanings, differences ------------------------------------------------------------------ */

static bool
same_meaning(const esdm__meaning *a, const esdm__meaning *b)
{
    return a->type == b->type && a->packed == b->packed && a->unpacked == b->unpacked &&
           a->scale == b->scale && a->offset == b->offset && a->nmarks == b->nmarks &&
           (a->nmarks == 0 || memcmp(a->marks, b->marks, a->nmarks * sizeof *a->marks) == 0) &&
           a->fill == b->fill && a->has_fill == b->has_fill && a->is_time == b->is_time &&
           strcmp(a->time_text, b->time_text) == 0;
}

/* Enters a meaning, with the lock held. Members in a row mostly mean the same. */
static esdm_status
enter_meaning(esdm__joined *joined, const esdm__meaning *meaning, uint32_t *ret_which,
              esdm_error *err)
{
    size_t n = joined->nmeanings;
    for (size_t k = n; k-- > 0 && n - k <= 8;) {
        if (same_meaning(&joined->meanings[k], meaning)) {
            *ret_which = (uint32_t) k;
            return ESDM_OK;
        }
    }
    if (!esdm__array_grow(&joined->meanings, n, sizeof *joined->meanings))
        return esdm__error_nomem(err, n * sizeof *joined->meanings, "a virtual container");
    joined->meanings[joined->nmeanings] = *meaning;
    *ret_which = (uint32_t) joined->nmeanings++;
    return ESDM_OK;
}

static esdm_status
note_meanings(survey *s, size_t i, esdm_container *member, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t k = 0; k < s->whole->ndatasets && status == ESDM_OK; k++) {
        esdm__meaning meaning;
        const esdm_dataset *x = s->reference->datasets.items[k];
        const esdm_dataset *y = esdm__member_same(member, x);
        if (y == NULL) { /* compare.c lets nothing else be missing */
            (void) pthread_mutex_lock(&s->lock);
            s->whole->datasets[k].left_out = true;
            (void) pthread_mutex_unlock(&s->lock);
        }
        if (y == NULL || !esdm__meaning_is_number(x->type))
            continue;
        status = esdm__meaning_of(y, &meaning, err);
        (void) pthread_mutex_lock(&s->lock);
        if (status == ESDM_OK)
            status = enter_meaning(&s->whole->datasets[k], &meaning,
                                   &s->whole->datasets[k].which[i], err);
        (void) pthread_mutex_unlock(&s->lock);
    }
    return status;
}

/* Name of the second dimension, once it is known for all; before that for this member. */
static const char *
cross_of(const survey *s, size_t i)
{
    if (s->whole->cross.name[0] != '\0')
        return s->whole->cross.name;
    return s->looks[i].crossed >= 0 ? esdm__survey_dimension(s, (size_t) s->looks[i].crossed)
                                    : NULL;
}

static esdm_status
compare(survey *s, size_t i, esdm_container *member, const char *axis, esdm_error *err)
{
    const esdm__virtual_member *items = s->whole->members.items;
    esdm__pair pair = {.axis = axis,
                       .one = items[s->first].name,
                       .other = items[i].name,
                       .a = s->reference,
                       .b = member,
                       .cross = cross_of(s, i),
                       .stacked = s->whole->stacks ? s->whole->datasets : NULL,
                       .flips = s->whole->flips[i]};
    esdm_status status = esdm__pair_compare(&pair, err);
    if (status == ESDM_EINVAL)
        status = esdm__odd_one_out(s->whole, s->first, i, err);
    if (status == ESDM_OK)
        status = note_meanings(s, i, member, err);
    if (status != ESDM_OK)
        return status;
    (void) pthread_mutex_lock(&s->lock);
    esdm__note_differences(s->reference, member, &s->whole->differs);
    (void) pthread_mutex_unlock(&s->lock);
    s->looks[i].compared = true;
    return ESDM_OK;
}

/* Members that come from different runs are no series. Where they do not fit either, that tells
 * more than in what; but not of a mean of years beside its months. */
static esdm_status
check_origins(const survey *s, const esdm__question *question, esdm_status status, esdm_error *err)
{
    esdm_error other = {0};
    const char *frequency = s->origins[s->first].frequency;
    if (status != ESDM_OK && (status != ESDM_EINVAL || s->whole->results))
        return status;
    for (size_t i = 0; i < s->whole->members.count && status != ESDM_OK; i++)
        if (frequency != NULL && s->origins[i].frequency != NULL &&
            !esdm__same_frequency(frequency, s->origins[i].frequency))
            return status;
    if (esdm__origins_check(s->whole, question, s->origins, &other) == ESDM_OK)
        return status;
    if (err != NULL)
        *err = other;
    return ESDM_EINVAL;
}

/* What a member comes from does not depend on the reference. */
static void
note_origin(survey *s, size_t i, esdm_container *member)
{
    if (!s->looks[i].known)
        esdm__origin_of(member, &s->origins[i]);
    s->looks[i].known = true;
}

static esdm_status
look_at(void *context, size_t i, esdm_error *err)
{
    survey *s = context;
    esdm_container *member = NULL;
    if (i == s->first || s->looks[i].compared)
        return ESDM_OK;
    esdm_status status = esdm__member_use(&s->whole->members, i, &member, err);
    if (status != ESDM_OK)
        return status;
    const char *axis = s->axis;
    const look *l = &s->looks[i];
    note_origin(s, i, member);
    if (axis == NULL || s->whole->stacks) {
        status = look_at_dimensions(s, i, member, err);
        if (s->whole->stacks)
            axis = l->dimension < 0 ? axis : NULL; /* told by check_stack() */
        else if (status == ESDM_OK && l->dimension >= 0 && l->second < 0)
            axis = esdm__survey_dimension(s, (size_t) l->dimension);
    }
    if (status == ESDM_OK && axis != NULL)
        status = compare(s, i, member, axis, err);
    esdm__member_release(&s->whole->members, i);
    return status;
}

/* ---- the reference ------------------------------------------------------------------------ */

static esdm_status
reference_begin(survey *s, size_t first, esdm_error *err)
{
    esdm__virtual *whole = s->whole;
    s->first = first;
    esdm_status status = esdm__member_use(&whole->members, first, &s->reference, err);
    if (status != ESDM_OK)
        return status;
    whole->ndatasets = s->reference->datasets.count;
    whole->datasets = calloc(whole->ndatasets + 1, sizeof *whole->datasets);
    if (whole->datasets == NULL)
        return esdm__error_nomem(err, whole->ndatasets * sizeof *whole->datasets, "a container");
    for (size_t k = 0; k < whole->ndatasets; k++) {
        whole->datasets[k].which = calloc(whole->members.count, sizeof(uint32_t));
        if (whole->datasets[k].which == NULL)
            return esdm__error_nomem(err, whole->members.count * sizeof(uint32_t), "members");
    }
    return note_meanings(s, first, s->reference, err);
}

static void
reference_end(survey *s)
{
    if (s->reference != NULL)
        esdm__member_release(&s->whole->members, s->first);
    s->reference = NULL;
}

static esdm_status
reference_keys(survey *s, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    size_t n = s->reference->dimensions.count;
    s->ndimensions = n < ESDM__DIMENSIONS_MOST ? n : ESDM__DIMENSIONS_MOST;
    s->keys = calloc(s->ndimensions + 1, sizeof *s->keys);
    if (s->keys == NULL)
        return esdm__error_nomem(err, s->ndimensions * sizeof *s->keys, "coordinates");
    for (size_t d = 0; d < s->ndimensions && status == ESDM_OK; d++) {
        const esdm_dimension *dimension = s->reference->dimensions.items[d];
        if (dimension->group->parent == NULL)
            status = esdm__keys_of(esdm__member_dataset(s->reference, dimension->name), &s->keys[d],
                                   err);
    }
    return status;
}

/* ---- a new dimension ----------------------------------------------------------------------- */

static esdm_status
check_stack(const survey *s, esdm_error *err)
{
    const esdm__virtual_member *items = s->whole->members.items;
    for (size_t i = 0; i < s->whole->members.count; i++) {
        const look *l = &s->looks[i];
        if (l->dimension < 0)
            continue;
        const esdm__keys *first = &s->keys[l->dimension];
        bool fills = first->is_time == l->keys.is_time &&
                     esdm__calendars_agree(first->calendar, l->keys.calendar);
        return esdm__error_set(
            err, ESDM_EINVAL, "'%s' and '%s' have other values along '%s' (%s)%s",
            items[s->first].name, items[i].name, esdm__survey_dimension(s, (size_t) l->dimension),
            l->what, fills ? ": &gaps=fill fills what one lacks" : "");
    }
    return ESDM_OK;
}

/* All dimensions that there are must be equal. */
static esdm_status
survey_stack(survey *s, const esdm__question *question, esdm_error *err)
{
    esdm__virtual *whole = s->whole;
    esdm_status status = reference_begin(s, 0, err);
    if (status == ESDM_OK)
        status = reference_keys(s, err);
    if (status == ESDM_OK) {
        note_origin(s, 0, s->reference);
        status = esdm__stack_axis(whole, question->ensemble, s->reference, err);
    }
    if (status != ESDM_OK)
        return status;
    esdm__stack_choose(whole, s->reference);
    s->axis = whole->axis.name;
    status = esdm__pool_run(whole->members.session->pool, whole->members.count, look_at, s, err);
    if (status == ESDM_OK)
        status = check_stack(s, err);
    if (status == ESDM_OK)
        status = check_origins(s, question, status, err);
    return status == ESDM_OK ? esdm__survey_sort_cross(s, err) : status;
}

/* ---- all ---------------------------------------------------------------------------------- */

static void
survey_clear(survey *s)
{
    reference_end(s);
    for (size_t d = 0; d < s->ndimensions && s->keys != NULL; d++)
        esdm__keys_clear(&s->keys[d]);
    free(s->keys);
    for (size_t i = 0; i < s->whole->members.count && s->looks != NULL; i++) {
        esdm__keys_clear(&s->looks[i].keys);
        esdm__keys_clear(&s->looks[i].cross);
        esdm__cells_clear(&s->looks[i].cells);
    }
    free(s->looks);
    for (size_t i = 0; i < s->whole->members.count && s->origins != NULL; i++)
        esdm__origin_clear(&s->origins[i]);
    free(s->origins);
    (void) pthread_mutex_destroy(&s->lock);
}

/* Which dimensions are reversed, as the container that begins numbers them. */
static void
renumber_flips(const survey *s, const esdm_container *to)
{
    uint64_t turned = s->whole->flips[s->whole->axis.first];
    for (size_t i = 0; i < s->whole->members.count; i++) {
        uint64_t flips = 0;
        for (size_t d = 0; d < to->dimensions.count && d < ESDM__DIMENSIONS_MOST; d++) {
            const esdm_dimension *new = to->dimensions.items[d];
            for (size_t k = 0; k < s->ndimensions && new->group->parent == NULL; k++)
                if (strcmp(esdm__survey_dimension(s, k), new->name) == 0 &&
                    ((s->whole->flips[i] ^ turned) >> k & 1u) != 0)
                    flips |= UINT64_C(1) << d;
        }
        s->whole->flips[i] = flips;
    }
}

/* Another member than the first one in the list begins: what was found out goes by that one. */
static esdm_status
change_reference(survey *s, esdm_error *err)
{
    esdm__virtual *whole = s->whole;
    esdm_container *begins = NULL;
    esdm_status status = esdm__member_use(&whole->members, whole->axis.first, &begins, err);
    if (status != ESDM_OK)
        return status;
    bool fits = esdm_group_dimension_find(esdm_container_root(begins), whole->axis.name) != NULL;
    if (fits)
        renumber_flips(s, begins);
    esdm__member_release(&whole->members, whole->axis.first);
    if (!fits) { /* it has a single element, and no dimension for it */
        whole->axis.first = s->first;
        return ESDM_OK;
    }
    reference_end(s);
    esdm__joined_clear(whole);
    whole->differs.bytes = 0;
    for (size_t i = 0; i < whole->members.count; i++)
        s->looks[i].compared = false;
    return reference_begin(s, whole->axis.first, err);
}

/* Of the first two members the one with more dimensions: the other may have a scalar instead. */
static esdm_status
more_dimensions(esdm__virtual *whole, size_t *ret_first, esdm_error *err)
{
    size_t n[2] = {0, 0};
    for (size_t i = 0; i < 2; i++) {
        esdm_container *member = NULL;
        esdm_status status = esdm__member_use(&whole->members, i, &member, err);
        if (status != ESDM_OK)
            return status;
        n[i] = member->dimensions.count;
        esdm__member_release(&whole->members, i);
    }
    *ret_first = n[1] > n[0] ? 1 : 0;
    return ESDM_OK;
}

static esdm_status
survey_run(survey *s, const esdm__question *question, esdm_error *err)
{
    esdm__virtual *whole = s->whole;
    esdm__pool *pool = whole->members.session->pool;
    int axis = -1;
    size_t first = 0;
    if (whole->stacks)
        return survey_stack(s, question, err);
    esdm_status status = more_dimensions(whole, &first, err);
    if (status == ESDM_OK)
        status = reference_begin(s, first, err);
    if (status == ESDM_OK)
        status = reference_keys(s, err);
    if (status == ESDM_OK) {
        note_origin(s, first, s->reference);
        status = esdm__pool_run(pool, whole->members.count, look_at, s, err);
        status = check_origins(s, question, status, err);
    }
    if (status == ESDM_OK)
        status = esdm__survey_choose_axis(s, &axis, err);
    if (status == ESDM_OK)
        status = esdm__survey_sort_cross(s, err);
    if (status == ESDM_OK)
        status = esdm__survey_sort_axis(s, axis, question, err);
    if (status == ESDM_OK && whole->axis.first != s->first)
        status = change_reference(s, err);
    s->axis = whole->axis.name;
    if (status == ESDM_OK) /* those that were not compared yet */
        status = esdm__pool_run(pool, whole->members.count, look_at, s, err);
    return status;
}

esdm_status
esdm__virtual_survey(esdm__virtual *whole, const esdm__question *question,
                     const esdm__bundles *bundles, esdm_error *err)
{
    size_t count = whole->members.count;
    survey s = {.whole = whole,
                .looks = calloc(count, sizeof *s.looks),
                .origins = calloc(count, sizeof *s.origins)};
    (void) pthread_mutex_init(&s.lock, NULL);
    whole->flips = calloc(count, sizeof *whole->flips);
    for (size_t i = 0; i < count && s.looks != NULL; i++)
        s.looks[i].dimension = s.looks[i].second = s.looks[i].crossed = -1;
    s.rows = bundles != NULL && bundles->axis[0] != '\0' ? bundles->axis : NULL;
    s.fills = s.rows != NULL || (whole->stacks && question->fill_gaps);
    esdm_status status = s.looks != NULL && s.origins != NULL && whole->flips != NULL
                             ? survey_run(&s, question, err)
                             : esdm__error_nomem(err, count * sizeof *s.looks, "members");
    survey_clear(&s);
    return status;
}
