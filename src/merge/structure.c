/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Groups, dimensions, variables and attributes of three structures, one by one. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "esdm/usertypes.h"
#include "merge/merge.h"
#include "model/attribute.h"

#define PATH_BYTES 2048u

/* ---- which is which ------------------------------------------------------------------------- */

/* Objects that were there when both parted have one number on both sides, whatever they are called
 * now. Others are known by their names. */
static esdm_group *
same_group(const esdm__merging *m, esdm_container *in, const esdm_group *theirs)
{
    if (theirs->parent == NULL)
        return esdm_container_root(in);
    if (m->fork != NULL && theirs->id < esdm_container_group_count(m->fork))
        return esdm_container_group(in, theirs->id);
    const esdm_group *parent = same_group(m, in, theirs->parent);
    return parent != NULL ? esdm_group_find(parent, theirs->name) : NULL;
}

esdm_dimension *
esdm__merge_dimension_in(const esdm__merging *m, esdm_container *in, const esdm_dimension *theirs)
{
    if (m->fork != NULL && theirs->id < esdm_container_dimension_count(m->fork))
        return esdm_container_dimension(in, theirs->id);
    const esdm_group *group = same_group(m, in, theirs->group);
    return group != NULL ? esdm_group_dimension_find(group, theirs->name) : NULL;
}

esdm_dataset *
esdm__merge_same(const esdm__merging *m, esdm_container *in, const esdm_dataset *theirs)
{
    if (m->fork != NULL && esdm__container_dataset(m->fork, theirs->id) != NULL)
        return (esdm_dataset *) esdm__container_dataset(in, theirs->id);
    const esdm_group *group = same_group(m, in, theirs->group);
    return group != NULL ? esdm_group_dataset_find(group, theirs->name) : NULL;
}

/* Where base and theirs are of one line their numbers agree. */
static esdm_group *
group_before(const esdm__merging *m, const esdm_group *theirs, uint32_t leaf)
{
    if (m->apart)
        return same_group(m, esdm__merge_leaf(m, leaf), theirs);
    return theirs->id < esdm_container_group_count(m->base)
               ? esdm_container_group(m->base, theirs->id)
               : NULL;
}

static esdm_dimension *
dimension_before(const esdm__merging *m, const esdm_dimension *theirs, uint32_t leaf)
{
    if (m->apart)
        return esdm__merge_dimension_in(m, esdm__merge_leaf(m, leaf), theirs);
    return theirs->id < esdm_container_dimension_count(m->base)
               ? esdm_container_dimension(m->base, theirs->id)
               : NULL;
}

esdm_dataset *
esdm__merge_before(const esdm__merging *m, const esdm_dataset *theirs, uint32_t leaf)
{
    return m->apart ? esdm__merge_same(m, esdm__merge_leaf(m, leaf), theirs)
                    : (esdm_dataset *) esdm__container_dataset(m->base, theirs->id);
}

/* "/group/name"; of the group itself when `name` is NULL. */
static void
path_of(const esdm_group *group, const char *name, char path[PATH_BYTES])
{
    char above[PATH_BYTES] = "";
    if (name == NULL) {
        name = group->name;
        group = group->parent;
    }
    if (group != NULL && group->parent != NULL)
        path_of(group, NULL, above);
    (void) snprintf(path, PATH_BYTES, "%.1600s/%.300s", above, name);
}

/* An object as a whole. @return whether theirs wins. */
static bool
object_conflict(esdm__merging *m, const esdm_group *group, const char *name, const char *what,
                bool decidable)
{
    char path[PATH_BYTES];
    path_of(group, name, path);
    esdm_merge_conflict conflict = {.object = path, .what = what};
    return esdm__merge_conflict(m, &conflict, decidable);
}

/* ---- attributes ----------------------------------------------------------------------------- */

static bool
same_attribute(const esdm_container *a, const esdm_attribute *x, const esdm_container *b,
               const esdm_attribute *y)
{
    if (x == NULL || y == NULL)
        return x == y;
    if (x->count != y->count || !esdm_type_equal(a, x->type, b, y->type))
        return false;
    return x->count == 0 || esdm_values_equal(a, x->type, x->count, x->values, y->values);
}

/* Lists of theirs, ours and each snapshot of the base; all but theirs may be NULL. */
typedef struct lists {
    esdm__merging *m;
    const esdm_attributes *theirs;
    esdm_attributes *ours;
    const char *object;
    const esdm_attributes *bases[ESDM__BASES_LEAVES];
} lists;

/* One attribute of the snapshots of the base. */
typedef struct befores {
    const esdm__merging *m;
    esdm_attribute items[ESDM__BASES_LEAVES];
    const esdm_attribute *found[ESDM__BASES_LEAVES]; /* NULL: it has none */
} befores;

static bool
same_before(const void *user, uint32_t one, uint32_t other, uint64_t i)
{
    const befores *b = user;
    (void) i;
    return same_attribute(esdm__merge_leaf(b->m, one), b->found[one], esdm__merge_leaf(b->m, other),
                          b->found[other]);
}

/* @return the leaf; ESDM__BASE_UNKNOWN: it is not known. */
static uint8_t
find_before(const lists *l, const char *name, befores *b)
{
    b->m = l->m;
    for (uint32_t k = 0; k < esdm__merge_leaves(l->m); k++)
        b->found[k] =
            l->bases[k] != NULL && esdm_attribute_find(l->bases[k], name, &b->items[k], NULL)
                ? &b->items[k]
                : NULL;
    return l->m->bases != NULL ? esdm__bases_pick(l->m->bases, same_before, b, 0) : 0;
}

/* Programs write what they did before or behind what stands in `history`: both is kept, theirs on
 * the side where they put it. */
static bool
join_history(const lists *l, const esdm_attribute *base, const esdm_attribute *theirs,
             const esdm_attribute *ours, esdm_error *err)
{
    size_t common = base != NULL ? (size_t) base->count : 0;
    const char *old = base != NULL ? base->values : "";
    if (strcmp(theirs->name, "history") != 0 || theirs->type != ESDM_TYPE_CHAR ||
        ours->type != ESDM_TYPE_CHAR || (base != NULL && base->type != ESDM_TYPE_CHAR) ||
        theirs->count < common || ours->count < common)
        return false;
    const char *t = theirs->values;
    size_t more = (size_t) theirs->count - common;
    bool before = common == 0 || memcmp(t + more, old, common) == 0;
    if (!before && memcmp(t, old, common) != 0)
        return false;
    char *text = malloc(ours->count + more + 2);
    if (text == NULL)
        return false;
    size_t used = 0;
    const char *added = before ? t : t + common;
    const char *first = before ? added : ours->values;
    size_t first_bytes = before ? more : (size_t) ours->count;
    const char *second = before ? ours->values : added;
    size_t second_bytes = before ? (size_t) ours->count : more;
    memcpy(text, first, first_bytes);
    used = first_bytes;
    if (first_bytes > 0 && second_bytes > 0 && text[used - 1] != '\n' && second[0] != '\n')
        text[used++] = '\n';
    memcpy(text + used, second, second_bytes);
    used += second_bytes;
    esdm_status status = esdm_attribute_set(l->ours, "history", ESDM_TYPE_CHAR, used, text, err);
    free(text);
    return status == ESDM_OK;
}

static esdm_status
take_attribute(const lists *l, const char *name, const esdm_attribute *theirs, esdm_error *err)
{
    l->m->result->objects++;
    if (theirs == NULL)
        return esdm_attribute_remove(l->ours, name, err);
    if (theirs->type >= ESDM_TYPE_FIRST_USER)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "attribute '%s' of '%s' has a user-defined type: this is not merged "
                               "by this version",
                               name, l->object);
    return esdm_attribute_set(l->ours, name, theirs->type, theirs->count, theirs->values, err);
}

static esdm_status
merge_attribute(const lists *l, const char *name, esdm_error *err)
{
    esdm_attribute theirs, ours;
    befores before;
    const esdm__merging *m = l->m;
    uint8_t leaf = find_before(l, name, &before);
    bool known = leaf != ESDM__BASE_UNKNOWN;
    const esdm_attribute *b = before.found[known ? leaf : 0];
    const esdm_container *base = esdm__merge_leaf(m, known ? leaf : 0);
    const esdm_attribute *t = esdm_attribute_find(l->theirs, name, &theirs, NULL) ? &theirs : NULL;
    const esdm_attribute *o = esdm_attribute_find(l->ours, name, &ours, NULL) ? &ours : NULL;
    if (known && same_attribute(m->theirs, t, base, b))
        return ESDM_OK;
    if (same_attribute(m->theirs, t, m->ours, o)) {
        l->m->known = true;
        return ESDM_OK;
    }
    if (known && same_attribute(m->ours, o, base, b))
        return take_attribute(l, name, t, err);
    if (t != NULL && o != NULL && join_history(l, b, t, o, err)) {
        l->m->result->objects++;
        return ESDM_OK;
    }
    esdm_merge_conflict conflict = {.object = l->object, .what = "attribute", .attribute = name};
    return esdm__merge_conflict(l->m, &conflict, true) ? take_attribute(l, name, t, err) : ESDM_OK;
}

/* In a snapshot before. */
static bool
was_looked_at(const lists *l, uint32_t leaf, const char *name)
{
    bool was = false;
    for (uint32_t k = 0; k < leaf && !was; k++)
        was = l->bases[k] != NULL &&
              esdm_attribute_find(l->bases[k], name, &(esdm_attribute){0}, NULL);
    return was;
}

/* What neither theirs nor a snapshot of the base has: where a snapshot is not known theirs may have
 * removed it. */
static esdm_status
merge_own_attributes(const lists *l, esdm_error *err)
{
    esdm_attribute one;
    esdm_status status = ESDM_OK;
    size_t i = 0;
    while (status == ESDM_OK && esdm_attribute_at(l->ours, i, &one)) {
        bool done = esdm_attribute_find(l->theirs, one.name, &(esdm_attribute){0}, NULL) ||
                    was_looked_at(l, esdm__merge_leaves(l->m), one.name);
        char *name = done ? NULL : strdup(one.name);
        if (!done && name == NULL)
            return esdm__error_nomem(err, strlen(one.name), "an attribute");
        if (!done)
            status = merge_attribute(l, name, err);
        i += done || esdm_attribute_find(l->ours, name, &one, NULL);
        free(name);
    }
    return status;
}

static esdm_status
merge_attributes(const lists *l, esdm_error *err)
{
    esdm_attribute one;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; esdm_attribute_at(l->theirs, i, &one) && status == ESDM_OK; i++)
        status = merge_attribute(l, one.name, err);
    for (uint32_t k = 0; k < esdm__merge_leaves(l->m); k++) {
        const esdm_attributes *base = l->bases[k];
        for (size_t i = 0; base != NULL && status == ESDM_OK && esdm_attribute_at(base, i, &one);
             i++) {
            if (!esdm_attribute_find(l->theirs, one.name, &(esdm_attribute){0}, NULL) &&
                !was_looked_at(l, k, one.name))
                status = merge_attribute(l, one.name, err);
        }
    }
    return status == ESDM_OK && l->m->bases != NULL ? merge_own_attributes(l, err) : status;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Of one object, in the snapshots of the base. NULL: it is not there. */
typedef struct names {
    const char *items[ESDM__BASES_LEAVES];
} names;

static bool
same_name(const void *user, uint32_t one, uint32_t other, uint64_t i)
{
    const char *x = ((const names *) user)->items[one];
    const char *y = ((const names *) user)->items[other];
    (void) i;
    return x == NULL || y == NULL ? x == y : strcmp(x, y) == 0;
}

/* What a name is to become; NULL: it stays. */
static const char *
new_name(esdm__merging *m, const esdm_group *group, const names *bases, const char *theirs,
         const char *ours, const char *what)
{
    uint8_t leaf = m->bases != NULL ? esdm__bases_pick(m->bases, same_name, bases, 0) : 0;
    const char *base = leaf != ESDM__BASE_UNKNOWN ? bases->items[leaf] : NULL;
    if (base != NULL && strcmp(theirs, base) == 0)
        return NULL;
    if (strcmp(theirs, ours) == 0) {
        m->known = true;
        return NULL;
    }
    if ((base == NULL || strcmp(ours, base) != 0) &&
        !object_conflict(m, group, base != NULL ? base : ours, what, true))
        return NULL;
    return theirs;
}

/* A name that is taken is a conflict. */
static esdm_status
settle(esdm__merging *m, esdm_status status, const esdm_group *group, const char *name,
       const char *what)
{
    if (status == ESDM_OK)
        m->result->objects++;
    if (status != ESDM_EEXIST)
        return status;
    (void) object_conflict(m, group, name, what, false);
    return ESDM_OK;
}

/* ---- groups --------------------------------------------------------------------------------- */

static esdm_status
merge_group(esdm__merging *m, esdm_group *theirs, esdm_error *err)
{
    names before = {0};
    lists l = {.m = m, .theirs = &theirs->attributes};
    bool was = false;
    for (uint32_t k = 0; k < esdm__merge_leaves(m); k++) {
        const esdm_group *base = group_before(m, theirs, k);
        was = was || base != NULL;
        before.items[k] = base != NULL ? base->name : NULL;
        l.bases[k] = base != NULL ? &base->attributes : NULL;
    }
    esdm_group *ours = same_group(m, m->ours, theirs);
    esdm_status status = ESDM_OK;
    if (ours == NULL && was)
        return ESDM_OK; /* ours has another line's groups */
    if (ours == NULL) {
        esdm_group *parent = same_group(m, m->ours, theirs->parent);
        if (parent == NULL)
            return ESDM_OK;
        status = settle(m, esdm_group_create(parent, theirs->name, &ours, err), theirs->parent,
                        theirs->name, "group");
    } else if (was && theirs->parent != NULL) {
        const char *name = new_name(m, theirs->parent, &before, theirs->name, ours->name, "name");
        if (name != NULL)
            status = settle(m, esdm_group_rename(ours, name, err), theirs->parent, name, "name");
    }
    char path[PATH_BYTES];
    path_of(theirs, NULL, path);
    l.ours = ours != NULL ? &ours->attributes : NULL;
    l.object = path;
    return status == ESDM_OK && ours != NULL ? merge_attributes(&l, err) : status;
}

/* ---- dimensions ----------------------------------------------------------------------------- */

static esdm_status
make_dimension(esdm__merging *m, esdm_dimension *theirs, esdm_error *err)
{
    esdm_group *group = same_group(m, m->ours, theirs->group);
    esdm_dimension *made = NULL;
    uint64_t length = esdm_dimension_length(theirs);
    if (group == NULL)
        return ESDM_OK;
    esdm_status status =
        settle(m,
               esdm_dimension_create(group, theirs->name,
                                     theirs->unlimited ? ESDM_UNLIMITED : length, &made, err),
               theirs->group, theirs->name, "dimension");
    if (status == ESDM_OK && made != NULL && theirs->unlimited && length > 0)
        status = esdm_dimension_extend(made, length, err);
    return status;
}

static esdm_status
merge_dimension(esdm__merging *m, esdm_dimension *theirs, esdm_error *err)
{
    names before = {0};
    uint64_t was_long = 0;
    bool was = false;
    for (uint32_t k = 0; k < esdm__merge_leaves(m); k++) {
        const esdm_dimension *base = dimension_before(m, theirs, k);
        was = was || base != NULL;
        before.items[k] = base != NULL ? base->name : NULL;
        if (base != NULL && esdm_dimension_length(base) > was_long)
            was_long = esdm_dimension_length(base);
    }
    esdm_dimension *ours = esdm__merge_dimension_in(m, m->ours, theirs);
    uint64_t length = esdm_dimension_length(theirs);
    esdm_status status = ESDM_OK;
    if (ours == NULL)
        return make_dimension(m, theirs, err);
    if (ours->unlimited != theirs->unlimited ||
        (!ours->unlimited && esdm_dimension_length(ours) != length)) {
        (void) object_conflict(m, theirs->group, theirs->name, "dimension", false);
        return ESDM_OK;
    }
    if (was) {
        const char *name = new_name(m, theirs->group, &before, theirs->name, ours->name, "name");
        if (name != NULL)
            status = settle(m, esdm_dimension_rename(ours, name, err), theirs->group, name, "name");
    }
    bool grown = theirs->unlimited && length > was_long && length > esdm_dimension_length(ours);
    if (status == ESDM_OK && grown) {
        status = esdm_dimension_extend(ours, length, err);
        m->result->objects += status == ESDM_OK;
    }
    return status;
}

/* ---- variables ------------------------------------------------------------------------------ */

static bool
same_shape(const esdm_dataset *a, const esdm_dataset *b)
{ /* names of dimensions may have changed on one side */
    bool same = a->rank == b->rank &&
                esdm_type_equal(a->group->container, a->type, b->group->container, b->type);
    for (uint32_t d = 0; d < a->rank && same; d++)
        same = a->dimensions[d]->unlimited == b->dimensions[d]->unlimited &&
               (a->dimensions[d]->unlimited ||
                esdm_dimension_length(a->dimensions[d]) == esdm_dimension_length(b->dimensions[d]));
    return same;
}

static bool
same_fill(const esdm_dataset *a, const esdm_dataset *b)
{
    return esdm_values_equal(a->group->container, a->type, 1, esdm_dataset_fill(a, NULL),
                             esdm_dataset_fill(b, NULL));
}

bool
esdm__merge_fits(const esdm_dataset *theirs, const esdm_dataset *ours)
{
    return same_shape(theirs, ours) && same_fill(theirs, ours);
}

static esdm_status
make_dataset(esdm__merging *m, esdm_dataset *theirs, esdm_dataset **ret, esdm_error *err)
{
    esdm_dimension *dimensions[ESDM_MAX_RANK];
    esdm_group *group = same_group(m, m->ours, theirs->group);
    bool whole = group != NULL;
    if (theirs->type >= ESDM_TYPE_FIRST_USER)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "variable '%s' is new and has a user-defined type: this is not "
                               "merged by this version",
                               theirs->name);
    for (uint32_t d = 0; d < theirs->rank && whole; d++) {
        dimensions[d] = esdm__merge_dimension_in(m, m->ours, theirs->dimensions[d]);
        whole = dimensions[d] != NULL;
    }
    if (!whole) { /* what it needs is in conflict */
        (void) object_conflict(m, theirs->group, theirs->name, "variable", false);
        return ESDM_OK;
    }
    esdm_status status = settle(
        m,
        esdm_dataset_create(group, theirs->name, theirs->type, theirs->rank, dimensions, ret, err),
        theirs->group, theirs->name, "variable");
    return status == ESDM_OK && *ret != NULL ? esdm__dataset_copy_properties(theirs, *ret, err)
                                             : status;
}

static bool
same_chunk(const esdm_dataset *a, const esdm_dataset *b)
{
    if (a->stated->chunk == NULL || b->stated->chunk == NULL)
        return a->stated->chunk == b->stated->chunk;
    return memcmp(a->stated->chunk, b->stated->chunk, a->rank * sizeof *a->stated->chunk) == 0;
}

/* How new fragments are to be made: theirs, where they said so and ours did not. */
static esdm_status
merge_properties(esdm__merging *m, const esdm_dataset *base, const esdm_dataset *theirs,
                 esdm_dataset *ours, esdm_error *err)
{
    const char *codecs[3] = {base->stated->codec != NULL ? base->stated->codec : "",
                             theirs->stated->codec != NULL ? theirs->stated->codec : "",
                             ours->stated->codec != NULL ? ours->stated->codec : ""};
    esdm_status status = ESDM_OK;
    if (!same_chunk(base, theirs) && same_chunk(base, ours)) {
        status = esdm_dataset_set_chunk(ours, theirs->stated->chunk, err);
        m->result->objects++;
    }
    if (status == ESDM_OK && strcmp(codecs[1], codecs[0]) != 0 &&
        strcmp(codecs[2], codecs[0]) == 0) {
        status = esdm__dataset_set_codec_text(ours, theirs->stated->codec, err);
        m->result->objects++;
    }
    return status;
}

static esdm_status
merge_dataset(esdm__merging *m, esdm_dataset *theirs, esdm_error *err)
{
    esdm_dataset *base = NULL; /* the first one */
    names before = {0};
    lists l = {.m = m, .theirs = &theirs->attributes};
    for (uint32_t k = esdm__merge_leaves(m); k-- > 0;) {
        esdm_dataset *there = esdm__merge_before(m, theirs, k);
        base = there != NULL ? there : base;
        before.items[k] = there != NULL ? there->name : NULL;
        l.bases[k] = there != NULL ? &there->attributes : NULL;
    }
    esdm_dataset *ours = esdm__merge_same(m, m->ours, theirs);
    esdm_status status = ESDM_OK;
    if (ours == NULL && base != NULL) {
        (void) object_conflict(m, theirs->group, theirs->name, "variable", false);
        return ESDM_OK;
    }
    if (ours == NULL) {
        status = make_dataset(m, theirs, &ours, err);
    } else if (!esdm__merge_fits(theirs, ours)) {
        (void) object_conflict(m, theirs->group, theirs->name, "variable", false);
        return ESDM_OK;
    } else if (base != NULL) {
        const char *name = new_name(m, theirs->group, &before, theirs->name, ours->name, "name");
        if (name != NULL)
            status = settle(m, esdm_dataset_rename(ours, name, err), theirs->group, name, "name");
        if (status == ESDM_OK)
            status = merge_properties(m, base, theirs, ours, err);
    }
    if (status != ESDM_OK || ours == NULL)
        return status;
    char *path = esdm__dataset_path(theirs);
    l.ours = &ours->attributes;
    l.object = path != NULL ? path : theirs->name;
    status = merge_attributes(&l, err);
    free(path);
    return status;
}

/* ---- the kind of file ----------------------------------------------------------------------- */

#define KIND "netcdf.format"

/* Kinds of files: each holds what those before it do, but the last but one what cdf5 does. */
static const char *const kinds[] = {"classic", "64bit-offset", "cdf5", "netcdf4-classic",
                                    "netcdf4"};
enum { KINDS = sizeof kinds / sizeof kinds[0], CDF5 = 2 };

static size_t
kind_of(const char *text)
{
    size_t kind = 0;
    while (kind < KINDS && (text == NULL || strcmp(kinds[kind], text) != 0))
        kind++;
    return kind;
}

/* What programs see it as (classic, netCDF-4): what holds all of both. */
static esdm_status
merge_kind(esdm__merging *m, esdm_error *err)
{
    const char *ours = esdm__hints_get(&m->ours->hints, KIND);
    size_t a = kind_of(esdm__hints_get(&m->theirs->hints, KIND)), b = kind_of(ours);
    if (a == b || a == KINDS || b == KINDS)
        return ESDM_OK;
    size_t both = a > b ? a : b, other = a > b ? b : a;
    if (other == CDF5)
        both = KINDS - 1;
    if (both == b)
        return ESDM_OK;
    m->result->objects++;
    return esdm_container_set_hint(m->ours, KIND, kinds[both], err);
}

/* ---- all ------------------------------------------------------------------------------------ */

esdm_status
esdm__merge_structure(esdm__merging *m, esdm_error *err)
{
    esdm_container *theirs = m->theirs;
    esdm_status status = ESDM_OK;
    for (uint32_t i = 0; i < esdm_container_group_count(theirs) && status == ESDM_OK; i++)
        status = merge_group(m, esdm_container_group(theirs, i), err);
    for (uint32_t i = 0; i < esdm_container_dimension_count(theirs) && status == ESDM_OK; i++)
        status = merge_dimension(m, esdm_container_dimension(theirs, i), err);
    for (size_t i = 0; i < theirs->datasets.count && status == ESDM_OK; i++)
        status = merge_dataset(m, theirs->datasets.items[i], err);
    return status == ESDM_OK ? merge_kind(m, err) : status;
}
