/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The joined container in memory: the first member's structure, with what the others make of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "virtual/parts.h"

/* ---- what the values are -------------------------------------------------------------------- */

static bool
same_marks(const esdm__meaning *a, const esdm__meaning *b)
{
    return a->nmarks == b->nmarks &&
           (a->nmarks == 0 || memcmp(a->marks, b->marks, a->nmarks * sizeof *a->marks) == 0);
}

static bool
same_packing(const esdm__meaning *a, const esdm__meaning *b)
{
    return a->packed == b->packed && a->scale == b->scale && a->offset == b->offset;
}

/* What the joined dataset is, from the meanings of all members. */
static esdm_status
meaning_of_all(const esdm__meaning *all, size_t count, size_t first, const char *name,
               bool *ret_unpack, esdm__meaning *ret, esdm_error *err)
{
    esdm__meaning whole = all[first];
    bool unpack = false;
    bool times = false;
    for (size_t i = 0; i < count; i++) {
        unpack = unpack || !same_packing(&all[i], &whole);
        times = times || (whole.is_time && strcmp(all[i].time_text, whole.time_text) != 0);
    }
    esdm_type type = unpack ? whole.unpacked : whole.type;
    bool mapped = unpack || times;
    for (size_t i = 0; i < count && type != ESDM_TYPE_NONE; i++) {
        type = esdm__type_of_both(type, unpack ? all[i].unpacked : all[i].type);
        mapped = mapped || !same_marks(&all[i], &whole);
        if (whole.nmarks == 0 && all[i].nmarks > 0 && !whole.has_fill) {
            whole.fill = all[i].fill;
            whole.has_fill = true;
        }
    }
    if (times || (whole.is_time && type != whole.type))
        type = ESDM_TYPE_FLOAT64;
    if (type == ESDM_TYPE_NONE)
        return esdm__error_set(err, ESDM_EINVAL,
                               "no type holds the values of variable '%s' of all "
                               "members",
                               name);
    if (mapped && (type == ESDM_TYPE_INT64 || type == ESDM_TYPE_UINT64))
        return esdm__error_set(
            err, ESDM_ENOTSUP,
            "variable '%s' has 64-bit integers and differs in packing or missing "
            "values between members: this is not joined by this version",
            name);
    whole.type = type;
    if (whole.nmarks == 0 && whole.has_fill) { /* that of another member */
        whole.marks[0] = whole.fill;
        whole.nmarks = 1;
    }
    if (unpack)
        whole.packed = false;
    *ret_unpack = unpack;
    *ret = whole;
    return ESDM_OK;
}

static esdm_status
make_maps(esdm__joined *joined, const esdm__meaning *all, size_t count, bool unpack,
          esdm_error *err)
{
    const esdm__meaning *whole = &joined->whole;
    joined->maps = calloc(count, sizeof(esdm__map *));
    if (joined->maps == NULL)
        return esdm__error_nomem(err, count * sizeof(esdm__map *), "a virtual container");
    for (size_t i = 0; i < count; i++) {
        esdm__map map = {.from = all[i]};
        map.unpack = unpack && all[i].packed;
        map.times = whole->is_time && strcmp(all[i].time_text, whole->time_text) != 0;
        map.marks = map.unpack || !same_marks(&all[i], whole);
        if (!map.unpack && !map.times && !map.marks)
            continue;
        joined->maps[i] = malloc(sizeof map);
        if (joined->maps[i] == NULL)
            return esdm__error_nomem(err, sizeof map, "a virtual container");
        *joined->maps[i] = map;
    }
    return ESDM_OK;
}

/* ---- the dataset says so ----------------------------------------------------------------------
 */

static esdm_status
set_number(esdm_dataset *dataset, const char *name, double value, esdm_error *err)
{
    uint64_t room = 0;
    esdm_status status =
        esdm_convert(ESDM_TYPE_FLOAT64, &value, dataset->type, &room, 1, NULL, err);
    if (status == ESDM_OK)
        status = esdm_attribute_set(&dataset->attributes, name, dataset->type, 1, &room, err);
    return status;
}

static bool
is_packed(const esdm_dataset *dataset)
{
    return esdm_attribute_find(&dataset->attributes, "scale_factor", NULL, NULL) ||
           esdm_attribute_find(&dataset->attributes, "add_offset", NULL, NULL);
}

/* All of them, in the new type: members that are not mapped have them. Of packed values they became
 * the fill value. */
static esdm_status
retype_missing(esdm_dataset *dataset, const esdm__meaning *whole, bool packed, esdm_error *err)
{
    esdm_attribute a;
    uint64_t room[ESDM__MARKS_MOST];
    double values[ESDM__MARKS_MOST];
    if (!esdm_attribute_find(&dataset->attributes, "missing_value", &a, NULL))
        return ESDM_OK;
    bool kept =
        !packed && a.count >= 1 && a.count <= ESDM__MARKS_MOST && esdm__meaning_is_number(a.type) &&
        esdm_convert(a.type, a.values, ESDM_TYPE_FLOAT64, values, a.count, NULL, NULL) == ESDM_OK &&
        esdm_convert(ESDM_TYPE_FLOAT64, values, whole->type, room, a.count, NULL, NULL) == ESDM_OK;
    esdm_status status = ESDM_OK;
    if (!kept)
        status = esdm_convert(ESDM_TYPE_FLOAT64, &whole->fill, whole->type, room, 1, NULL, err);
    if (status == ESDM_OK)
        status = esdm_attribute_set(&dataset->attributes, "missing_value", whole->type,
                                    kept ? a.count : 1, room, err);
    return status;
}

esdm_status
esdm__joined_retype(esdm_dataset *dataset, const esdm__meaning *whole, bool unpack, esdm_error *err)
{
    uint64_t room = 0;
    bool was_packed = unpack && is_packed(dataset);
    if (unpack) {
        static const char *const packed[] = {"scale_factor", "add_offset", "valid_range",
                                             "valid_min", "valid_max"};
        for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
            esdm__virtual_forget(dataset, packed[i]);
    }
    esdm_status status = retype_missing(dataset, whole, was_packed, err);
    if (status == ESDM_OK && dataset->type != whole->type) {
        status = esdm_dataset_set_fill(dataset, NULL, err);
        if (status == ESDM_OK)
            status = esdm__dataset_set_codec_text(dataset, NULL, err);
        dataset->type = whole->type;
    }
    if (status == ESDM_OK && (whole->has_fill || (unpack && whole->nmarks > 0))) {
        status = esdm_convert(ESDM_TYPE_FLOAT64, &whole->fill, dataset->type, &room, 1, NULL, err);
        if (status == ESDM_OK)
            status = esdm_dataset_set_fill(dataset, &room, err);
        if (status == ESDM_OK)
            status = set_number(dataset, "_FillValue", whole->fill, err);
    }
    return status;
}

/* Stored bits that stand for other numbers than their type says: nobody converts these here. */
static esdm_status
check_unsigned(const esdm_dataset *dataset, esdm_error *err)
{
    char text[8];
    esdm__attribute_text(dataset, "_Unsigned", text, sizeof text);
    if (strcmp(text, "true") != 0)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "variable '%s' has _Unsigned = \"true\" and differs in type, packing or "
                           "missing values between members: this is not joined by this version",
                           dataset->name);
}

static esdm_status
join_dataset(const esdm__virtual *whole, esdm_dataset *dataset, esdm__joined *joined,
             esdm_error *err)
{
    bool unpack = false;
    if (joined->values != NULL)
        return ESDM_OK;
    joined->axis = esdm__dataset_axis(dataset, whole->axis.name);
    joined->source = whole->axis.first;
    joined->cross =
        whole->cross.name[0] != '\0' ? esdm__dataset_axis(dataset, whole->cross.name) : -1;
    if ((joined->axis < 0 && joined->cross < 0) || !esdm__meaning_is_number(dataset->type))
        return ESDM_OK;
    const esdm__meaning *of_first = &joined->meanings[joined->which[whole->axis.first]];
    esdm_status status =
        meaning_of_all(joined->meanings, joined->nmeanings, joined->which[whole->axis.first],
                       dataset->name, &unpack, &joined->whole, err);
    if (status == ESDM_OK)
        status = make_maps(joined, joined->meanings, joined->nmeanings, unpack, err);
    bool changed = unpack || joined->whole.type != dataset->type ||
                   joined->whole.has_fill != of_first->has_fill;
    bool mapped = false;
    for (size_t i = 0; i < joined->nmeanings && status == ESDM_OK; i++)
        mapped = mapped || joined->maps[i] != NULL;
    if (status == ESDM_OK && (changed || mapped))
        status = check_unsigned(dataset, err);
    if (unpack && of_first->packed && joined->whole.nmarks > 0) { /* packed ones mean nothing now */
        joined->whole.marks[0] = joined->whole.fill;
        joined->whole.nmarks = 1;
    }
    if (status == ESDM_OK && changed)
        status = esdm__joined_retype(dataset, &joined->whole, unpack, err);
    bool holes = whole->has_holes && joined->axis >= 0 && joined->cross >= 0;
    if (status == ESDM_OK && (holes || (whole->axis.nfilled > 0 && joined->axis >= 0)))
        status = esdm__filled_prepare(whole, dataset, joined, err);
    return status;
}

/* ---- the container -------------------------------------------------------------------------- */

esdm_status
esdm__virtual_copy_structure(esdm_container *from, esdm_container *to, esdm_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    esdm_status status = esdm__document_write(from, &text, &bytes, err);
    if (status == ESDM_OK)
        status = esdm__document_read(text, bytes, to, err);
    free(text);
    for (size_t i = 0; status == ESDM_OK && i < to->dimensions.count; i++) {
        esdm_dimension *d = to->dimensions.items[i];
        if (d->unlimited)
            (void) esdm__dimension_grow(d, esdm_dimension_length(from->dimensions.items[i]));
    }
    return status;
}

/* In the classic formats only the first dimension of a variable can be unlimited, and one. */
static bool
may_be_unlimited(const esdm_container *container, const esdm_dimension *dimension)
{
    const char *format = esdm_container_hint(container, "netcdf.format");
    if (format == NULL || strcmp(format, "netcdf4") == 0)
        return true;
    for (size_t i = 0; i < container->dimensions.count; i++) {
        const esdm_dimension *other = container->dimensions.items[i];
        if (other != dimension && other->unlimited)
            return false;
    }
    for (size_t i = 0; i < container->datasets.count; i++)
        if (esdm__dataset_axis(container->datasets.items[i], dimension->name) > 0)
            return false;
    return true;
}

/* Bounds that not all members have, told of and left out. */
static void
forget_left_out(esdm__virtual *whole, esdm_container *first)
{
    size_t n = 0;
    for (size_t i = 0; i < whole->ndatasets; i++) {
        const esdm_dataset *dataset = first->datasets.items[i];
        if (whole->datasets[i].left_out) {
            esdm__note_left_out(dataset->name, &whole->differs);
            free(whole->datasets[i].meanings);
            free(whole->datasets[i].which);
        } else {
            whole->datasets[n++] = whole->datasets[i];
        }
    }
    whole->ndatasets = n;
}

/* Attributes that name what is left out. */
static void
forget_names(esdm_container *to)
{
    static const char *const names[] = {"bounds", "climatology"};
    char text[ESDM_NAME_MAX + 1];
    for (size_t i = 0; i < to->datasets.count; i++) {
        esdm_dataset *dataset = to->datasets.items[i];
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            esdm__attribute_text(dataset, names[k], text, sizeof text);
            if (text[0] != '\0' && esdm_group_dataset_find(dataset->group, text) == NULL)
                esdm__virtual_forget(dataset, names[k]);
        }
    }
}

static esdm_status
copy_all_but_left_out(esdm__virtual *whole, esdm_container *first, esdm_container *to,
                      esdm_error *err)
{
    bool all = true;
    for (size_t i = 0; i < whole->ndatasets; i++)
        all = all && !whole->datasets[i].left_out;
    if (all)
        return esdm__virtual_copy_structure(first, to, err);
    if (first->groups.count > 1)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "'%s' has bounds that other members lack, and groups: these are not "
                               "joined by this version",
                               first->name);
    bool changed = false;
    esdm_status status = esdm__attributes_copy(esdm_group_attributes(esdm_container_root(first)),
                                               esdm_group_attributes(esdm_container_root(to)), err);
    for (size_t i = 0; i < first->hints.count && status == ESDM_OK; i++)
        status = esdm__hints_set(&to->hints, first->hints.items[i].key, first->hints.items[i].value,
                                 &changed, err);
    if (status == ESDM_OK)
        status = esdm__virtual_add_variables(first, whole->datasets, to, err);
    if (status != ESDM_OK)
        return status;
    forget_left_out(whole, first);
    forget_names(to);
    return ESDM_OK;
}

static esdm_status
build_from(esdm__virtual *whole, const esdm__bundles *bundles, esdm_container *first,
           esdm_container *container, esdm_error *err)
{
    esdm_status status = copy_all_but_left_out(whole, first, container, err);
    if (status == ESDM_OK && whole->stacks)
        status = esdm__stack_build(whole, bundles, container, err);
    if (status != ESDM_OK)
        return status;
    if (whole->cross.name[0] != '\0')
        atomic_store(
            &esdm_group_dimension_find(esdm_container_root(container), whole->cross.name)->length,
            whole->cross.length);
    if (!whole->stacks) {
        esdm_dimension *joined =
            esdm_group_dimension_find(esdm_container_root(container), whole->axis.name);
        joined->unlimited = may_be_unlimited(container, joined);
        atomic_store(&joined->length, whole->axis.length);
    }
    for (size_t i = 0; i < whole->ndatasets && status == ESDM_OK; i++)
        status = join_dataset(whole, container->datasets.items[i], &whole->datasets[i], err);
    for (size_t i = 0; i < container->datasets.count && status == ESDM_OK; i++)
        atomic_store(&((esdm_dataset *) container->datasets.items[i])->has_data, true);
    return status == ESDM_OK ? esdm__virtual_note(whole, container, err) : status;
}

esdm_status
esdm__virtual_build(esdm__virtual *whole, const esdm__bundles *bundles, esdm_container *container,
                    esdm_error *err)
{
    esdm_container *first = NULL;
    esdm_status status = esdm__member_use(&whole->members, whole->axis.first, &first, err);
    if (status != ESDM_OK)
        return status;
    container->writable = true; /* while it is filled */
    status = build_from(whole, bundles, first, container, err);
    container->writable = false;
    container->structure_dirty = false;
    esdm__member_release(&whole->members, whole->axis.first);
    return status;
}

void
esdm__joined_clear(esdm__virtual *whole)
{
    for (size_t i = 0; i < whole->ndatasets; i++) {
        esdm__joined *joined = &whole->datasets[i];
        free(joined->values);
        for (size_t k = 0; joined->maps != NULL && k < joined->nmeanings; k++)
            free(joined->maps[k]);
        free(joined->maps);
        free(joined->meanings);
        free(joined->which);
    }
    free(whole->datasets);
    whole->datasets = NULL;
    whole->ndatasets = 0;
}

void
esdm__virtual_clear(esdm__virtual *whole)
{
    esdm__joined_clear(whole);
    free(whole->flips);
    esdm__buffer_clear(&whole->differs);
    esdm__axis_clear(&whole->axis);
    esdm__cross_clear(whole);
    esdm__members_clear(&whole->members);
    *whole = (esdm__virtual){0};
}

void
esdm__virtual_free(void *provided)
{
    esdm__virtual_clear(provided);
    free(provided);
}
