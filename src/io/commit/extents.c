/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/commit/extents.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "io/commit/extents_parts.h"
#include "io/container/lengths.h"
#include "meta/search_words.h"

typedef esdm__extents_maker maker;
typedef esdm__range range;

/* Attempts at a container that others commit to. */
#define MARK_ATTEMPTS 8

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

/* Texts one after the other; false: they are too long. */
static bool
join(char *text, size_t bytes, const char *const *parts, size_t nparts)
{
    size_t at = 0;
    for (size_t i = 0; i < nparts; i++) {
        size_t length = strlen(parts[i]);
        if (length >= bytes - at)
            return false;
        memcpy(text + at, parts[i], length);
        at += length;
    }
    text[at] = '\0';
    return true;
}

/* NAME, which of its ends, and a tab and the units when these are not NULL. */
static esdm_status
put_end(maker *m, uint32_t dataset, const char *name, const char *end, const char *of,
        const char *unit, esdm_meta_extent entry)
{
    char text[ESDM_META_EXTENT_NAME_MAX + 1];
    const char *const parts[] = {name, end, of, "\t", unit};
    if (!join(text, sizeof text, parts, unit != NULL ? 5 : 3) ||
        (entry.has_number && isnan(entry.number)))
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
put(maker *m, uint32_t dataset, const char *name, const char *of, const char *unit,
    esdm_meta_extent entry)
{
    return put_end(m, dataset, name, "", of, unit, entry);
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
    esdm_status status =
        put_end(m, dataset, name, "min", of, unit,
                (esdm_meta_extent){.how = r.merged ? ESDM_META_EXTENT_LOWER : ESDM_META_EXTENT_SET,
                                   .has_number = true,
                                   .number = r.low});
    return status != ESDM_OK ? status
                             : put_end(m, dataset, name, "max", of, unit,
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

/* ---- kinds ---------------------------------------------------------------------------------- */

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
        if (esdm__cf_place_of(cf, &cf->variables[i])->sources[kind] !=
            esdm__cf_place_of(cf, &cf->variables[0])->sources[kind])
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
    size_t own = esdm__cf_place_of(cf, v)->sources[kind];
    uint32_t id = v->dataset->id;
    esdm_status status = ESDM_OK;
    bool has = own != SIZE_MAX && ranges[own].known;
    if (has)
        status = put_range(m, id, names[kind], "", unit_of(&cf->sources[own]), ranges[own]);
    has |= own != SIZE_MAX && esdm__extents_widen(m); /* it may have been entered earlier */
    for (size_t i = 0; i < cf->nsources && status == ESDM_OK; i++) {
        bool hides = ranges[i].known;
        if (hides && has)
            hides = !same_unit(&cf->sources[i], &cf->sources[own]);
        for (size_t k = 0; k < i && hides; k++)
            hides = !ranges[k].known || !same_unit(&cf->sources[i], &cf->sources[k]);
        for (int end = 0; end < 2 && hides && status == ESDM_OK; end++) {
            char name[32];
            (void) esdm__text_put(esdm__text_put(name, name + sizeof name, names[kind]),
                                  name + sizeof name, end == 0 ? "min" : "max");
            status = put_text(m, id, name, unit_of(&cf->sources[i]), "");
        }
    }
    return status;
}

/* Whether something of a coordinate was written. */
static bool
is_touched(const maker *m, const esdm__cf_source *s)
{
    return esdm__extents_is_dirty(m, s->dataset) || esdm__extents_is_dirty(m, s->bounds);
}

/* Ranges of one kind, if something of it was written. */
static esdm_status
put_kind(maker *m, esdm__cf_kind kind)
{
    const esdm__cf *cf = m->cf;
    bool touched = m->all, shared = is_shared(cf, kind), widen = esdm__extents_widen(m);
    bool whole = m->all;
    for (size_t i = 0; i < cf->nsources; i++)
        touched |= cf->sources[i].kind == kind && is_touched(m, &cf->sources[i]);
    range *ranges = touched ? calloc(cf->nsources + 1, sizeof *ranges) : NULL;
    if (!touched)
        return ESDM_OK;
    if (ranges == NULL)
        return esdm__error_nomem(m->err, cf->nsources * sizeof *ranges, "the index of a container");
    esdm_status status = ESDM_OK;
    /* A hull of several ranges needs all of each range, as only hulls that get wider can be
     * merged in the store. */
    m->all |= !shared && !widen;
    for (size_t i = 0; i < cf->nsources && status == ESDM_OK; i++) {
        if (cf->sources[i].kind == kind && (!widen || is_touched(m, &cf->sources[i])))
            status = esdm__range_of_kind(m, &cf->sources[i], &ranges[i]);
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
        esdm_dataset *dataset = m->cf->values[i];
        range r = {0};
        if (is_time(m->cf, dataset) || (!m->all && !esdm__extents_is_dirty(m, dataset)))
            continue;
        status = esdm__range_of(m, dataset, false, &r);
        if (status != ESDM_OK || !r.known)
            continue;
        const esdm__cf_packing packing = esdm__cf_packing_of(dataset);
        esdm__range_unpack(&packing, &r);
        (void) esdm__text_put(esdm__text_put(of, of + sizeof of, ":"), of + sizeof of,
                              dataset->name);
        status = put_range(m, 0, "@", of, packing.unit, r);
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
        const char *grid = esdm__cf_place_of(cf, &cf->variables[i])->grid;
        first = first == NULL ? grid : first;
        shared &= i == 0 || grid == esdm__cf_place_of(cf, &cf->variables[i - 1])->grid;
    }
    if (first == NULL)
        return ESDM_OK;
    status = put_text(m, 0, "@grid", NULL, first);
    for (size_t i = 0; i < cf->nvariables && status == ESDM_OK && !shared; i++) {
        const char *grid = esdm__cf_place_of(cf, &cf->variables[i])->grid;
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
    (void) esdm__text_part(esdm__text_put(name, name + sizeof name, "@word:"), name + sizeof name,
                           word, bytes);
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
esdm__extents_find_coordinates(esdm_container *container, esdm_error *err)
{
    esdm__container_io *io = esdm__io_of(container);
    uint64_t changes = atomic_load(&container->changes);
    if (io->cf_at == changes && changes != 0)
        return ESDM_OK;
    esdm__cf_clear(&io->cf);
    io->cf_at = 0;
    esdm_status status = esdm__cf_make(container, &io->cf, err);
    if (status == ESDM_OK)
        io->cf_at = changes;
    return status;
}

esdm_status
esdm__extents_make(esdm_container *container, const esdm__written *written, bool all, bool read,
                   esdm__extents *ret_extents, esdm_error *err)
{
    maker m = {.container = container,
               .cf = &esdm__io_of(container)->cf,
               .written = written != NULL ? *written : (esdm__written){0},
               .all = all,
               .read = read,
               .made = {.all = all},
               .err = err};
    esdm_status status = esdm__extents_find_coordinates(container, err);
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

/* The mark by which saved queries, where there are some, know that they have to look at this
 * container. */
static const esdm_meta_extent fresh = {.name = ESDM__EXTENT_FRESH,
                                       .how = ESDM_META_EXTENT_IF_FOLLOWED,
                                       .has_number = true,
                                       .number = 1};

static esdm_status
put_mark(const esdm_session *session, esdm__extents *made, esdm_error *err)
{
    if (session->meta->extent_merge == NULL)
        return ESDM_OK;
    esdm_meta_extent mark = fresh;
    mark.name = strdup(fresh.name);
    if (mark.name == NULL || !esdm__array_grow(&made->items, made->count, sizeof *made->items)) {
        free((char *) mark.name);
        return esdm__error_nomem(err, sizeof mark, "the index of a container");
    }
    made->items[made->count++] = mark;
    return ESDM_OK;
}

void
esdm__extents_mark(const esdm_session *session, const char *name)
{
    esdm_meta_container record;
    esdm_status status = ESDM_ECONFLICT;
    for (int i = 0; i < MARK_ATTEMPTS && status == ESDM_ECONFLICT; i++) {
        if (session->meta->extent_merge == NULL ||
            session->meta->container_find(session->store, name, &record, NULL) != ESDM_OK)
            return;
        status = session->meta->extent_merge(session->store, record.container, record.snapshot,
                                             &fresh, 1, NULL);
    }
}

esdm_status
esdm__extents_of_commit(esdm_container *container, const esdm__written *written, bool all,
                        esdm__extents *ret_extents, esdm_error *err)
{
    if (esdm__io_of(container)->session->meta->extent_put == NULL)
        return ESDM_OK;
    esdm_error why = {0};
    esdm_status status = esdm__extents_make(container, written, all, false, ret_extents, &why);
    if (status != ESDM_OK && status != ESDM_ENOMEM && all)
        status = esdm__extents_make(container, written, false, false, ret_extents, &why);
    if (status != ESDM_ENOMEM)
        status = put_mark(esdm__io_of(container)->session, ret_extents, &why);
    if (status != ESDM_ENOMEM)
        return ESDM_OK;
    if (err != NULL)
        *err = why;
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
    esdm_status status = esdm__extents_make(container, NULL, true, read, &made, err);
    if (status == ESDM_OK && !read) /* else saved queries are looked at in the end */
        status = put_mark(session, &made, err);
    if (status == ESDM_OK)
        status = session->meta->extent_put(session->store, record, snapshot, made.items, made.count,
                                           err);
    esdm__extents_clear(&made);
    return status;
}
