/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Containers that differ along two dimensions: those with the same coordinates of one of
 * them are put together first. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cf/units.h"
#include "io/session/pool.h"
#include "query/query.h"
#include "virtual/parts.h"

/** More containers than this are not looked at for tiles: all their coordinates are in memory. */
#define CONTAINERS_MOST 4096u
/** Rows of tiles. */
#define ROWS_MOST 512u

typedef struct looking {
    esdm_session *session;
    const esdm__question *question;
    esdm_container *first; /* whose dimensions they are */
    size_t ndimensions;
    esdm__keys *keys; /* by container and dimension */
} looking;

static esdm_status
look_at(void *context, size_t i, esdm_error *err)
{
    const looking *l = context;
    esdm_container *container = NULL;
    esdm_status status = esdm__question_open(l->session, l->question, i, &container, err);
    for (size_t d = 0; d < l->ndimensions && status == ESDM_OK; d++) {
        const esdm_dimension *dimension = l->first->dimensions.items[d];
        if (dimension->group->parent == NULL)
            status = esdm__keys_of(esdm__member_dataset(container, dimension->name),
                                   &l->keys[i * l->ndimensions + d], err);
    }
    esdm__container_drop(container);
    return status;
}

static bool
same_keys(const esdm__keys *a, const esdm__keys *b)
{
    char what[ESDM__WHAT_BYTES];
    bool same = true;
    bool flipped = false;
    if (a->values == NULL || b->values == NULL)
        return a->values == b->values;
    esdm__keys_compare(a, b, "", &same, &flipped, what);
    return same || (flipped && !a->is_time);
}

static bool
differs(const looking *l, size_t d)
{
    for (size_t i = 1; i < l->question->count; i++)
        if (!same_keys(&l->keys[d], &l->keys[i * l->ndimensions + d]))
            return true;
    return false;
}

static bool
some_lacks(const looking *l, size_t d)
{
    for (size_t i = 0; i < l->question->count; i++)
        if (l->keys[i * l->ndimensions + d].values == NULL)
            return true;
    return false;
}

/* Levels that differ are no tiles: a variable has them all or is another one. */
static bool
is_vertical(const looking *l, size_t d)
{
    char text[128];
    bool known = false;
    double slope;
    double offset;
    const esdm_dimension *dimension = l->first->dimensions.items[d];
    const esdm_dataset *dataset = esdm__member_dataset(l->first, dimension->name);
    esdm__attribute_text(dataset, "axis", text, sizeof text);
    if (strcmp(text, "Z") == 0 || esdm_attribute_find(&dataset->attributes, "positive", NULL, NULL))
        return true;
    esdm__attribute_text(dataset, "units", text, sizeof text);
    return text[0] != '\0' &&
           esdm__units_convert(text, "Pa", &known, &slope, &offset, NULL) == ESDM_OK;
}

/* The dimension that rows are made of: no time, if there is another one. */
static bool
choose_dimension(const looking *l, size_t *ret)
{
    size_t n = 0;
    for (size_t d = 0; d < l->ndimensions; d++) {
        if (l->keys[d].values == NULL || !differs(l, d))
            continue;
        /* "lat" beside "latitude" is no tile either. */
        if (some_lacks(l, d) || is_vertical(l, d))
            return false;
        if (n++ == 0 || !l->keys[d].is_time)
            *ret = d;
    }
    return n > 1;
}

static void
range_of(const esdm__keys *keys, double *ret_low, double *ret_high)
{
    *ret_low = INFINITY;
    *ret_high = -INFINITY;
    for (uint64_t i = 0; i < keys->count; i++) {
        *ret_low = fmin(*ret_low, keys->values[i]);
        *ret_high = fmax(*ret_high, keys->values[i]);
    }
}

/* Rows lie beside each other; grids that differ lie over each other. */
static bool
are_apart(const esdm__keys *a, const esdm__keys *b)
{
    double low[2];
    double high[2];
    range_of(a, &low[0], &high[0]);
    range_of(b, &low[1], &high[1]);
    return high[0] < low[1] || high[1] < low[0];
}

/* Row of each container, and how many there are; 0: too many, or no rows. */
static size_t
number_rows(const looking *l, size_t d, size_t *rows)
{
    size_t first[ROWS_MOST];
    size_t n = 0;
    for (size_t i = 0; i < l->question->count; i++) {
        const esdm__keys *keys = &l->keys[i * l->ndimensions + d];
        size_t r = 0;
        for (; r < n && !same_keys(&l->keys[first[r] * l->ndimensions + d], keys); r++)
            if (!are_apart(&l->keys[first[r] * l->ndimensions + d], keys))
                return 0;
        if (r == ROWS_MOST)
            return 0;
        if (r == n)
            first[n++] = i;
        rows[i] = r;
    }
    return n;
}

/* A single point beside fields is a mean or a station. @return whether some container has one
 * value of each dimension in which fields differ, and another one has more of each. */
static bool
has_point(const looking *l)
{
    bool point = false;
    bool field = false;
    bool edge = false; /* a tile of one row or one column: the single point is its corner */
    for (size_t i = 0; i < l->question->count; i++) {
        size_t single = 0;
        size_t several = 0;
        for (size_t d = 0; d < l->ndimensions; d++) {
            const esdm__keys *keys = &l->keys[i * l->ndimensions + d];
            if (keys->values == NULL || keys->is_time || !differs(l, d))
                continue;
            single += keys->count == 1;
            several += keys->count > 1;
        }
        point = point || (single > 1 && several == 0);
        field = field || (several > 1 && single == 0);
        edge = edge || (several > 0 && single > 0);
    }
    return point && field && !edge;
}

static esdm_status
bundle_row(const looking *l, size_t d, const size_t *rows, size_t r, esdm__bundle *bundle,
           esdm_error *err)
{
    char label[64] = "";
    size_t *chosen = calloc(l->question->count, sizeof *chosen);
    size_t n = 0;
    if (chosen == NULL)
        return esdm__error_nomem(err, l->question->count * sizeof *chosen, "members");
    for (size_t i = 0; i < l->question->count; i++)
        if (rows[i] == r)
            chosen[n++] = i;
    const esdm__keys *keys = &l->keys[chosen[0] * l->ndimensions + d];
    if (keys->count > 0)
        (void) snprintf(label, sizeof label, "%.9g to %.9g", keys->values[0],
                        keys->values[keys->count - 1]);
    bundle->label = strdup(label);
    esdm_status status = bundle->label != NULL
                             ? esdm__question_part(l->question, chosen, n, &bundle->question, err)
                             : esdm__error_nomem(err, sizeof label, "members");
    free(chosen);
    return status;
}

static esdm_status
bundle_rows(const looking *l, size_t d, esdm__bundles *ret, esdm_error *err)
{
    size_t *rows = calloc(l->question->count, sizeof *rows);
    if (rows == NULL)
        return esdm__error_nomem(err, l->question->count * sizeof *rows, "members");
    size_t n = number_rows(l, d, rows);
    esdm_status status = ESDM_OK;
    ret->items = n > 1 ? calloc(n, sizeof *ret->items) : NULL;
    if (n > 1 && ret->items == NULL)
        status = esdm__error_nomem(err, n * sizeof *ret->items, "members");
    const esdm_dimension *dimension = l->first->dimensions.items[d];
    (void) snprintf(ret->axis, sizeof ret->axis, "%s", dimension->name);
    while (n > 1 && ret->count < n && status == ESDM_OK) {
        ret->count++;
        status = bundle_row(l, d, rows, ret->count - 1, &ret->items[ret->count - 1], err);
    }
    free(rows);
    return status;
}

esdm_status
esdm__bundles_by_tile(esdm_session *session, const esdm__question *question, esdm__bundles *ret,
                      esdm_error *err)
{
    looking l = {.session = session, .question = question};
    size_t d = 0;
    if (question->count < 2 || question->count > CONTAINERS_MOST)
        return ESDM_OK;
    esdm_status status = esdm__question_open(session, question, 0, &l.first, err);
    if (status != ESDM_OK)
        return status;
    l.ndimensions = l.first->dimensions.count;
    l.keys = calloc(question->count * l.ndimensions + 1, sizeof *l.keys);
    if (l.keys == NULL)
        status = esdm__error_nomem(err, question->count * sizeof *l.keys, "coordinates");
    if (status == ESDM_OK)
        status = esdm__pool_run(session->pool, question->count, look_at, &l, err);
    if (status == ESDM_OK && choose_dimension(&l, &d) && !has_point(&l))
        status = bundle_rows(&l, d, ret, err);
    for (size_t i = 0; l.keys != NULL && i < question->count * l.ndimensions; i++)
        esdm__keys_clear(&l.keys[i]);
    free(l.keys);
    esdm__container_drop(l.first);
    if (status != ESDM_OK)
        esdm__bundles_clear(ret);
    return status;
}
