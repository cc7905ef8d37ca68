/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What the steps of members stand for: stretches of time (bounds) that do not lie over each
 * other, and methods (cell_methods) that are the same. Monthly means and the yearly means of them
 * are no series, whatever their times. */

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "virtual/parts.h"

/** Cells may overlap by this part of the shorter one: bounds are rounded by those who write. */
#define OVERLAP_PART 0.01

/* ---- reading -------------------------------------------------------------------------------- */

static esdm_dataset *
bounds_of(esdm_container *member, const char *axis, bool *ret_climatology)
{
    static const char *const names[] = {"climatology", "bounds"};
    const esdm_dataset *coordinate = esdm__member_dataset(member, axis);
    for (size_t i = 0; coordinate != NULL && i < sizeof names / sizeof *names; i++) {
        char text[ESDM_NAME_MAX + 1];
        esdm__attribute_text(coordinate, names[i], text, sizeof text);
        esdm_dataset *bounds = text[0] != '\0' ? esdm__member_dataset(member, text) : NULL;
        if (bounds == NULL || bounds->rank != coordinate->rank + 1 ||
            !esdm__meaning_is_number(bounds->type) ||
            esdm_dimension_length(bounds->dimensions[bounds->rank - 1]) != 2)
            continue;
        *ret_climatology = i == 0;
        return bounds;
    }
    return NULL;
}

bool
esdm__has_cells(esdm_container *member, const char *axis)
{
    bool climatology = false;
    return bounds_of(member, axis, &climatology) != NULL;
}

static double
end_of(const esdm__meaning *meaning, double value)
{
    esdm__instant when;
    if (esdm__meaning_is_missing(meaning, value) ||
        !esdm__time_decode(&meaning->time, value, &when))
        return NAN;
    return esdm__instant_ms(esdm__instant_round(when));
}

/* In milliseconds, the lower end first; how far the cells overlap among themselves. */
static void
decode_all(const esdm__meaning *meaning, esdm__cells *cells)
{
    double largest = 0;
    for (uint64_t i = 0; i < cells->count; i++) {
        double *ends = &cells->ends[2 * i];
        largest = fmax(largest, fmax(fabs(ends[0]), fabs(ends[1])));
        double one = end_of(meaning, ends[0]);
        double other = end_of(meaning, ends[1]);
        bool known = !isnan(one) && !isnan(other);
        ends[0] = known ? fmin(one, other) : NAN;
        ends[1] = known ? fmax(one, other) : NAN;
        if (i > 0 && known && !isnan(ends[-1]))
            cells->within = fmax(cells->within, fmin(ends[1], ends[-1]) - fmax(ends[0], ends[-2]));
    }
    cells->blur = meaning->type == ESDM_TYPE_FLOAT32
                      ? largest * (double) FLT_EPSILON * (double) meaning->time.unit_ns / 1e6
                      : 0;
}

esdm_status
esdm__cells_of(esdm_container *member, const char *axis, esdm__cells *ret, esdm_error *err)
{
    esdm__cells cells = {0};
    esdm__meaning meaning;
    esdm__meaning of_axis;
    bool climatology = false;
    uint64_t count = 0;
    esdm_dataset *bounds = bounds_of(member, axis, &climatology);
    *ret = cells;
    if (bounds == NULL)
        return ESDM_OK;
    esdm_status status = esdm__meaning_of(esdm__member_dataset(member, axis), &of_axis, err);
    if (status == ESDM_OK)
        status = esdm__meaning_of(bounds, &meaning, err);
    if (status == ESDM_OK &&
        !meaning.is_time) { /* units are those of the coordinate, as CF has it */
        meaning.time = of_axis.time;
        meaning.is_time = of_axis.is_time;
    }
    if (status != ESDM_OK || !meaning.is_time || meaning.time.unit_ns == 0)
        return status;
    status = esdm__values_all(bounds, &cells.ends, &count, err);
    if (status != ESDM_OK)
        return esdm__dataset_prefix(bounds, status, err);
    cells.count = count / 2;
    decode_all(&meaning, &cells);
    if (climatology)
        cells.within = INFINITY;
    *ret = cells;
    return ESDM_OK;
}

void
esdm__cells_clear(esdm__cells *cells)
{
    free(cells->ends);
    *cells = (esdm__cells){0};
}

/* ---- comparing ------------------------------------------------------------------------------ */

/* A step of a member: a stretch of time, or a point (of those without bounds). */
typedef struct stretch {
    double low, high, key;
    size_t member;
} stretch;

static int
by_beginning(const void *a, const void *b)
{
    const stretch *x = a;
    const stretch *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    if (x->high != y->high)
        return x->high < y->high ? -1 : 1;
    return x->member < y->member ? -1 : x->member > y->member;
}

static bool
is_point(const stretch *s)
{
    return s->high <= s->low;
}

/* @param early begins first, or with the other one. */
static bool
lie_over(const stretch *early, const stretch *late, const esdm__cells *cells)
{
    const esdm__cells *a = &cells[early->member];
    const esdm__cells *b = &cells[late->member];
    double shorter = fmin(early->high - early->low, late->high - late->low);
    double longer = fmax(early->high - early->low, late->high - late->low);
    bool points = is_point(early) || is_point(late);
    /* Climatologies of January and of February differ by a month of thirty years. */
    double part = isinf(fmin(a->within, b->within)) ? 0 : OVERLAP_PART;
    double blur = fmax(fmax(1, a->blur + b->blur), part * (points ? longer : shorter));
    if (is_point(early) || early->high <= late->low + blur)
        return false;
    if (is_point(late))
        return late->key != early->key && late->low > early->low + blur &&
               late->low < early->high - blur;
    if (fabs(early->low - late->low) <= blur && fabs(early->high - late->high) <= blur)
        return early->key != late->key; /* one step that both have */
    /* Sums from one beginning on, each to its own time, as forecasts have them. */
    if (fabs(early->low - late->low) <= blur && early->key == early->high &&
        late->key == late->high)
        return false;
    /* Running means, climatologies: cells of each overlap by themselves. */
    double overlap = fmin(early->high, late->high) - late->low;
    return overlap > fmin(a->within, b->within) + blur;
}

static stretch *
stretches_of(const esdm__keys *keys, const esdm__cells *cells, size_t members, size_t *ret_count)
{
    uint64_t count = 0;
    for (size_t m = 0; m < members; m++)
        count += keys[m].count;
    stretch *all = count < SIZE_MAX / sizeof *all ? malloc((count + 1) * sizeof *all) : NULL;
    size_t n = 0;
    for (size_t m = 0; m < members && all != NULL; m++) {
        for (uint64_t i = 0; i < keys[m].count; i++) {
            double key = keys[m].values[i];
            const double *ends = i < cells[m].count ? &cells[m].ends[2 * i] : NULL;
            if (ends == NULL)
                all[n++] = (stretch){key, key, key, m};
            else if (!isnan(ends[0]))
                all[n++] = (stretch){ends[0], ends[1], key, m};
        }
    }
    *ret_count = n;
    if (n > 1)
        qsort(all, n, sizeof *all, by_beginning);
    return all;
}

void
esdm__ms_format(esdm__calendar calendar, double ms, char text[40])
{
    const double day_ms = 86400000.;
    double day = floor(ms / day_ms);
    esdm__date date;
    esdm__instant when = {(int64_t) day, (int64_t) (ms - day * day_ms) * 1000000};
    if (esdm__instant_date(calendar, when, &date))
        esdm__date_format(&date, text);
    else
        (void) snprintf(text, 40, "?");
}

static void
say(const stretch *s, esdm__calendar calendar, char text[90])
{
    char from[40];
    char to[40];
    esdm__ms_format(calendar, s->low, from);
    esdm__ms_format(calendar, s->high, to);
    (void) snprintf(text, 90, is_point(s) ? "%s" : "%s to %s", from, to);
}

esdm_status
esdm__cells_check(size_t members, const esdm__keys *keys, const esdm__cells *cells, bool *ret_over,
                  size_t ret_two[2], char what[ESDM__WHAT_BYTES], esdm_error *err)
{
    size_t n = 0;
    bool any = false;
    *ret_over = false;
    for (size_t m = 0; m < members; m++)
        any = any || cells[m].ends != NULL;
    if (!any || !keys[0].is_time)
        return ESDM_OK;
    stretch *all = stretches_of(keys, cells, members, &n);
    if (all == NULL)
        return esdm__error_nomem(err, members * sizeof *all, "the bounds of a coordinate");
    /* Of those before the one that ends last, and the one that does so of the other members. */
    const stretch *last[2] = {NULL, NULL};
    for (size_t i = 0; i < n && !*ret_over; i++) {
        const stretch *s = &all[i];
        for (int k = 0; k < 2 && !*ret_over; k++) {
            if (last[k] == NULL || last[k]->member == s->member || !lie_over(last[k], s, cells))
                continue;
            char one[90];
            char other[90];
            *ret_over = true;
            ret_two[0] = last[k]->member < s->member ? last[k]->member : s->member;
            ret_two[1] = last[k]->member < s->member ? s->member : last[k]->member;
            say(ret_two[0] == s->member ? s : last[k], keys[0].calendar, one);
            say(ret_two[0] == s->member ? last[k] : s, keys[0].calendar, other);
            (void) snprintf(what, ESDM__WHAT_BYTES, "%s and %s", one, other);
        }
        if (last[0] == NULL || last[0]->member == s->member) {
            last[0] = last[0] == NULL || s->high > last[0]->high ? s : last[0];
        } else if (s->high > last[0]->high) {
            last[1] = last[0];
            last[0] = s;
        } else if (last[1] == NULL || s->high > last[1]->high) {
            last[1] = s;
        }
    }
    free(all);
    return ESDM_OK;
}

/* ---- cell_methods --------------------------------------------------------------------------- */

#define METHODS_MOST 16u
#define METHOD_BYTES 300u

typedef struct methods {
    char texts[METHODS_MOST][METHOD_BYTES];
    size_t count;
} methods;

static int
by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* "area: mean time: mean (interval: 1 h)" is two: a word that ends in ':' begins one, unless
 * another such word is before it, or it is in brackets. Blanks between words are one. */
static bool
read_methods(const char *text, methods *ret)
{
    bool name_before = false;
    int depth = 0;
    ret->count = 0;
    for (text += strspn(text, " \t\n"); *text != '\0'; text += strspn(text, " \t\n")) {
        size_t bytes = strcspn(text, " \t\n");
        bool name = depth == 0 && text[bytes - 1] == ':';
        if (ret->count == 0 || (name && !name_before)) {
            if (ret->count == METHODS_MOST)
                return false;
            ret->texts[ret->count++][0] = '\0';
        }
        char *to = ret->texts[ret->count - 1];
        size_t used = strlen(to);
        if (used + bytes + 2 > METHOD_BYTES)
            return false;
        (void) snprintf(to + used, METHOD_BYTES - used, "%s%.*s", used > 0 ? " " : "", (int) bytes,
                        text);
        for (size_t i = 0; i < bytes; i++)
            depth += (text[i] == '(') - (text[i] == ')');
        name_before = name;
        text += bytes;
    }
    qsort(ret->texts, ret->count, sizeof *ret->texts, by_text);
    return true;
}

bool
esdm__same_methods(const char *one, const char *other)
{
    methods a;
    methods b;
    if (strcmp(one, other) == 0)
        return true;
    if (!read_methods(one, &a) || !read_methods(other, &b) || a.count != b.count)
        return false;
    for (size_t i = 0; i < a.count; i++)
        if (strcmp(a.texts[i], b.texts[i]) != 0)
            return false;
    return true;
}
