/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Variables of several containers in one: what they have in common must be equal. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "virtual/parts.h"

/* ---- comparing ------------------------------------------------------------------------------ */

/* The first member before `i` that has a dimension or a dataset of that name; `i`: none has. */
static size_t
first_with(esdm_container *const *members, size_t i, const char *name, bool dimension)
{
    size_t k = 0;
    while (k < i &&
           (dimension ? esdm_group_dimension_find(esdm_container_root(members[k]), name) == NULL
                      : esdm__member_dataset(members[k], name) == NULL))
        k++;
    return k;
}

static esdm_status
check_dimension(const esdm__pair *p, const esdm_dimension *dimension, esdm_error *err)
{
    const char *name = dimension->name;
    esdm__keys one = {0};
    esdm__keys other = {0};
    bool same = true;
    bool flipped = false;
    char what[ESDM__WHAT_BYTES];
    uint64_t n = esdm_dimension_length(esdm_group_dimension_find(esdm_container_root(p->a), name));
    uint64_t m = esdm_dimension_length(dimension);
    esdm_status status = esdm__keys_of(esdm__member_dataset(p->a, name), &one, err);
    if (status == ESDM_OK)
        status = esdm__keys_of(esdm__member_dataset(p->b, name), &other, err);
    if (status == ESDM_OK && one.values != NULL && other.values != NULL)
        esdm__keys_compare(&one, &other, name, &same, &flipped, what);
    esdm__keys_clear(&one);
    esdm__keys_clear(&other);
    if (status == ESDM_OK && !same)
        return esdm__error_set(err, ESDM_EINVAL,
                               "'%s' and '%s' have other values along '%s' (%s), so their "
                               "variables are not put together",
                               p->one, p->other, name, what);
    if (status == ESDM_OK && n != m)
        return esdm__error_set(err, ESDM_EINVAL,
                               "dimension '%s' has length %" PRIu64 " in '%s' and %" PRIu64
                               " in '%s', so their variables are not put together",
                               name, n, p->one, m, p->other);
    return status;
}

/* Member i with those before it. */
static esdm_status
check_member(const esdm__virtual *whole, esdm_container *const *members, size_t i, esdm_error *err)
{
    const esdm__virtual_member *items = whole->members.items;
    esdm__pair p = {.b = members[i], .other = items[i].name};
    esdm_status status = ESDM_OK;
    if (members[i]->types.count > 0 || members[i]->groups.count > 1)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' has groups or user-defined types: its variables are not put "
                               "together with others by this version",
                               items[i].name);
    for (size_t d = 0; d < members[i]->dimensions.count && status == ESDM_OK; d++) {
        const esdm_dimension *dimension = members[i]->dimensions.items[d];
        size_t k = first_with(members, i, dimension->name, true);
        p.a = members[k];
        p.one = items[k].name;
        if (k < i)
            status = check_dimension(&p, dimension, err);
    }
    for (size_t d = 0; d < members[i]->datasets.count && status == ESDM_OK; d++) {
        const esdm_dataset *dataset = members[i]->datasets.items[d];
        size_t k = first_with(members, i, dataset->name, false);
        p.a = members[k];
        p.one = items[k].name;
        if (k < i)
            status = esdm__pair_compare_dataset(&p, esdm__member_dataset(p.a, dataset->name), err);
    }
    return status;
}

/* ---- structure ------------------------------------------------------------------------------ */

static esdm_status
add_dataset(const esdm_dataset *from, esdm_container *to, esdm_error *err)
{
    esdm_group *root = esdm_container_root(to);
    esdm_dimension *dimensions[ESDM_MAX_RANK];
    esdm_dataset *added = NULL;
    for (uint32_t i = 0; i < from->rank; i++)
        dimensions[i] = esdm_group_dimension_find(root, from->dimensions[i]->name);
    esdm_status status =
        esdm_dataset_create(root, from->name, from->type, from->rank, dimensions, &added, err);
    if (status == ESDM_OK)
        status = esdm__attributes_copy(&from->attributes, &added->attributes, err);
    return status == ESDM_OK ? esdm__dataset_copy_properties(from, added, err) : status;
}

/* In the classic formats the unlimited dimension is the first one of a variable. */
static bool
stays_unlimited(const esdm_container *to, const esdm_dimension *dimension)
{
    const char *format = esdm_container_hint(to, "netcdf.format");
    return dimension->unlimited && (format == NULL || strcmp(format, "netcdf4") == 0);
}

esdm_status
esdm__virtual_add_variables(esdm_container *from, const esdm__joined *joined, esdm_container *to,
                            esdm_error *err)
{
    esdm_group *root = esdm_container_root(to);
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < from->dimensions.count && status == ESDM_OK; i++) {
        const esdm_dimension *d = from->dimensions.items[i];
        esdm_dimension *made = NULL;
        if (esdm_group_dimension_find(root, d->name) != NULL)
            continue;
        status = esdm_dimension_create(root, d->name, esdm_dimension_length(d), &made, err);
        if (status == ESDM_OK)
            made->unlimited = stays_unlimited(to, d);
    }
    for (size_t i = 0; i < from->datasets.count && status == ESDM_OK; i++) {
        const esdm_dataset *dataset = from->datasets.items[i];
        bool wanted = joined == NULL || !joined[i].left_out;
        if (wanted && esdm_group_dataset_find(root, dataset->name) == NULL)
            status = add_dataset(dataset, to, err);
    }
    return status;
}

/* Which member each dataset comes from. */
static esdm_status
note_sources(esdm__virtual *whole, esdm_container *const *members, esdm_container *container,
             esdm_error *err)
{
    whole->ndatasets = container->datasets.count;
    whole->datasets = calloc(whole->ndatasets + 1, sizeof *whole->datasets);
    if (whole->datasets == NULL)
        return esdm__error_nomem(err, whole->ndatasets * sizeof *whole->datasets, "a container");
    for (size_t i = 0; i < whole->ndatasets; i++) {
        esdm_dataset *dataset = container->datasets.items[i];
        size_t from = first_with(members, whole->members.count, dataset->name, false);
        whole->datasets[i] = (esdm__joined){.axis = -1, .source = from, .cross = -1};
        atomic_store(&dataset->has_data, true);
    }
    return ESDM_OK;
}

static esdm_status
check_origins(esdm__virtual *whole, const esdm__question *question, esdm_container *const *members,
              esdm_error *err)
{
    size_t count = whole->members.count;
    esdm__origin *origins = calloc(count, sizeof *origins);
    if (origins == NULL)
        return esdm__error_nomem(err, count * sizeof *origins, "members");
    for (size_t i = 0; i < count; i++)
        esdm__origin_of_variables(members[i], &origins[i]);
    esdm_status status = esdm__origins_check(whole, question, origins, err);
    for (size_t i = 0; i < count; i++)
        esdm__origin_clear(&origins[i]);
    free(origins);
    return status;
}

static esdm_status
put_together(esdm__virtual *whole, esdm_container *const *members, esdm_container *container,
             esdm_error *err)
{
    size_t count = whole->members.count;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < count && status == ESDM_OK; i++)
        status = check_member(whole, members, i, err);
    if (status == ESDM_OK)
        status = esdm__virtual_copy_structure(members[0], container, err);
    for (size_t i = 1; i < count && status == ESDM_OK; i++) {
        for (size_t k = 0; k < i; k++)
            esdm__note_differences(members[k], members[i], &whole->differs);
        status = esdm__virtual_add_variables(members[i], NULL, container, err);
    }
    if (status == ESDM_OK)
        status = note_sources(whole, members, container, err);
    return status == ESDM_OK ? esdm__virtual_note(whole, container, err) : status;
}

esdm_status
esdm__virtual_merge(esdm__virtual *whole, const esdm__question *question, esdm_container *container,
                    esdm_error *err)
{
    size_t count = whole->members.count;
    size_t used = 0;
    esdm_status status = ESDM_OK;
    esdm_container **members = calloc(count, sizeof(esdm_container *));
    whole->flips = calloc(count, sizeof *whole->flips);
    if (members == NULL || whole->flips == NULL) {
        free(members);
        return esdm__error_nomem(err, count * sizeof *whole->flips, "members");
    }
    while (used < count && status == ESDM_OK) {
        status = esdm__member_use(&whole->members, used, &members[used], err);
        used += status == ESDM_OK;
    }
    container->writable = true; /* while it is filled */
    if (status == ESDM_OK)
        status = check_origins(whole, question, members, err);
    if (status == ESDM_OK)
        status = put_together(whole, members, container, err);
    container->writable = false;
    container->structure_dirty = false;
    while (used-- > 0)
        esdm__member_release(&whole->members, used);
    free(members);
    return status;
}
