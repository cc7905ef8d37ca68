/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file A second dimension along which members have other elements: the whole has those of all,
 * and where a member lacks one its values are missing. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "virtual/parts.h"

/* Which element of a member is element `at` of the whole. */
typedef struct place {
    size_t member;
    uint64_t at;
    uint64_t index;
} place;

static int
by_member(const void *a, const void *b)
{
    const place *x = a;
    const place *y = b;
    if (x->member != y->member)
        return x->member < y->member ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static esdm_status
list_places(const esdm__axis *axis, place **ret, size_t *ret_count, esdm_error *err)
{
    size_t n = 0;
    size_t count = (size_t) axis->length + axis->ntwice;
    place *places = malloc((count + 1) * sizeof *places);
    if (places == NULL)
        return esdm__error_nomem(err, count * sizeof *places, "coordinates");
    for (size_t r = 0; r < axis->nruns; r++)
        for (uint64_t i = 0; i < axis->runs[r].count; i++)
            places[n++] =
                (place){axis->runs[r].member, axis->runs[r].start + i, axis->runs[r].first + i};
    for (size_t i = 0; i < axis->ntwice; i++)
        places[n++] = (place){axis->twice[i].member, axis->twice[i].at, axis->twice[i].index};
    qsort(places, n, sizeof *places, by_member);
    *ret = places;
    *ret_count = n;
    return ESDM_OK;
}

/* Runs of one member, with those of elements that it lacks between them. */
static void
make_runs(const place *places, size_t count, uint64_t length, size_t member, esdm__run *runs,
          size_t *ret_nruns)
{
    uint64_t at = 0;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        esdm__run *last = n > 0 ? &runs[n - 1] : NULL;
        if (places[i].at > at)
            runs[n++] = (esdm__run){at, places[i].at - at, ESDM__NO_MEMBER, 0};
        else if (last != NULL && last->member == member &&
                 last->first + last->count == places[i].index) {
            last->count++;
            at = places[i].at + 1;
            continue;
        }
        runs[n++] = (esdm__run){places[i].at, 1, member, places[i].index};
        at = places[i].at + 1;
    }
    if (at < length)
        runs[n++] = (esdm__run){at, length - at, ESDM__NO_MEMBER, 0};
    *ret_nruns = n;
}

static void
tell_holes(esdm__virtual *whole, size_t member, uint64_t missing)
{
    char line[ESDM_NAME_MAX + 400];
    int n = snprintf(line, sizeof line, "%s: %" PRIu64 " filled in %.300s\n", whole->cross.name,
                     missing, whole->members.items[member].name);
    if (missing > 0 && whole->axis.ngaps++ < 20)
        esdm__buffer_put(&whole->axis.told, line, (size_t) n);
}

static esdm_status
runs_of_members(esdm__virtual *whole, const place *places, size_t count, esdm_error *err)
{
    size_t i = 0;
    whole->crossed = calloc(whole->members.count, sizeof *whole->crossed);
    if (whole->crossed == NULL)
        return esdm__error_nomem(err, whole->members.count * sizeof *whole->crossed, "members");
    for (size_t m = 0; m < whole->members.count; m++) {
        esdm__axis *of = &whole->crossed[m];
        size_t end = i;
        while (end < count && places[end].member == m)
            end++;
        of->length = whole->cross.length;
        of->runs = malloc((2 * (end - i) + 2) * sizeof *of->runs);
        if (of->runs == NULL)
            return esdm__error_nomem(err, (end - i) * sizeof *of->runs, "coordinates");
        make_runs(places + i, end - i, of->length, m, of->runs, &of->nruns);
        tell_holes(whole, m, of->length - (end - i));
        whole->has_holes = whole->has_holes || of->length > end - i;
        i = end;
    }
    return ESDM_OK;
}

/* What is the same within a coordinate's tolerance gets the first's value. */
static void
snap(const esdm__keys *to, esdm__keys *keys)
{
    for (uint64_t i = 0; i < keys->count && !keys->is_time; i++)
        for (uint64_t k = 0; k < to->count; k++)
            if (esdm__coordinate_same(to->values[k], keys->values[i], to->spacing)) {
                keys->values[i] = to->values[k];
                break;
            }
}

esdm_status
esdm__cross_make(esdm__virtual *whole, const char *name, esdm__keys *keys, esdm_error *err)
{
    place *places = NULL;
    size_t count = 0;
    esdm__axis *axis = &whole->cross;
    for (size_t i = 1; i < whole->members.count; i++)
        if (keys[i].values != keys[0].values)
            snap(&keys[0], &keys[i]);
    (void) snprintf(axis->name, sizeof axis->name, "%s", name);
    esdm_status status = esdm__axis_sort(&whole->members, ESDM__OVERLAP_FIRST, keys, axis, err);
    if (status == ESDM_OK && axis->nwithin > 0)
        status = esdm__error_set(err, ESDM_EINVAL,
                                 "a member has the same value of '%s' twice: it cannot be joined "
                                 "with others along two dimensions",
                                 axis->name);
    if (status == ESDM_OK)
        status = list_places(axis, &places, &count, err);
    if (status == ESDM_OK)
        status = runs_of_members(whole, places, count, err);
    free(places);
    return status;
}

void
esdm__cross_clear(esdm__virtual *whole)
{
    for (size_t m = 0; whole->crossed != NULL && m < whole->members.count; m++)
        esdm__axis_clear(&whole->crossed[m]);
    free(whole->crossed);
    whole->crossed = NULL;
    esdm__axis_clear(&whole->cross);
}
