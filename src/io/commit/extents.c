/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/commit/extents.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cf/circle.h"
#include "io/container/lengths.h"
#include "io/read/read.h"
#include "io/read/statistics.h"
#include "meta/search_words.h"

/* Fragments of a dataset that are looked at one by one when some of them may hide others. */
#define FRAGMENTS_MOST 1024u
/* Longitudes that are read. */
#define LONGITUDES_MOST (UINT64_C(32) << 20)
#define READ_ELEMENTS   (UINT64_C(1) << 18)

/* Values of a dataset. */
typedef struct range {
    double low, high;
    bool known;
    bool merged; /* together with what is stored; else instead of it */
} range;

typedef struct maker {
    esdm_container *container;
    const esdm__cf *cf;
    esdm_dataset *const *dirty;
    size_t ndirty;
    bool all, read;
    esdm__extents made;
    esdm_error *err;
} maker;

/* ---- entries -------------------------------------------------------------------------------- */

/* Of several objects of one name, in different groups, the range of all together. */
static bool
put_again(maker *m, const char *name, const esdm_meta_extent *entry)
{
    for (size_t i = 0; i < m->made.count; i++) {
        esdm_meta_extent *before = &m->made.items[i];
        if (before->dataset != entry->dataset || strcmp(before->name, name) != 0)
            continue;
        if (entry->has_number && before->has_number)
            before->number = strncmp(name, "@min", 4) == 0 ? fmin(before->number, entry->number)
                                                           : fmax(before->number, entry->number);
        return true;
    }
    return false;
}

/* NAME, a tab and the units when these are not NULL. */
static esdm_status
put(maker *m, uint32_t dataset, const char *name, const char *of, const char *unit,
    esdm_meta_extent entry)
{
    char text[ESDM_META_EXTENT_NAME_MAX + 1];
    int bytes = snprintf(text, sizeof text, "%s%s%s%s", name, of, unit != NULL ? "\t" : "",
                         unit != NULL ? unit : "");
    if (bytes < 0 || (size_t) bytes >= sizeof text || (entry.has_number && isnan(entry.number)))
        return ESDM_OK;
    entry.dataset = dataset;
    if (m->container->groups.count > 1 && put_again(m, text, &entry))
        return ESDM_OK;
    entry.name = strdup(text);
    if (entry.name == NULL ||
        !esdm__array_grow(&m->made.items, m->made.count, sizeof *m->made.items)) {
        free((char *) entry.name);
        return esdm__error_nomem(m->err, sizeof entry, "the index of a container");
    }
    m->made.items[m->made.count++] = entry;
    return ESDM_OK;
}

static esdm_status
put_text(maker *m, uint32_t dataset, const char *name, const char *unit, const char *text)
{
    return put(m, dataset, name, "", unit, (esdm_meta_extent){.text = text});
}

/* Both ends: "min" and "max" behind the name. */
static esdm_status
put_range(maker *m, uint32_t dataset, const char *name, const char *of, const char *unit, range r)
{
    char end[32];
    (void) snprintf(end, sizeof end, "%smin", name);
    esdm_status status =
        put(m, dataset, end, of, unit,
            (esdm_meta_extent){.how = r.merged ? ESDM_META_EXTENT_LOWER : ESDM_META_EXTENT_SET,
                               .has_number = true,
                               .number = r.low});
    (void) snprintf(end, sizeof end, "%smax", name);
    return status != ESDM_OK ? status
                             : put(m, dataset, end, of, unit,
                                   (esdm_meta_extent){.how = r.merged ? ESDM_META_EXTENT_UPPER
                                                                      : ESDM_META_EXTENT_SET,
                                                      .has_number = true,
                                                      .number = r.high});
}

void
esdm__extents_clear(esdm__extents *extents)
{
    for (size_t i = 0; i < extents->count; i++)
        free((char *) extents->items[i].name);
    free(extents->items);
    *extents = (esdm__extents){0};
}

/* ---- values of a dataset -------------------------------------------------------------------- */

static int
by_id(const void *a, const void *b)
{
    const esdm_dataset *x = *(esdm_dataset *const *) a;
    const esdm_dataset *y = *(esdm_dataset *const *) b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool
is_dirty(const maker *m, const esdm_dataset *dataset)
{
    return dataset != NULL && m->ndirty > 0 &&
           bsearch(&dataset, m->dirty, m->ndirty, sizeof dataset, by_id) != NULL;
}

static void
box_of(const esdm_dataset *dataset, esdm__box *ret)
{
    ret->rank = dataset->rank;
    for (uint32_t d = 0; d < dataset->rank; d++) {
        ret->lo[d] = 0;
        ret->n[d] = esdm_dimension_length(dataset->dimensions[d]);
    }
}

static range
range_of_statistics(const esdm__statistics *s)
{
    range r = {.known = s->class != ESDM__CLASS_NONE && s->valid > 0};
    if (r.known) {
        r.low = esdm__number_double(s->class, s->min);
        r.high = esdm__number_double(s->class, s->max);
    }
    return r;
}

typedef struct pending {
    const esdm_dataset *dataset;
    esdm__index *index;
    esdm__missing missing;
    esdm__statistics total;
    bool unknown, hides;
} pending;

static bool
add_pending(const esdm__fragment *fragment, void *user)
{
    pending *p = user;
    const esdm__statistics one = esdm__fragment_statistics(p->dataset, &p->missing, fragment);
    p->unknown = one.class == ESDM__CLASS_NONE;
    esdm__statistics_add(&p->total, &one);
    p->hides = p->hides || esdm__index_count(p->index, &fragment->box, 2) > 1;
    return !p->unknown;
}

/* What the pending fragments say. False: that is not all that is to be known, and there are not too
 * many fragments to look at all of them. */
static bool
range_of_pending(const maker *m, esdm_dataset *dataset, range *ret)
{
    esdm__dataset_io *io = dataset->io;
    if (io == NULL || !is_dirty(m, dataset))
        return false;
    pending p = {.dataset = dataset, .index = io->index};
    esdm__box box;
    box_of(dataset, &box);
    esdm__missing_of(dataset, &p.missing);
    if (p.missing.class == ESDM__CLASS_NONE)
        return false;
    (void) pthread_mutex_lock(&io->lock);
    size_t count = esdm__index_pending_count(io->index);
    bool many = esdm__index_count(io->index, &box, FRAGMENTS_MOST + 1) > FRAGMENTS_MOST;
    bool whole = m->all && !(many && esdm__io_of(m->container)->record == 0);
    p.hides = many && count > FRAGMENTS_MOST; /* that is not asked */
    if (!whole)
        esdm__index_pending_visit(io->index, add_pending, &p);
    (void) pthread_mutex_unlock(&io->lock);
    if (whole || p.unknown || (p.hides && !many))
        return false;
    *ret = range_of_statistics(&p.total);
    ret->merged = true;
    return true;
}

static esdm_status
range_of(const maker *m, esdm_dataset *dataset, bool read, range *ret)
{
    esdm__box box;
    esdm__box_statistics found = {0};
    esdm_error why = {0};
    *ret = (range){0};
    if (range_of_pending(m, dataset, ret)) {
        ret->merged = !m->all;
        return ESDM_OK;
    }
    box_of(dataset, &box);
    esdm_status status = esdm__io_statistics(dataset, &box, read || m->read, &found, &why);
    if (status == ESDM_ENOTSUP) /* other programs' kinds of sources, strange missing values */
        return ESDM_OK;
    if (status != ESDM_OK) {
        if (m->err != NULL)
            *m->err = why;
        return status;
    }
    if (found.bounds || found.exact)
        *ret = range_of_statistics(&found.values);
    return ESDM_OK;
}

static void
unpack(const esdm__cf_packing *packing, range *r)
{
    double a = r->low * packing->scale + packing->offset;
    double b = r->high * packing->scale + packing->offset;
    r->low = fmin(a, b);
    r->high = fmax(a, b);
}

/* ---- coordinates ---------------------------------------------------------------------------- */

static bool
date_key(const esdm__time_units *units, double number, double *ret)
{
    esdm__instant instant;
    esdm__date date;
    if (!esdm__time_decode(units, number, &instant) ||
        !esdm__instant_date(units->calendar, instant, &date))
        return false;
    *ret = esdm__date_key(&date);
    return true;
}

/* From stored numbers to what is entered. The end of the last interval is not in it. */
static void
translate(const esdm__cf_source *s, bool bounds, range *r)
{
    if (!r->known)
        return;
    unpack(&s->packing, r);
    if (s->kind != ESDM__CF_TIME)
        return;
    r->known = date_key(&s->time, r->low, &r->low) && date_key(&s->time, r->high, &r->high);
    if (r->known && bounds && r->high > r->low)
        r->high = nextafter(r->high, -INFINITY);
}

/* The range of the bounds where there are any, else that of the coordinate. */
static esdm_status
range_of_source(const maker *m, const esdm__cf_source *s, range *ret)
{
    esdm_status status = ESDM_OK;
    *ret = (range){0};
    bool whole = m->all || !is_dirty(m, s->dataset);
    if (s->bounds != NULL && (whole || is_dirty(m, s->bounds))) {
        status = range_of(m, s->bounds, true, ret);
        translate(s, true, ret);
    } else if (s->bounds != NULL && atomic_load(&s->bounds->has_data)) {
        return ESDM_OK;
    }
    if (status != ESDM_OK || ret->known)
        return status;
    status = range_of(m, s->dataset, true, ret);
    translate(s, false, ret);
    return status;
}

/* ---- longitudes ----------------------------------------------------------------------------- */

typedef struct turning {
    esdm__circle circle;
    esdm__cf_packing packing;
    esdm__missing missing;
    uint64_t vertices; /* of a cell; 1: points */
} turning;

static bool
is_missing(const turning *t, double value)
{
    for (uint32_t i = 0; i < t->missing.count; i++) {
        if (value == esdm__number_double(t->missing.class, t->missing.values[i]))
            return true;
    }
    return !isfinite(value);
}

/* A cell may lie across the line where its longitudes jump. */
static void
add_cell(turning *t, const double *at)
{
    double low = 0, high = 0, first = 0;
    bool any = false;
    for (uint64_t i = 0; i < t->vertices; i++) {
        if (is_missing(t, at[i]))
            continue;
        double degrees = at[i] * t->packing.scale + t->packing.offset;
        if (!any)
            first = low = high = degrees;
        any = true;
        if (t->vertices > 2)
            degrees -= 360 * round((degrees - first) / 360);
        low = fmin(low, degrees);
        high = fmax(high, degrees);
    }
    /* Of two bounds the range between them is meant, unless that goes around by the jump alone. */
    if (t->vertices == 2 && high - low > 180 && high - low < 360) {
        double west = high;
        high = low + 360;
        low = west;
    }
    if (any)
        esdm__circle_add(&t->circle, low, high);
}

static esdm_status
add_cells(void *user, const esdm__box *part, const void *values, esdm_error *err)
{
    turning *t = user;
    const double *at = values;
    uint64_t count = esdm__box_elements(part) / t->vertices;
    (void) err;
    for (uint64_t i = 0; i < count; i++)
        add_cell(t, at + i * t->vertices);
    return ESDM_OK;
}

/* Cells of the bounds, else points of the coordinate. */
static esdm_status
turn_dataset(turning *t, esdm_dataset *dataset, uint64_t vertices, esdm_error *err)
{
    esdm__box box;
    box_of(dataset, &box);
    uint64_t elements = esdm__box_elements(&box);
    if (elements == 0 || vertices == 0 || vertices > READ_ELEMENTS || elements > LONGITUDES_MOST)
        return ESDM_OK;
    uint64_t most = elements < READ_ELEMENTS ? elements : READ_ELEMENTS;
    double *buffer = malloc((size_t) most * sizeof *buffer);
    if (buffer == NULL)
        return esdm__error_nomem(err, (size_t) most * sizeof *buffer, "longitudes");
    t->vertices = vertices;
    esdm__missing_of(dataset, &t->missing);
    esdm_status status =
        esdm__read_in_parts(dataset, &box, ESDM_TYPE_FLOAT64, most, buffer, add_cells, t, err);
    free(buffer);
    return status;
}

static esdm_status
turn_source(turning *t, const esdm__cf_source *s, esdm_error *err)
{
    double west, east;
    esdm_status status = ESDM_OK;
    t->packing = s->packing;
    if (s->bounds != NULL)
        status = turn_dataset(
            t, s->bounds, esdm_dimension_length(s->bounds->dimensions[s->bounds->rank - 1]), err);
    if (status != ESDM_OK || esdm__circle_range(&t->circle, &west, &east))
        return status;
    return turn_dataset(t, s->dataset, 1, err);
}

/* ---- kinds ---------------------------------------------------------------------------------- */

static esdm_status
range_of_kind(maker *m, const esdm__cf_source *s, range *ret)
{
    turning t = {.vertices = 1};
    if (s->kind != ESDM__CF_LONGITUDE)
        return range_of_source(m, s, ret);
    *ret = (range){0};
    esdm_status status = esdm__circle_init(&t.circle, m->err);
    if (status == ESDM_OK)
        status = turn_source(&t, s, m->err);
    if (status == ESDM_OK)
        ret->known = esdm__circle_range(&t.circle, &ret->low, &ret->high);
    esdm__circle_clear(&t.circle);
    return status;
}

static const char *const names[] = {[ESDM__CF_TIME] = "@time_",
                                    [ESDM__CF_LATITUDE] = "@lat_",
                                    [ESDM__CF_LONGITUDE] = "@lon_",
                                    [ESDM__CF_VERTICAL] = "@level_"};

static const char *
unit_of(const esdm__cf_source *s)
{
    return s->kind == ESDM__CF_VERTICAL ? s->packing.unit : NULL;
}

static bool
same_unit(const esdm__cf_source *a, const esdm__cf_source *b)
{
    return a->kind != ESDM__CF_VERTICAL || strcmp(a->packing.unit, b->packing.unit) == 0;
}

/* Whether all data variables have the same coordinate of a kind. */
static bool
is_shared(const esdm__cf *cf, esdm__cf_kind kind)
{
    for (size_t i = 1; i < cf->nvariables; i++) {
        if (cf->variables[i].sources[kind] != cf->variables[0].sources[kind])
            return false;
    }
    return true;
}

/* The ranges of the container: of all sources of the same unit together. */
static esdm_status
put_hulls(maker *m, esdm__cf_kind kind, const range *ranges)
{
    esdm_status status = ESDM_OK;
    const esdm__cf *cf = m->cf;
    for (size_t i = 0; i < cf->nsources && status == ESDM_OK; i++) {
        range hull = ranges[i];
        bool before = !hull.known;
        for (size_t k = 0; k < cf->nsources && !before; k++) {
            if (k == i || !ranges[k].known || !same_unit(&cf->sources[i], &cf->sources[k]))
                continue;
            before = k < i;
            hull.low = fmin(hull.low, ranges[k].low);
            hull.high = fmax(hull.high, ranges[k].high);
        }
        if (!before && kind == ESDM__CF_LONGITUDE && hull.high - hull.low > 360)
            hull.high = hull.low + 360;
        if (!before)
            status = put_range(m, 0, names[kind], "", unit_of(&cf->sources[i]), hull);
    }
    return status;
}

/* A variable's own range; "" where the container has one that is not the variable's. */
static esdm_status
put_own(maker *m, const esdm__cf_variable *v, esdm__cf_kind kind, const range *ranges)
{
    const esdm__cf *cf = m->cf;
    size_t own = v->sources[kind];
    uint32_t id = v->dataset->id;
    esdm_status status = ESDM_OK;
    if (own != SIZE_MAX && ranges[own].known)
        status = put_range(m, id, names[kind], "", unit_of(&cf->sources[own]), ranges[own]);
    for (size_t i = 0; i < cf->nsources && status == ESDM_OK; i++) {
        bool hides = ranges[i].known;
        if (hides && own != SIZE_MAX && ranges[own].known)
            hides = !same_unit(&cf->sources[i], &cf->sources[own]);
        for (size_t k = 0; k < i && hides; k++)
            hides = !ranges[k].known || !same_unit(&cf->sources[i], &cf->sources[k]);
        for (int end = 0; end < 2 && hides && status == ESDM_OK; end++) {
            char name[32];
            (void) snprintf(name, sizeof name, "%s%s", names[kind], end == 0 ? "min" : "max");
            status = put_text(m, id, name, unit_of(&cf->sources[i]), "");
        }
    }
    return status;
}

/* Ranges of one kind, if something of it was written. */
static esdm_status
put_kind(maker *m, esdm__cf_kind kind)
{
    const esdm__cf *cf = m->cf;
    bool touched = m->all, shared = is_shared(cf, kind);
    bool whole = m->all;
    for (size_t i = 0; i < cf->nsources; i++)
        touched |= cf->sources[i].kind == kind &&
                   (is_dirty(m, cf->sources[i].dataset) || is_dirty(m, cf->sources[i].bounds));
    range *ranges = touched ? calloc(cf->nsources + 1, sizeof *ranges) : NULL;
    if (!touched)
        return ESDM_OK;
    if (ranges == NULL)
        return esdm__error_nomem(m->err, cf->nsources * sizeof *ranges, "the index of a container");
    esdm_status status = ESDM_OK;
    m->all |= !shared; /* each range as a whole: hulls of several are not merged */
    for (size_t i = 0; i < cf->nsources && status == ESDM_OK; i++) {
        if (cf->sources[i].kind == kind)
            status = range_of_kind(m, &cf->sources[i], &ranges[i]);
    }
    m->all = whole;
    if (status == ESDM_OK)
        status = put_hulls(m, kind, ranges);
    for (size_t i = 0; i < cf->nvariables && status == ESDM_OK && !shared; i++)
        status = put_own(m, &cf->variables[i], kind, ranges);
    free(ranges);
    return status;
}

/* ---- the rest ------------------------------------------------------------------------------- */

/* Times have a range of their own; that of their numbers would change with each record. */
static bool
is_time(const esdm__cf *cf, const esdm_dataset *dataset)
{
    for (size_t i = 0; i < cf->nsources; i++) {
        if (cf->sources[i].dataset == dataset)
            return cf->sources[i].kind == ESDM__CF_TIME;
    }
    return false;
}

static esdm_status
put_values(maker *m)
{
    esdm_status status = ESDM_OK;
    char of[ESDM_NAME_MAX + 2];
    for (size_t i = 0; i < m->cf->nvalues && status == ESDM_OK; i++) {
        const esdm__cf_values *v = &m->cf->values[i];
        range r = {0};
        if (is_time(m->cf, v->dataset) || (!m->all && !is_dirty(m, v->dataset)))
            continue;
        status = range_of(m, v->dataset, false, &r);
        if (status != ESDM_OK || !r.known)
            continue;
        unpack(&v->packing, &r);
        (void) snprintf(of, sizeof of, ":%s", v->dataset->name);
        status = put_range(m, 0, "@", of, v->packing.unit, r);
    }
    return status;
}

static esdm_status
put_grids(maker *m)
{
    const esdm__cf *cf = m->cf;
    const char *first = NULL;
    bool shared = true;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < cf->nvariables; i++) {
        const char *grid = cf->variables[i].grid;
        first = first == NULL ? grid : first;
        shared &= i == 0 || grid == cf->variables[i - 1].grid;
    }
    if (first == NULL)
        return ESDM_OK;
    status = put_text(m, 0, "@grid", NULL, first);
    for (size_t i = 0; i < cf->nvariables && status == ESDM_OK && !shared; i++) {
        const char *grid = cf->variables[i].grid;
        status = put_text(m, cf->variables[i].dataset->id, "@grid", NULL, grid != NULL ? grid : "");
    }
    return status;
}

typedef struct wording {
    maker *m;
    size_t first; /* of the entries that are words */
    esdm_status status;
} wording;

static bool
put_word(const char *word, size_t bytes, bool last, void *user)
{
    wording *w = user;
    char name[ESDM__SEARCH_WORD_BYTES + 8];
    const esdm__extents *made = &w->m->made;
    (void) last;
    (void) snprintf(name, sizeof name, "@word:%.*s", (int) bytes, word);
    for (size_t i = w->first; i < made->count; i++) {
        if (strcmp(made->items[i].name, name) == 0)
            return true;
    }
    if (made->count - w->first == ESDM__SEARCH_WORDS_MOST)
        return false;
    w->status = put(w->m, 0, name, "", NULL, (esdm_meta_extent){.has_number = true, .number = 1});
    return w->status == ESDM_OK;
}

static void
put_words_of(wording *w, const esdm_attributes *list, const char *attribute)
{
    esdm_attribute a;
    if (w->status != ESDM_OK || !esdm_attribute_find(list, attribute, &a, NULL) || a.count == 0)
        return;
    if (a.type == ESDM_TYPE_CHAR)
        esdm__search_words(a.values, strnlen(a.values, (size_t) a.count), put_word, w);
    for (uint64_t i = 0; a.type == ESDM_TYPE_STRING && i < a.count && w->status == ESDM_OK; i++) {
        const char *text = ((const char *const *) a.values)[i];
        if (text != NULL)
            esdm__search_words(text, strlen(text), put_word, w);
    }
}

/* Of the title, then of long names, then of comments: until there are enough. */
static esdm_status
put_words(maker *m)
{
    static const char *const attributes[] = {"title", "long_name", "comment"};
    wording w = {.m = m, .first = m->made.count};
    const esdm_group *root = m->container->groups.items[0];
    for (size_t k = 0; k < sizeof attributes / sizeof *attributes; k++) {
        put_words_of(&w, &root->attributes, attributes[k]);
        for (size_t i = 0; i < m->container->datasets.count; i++) {
            const esdm_dataset *dataset = m->container->datasets.items[i];
            put_words_of(&w, &dataset->attributes, attributes[k]);
        }
    }
    return w.status;
}

static esdm_status
put_lengths(maker *m)
{
    esdm_status status = ESDM_OK;
    bool changed = esdm__lengths_changed(m->container);
    for (size_t i = 0; i < m->container->dimensions.count && status == ESDM_OK; i++) {
        const esdm_dimension *d = m->container->dimensions.items[i];
        if (m->all || (d->unlimited && changed))
            status = put(
                m, 0, "@length:", d->name, NULL,
                (esdm_meta_extent){.how = m->all ? ESDM_META_EXTENT_SET : ESDM_META_EXTENT_UPPER,
                                   .has_number = true,
                                   .number = (double) esdm_dimension_length(d)});
    }
    return status;
}

esdm_status
esdm__extents_make(esdm_container *container, esdm_dataset *const *dirty, size_t ndirty, bool all,
                   bool read, esdm__extents *ret_extents, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    maker m = {.container = container,
               .cf = &io->cf,
               .dirty = dirty,
               .ndirty = ndirty,
               .all = all,
               .read = read,
               .made = {.all = all},
               .err = err};
    uint64_t changes = atomic_load(&container->changes);
    esdm_status status = ESDM_OK;
    if (io->cf_at != changes || changes == 0) {
        esdm__cf_clear(&io->cf);
        status = esdm__cf_make(container, &io->cf, err);
        io->cf_at = changes;
    }
    for (int kind = 0; kind < ESDM__CF_KINDS && status == ESDM_OK; kind++)
        status = put_kind(&m, (esdm__cf_kind) kind);
    if (status == ESDM_OK)
        status = put_values(&m);
    if (status == ESDM_OK && all)
        status = put_grids(&m);
    if (status == ESDM_OK && all)
        status = put_words(&m);
    if (status == ESDM_OK)
        status = put_lengths(&m);
    if (status == ESDM_OK)
        *ret_extents = m.made;
    else
        esdm__extents_clear(&m.made);
    return status;
}

esdm_status
esdm__extents_refresh(esdm_container *container, bool read, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    const esdm_session *session = io->session;
    esdm__extents made = {0};
    uint64_t record, snapshot;
    if (session->meta->extent_put == NULL)
        return ESDM_OK;
    esdm__container_position(container, &record, &snapshot);
    esdm_status status = esdm__extents_make(container, NULL, 0, true, read, &made, err);
    if (status == ESDM_OK)
        status = session->meta->extent_put(session->store, record, snapshot, made.items, made.count,
                                           err);
    esdm__extents_clear(&made);
    return status;
}
